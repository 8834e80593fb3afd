"""The sites of script/bench scale: their jobs, and what each job is entitled to."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

WEIGHTS = [1, 2, 4]
REQUEST = 1 << 20
# Clients, with one request in flight each, on every server that the job uses.
WIDE_CLIENTS, MIDDLE_CLIENTS, NARROW_CLIENTS = 2, 10, 25
WIDE_JOBS = 20
MIDDLE_OF_A_TENTH = 5  # jobs on each tenth of the servers


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    weight: int
    first: int  # of the servers that it uses
    servers: int
    clients: int
    late: bool = False  # it begins at the change

    @property
    def kind(self) -> str:
        return self.name.split("-")[0]


def jobs_of(servers: int) -> list[Job]:
    """A hundred clients for each server.

    40 are of jobs on all servers, 50 of jobs on a tenth, and 10 of jobs on one.
    """
    tenth = servers // 10
    wide = [
        Job(f"wide-{weight(i)}-{i}", weight(i), 0, servers, WIDE_CLIENTS * servers)
        for i in range(WIDE_JOBS)
    ]
    middle = [
        Job(
            f"middle-{weight(i)}-{i}",
            weight(i),
            i // MIDDLE_OF_A_TENTH * tenth,
            tenth,
            MIDDLE_CLIENTS * tenth,
            late=i % MIDDLE_OF_A_TENTH == 0,
        )
        for i in range(10 * MIDDLE_OF_A_TENTH)
    ]
    count = servers * 2 // 5
    narrow = [
        Job(f"narrow-{weight(i)}-{i}", weight(i), i * servers // count, 1, NARROW_CLIENTS)
        for i in range(count)
    ]
    return wide + middle + narrow


def weight(index: int) -> int:
    return WEIGHTS[index % len(WEIGHTS)]


def entitled(jobs: Sequence[Job], capacity: float) -> dict[str, float]:
    """Weighted max-min fair shares of the service on all servers.

    A job has only its own servers.

    All jobs rise by their weights. A group of servers is full when the jobs that have no others use
    all of it; then these stop. `capacity` is that of one server. The groups of two jobs are
    one within the other or apart, so no other sets of servers need to be looked at.
    """
    groups = [
        _Group(
            first,
            servers,
            [
                job
                for job in jobs
                if first <= job.first and job.first + job.servers <= first + servers
            ],
        )
        for first, servers in {(job.first, job.servers) for job in jobs}
    ]
    found: dict[str, float] = {}
    while len(found) < len(jobs):
        level, full = min(
            ((group.level_when_full(found, capacity), group) for group in groups),
            key=lambda each: each[0],
        )
        found |= {job.name: level * job.weight for job in full.inside if job.name not in found}
    return found


@dataclasses.dataclass(frozen=True)
class _Group:
    """The servers that some job uses, and the jobs that have no others."""

    first: int
    servers: int
    inside: list[Job]

    def level_when_full(self, found: Mapping[str, float], capacity: float) -> float:
        weights = sum(job.weight for job in self.inside if job.name not in found)
        if weights == 0:
            return math.inf
        return (
            self.servers * capacity - sum(found.get(job.name, 0.0) for job in self.inside)
        ) / weights
