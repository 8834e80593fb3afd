"""The experiments of [ADAPTBF], and the numbers that they take from a run of vpfs-load.

A job is a jobid. Several applications of vpfs-load may be one job. Each process of a job's work
moves an amount and then ends, so shares decide when a job ends. Times and amounts here are not yet
divided by the scale.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Mapping, Sequence

from lab.cluster import Depth, Front
from lab.harness import MIB, Problem
from lab.load import Application, Burst, application_of
from lab.report import Json

CAPACITY_MIB_PER_S = 200
DEVICE = {"bandwidth": f"{CAPACITY_MIB_PER_S} MiB/s", "per_request": "50 us", "parallelism": 4}
DEPTH: Depth = {"depth_requests": 4, "depth_bytes": "2 MiB"}
COST = {"per_request": "0 B"}  # so capacities and tokens count bytes, as those of the device
TOKEN = 64 << 10  # before scaling, so a period has as many tokens whatever the scale
PERIOD = 0.1  # before scaling
WRITE = 256 << 10
SMALL_WRITE = 64 << 10
FILE = 4 << 20  # of each process, overwritten again and again
AMOUNT = 1 << 30  # of each process, as in the paper
WRITERS = 16
BURST_WRITERS = 2
SMALL_BURSTS = Burst(0.2, 1.0)  # of a lender
SETTLE = 4.0  # after each change of the active jobs; means leave it out
RETURN = 40.0  # the longest time after a lender's return that is looked at
SHORTEST = 0.06  # of a run: changes of the active jobs that are closer are one
PATIENCE = 2.0  # times what the slowest control needs
CONTROLS = {
    "none": "fifo: first come, first served",
    "static": "tbf: each job limited to its priority's part of the capacity",
    "adaptbf": "adaptbf, the capacity configured",
    "adaptbf-auto": "adaptbf, the capacity measured by the proxy",
    "adaptbf-strict": "adaptbf as published: no job exceeds its tokens, the capacity configured",
}
ADAPTIVE = ["adaptbf", "adaptbf-auto", "adaptbf-strict"]
BASES = ["none", "static"]  # what the paper compares with
SWEPT = ["adaptbf", "adaptbf-strict"]
REAL, VIRTUAL = "total_mib_per_s", "virtual_mib_per_s"  # totals of the sweep

Series = list[tuple[float, float]]  # for each bin its end in seconds and its mean


@dataclasses.dataclass(frozen=True)
class Phase:
    """A part of a run with the same active jobs, in seconds of the run."""

    begin: float
    end: float
    jobs: Sequence[str]
    news: str  # the jobs that have begun their work (+) or ended (-) at its begin


@dataclasses.dataclass(frozen=True)
class Experiment:
    name: str
    figures: Sequence[str]  # of the paper: over time, and the gain or loss of each job
    title: str
    priorities: Mapping[str, int]
    applications: Sequence[Application]
    beside: str = ""  # rates of the others count while this job has work; "": always

    @property
    def jobs(self) -> list[str]:
        return list(self.priorities)

    def share(self, job: str) -> float:
        return self.priorities[job] / sum(self.priorities.values())

    def work(self, job: str) -> Application:
        """The application of the job that has an amount to move."""
        return next(each for each in self.applications if each.job == job and each.amount)

    def scaled(self, scale: float) -> list[Application]:
        return [with_amount(each.scaled(scale), scale) for each in self.applications]

    def expected(self, scale: float, control: str) -> float:
        """About how many seconds a run takes."""
        work = [self.work(job) for job in self.jobs]
        if control != "static":
            amount = sum(amount_mib(each) for each in work)
            return amount / CAPACITY_MIB_PER_S / scale
        return max(self._alone(each, self.share(each.job)) for each in work) / scale

    def longest(self, scale: float) -> float:
        return PATIENCE * self.expected(scale, "static") + 10

    def _alone(self, work: Application, share: float) -> float:
        pauses = work.burst.interval / work.burst.length if work.burst else 1.0
        return work.start + pauses * amount_mib(work) / (share * CAPACITY_MIB_PER_S)

    def phases(self, scale: float, ends: Mapping[str, float]) -> list[Phase]:
        """The phases of a run in which jobs ended at these seconds."""
        length = max(ends.values())
        marks: list[tuple[float, list[str]]] = [(0.0, [])]
        for at, news in sorted(self._changes(scale, ends)):
            if at - marks[-1][0] < SHORTEST * length:
                marks[-1][1].append(news)
            elif length - at >= SHORTEST * length:
                marks.append((at, [news]))
        borders = [at for at, _ in marks] + [length]
        return [
            Phase(begin, end, self._active(scale, begin, end, ends), ", ".join(news))
            for (begin, news), end in zip(marks, borders[1:])
        ]

    def _changes(self, scale: float, ends: Mapping[str, float]) -> list[tuple[float, str]]:
        starts = [(self.work(job).start / scale, f"+{job}") for job in self.jobs]
        return [(at, news) for at, news in starts if at > 0] + [
            (at, f"-{job}") for job, at in ends.items()
        ]

    def _active(
        self, scale: float, begin: float, end: float, ends: Mapping[str, float]
    ) -> list[str]:
        middle = (begin + end) / 2
        there = {each.job for each in self.applications if each.start / scale <= middle}
        return [job for job in self.jobs if job in there and ends[job] > middle]


def amount_mib(application: Application) -> float:
    """What all its processes move."""
    return (application.amount or 0) * application.processes / MIB


def with_amount(application: Application, scale: float) -> Application:
    """The application with its amount divided by the scale, in whole requests."""
    if application.amount is None:
        return application
    requests = max(1, round(application.amount / scale / application.size))
    return dataclasses.replace(application, amount=requests * application.size)


def writers(job: str, name: str | None = None, start: float = 0.0) -> Application:
    return Application(
        name or job,
        WRITE,
        processes=WRITERS,
        file_size=FILE,
        start=start,
        amount=AMOUNT,
        jobid=job,
    )


def bursts(job: str, start: float, burst: Burst) -> Application:
    return Application(
        job,
        WRITE,
        processes=BURST_WRITERS,
        file_size=FILE,
        start=start,
        amount=AMOUNT,
        burst=burst,
    )


def lender(job: str, burst_start: float, writer_start: float) -> list[Application]:
    small = Application(
        f"{job}-bursts",
        SMALL_WRITE,
        processes=BURST_WRITERS,
        file_size=FILE,
        start=burst_start,
        stop=writer_start,
        jobid=job,
        burst=SMALL_BURSTS,
    )
    return [small, writers(job, f"{job}-writer", start=writer_start)]


PRIORITY = Experiment(
    "a",
    ("3", "4"),
    "four jobs by priority",
    {"job1": 10, "job2": 10, "job3": 30, "job4": 50},
    [writers(f"job{number}") for number in (1, 2, 3, 4)],
)
REDISTRIBUTION = Experiment(
    "b",
    ("5", "6"),
    "bursts of three important jobs beside one that always writes",
    {"job1": 30, "job2": 30, "job3": 30, "job4": 10},
    [
        *(bursts(f"job{i + 1}", 16.0 * i, Burst(16.0, 48.0)) for i in range(3)),
        writers("job4"),
    ],
    beside="job4",
)
PAYBACK = Experiment(
    "c",
    ("7", "8"),
    "equal jobs: three lend, and come back for it",
    {"job1": 25, "job2": 25, "job3": 25, "job4": 25},
    [
        *lender("job1", 0.0, 20),
        *lender("job2", 0.35, 50),
        *lender("job3", 0.7, 80),
        writers("job4"),
    ],
)
EXPERIMENTS = {experiment.name: experiment for experiment in (PRIORITY, REDISTRIBUTION, PAYBACK)}
BURSTERS = REDISTRIBUTION.jobs[:-1]
LENDERS = {"job1": 20.0, "job2": 50.0, "job3": 80.0}  # and when they begin to write without pauses
BORROWER = "job4"
# Before scaling, as the times of the experiment that they are beside. The last one is longer than
# from one burst of a lender to the next.
PERIODS = [0.05, 0.1, 0.2, 0.5, 1.0, 2.0]


def front(
    experiment: Experiment, control: str, period: float = PERIOD, scale: float = 1.0
) -> Front:
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
            "cost": COST,
            "adaptbf": {
                "period": f"{round(period / scale * 1e6)} us",
                "token": f"{round(TOKEN / scale)} B",
                "capacity": capacity,
                "work_conserving": control != "adaptbf-strict",
            },
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


def ends(result: Json, experiment: Experiment) -> dict[str, float]:
    """The second at which each job had moved its amount."""
    return {
        job: float(application_of(result, experiment.work(job).name)["last_s"])
        for job in experiment.jobs
    }


def check_done(result: Json, experiment: Experiment, scale: float) -> None:
    for application in experiment.scaled(scale):
        moved = application_of(result, application.name)["bytes"] / MIB
        if application.amount and moved < amount_mib(application):
            raise Problem(
                f"{application.name} moved {moved:.0f} of {amount_mib(application):.0f} MiB in "
                f"{experiment.longest(scale):.0f} s, which is more than the slowest control needs"
            )


def moved_mib(entry: Json, until: float) -> float:
    """What an application had moved at that second."""
    if until >= entry["last_s"]:
        return float(entry["bytes"] / MIB)
    begins = [0.0, *(point["t"] for point in entry["timeline"])]
    return sum(
        point["mib_per_s"] * max(0.0, min(point["t"], until) - begin)
        for begin, point in zip(begins, entry["timeline"])
    )


def active_rate(result: Json, application: Application, until: float = math.inf) -> float:
    """MiB/s of a scaled application, from its start to its last request, without its pauses.

    With `until`, no later than that.
    """
    entry = application_of(result, application.name)
    seconds = application.active_seconds(0.0, min(entry["last_s"], until))
    return moved_mib(entry, until) / seconds if seconds > 0 else 0.0


def return_end(job: str) -> float:
    """When the time after a lender's return ends: another returns, or it is long enough."""
    start = LENDERS[job]
    return min([other for other in LENDERS.values() if other > start] + [start + RETURN])


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
