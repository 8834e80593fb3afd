"""script/bench fuse: what a mount costs, beside other ways to the same files."""

from __future__ import annotations

import argparse
import contextlib
import functools
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bench.mounts import fuse_orangefs
from bench.mounts.fio_output import Numbers
from bench.mounts.fuse_loads import (
    DATA,
    TOTAL,
    Load,
    Source,
    data_rows,
    fio_beside,
    name_rows,
    write_files,
)
from lab import plot, targets
from lab.harness import Program, Programs, machine_settings
from lab.mount import in_prefix, mounted, require_mounts
from lab.report import Row, print_settings, table, write_json
from lab.rounds import Rounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POSIX, ORANGEFS = "posix", "orangefs"
RIVAL = "passthrough_hp"
PATHS = {
    "below": "the directory itself",
    RIVAL: "libfuse's example, with a clone of /dev/fuse for each thread",
    "posix-fifo": "vpfs-mount, policy fifo",
    "posix-sfq": "vpfs-mount, policy sfq, depth 16",
}
COLUMNS = [
    "backend",
    "op",
    "size",
    "jobs",
    "path",
    "mib_per_s",
    "ops_per_s",
    "p99_us",
    "cpu_s_per_gib",
    "of_rival",
]
FULL, QUICK = Rounds(seconds=2.0, runs=5), Rounds(seconds=1.0, runs=3)
QUICK_OF_ORANGEFS = [load for load in DATA if (load[1] == 4096) == (load[2] == 1)]
CONFIG = """
scheduler: {{policy: {policy}, depth: {{requests: 16, bytes: 16 MiB}}}}
virtual_pfs: {{default: {{weight: 1}}}}
"""


def passthrough_hp() -> str | None:
    """The rival, if it was built: VPFS_LIBFUSE_PREFIX/bin/passthrough_hp."""
    return in_prefix("VPFS_LIBFUSE_PREFIX", RIVAL)


@functools.cache
def options_of_rival() -> list[str]:
    """Since libfuse 3.17 the kernel can move its data past the program that mounts.

    A program that never sees a request has nothing to schedule, so this is off.
    """
    usage = subprocess.run([str(passthrough_hp()), "--help"], check=False, capture_output=True)
    return ["--nopassthrough"] if b"--nopassthrough" in usage.stdout + usage.stderr else []


class Mounts:
    """Mounts one directory by one path after the other."""

    backend = POSIX
    rival = RIVAL

    def __init__(self, binaries: pathlib.Path, scratch: pathlib.Path, paths: Sequence[str]) -> None:
        self.binaries, self.scratch, self.paths = binaries, scratch, paths
        self.below, self.place = scratch / "below", scratch / "mount"
        self.below.mkdir()
        self.place.mkdir()

    def command(self, path: str, cached: bool) -> list[str]:
        if path == "passthrough_hp":
            options = [] if cached else ["--nocache"]
            return [
                str(passthrough_hp()),
                "--foreground",
                "--clone-fd",
                *options_of_rival(),
                *options,
                str(self.below),
                str(self.place),
            ]
        config = self.scratch / f"{path}.yaml"
        config.write_text(CONFIG.format(policy=path.removeprefix("posix-")))
        keep = 86400 if cached else 0
        return [
            str(self.binaries / "vpfs-mount"),
            f"posix:{self.below}",
            str(self.place),
            "-f",
            "-o",
            f"config={config},entry_timeout={keep},attr_timeout={keep}",
        ]

    @contextlib.contextmanager
    def mounted(self, path: str, cached: bool) -> Iterator[tuple[pathlib.Path, Program | None]]:
        if path == "below":
            yield self.below, None
            return
        with (
            Programs(self.binaries, self.scratch) as programs,
            mounted(programs, path, self.command(path, cached), self.place) as program,
        ):
            yield self.place, program

    def lay_out(self, jobs: int) -> None:
        write_files(self.below, jobs)

    def once(self, path: str, load: Load, seconds: float) -> Numbers | None:
        with self.mounted(path, cached=False) as (directory, program):
            return fio_beside(directory, program, load, seconds)


def verdicts(rows: Sequence[Row]) -> list[Row]:
    fifo = [row["of_rival"] for row in rows if row["path"] == "posix-fifo" and row["of_rival"]]
    cpu = {
        (row["op"], row["size"], row["jobs"], row["path"]): row["cpu_s_per_gib"]
        for row in rows
        if row["backend"] == POSIX
    }
    loads = {key[:3] for key in cpu}
    extra = [
        cpu[(*load, "posix-sfq")] / cpu[(*load, "posix-fifo")]
        for load in loads
        if cpu.get((*load, "posix-sfq")) and cpu.get((*load, "posix-fifo"))
    ]
    return [
        targets.at_least("posix-fifo, operations/s of passthrough_hp", 1.0, fifo),
        targets.at_most("posix-sfq, CPU per GiB of posix-fifo", 1.03, extra),
    ]


def base_of(paths: Sequence[str]) -> str | None:
    """What a figure compares the other paths with. Nothing: there is nothing to compare."""
    bases = ("below", fuse_orangefs.LOAD, fuse_orangefs.RIVAL)
    return next((path for path in bases if path in paths and len(paths) > 1), None)


def figure(rows: Sequence[Row], backend: str, caption: str) -> Figure:
    """What each path reaches of the rate of the directory below, vpfs-load or pvfs2fuse."""
    own = [row for row in rows if row["backend"] == backend]
    measured = list(dict.fromkeys(str(row["path"]) for row in own))
    base = base_of(measured)
    title = (
        "A mounted directory"
        if backend == POSIX
        else f"A mounted OrangeFS, {fuse_orangefs.BACKENDS[backend]}"
    )
    # Names have no rows by vpfs-load to compare with.
    jobs_shown = [
        jobs for jobs in (1, 16) if any(row["jobs"] == jobs and row["path"] == base for row in own)
    ]
    sheet = plot.Sheet(title, caption, rows=len(jobs_shown), heights=[2.6])
    for panel, jobs in zip(sheet.panels, jobs_shown):
        rate = {
            (row["op"], row["size"], row["path"]): row["ops_per_s"]
            for row in own
            if row["jobs"] == jobs
        }
        loads = list(dict.fromkeys(key[:2] for key in rate if rate.get((*key[:2], base))))
        of_base = {
            path: [
                100 * rate[(*load, path)] / rate[(*load, base)] if rate.get((*load, path)) else None
                for load in loads
            ]
            for path in measured
            if path != base
        }
        plot.bars(panel, [op if size == "-" else f"{op} {size}" for op, size in loads], of_base)
        plot.target(panel, 100, f"as {base}")
        plot.label(panel, "", f"operations/s (% of {base})", f"{jobs} job{'s' if jobs > 1 else ''}")
    plot.from_zero(sheet.panels)
    return sheet.finish()


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="script/bench fuse",
        description="What a mount costs. Needs root, /dev/fuse and fio. VPFS_LIBFUSE_PREFIX is "
        "where bin/passthrough_hp is, VPFS_ORANGEFS_PREFIX where bin/pvfs2fuse and "
        "sbin/pvfs2-server are, if they are there.",
        add_help=False,
    )
    parser.add_argument(
        "--directory",
        type=pathlib.Path,
        help="where the files are made (default: the temporary directory)",
    )
    parser.add_argument(
        "--backends", nargs="+", choices=[POSIX, ORANGEFS], default=[POSIX, ORANGEFS]
    )
    FULL.add_options(parser, QUICK)
    return parser


class Report:
    """Prints each part as soon as it is measured."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, part: Sequence[Row]) -> None:
        self.rows += part
        print("\n" + table(part, COLUMNS), flush=True)

    def measure(self, source: Source, loads: Sequence[Load], runs: int, seconds: float) -> None:
        for load in loads:
            self.add(data_rows(source, load, runs, seconds))


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    require_mounts()
    rounds = (QUICK if quick else FULL).asked(options)
    runs, seconds, count = rounds.runs, rounds.seconds, 2000 if quick else 10_000
    paths = [path for path in PATHS if path != RIVAL or passthrough_hp()]
    backends = fuse_orangefs.backends() if ORANGEFS in options.backends else []
    of_real = count // 5  # a real server writes each name to its disk
    explained = {path: PATHS[path] for path in paths if POSIX in options.backends} | (
        fuse_orangefs.PATHS if backends else {}
    )
    settings = machine_settings() | {
        "load": f"fio psync, direct I/O, files of {TOTAL >> 20} MiB together; {count} files for "
        f"create, stat and unlink ({of_real} on a real OrangeFS)",
        "caches": "data: none kept by the kernel; names: posix kept for a day, orangefs as each "
        "program has it by default",
        "of_rival": f"operations/s against {RIVAL} (posix), {fuse_orangefs.LOAD} (embedded "
        f"servers), {fuse_orangefs.RIVAL} (a real server)",
        "cpu_s_per_gib": "of the program that mounts, or of vpfs-load, without that of fio",
        "runs": runs,
        "seconds": seconds,
        "statistic": "median of interleaved runs",
        "quick": quick,
        "paths": explained,
        "backends": {
            name: text for name, text in fuse_orangefs.BACKENDS.items() if name in backends
        },
    }
    print_settings(settings)
    if backends and fuse_orangefs.REAL not in backends:
        print(
            "\nno rows of a real OrangeFS: VPFS_ORANGEFS_PREFIX does not say where "
            "sbin/pvfs2-server is"
        )
    report = Report()
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="vpfs-bench-") as folder:
        scratch = pathlib.Path(folder)
        if POSIX in options.backends:
            mounts = Mounts(binaries, scratch, paths)
            report.measure(mounts, DATA, runs, seconds)
            report.add(name_rows(mounts, paths, count, runs))
        for number, backend in enumerate(backends):
            with fuse_orangefs.opened(binaries, scratch / f"orangefs{number}", backend) as source:
                report.measure(source, QUICK_OF_ORANGEFS if quick else DATA, runs, seconds)
                real = backend == fuse_orangefs.REAL
                named = source.paths if real else [fuse_orangefs.OWN]
                report.add(name_rows(source, named, of_real if real else count, runs))
    if costs := fuse_orangefs.costs(report.rows):
        print(
            "\nprocessor seconds per GiB where nothing limits\n"
            + table(costs, ["op", "size", "jobs", fuse_orangefs.OWN, fuse_orangefs.LOAD])
        )
    judged = (verdicts(report.rows) if POSIX in options.backends else []) + (
        fuse_orangefs.verdicts(report.rows) if backends else []
    )
    print("\n" + table(judged, targets.COLUMNS))
    write_json(out / "fuse.json", {"settings": settings, "rows": report.rows, "targets": judged})
    for backend in dict.fromkeys(str(row["backend"]) for row in report.rows):
        if not base_of([str(row["path"]) for row in report.rows if row["backend"] == backend]):
            continue
        name = (
            "fuse"
            if backend == POSIX
            else f"fuse-{backend.replace('/', '-per-').replace(' ', '-').lower()}"
        )
        plot.save(
            out / name,
            functools.partial(
                figure,
                report.rows,
                backend,
                plot.caption(
                    settings,
                    "fio, direct I/O",
                    f"medians of {runs} interleaved runs of {seconds:g} s",
                ),
            ),
        )
    return 0
