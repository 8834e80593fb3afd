"""The experiments of [ADAPTBF], and the numbers that they take from a run of vpfs-load.

A job is a jobid. Several applications of vpfs-load may be one job. Times here are not yet divided
by the scale.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
from collections.abc import Mapping, Sequence

from lab.cluster import Depth, Front
from lab.load import Application, Burst, application_of
from lab.report import Json

CAPACITY_MIB_PER_S = 200
DEVICE = {"bandwidth": f"{CAPACITY_MIB_PER_S} MiB/s", "per_request": "50 us", "parallelism": 4}
DEPTH: Depth = {"depth_requests": 4, "depth_bytes": "2 MiB"}
TOKEN = "64 KiB"
PERIOD = 0.1
WRITE = 256 << 10
SMALL_WRITE = 64 << 10
FILE = 4 << 20  # of each process, overwritten again and again
WRITERS = 16
BURST_WRITERS = 2
SETTLE = 4.0  # after each change of the active jobs; means leave it out
CONTROLS = {
    "none": "fifo: first come, first served",
    "static": "tbf: each job limited to its priority's part of the capacity",
    "adaptbf": "adaptbf, the capacity configured",
    "adaptbf-auto": "adaptbf, the capacity measured by the proxy",
    "adaptbf-strict": "adaptbf as published: no job exceeds its tokens, the capacity configured",
}
ADAPTIVE = ["adaptbf", "adaptbf-auto"]

Series = list[tuple[float, float]]  # for each bin its end in seconds and its mean


@dataclasses.dataclass(frozen=True)
class Experiment:
    name: str
    title: str
    priorities: Mapping[str, int]
    applications: Sequence[Application]
    marks: Sequence[float]  # the ends of phases, when an application begins or ends for good

    @property
    def jobs(self) -> list[str]:
        return list(self.priorities)

    def share(self, job: str) -> float:
        return self.priorities[job] / sum(self.priorities.values())

    def length(self, scale: float) -> float:
        return self.marks[-1] / scale

    def scaled(self, scale: float) -> list[Application]:
        return [application.scaled(scale) for application in self.applications]

    def phases(self, scale: float) -> list[tuple[float, float]]:
        return [(begin / scale, end / scale) for begin, end in itertools.pairwise(self.marks)]


def writers(
    job: str, name: str | None = None, start: float = 0.0, stop: float | None = None
) -> Application:
    return Application(
        name or job, WRITE, processes=WRITERS, file_size=FILE, start=start, stop=stop, jobid=job
    )


def bursts(job: str, name: str, size: int, start: float, burst: Burst) -> Application:
    return Application(
        name, size, processes=BURST_WRITERS, file_size=FILE, start=start, jobid=job, burst=burst
    )


def lender(job: str, burst_start: float, writer_start: float) -> list[Application]:
    return [
        bursts(job, f"{job}-bursts", SMALL_WRITE, burst_start, Burst(0.2, 1.0)),
        writers(job, f"{job}-writer", start=writer_start),
    ]


PRIORITY = Experiment(
    "a",
    "four jobs by priority that end one after the other",
    {"job1": 10, "job2": 10, "job3": 30, "job4": 50},
    [
        writers("job1"),
        writers("job2", stop=100),
        writers("job3", stop=80),
        writers("job4", stop=40),
    ],
    [0, 40, 80, 100, 120],
)
REDISTRIBUTION = Experiment(
    "b",
    "bursts of three important jobs beside one that always writes",
    {"job1": 30, "job2": 30, "job3": 30, "job4": 10},
    [
        *(
            bursts(f"job{i + 1}", f"job{i + 1}", WRITE, 16.0 * i, Burst(16.0, 48.0))
            for i in range(3)
        ),
        writers("job4"),
    ],
    [0, 96],
)
PAYBACK = Experiment(
    "c",
    "equal jobs: three lend, and come back for it",
    {"job1": 25, "job2": 25, "job3": 25, "job4": 25},
    [
        *lender("job1", 0.0, 20),
        *lender("job2", 0.35, 50),
        *lender("job3", 0.7, 80),
        writers("job4"),
    ],
    [0, 20, 50, 80, 120],
)
EXPERIMENTS = {experiment.name: experiment for experiment in (PRIORITY, REDISTRIBUTION, PAYBACK)}
LENDERS = {"job1": 20.0, "job2": 50.0, "job3": 80.0}  # and when they begin to write without pauses
BORROWER = "job4"
PERIODS = [0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0]


def front(experiment: Experiment, control: str, period: float = PERIOD) -> Front:
    proxy = {"status_interval": "100 ms"}
    if control == "none":
        return Front("px", "proxy", "fifo", dict.fromkeys(experiment.jobs, 1), proxy=proxy, **DEPTH)
    if control == "static":
        limits = {
            job: {"rate": f"{round(CAPACITY_MIB_PER_S * 1024 * experiment.share(job))} KiB/s"}
            for job in experiment.jobs
        }
        return Front("px", "proxy", "tbf", shares=limits, proxy=proxy, **DEPTH)
    capacity = "auto" if control == "adaptbf-auto" else f"{CAPACITY_MIB_PER_S} MiB/s"
    return Front(
        "px",
        "proxy",
        "adaptbf",
        shares={job: {"nodes": nodes} for job, nodes in experiment.priorities.items()},
        scheduler={
            "adaptbf": {
                "period": f"{round(period * 1000)} ms",
                "token": TOKEN,
                "capacity": capacity,
                "work_conserving": control != "adaptbf-strict",
            }
        },
        proxy=proxy,
        **DEPTH,
    )


def bandwidths(result: Json, experiment: Experiment) -> dict[str, Series]:
    """MiB/s of each job over time."""
    found: dict[str, Series] = {job: [] for job in experiment.jobs}
    for application in experiment.applications:
        timeline = application_of(result, application.name)["timeline"]
        before = found[application.job] or [(point["t"], 0.0) for point in timeline]
        found[application.job] = [
            (t, rate + point["mib_per_s"]) for (t, rate), point in zip(before, timeline)
        ]
    return found


def mean_between(series: Series, begin: float, end: float) -> float:
    """The mean of the bins within the time.

    All bins are equally long, except perhaps the last one.
    """
    starts = [0.0] + [t for t, _ in series]
    inside = [
        value
        for (t, value), start in zip(series, starts)
        if begin <= start + 1e-6 and t <= end + 1e-6
    ]
    return sum(inside) / len(inside) if inside else float("nan")


def phase_rates(
    series: Mapping[str, Series], experiment: Experiment, scale: float
) -> list[dict[str, float]]:
    """MiB/s by job in each phase, without its first SETTLE seconds."""
    return [
        {job: mean_between(line, begin + SETTLE / scale, end) for job, line in series.items()}
        for begin, end in experiment.phases(scale)
    ]


def burst_rates(result: Json, experiment: Experiment, scale: float) -> dict[str, float]:
    """MiB/s of applications with bursts, during their bursts."""
    length = experiment.length(scale)
    return {
        application.name: application_of(result, application.name)["bytes"]
        / (1 << 20)
        / application.active_seconds(0.0, length)
        for application in experiment.scaled(scale)
        if application.burst is not None
    }


def share_error(rates: Mapping[str, float], experiment: Experiment) -> float:
    """The largest relative error of a job's part of the total, against its priority's part."""
    total = sum(rates.values())
    if not total > 0:
        return float("inf")
    return max(abs(rate / total / experiment.share(job) - 1) for job, rate in rates.items())


def value_at(series: Series, t: float) -> float:
    """The last value at or before t."""
    return next((value for at, value in reversed(series) if at <= t), 0.0)


def csv_text(series: Mapping[str, Series], first: str = "seconds") -> str:
    """One column for each name. The times are those of the first series."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([first, *series])
    for points in zip(*series.values()):
        writer.writerow([f"{points[0][0]:.3f}", *(f"{value:.6g}" for _, value in points)])
    return out.getvalue()
