"""Recorded measurements of bench/mounts."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator, Sequence
from unittest import mock

from bench.mounts import fio, fuse, fuse_loads, fuse_orangefs
from lab.report import Row, size_name
from recorded.samples import Option, Recorded, field, samples


def rows_of_fuse(source: fuse_loads.Source, load: fuse_loads.Load, *_: object) -> list[Row]:
    return [
        {
            "backend": source.backend,
            "op": load[0],
            "size": size_name(load[1]),
            "jobs": load[2],
            "path": path,
            **samples([*fuse_loads.NUMBERS, "of_rival"], source.backend, load, path),
        }
        for path in source.paths
    ]


def names_of_fuse(source: fuse_loads.Source, paths: Sequence[str], *_: object) -> list[Row]:
    return [
        {
            "backend": source.backend,
            "op": name,
            "size": "-",
            "jobs": 1,
            "path": path,
            "cpu_s_per_gib": None,
            **samples(["ops_per_s", "of_rival"], source.backend, name, path),
        }
        for name in fuse_loads.NAMES
        for path in paths
    ]


@contextlib.contextmanager
def opened_fuse(_: pathlib.Path, __: pathlib.Path, backend: str) -> Iterator[mock.Mock]:
    rival = fuse_orangefs.RIVAL if backend == fuse_orangefs.REAL else fuse_orangefs.LOAD
    yield mock.Mock(backend=backend, rival=rival, paths=[fuse_orangefs.OWN, rival])


FUSE = Recorded(
    {
        "bench.mounts.fuse.require_mounts": lambda: None,
        "bench.mounts.fuse.data_rows": rows_of_fuse,
        "bench.mounts.fuse.name_rows": names_of_fuse,
        "bench.mounts.fuse_orangefs.opened": opened_fuse,
        "bench.mounts.fuse_orangefs.backends": lambda: list(fuse_orangefs.BACKENDS),
    },
    {
        "--backends": Option(
            lambda row, value: (row["backend"] == fuse.POSIX) == (value == fuse.POSIX)
        )
    },
    others=frozenset({"--directory"}),
)


def rows_of_fio(
    _: pathlib.Path, __: pathlib.Path, case: fio.Case, policy: str, ___: float
) -> list[Row]:
    return [
        {
            "profile": case.profile.name,
            "mounts": case.mounts,
            "processes": case.processes,
            "policy": policy,
            "job": job,
            "weight": weight,
            "share": weight / 4,
            "wanted": weight / 4,
            **samples(["mib_per_s", "fio_mib_per_s", "p99_us", "seconds"], case, policy),
        }
        for job, weight in fio.WEIGHTS.items()
    ]


FIO = Recorded(
    {"bench.mounts.fio.require_mounts": lambda: None, "bench.mounts.fio.measure": rows_of_fio},
    # The profiles of applications have a number of processes of their own.
    {
        "--processes": Option(
            lambda row, value: row["processes"] in (int(value), fio.OF_A_PROFILE), ["1", "64"]
        ),
        "--mounts": Option(field("mounts")),
        "--profiles": Option(field("profile")),
    },
    [["--profiles", "mixed", "S3D", "--mounts", "2", "--processes", "4"]],
    frozenset({"--scale"}),
)
