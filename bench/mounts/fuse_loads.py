"""The loads of script/bench fuse, on every path: fio with direct I/O, and names of files."""

from __future__ import annotations

import contextlib
import itertools
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import Protocol

from bench.mounts import fio_output
from lab.harness import Problem, Program, median
from lab.report import Json, Row, size_name

Load = tuple[str, int, int]  # what fio calls it, the size of a request, jobs

DATA: list[Load] = [
    ("read", 1 << 20, 1),
    ("write", 1 << 20, 1),
    ("randread", 4096, 1),
    ("randwrite", 4096, 1),
    ("read", 1 << 20, 16),
    ("write", 1 << 20, 16),
    ("randread", 4096, 16),
    ("randwrite", 4096, 16),
]
NAMES = ["create", "stat", "unlink"]
NUMBERS = ["mib_per_s", "ops_per_s", "p99_us", "cpu_s_per_gib"]
TOTAL = 256 << 20  # bytes of all files of a load
PATIENCE = 120.0
NO_DIRECT_IO = ["does not support direct=1", "error=Invalid argument"]  # as fio says it


class Source(Protocol):
    """A file system that can be reached by several paths."""

    backend: str

    @property
    def paths(self) -> Sequence[str]:
        """Their names."""

    rival: str  # the path that the others are compared with

    def lay_out(self, jobs: int) -> None:
        """Makes the files of a load, so that no path measures how they are made."""

    def once(self, path: str, load: Load, seconds: float) -> fio_output.Numbers | None:
        """One run. Nothing: the path refuses direct I/O of this kind."""

    def mounted(
        self, path: str, cached: bool
    ) -> contextlib.AbstractContextManager[tuple[pathlib.Path, Program | None]]:
        """The directory to which the path leads, and the program behind it."""


def fio(directory: pathlib.Path, load: Load, seconds: float) -> fio_output.Numbers | None:
    """One run with direct I/O. Nothing: the path refuses direct I/O of this kind."""
    op, size, jobs = load
    command = [
        "fio",
        "--name=load",
        f"--directory={directory}",
        "--filename_format=$jobname.$jobnum",
        f"--rw={op}",
        f"--bs={size}",
        f"--numjobs={jobs}",
        f"--size={TOTAL // jobs}",
        "--direct=1",
        "--ioengine=psync",
        "--time_based",
        f"--runtime={seconds}",
        "--fallocate=none",
        "--group_reporting",
        "--output-format=json",
    ]
    # A session of its own: with one process for each job, all of them have to end.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, errors = process.communicate(timeout=seconds + PATIENCE)
        except subprocess.TimeoutExpired:
            raise Problem(f"fio did not end: {' '.join(command)}") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode == 0:
        return fio_output.numbers(output)
    if any(text in output + errors for text in NO_DIRECT_IO):
        return None
    raise Problem(f"fio ended with {process.returncode}: {(output + errors)[-500:].strip()}")


def fio_beside(
    directory: pathlib.Path, program: Program | None, load: Load, seconds: float
) -> fio_output.Numbers | None:
    """The same, with what a GiB costs the program behind the directory."""
    before = program.cpu_seconds() if program else 0.0
    result = fio(directory, load, seconds)
    if result is not None and program is not None:
        result["cpu_s_per_gib"] = (program.cpu_seconds() - before) / result["gib"]
    return result


def write_files(directory: pathlib.Path, jobs: int) -> None:
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


def data_rows(source: Source, load: Load, runs: int, seconds: float) -> list[Row]:
    """All paths in turn, `runs` times; medians."""
    op, size, jobs = load
    source.lay_out(jobs)
    seen: dict[str, list[fio_output.Numbers]] = {path: [] for path in source.paths}
    for _, path in itertools.product(range(runs), source.paths):
        result = source.once(path, load, seconds)
        if result is not None:
            seen[path].append(result)
    rows: list[Json] = []
    for path, results in seen.items():
        if results and len(results) < runs:
            raise Problem(f"{path} refused direct I/O in {runs - len(results)} of {runs} runs")
        row: Json = {
            "backend": source.backend,
            "op": op,
            "size": size_name(size),
            "jobs": jobs,
            "path": path,
        }
        for field in NUMBERS:
            known = [result[field] for result in results if field in result]
            row[field] = median(known) if known else None
        rows.append(row)
    return compared(rows, source.rival)


def name_rows(source: Source, paths: Sequence[str], count: int, runs: int) -> list[Row]:
    seen: dict[str, list[dict[str, float]]] = {path: [] for path in paths}
    for _, path in itertools.product(range(runs), paths):
        with source.mounted(path, cached=True) as (directory, _):
            seen[path].append(names(directory, count))
    rows: list[Row] = []
    for what in NAMES:
        rows += compared(
            [
                dict.fromkeys(NUMBERS)
                | {
                    "backend": source.backend,
                    "op": what,
                    "size": "-",
                    "jobs": 1,
                    "path": path,
                    "ops_per_s": median([result[what] for result in results]),
                }
                for path, results in seen.items()
            ],
            source.rival,
        )
    return rows


def compared(rows: Sequence[Json], rival: str) -> list[Row]:
    """Adds what each path reaches of the rival."""
    of_rival = next((row["ops_per_s"] for row in rows if row["path"] == rival), None)
    for row in rows:
        own = row["ops_per_s"]
        row["of_rival"] = own / of_rival if own and of_rival else None
    return list(rows)
