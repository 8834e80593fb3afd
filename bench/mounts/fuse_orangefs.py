"""The OrangeFS rows of script/bench fuse: vpfs-mount, vpfs-load, and OrangeFS's own client.

vpfs-load speaks to the servers with the same library and without a kernel between, so it shows what
the way through FUSE costs.
"""

from __future__ import annotations

import contextlib
import itertools
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from bench.mounts.fio_output import Numbers
from bench.mounts.fuse_loads import TOTAL, Load, fio_beside, write_files
from lab import real_orangefs, targets
from lab.cluster import Cluster
from lab.file_systems import DIRECT
from lab.harness import Program, Programs
from lab.load import Application, check_errors, quantile_us, run_load
from lab.meter import CpuMeter
from lab.mount import mounted, vpfs_mount
from lab.report import Json, Row

OWN, LOAD, RIVAL = "orangefs", "vpfs-load", "pvfs2fuse"
LIMITED, UNLIMITED, REAL = "400 MiB/s", "no limit", "real"
PATHS = {
    OWN: "vpfs-mount of an OrangeFS, straight to its server",
    LOAD: "the same pattern by vpfs-load, without a mount",
    RIVAL: "OrangeFS's own FUSE client",
}
BACKENDS = {
    LIMITED: "one vpfs-server with a device of 400 MiB/s",
    UNLIMITED: "one vpfs-server with its files in memory",
    REAL: "one pvfs2-server",
}
DEVICE = {"bandwidth": "400 MiB/s", "parallelism": 1}
WARM_UP = 0.2
LEAST_OF_LOAD = 0.97


class OrangefsPaths:
    """One file system, and the programs that lead to it."""

    def __init__(self, programs: Programs, backend: str, address: str, rival: str) -> None:
        there = rival != RIVAL or real_orangefs.pvfs2fuse(address, programs.work)
        self.backend, self.rival, self.paths = backend, rival, [OWN, rival] if there else [OWN]
        self._programs, self._address = programs, address
        self._place = programs.work / "mount"
        self._numbers = itertools.count()

    def _command(self, path: str) -> list[str]:
        own = vpfs_mount(self._address, self._place)
        return (real_orangefs.pvfs2fuse(self._address, self._place) or []) if path == RIVAL else own

    @contextlib.contextmanager
    def mounted(self, path: str, cached: bool) -> Iterator[tuple[pathlib.Path, Program]]:
        """With the times for which each program keeps names by default, `cached` or not."""
        name = f"{path}-{next(self._numbers)}"
        with mounted(self._programs, name, self._command(path), self._place) as program:
            yield self._place, program

    def lay_out(self, jobs: int) -> None:
        with self.mounted(OWN, cached=False) as (directory, _):
            write_files(directory, jobs)

    def once(self, path: str, load: Load, seconds: float) -> Numbers | None:
        if path == LOAD:
            return self._by_load(load, seconds)
        with self.mounted(path, cached=False) as (directory, program):
            return fio_beside(directory, program, load, seconds)

    def _by_load(self, load: Load, seconds: float) -> Numbers:
        op, size, jobs = load
        application = Application(
            "load",
            size,
            outstanding=1,
            processes=jobs,
            read_percent=0 if "write" in op else 100,
            pattern="random" if op.startswith("rand") else "sequential",
            file_size=TOTAL // jobs,
        )
        meter = CpuMeter({})
        result = run_load(
            self._programs,
            f"load-{next(self._numbers)}",
            self._address,
            [application],
            seconds,
            WARM_UP,
            on_line=meter.saw_line,
            on_start=meter.start,
        )
        check_errors(result)
        used = meter.stop(WARM_UP, WARM_UP + seconds)
        numbers = {
            "mib_per_s": result["total_mib_per_s"],
            "ops_per_s": result["total_ops_per_s"],
            "p99_us": quantile_us(result, 0.99),
        }
        return (
            numbers | {"cpu_s_per_gib": used["client"] / (numbers["mib_per_s"] / 1024)}
            if used
            else numbers
        )


@contextlib.contextmanager
def opened(binaries: pathlib.Path, work: pathlib.Path, backend: str) -> Iterator[OrangefsPaths]:
    """The servers of a backend, and the paths to them."""
    with Programs(binaries, work) as programs:
        if backend == REAL:
            yield OrangefsPaths(programs, backend, real_orangefs.start(programs), RIVAL)
            return
        cluster = Cluster(programs, 1, device=DEVICE if backend == LIMITED else None)
        yield OrangefsPaths(programs, backend, cluster.address(DIRECT), LOAD)


def backends() -> list[str]:
    """Those that can be measured here."""
    return [backend for backend in BACKENDS if backend != REAL or real_orangefs.server_program()]


def verdicts(rows: Sequence[Row]) -> list[Row]:
    def reached(backend: str, named: bool | None = None, size: str | None = None) -> list[float]:
        return [
            row["of_rival"]
            for row in rows
            if row["backend"] == backend
            and row["path"] == OWN
            and row["of_rival"]
            and (named is None or (row["size"] == "-") == named)
            and (size is None or row["size"] == size)
        ]

    return [
        *(
            targets.at_least(
                f"orangefs, 400 MiB/s, {size}: operations/s of vpfs-load",
                LEAST_OF_LOAD,
                reached(LIMITED, size=size),
            )
            for size in ("1 MiB", "4 KiB")
        ),
        targets.at_least(
            "orangefs, real server, data: operations/s of pvfs2fuse",
            1.0,
            reached(REAL, named=False),
        ),
        targets.at_least(
            "orangefs, real server, names: operations/s of pvfs2fuse",
            1.0,
            reached(REAL, named=True),
        ),
    ]


def costs(rows: Sequence[Row]) -> list[Row]:
    """What a GiB costs where nothing limits, in processor seconds of the client's program."""
    found: dict[tuple[Any, ...], Json] = {}
    for row in rows:
        if row["backend"] == UNLIMITED and row["cpu_s_per_gib"] is not None:
            load = {field: row[field] for field in ("op", "size", "jobs")}
            found.setdefault(tuple(load.values()), load)[row["path"]] = row["cpu_s_per_gib"]
    return list(found.values())
