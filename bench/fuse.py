"""script/bench fuse: what a mounted directory costs, beside the directory itself and libfuse's passthrough_hp."""
from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench import plot, targets
from bench.harness import Problem, Program, machine_settings, median
from bench.report import Row, print_settings, size_name, table, write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PATHS = {
    "below": "the directory itself",
    "passthrough_hp": "libfuse's example, with a clone of /dev/fuse for each thread",
    "posix-fifo": "vpfs-mount, policy fifo",
    "posix-sfq": "vpfs-mount, policy sfq, depth 16",
}
DATA = [("read", 1 << 20, 1), ("write", 1 << 20, 1), ("randread", 4096, 1), ("randwrite", 4096, 1),
        ("read", 1 << 20, 16), ("write", 1 << 20, 16), ("randread", 4096, 16), ("randwrite", 4096, 16)]
NAMES = ["create", "stat", "unlink"]
COLUMNS = ["op", "size", "jobs", "path", "mib_per_s", "ops_per_s", "p99_us", "cpu_s_per_gib", "of_passthrough"]
TOTAL = 256 << 20  # bytes of all files of a load
CONFIG = """
scheduler: {{policy: {policy}, depth: {{requests: 16, bytes: 16 MiB}}}}
virtual_pfs: {{default: {{weight: 1}}}}
"""


def passthrough_hp() -> str | None:
    """The rival, where somebody has built it: VPFS_LIBFUSE_PREFIX/bin/passthrough_hp."""
    prefix = os.environ.get("VPFS_LIBFUSE_PREFIX")
    return shutil.which("passthrough_hp", path=f"{prefix}/bin") if prefix else None


class Mounts:
    """Mounts one directory by one path after the other."""

    def __init__(self, binaries: pathlib.Path, scratch: pathlib.Path) -> None:
        self.binaries, self.scratch = binaries, scratch
        self.below, self.place = scratch / "below", scratch / "mount"
        self.below.mkdir()
        self.place.mkdir()

    def command(self, path: str, cached: bool) -> list[str]:
        if path == "passthrough_hp":
            options = [] if cached else ["--nocache"]
            return [str(passthrough_hp()), "--foreground", "--clone-fd", *options, str(self.below), str(self.place)]
        config = self.scratch / f"{path}.yaml"
        config.write_text(CONFIG.format(policy=path.removeprefix("posix-")))
        keep = 86400 if cached else 0
        return [str(self.binaries / "vpfs-mount"), f"posix:{self.below}", str(self.place), "-f", "-o",
                f"config={config},entry_timeout={keep},attr_timeout={keep}"]

    @contextlib.contextmanager
    def mounted(self, path: str, cached: bool) -> Iterator[tuple[pathlib.Path, Program | None]]:
        if path == "below":
            yield self.below, None
            return
        program = Program(self.command(path, cached), self.scratch / f"{path}.log", self.scratch)
        try:
            program.wait_until(self.place.is_mount, "mounted")
            yield self.place, program
        finally:
            subprocess.run(["fusermount3", "-u", str(self.place)], check=True)
            program.stop()


def fio(directory: pathlib.Path, op: str, size: int, jobs: int, seconds: float) -> dict[str, float] | None:
    """One run with direct I/O. Nothing: the path refuses direct I/O of this kind."""
    command = ["fio", "--name=load", f"--directory={directory}", "--filename_format=$jobname.$jobnum", f"--rw={op}",
               f"--bs={size}", f"--numjobs={jobs}", f"--size={TOTAL // jobs}", "--direct=1", "--ioengine=psync",
               "--time_based", f"--runtime={seconds}", "--fallocate=none", "--group_reporting", "--output-format=json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120)
    if done.returncode != 0:
        return None
    job = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
    side = job["write"] if "write" in op else job["read"]
    return {"mib_per_s": side["bw_bytes"] / 2**20, "ops_per_s": side["iops"],
            "p99_us": side["clat_ns"]["percentile"]["99.000000"] / 1000, "gib": side["io_bytes"] / 2**30}


def lay_out(directory: pathlib.Path, jobs: int) -> None:
    """The files of a load, so that no path measures how they are made."""
    for job in range(jobs):
        with (directory / f"load.{job}").open("wb") as file:
            for _ in range(TOTAL // jobs >> 20):
                file.write(os.urandom(1 << 20))


def names(directory: pathlib.Path, count: int) -> dict[str, float]:
    """Makes files, asks for their attributes and removes them; operations per second of each."""
    paths = [str(directory / f"name-{number}") for number in range(count)]
    rates = {}
    for what in NAMES:
        begin = time.monotonic()
        for path in paths:
            if what == "create":
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
            elif what == "stat":
                os.stat(path)
            else:
                os.unlink(path)
        rates[what] = count / (time.monotonic() - begin)
    return rates


def data_rows(mounts: Mounts, paths: Sequence[str], load: tuple[str, int, int], runs: int, seconds: float) -> list[Row]:
    """All paths in turn, `runs` times; medians."""
    op, size, jobs = load
    lay_out(mounts.below, jobs)
    seen: dict[str, list[dict[str, float]]] = {path: [] for path in paths}
    for _, path in itertools.product(range(runs), paths):
        with mounts.mounted(path, cached=False) as (directory, program):
            before = program.cpu_seconds() if program else 0.0
            result = fio(directory, op, size, jobs, seconds)
            if result is None:
                continue
            result["cpu_s_per_gib"] = (program.cpu_seconds() - before) / result["gib"] if program else 0.0
            seen[path].append(result)
    rows = []
    for path, results in seen.items():
        row: Row = {"backend": "posix", "op": op, "size": size_name(size), "jobs": jobs, "path": path}
        for field in ["mib_per_s", "ops_per_s", "p99_us", "cpu_s_per_gib"]:
            row[field] = median([result[field] for result in results]) if results else None
        rows.append(row)
    for row in rows:
        row["cpu_s_per_gib"] = None if row["path"] == "below" else row["cpu_s_per_gib"]
    return compared(rows)


def name_rows(mounts: Mounts, paths: Sequence[str], count: int, runs: int) -> list[Row]:
    seen: dict[str, list[dict[str, float]]] = {path: [] for path in paths}
    for _, path in itertools.product(range(runs), paths):
        with mounts.mounted(path, cached=True) as (directory, _):
            seen[path].append(names(directory, count))
    rows: list[Row] = []
    for what in NAMES:
        rows += compared([{"backend": "posix", "op": what, "size": "-", "jobs": 1, "path": path, "mib_per_s": None,
                           "ops_per_s": median([result[what] for result in results]), "p99_us": None,
                           "cpu_s_per_gib": None} for path, results in seen.items()])
    return rows


def compared(rows: list[Row]) -> list[Row]:
    """Adds what each path reaches of passthrough_hp."""
    rival = next((row["ops_per_s"] for row in rows if row["path"] == "passthrough_hp"), None)
    for row in rows:
        own = row["ops_per_s"]
        row["of_passthrough"] = own / rival if own and rival else None
    return rows


def verdicts(rows: Sequence[Row]) -> list[Row]:
    fifo = [row["of_passthrough"] for row in rows if row["path"] == "posix-fifo" and row["of_passthrough"]]
    cpu = {(row["op"], row["size"], row["jobs"], row["path"]): row["cpu_s_per_gib"] for row in rows}
    loads = {key[:3] for key in cpu}
    extra = [cpu[load + ("posix-sfq",)] / cpu[load + ("posix-fifo",)] for load in loads
             if cpu.get(load + ("posix-sfq",)) and cpu.get(load + ("posix-fifo",))]
    return [targets.at_least("posix-fifo, operations/s of passthrough_hp", 1.0, fifo),
            targets.at_most("posix-sfq, CPU per GiB of posix-fifo", 1.03, extra)]


def figure(rows: Sequence[Row], paths: Sequence[str], caption: str) -> Figure:
    sheet = plot.Sheet("A mounted directory beside the directory itself", caption, rows=2, heights=[2.6])
    for panel, jobs in zip(sheet.panels, [1, 16]):
        own = [row for row in rows if row["jobs"] == jobs]
        loads = list(dict.fromkeys((row["op"], row["size"]) for row in own))
        rate = {(row["op"], row["size"], row["path"]): row["ops_per_s"] for row in own}
        of_below = {path: [100 * rate[load + (path,)] / rate[load + ("below",)] if rate[load + (path,)] else None
                           for load in loads] for path in paths if path != "below"}
        plot.bars(panel, [op if size == "-" else f"{op} {size}" for op, size in loads], of_below)
        plot.label(panel, "", "operations/s (% of below)", f"{jobs} job{'s' if jobs > 1 else ''}")
    plot.from_zero(sheet.panels)
    return sheet.finish()


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="script/bench fuse", description="What a mounted directory costs. Needs root, /dev/fuse and fio; "
        "VPFS_LIBFUSE_PREFIX is where bin/passthrough_hp is, if it is there.", add_help=False)
    parser.add_argument("--directory", type=pathlib.Path, help="where the files lie; otherwise the temporary directory")
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    if not os.access("/dev/fuse", os.R_OK | os.W_OK) or not shutil.which("fio"):
        raise Problem("this needs /dev/fuse and fio")
    runs, seconds, count = (3, 1.0, 2000) if quick else (5, 2.0, 10_000)
    paths = [path for path in PATHS if path != "passthrough_hp" or passthrough_hp()]
    settings = machine_settings() | {
        "load": f"fio psync, direct I/O, files of {TOTAL >> 20} MiB together; {count} files for create, stat and unlink",
        "caches": "data: none kept by the kernel; names: kept for a day",
        "runs": runs, "seconds": seconds, "statistic": "median of interleaved runs", "quick": quick,
        "paths": {path: PATHS[path] for path in paths},
    }
    print_settings(settings)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="vpfs-bench-") as scratch:
        mounts = Mounts(binaries, pathlib.Path(scratch))
        for load in DATA:
            part = data_rows(mounts, paths, load, runs, seconds)
            rows += part
            print("\n" + table(part, COLUMNS), flush=True)
        part = name_rows(mounts, paths, count, runs)
        rows += part
        print("\n" + table(part, COLUMNS), flush=True)
    judged = verdicts(rows)
    print("\n" + table(judged, targets.COLUMNS))
    write_json(out / "fuse.json", {"settings": settings, "rows": rows, "targets": judged})
    plot.save(out / "fuse", lambda: figure(rows, paths, plot.caption(
        settings, "fio, direct I/O; names: kept for a day", f"medians of {runs} interleaved runs of {seconds:g} s")))
    return 0
