"""The jobs of script/bench control_impact, and what a run of them did."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence

from lab.harness import MIB
from lab.load import Application, application_of
from lab.points import Points
from lab.report import Json

SERVERS = 4
MIB_PER_S = 40  # of each server
WARM_UP = 0.5  # before the first job begins; the coordinator is there by then


@dataclasses.dataclass(frozen=True)
class Job:
    """A fixed amount of work.

    Jobs have different numbers of requests in flight, and so without control different shares.
    """

    name: str
    start: float
    amount: int  # bytes of all its processes
    processes: int
    outstanding: int  # of each process
    size: int = MIB

    def application(self, scale: float) -> Application:
        each = int(self.amount * scale) // self.processes // self.size * self.size
        return Application(
            self.name,
            self.size,
            self.outstanding,
            self.processes,
            file_size=16 * MIB,
            start=WARM_UP + self.start * scale,
            amount=each,
        )

    def alone(self, scale: float) -> float:
        """Seconds of the work if all servers did nothing else."""
        return scale * self.amount / (SERVERS * MIB_PER_S * MIB)


JOBS = [
    Job("job1", 0.0, 960 * MIB, 2, 8),
    Job("job2", 3.0, 960 * MIB, 8, 16),
    Job("job3", 6.0, 480 * MIB, 1, 8),
    Job("job4", 14.0, 960 * MIB, 2, 8),
]


class Outcome(abc.ABC):
    """What one run did. Times count from the end of the warm-up."""

    scale: float

    @abc.abstractmethod
    def end(self, job: Job) -> float:
        """When it had done its work."""

    @abc.abstractmethod
    def moved(self, job: Job) -> float:
        """Bytes."""

    @abc.abstractmethod
    def series(self) -> Mapping[str, Points]:
        """MiB/s of each job over time."""

    def begin(self, job: Job) -> float:
        return job.start * self.scale

    def seconds(self, job: Job) -> float:
        return self.end(job) - self.begin(job)

    def slowdown(self, job: Job) -> float:
        return self.seconds(job) / job.alone(self.scale)

    def facts(self) -> dict[str, float]:
        spans = union([(self.begin(job), self.end(job)) for job in JOBS])
        busy = sum(end - begin for begin, end in spans)
        moved = sum(self.moved(job) for job in JOBS) / MIB
        slowdowns = [self.slowdown(job) for job in JOBS]
        return {
            "makespan_s": max(self.end(job) for job in JOBS),
            "mib_per_s": moved / busy,
            "idle_percent": 100 * (1 - moved / (busy * SERVERS * MIB_PER_S)),
            "mean_slowdown": sum(slowdowns) / len(slowdowns),
            "worst_slowdown": max(slowdowns),
            **{f"{job.name} seconds": self.seconds(job) for job in JOBS},
        }


@dataclasses.dataclass(frozen=True)
class Run(Outcome):
    """A run of vpfs-load."""

    result: Json
    scale: float

    def end(self, job: Job) -> float:
        return float(application_of(self.result, job.name)["last_s"])

    def moved(self, job: Job) -> float:
        return float(application_of(self.result, job.name)["bytes"])

    def series(self) -> dict[str, Points]:
        return {
            job.name: [
                (point["t"], point["mib_per_s"])
                for point in application_of(self.result, job.name)["timeline"]
            ]
            for job in JOBS
        }


def union(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The times that at least one of the spans covers."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found
