"""The runs of script/bench vpfs with the servers and the load of vpfs, which are always there."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

from bench.schedulers.vpfs_cases import (
    FIFO,
    LONGEST_DELAY,
    MIB_PER_S,
    READ,
    SCHEDULER,
    SERVERS,
    SFQ,
    TOTAL,
    Case,
)
from lab.cluster import Cluster, Depth, Front
from lab.coordinator import CONTROL, Coordinator, Settings
from lab.file_systems import DIRECT
from lab.harness import MIB, Programs
from lab.load import Application, application_of, check_errors, run_load, seconds

NAME = "vpfs-server"
WARM_UP = 1.5
SETTLES = 2.0  # of a coordinator's totals
FILE = 8 << 20  # of each process, written from the beginning to the end again and again
DEPTH: Depth = {"depth_requests": 4, "depth_bytes": "2 MiB"}
DEVICE = {"bandwidth": f"{MIB_PER_S} MiB/s", "per_request": "250 us", "parallelism": 1}
SETTINGS = {
    "servers": f"{SERVERS} vpfs-server, each {MIB_PER_S} MiB/s and 250 us for a request",
    "load": f"vpfs-load: each process writes or reads a file of {FILE // MIB} MiB, one request at "
    "a time, striped over the servers",
}


def applications(case: Case) -> list[Application]:
    return [
        Application(
            name,
            case.size,
            outstanding=1,
            processes=case.processes,
            read_percent=100 if case.op == READ else 0,
            file_size=FILE,
            servers=[f"s{server}" for server in case.servers(name)],
        )
        for name in case.applications
    ]


def fronts(case: Case) -> list[Front]:
    weights = case.weights()
    control = {**CONTROL, "longest_delay": seconds(LONGEST_DELAY)}
    return [
        Front(FIFO, "proxy", "fifo", weights, **DEPTH),
        Front(SFQ, "proxy", "sfq", weights, scheduler=SCHEDULER, **DEPTH),
        Front(TOTAL, "proxy", "sfq", weights, scheduler=SCHEDULER, control=control, **DEPTH),
    ]


class Site:
    """Each run has servers of its own."""

    def __init__(self, binaries: pathlib.Path, work: pathlib.Path) -> None:
        self._binaries, self._work = binaries, work

    def why_not(self, case: Case) -> str:
        """Why a case cannot be measured; empty if it can."""
        return ""

    def measure(self, case: Case, length: float) -> Mapping[str, float]:
        """MiB/s by application."""
        warm_up = WARM_UP
        with Programs(self._binaries, self._work) as programs:
            cluster = Cluster(programs, SERVERS, fronts(case), DEVICE)
            if case.path != DIRECT:
                cluster.start(case.path)
            if case.path == TOTAL:
                warm_up += SETTLES
                Coordinator(programs, SERVERS).start(Settings())
            result = run_load(
                programs,
                "load",
                cluster.address(case.path),
                applications(case),
                length,
                warm_up,
            )
        check_errors(result)
        return {
            name: application_of(result, name)["bytes"] / MIB / length for name in case.applications
        }
