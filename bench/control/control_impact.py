"""script/bench control_impact: what control does to applications that come and go.

Four servers, whose device model is the bottleneck, each behind a vpfs-proxy. Four jobs have a fixed
amount of work each and start one after the other. The same is run without control, with static
limits, with limits that follow demand (psfa), and with shares of total service.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lab import plot
from lab.cluster import Cluster, Depth, Front
from lab.coordinator import CONTROL, Coordinator, Settings
from lab.harness import MIB, Programs, machine_settings, median, require_programs
from lab.load import Application, application_of, check_errors, run_load
from lab.points import bins
from lab.report import Json, Row, print_settings, size_name, table, write_json
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import one_at_least, one_at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERVERS = 4
MIB_PER_S = 40  # of each server
DEVICE = {"bandwidth": f"{MIB_PER_S} MiB/s", "parallelism": 1}
DEPTH: Depth = {"depth_requests": 4, "depth_bytes": "4 MiB"}
PERIOD = 0.05
STRIP = 64 << 10
INTERVAL = 0.1
WARM_UP = 0.5  # before the first job begins; the coordinator is there by then
LONGEST = 120.0
PATH = "px"
CONTROLS = {
    "none": "fifo: first come, first served",
    "static": "each job limited to a quarter of every server",
    "psfa": f"limits follow demand, period {PERIOD * 1000:.0f} ms",
    "total": f"shares of total service, period {PERIOD * 1000:.0f} ms",
}
COLUMNS = ["control", "job", "start_s", "seconds", "alone_s", "slowdown"]
TOTAL_COLUMNS = [
    "control",
    "runs",
    "makespan_s",
    "mib_per_s",
    "idle_percent",
    "mean_slowdown",
    "worst_slowdown",
]
TOTAL_OF_NONE = 0.97


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


@dataclasses.dataclass(frozen=True)
class Run:
    """What one run did. Times count from the end of the warm-up."""

    result: Json
    scale: float

    def begin(self, job: Job) -> float:
        return job.start * self.scale

    def end(self, job: Job) -> float:
        return float(application_of(self.result, job.name)["last_s"])

    def seconds(self, job: Job) -> float:
        return self.end(job) - self.begin(job)

    def slowdown(self, job: Job) -> float:
        return self.seconds(job) / job.alone(self.scale)

    def facts(self) -> dict[str, float]:
        spans = union([(self.begin(job), self.end(job)) for job in JOBS])
        busy = sum(end - begin for begin, end in spans)
        moved = sum(application_of(self.result, job.name)["bytes"] for job in JOBS) / MIB
        slowdowns = [self.slowdown(job) for job in JOBS]
        return {
            "makespan_s": max(self.end(job) for job in JOBS),
            "mib_per_s": moved / busy,
            "idle_percent": 100 * (1 - moved / (busy * SERVERS * MIB_PER_S)),
            "mean_slowdown": sum(slowdowns) / len(slowdowns),
            "worst_slowdown": max(slowdowns),
            **{f"{job.name} seconds": self.seconds(job) for job in JOBS},
        }

    def series(self) -> dict[str, list[tuple[float, float]]]:
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


def coordinator_settings(control: str) -> Settings | None:
    if control == "none":
        return None
    if control == "static":
        limit = f"{MIB_PER_S * 1024 // len(JOBS)} KiB/s"
        return Settings("static", PERIOD, jobs=[{"name": job.name, "limit": limit} for job in JOBS])
    if control == "psfa":
        return Settings("psfa", PERIOD, capacity={"bytes": f"{SERVERS * MIB_PER_S} MiB/s"})
    return Settings("total", PERIOD)


def front(control: str) -> Front:
    policy = "fifo" if control == "none" else "sfq"
    return Front(
        PATH,
        "proxy",
        policy,
        {job.name: 1 for job in JOBS},
        scheduler={"cost": {"per_request": "0 B"}},
        control=CONTROL,
        **DEPTH,
    )


def measure(binaries: pathlib.Path, work: pathlib.Path, control: str, scale: float) -> Run:
    settings = coordinator_settings(control)
    with Programs(binaries, work) as programs:
        cluster = Cluster(
            programs,
            SERVERS,
            [front(control)],
            DEVICE,
            file_system={"strip_size": size_name(STRIP)},
        )
        cluster.start(PATH)
        if settings:
            Coordinator(programs, SERVERS).start(settings)
        result = run_load(
            programs,
            "load",
            cluster.address(PATH),
            [job.application(scale) for job in JOBS],
            LONGEST,
            WARM_UP,
            interval=INTERVAL,
            until_done=True,
        )
        check_errors(result)
        return Run(result, scale)


def job_rows(control: str, facts: Mapping[str, float], scale: float) -> list[Row]:
    return [
        {
            "control": control,
            "job": job.name,
            "start_s": job.start * scale,
            "seconds": facts[f"{job.name} seconds"],
            "alone_s": job.alone(scale),
            "slowdown": facts[f"{job.name} seconds"] / job.alone(scale),
        }
        for job in JOBS
    ]


def check(by_control: Mapping[str, Mapping[str, float]]) -> list[Row]:
    if not {"none", "static", "psfa"} <= set(by_control):
        return []
    psfa, static, none = by_control["psfa"], by_control["static"], by_control["none"]
    return [
        one_at_least(
            "psfa: throughput / without control",
            TOTAL_OF_NONE,
            psfa["mib_per_s"] / none["mib_per_s"],
        ),
        one_at_most(
            "psfa: mean completion time / static limits",
            1.0,
            psfa["mean_slowdown"] / static["mean_slowdown"],
        ),
        one_at_most(
            "psfa: worst slowdown / without control",
            1.0,
            psfa["worst_slowdown"] / none["worst_slowdown"],
        ),
    ]


def figure(
    runs: Mapping[str, Run], by_control: Mapping[str, Mapping[str, float]], caption: str
) -> Figure:
    names = [job.name for job in JOBS]
    sheet = plot.Sheet(
        "Four jobs that come and go", caption, rows=len(runs) + 1, heights=[1.7] * len(runs) + [2.0]
    )
    looks = plot.looks(names)
    longest = max(run.end(job) for run in runs.values() for job in JOBS)
    for panel, (control, run) in zip(sheet.panels, runs.items()):
        for name, points in run.series().items():
            plot.lines(panel, {name: bins(smooth(points))}, looks)
        plot.target(panel, SERVERS * MIB_PER_S, "capacity")
        panel.set_xlim(0, 1.02 * longest)
        panel.set_ylim(0, 1.15 * SERVERS * MIB_PER_S)
        plot.label(panel, "", "MiB/s", f"{control}: {CONTROLS[control]}")
    sheet.panels[len(runs) - 1].set_xlabel("time (s)")
    last = sheet.panels[-1]
    plot.bars(
        last,
        names,
        {
            control: [facts[f"{name} seconds"] for name in names]
            for control, facts in by_control.items()
        },
        dict(zip(by_control, map(plot.look, range(len(names), len(names) + len(by_control))))),
    )
    plot.label(last, "", "seconds", "From the start of each job to its end")
    return sheet.finish()


def smooth(points: Sequence[tuple[float, float]], bins: int = 5) -> list[tuple[float, float]]:
    """Means of so many bins."""
    groups = [points[index : index + bins] for index in range(0, len(points), bins)]
    return [(group[-1][0], sum(value for _, value in group) / len(group)) for group in groups]


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench control_impact")
    parser.add_argument(
        "--runs", type=int, help="of each control, interleaved (default 3; 1 with --quick)"
    )
    parser.add_argument("--controls", nargs="+", choices=CONTROLS, default=list(CONTROLS))
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    if set(options.controls) != {"none"}:
        require_programs(binaries, ["vpfs-coordinator"])
    scale, count = (0.5, 1) if quick else (1.0, 3)
    count = options.runs or count
    settings = machine_settings() | {
        "quick": quick,
        "runs": count,
        "statistic": "medians of interleaved runs; the plot over time shows the last one",
        "servers": SERVERS,
        "device": DEVICE,
        "depth": DEPTH,
        "controls": {name: CONTROLS[name] for name in options.controls},
        "jobs": [
            f"{job.name}: {round(job.amount * scale / MIB)} MiB from {job.start * scale:g} s on, "
            f"{job.processes} x {job.outstanding} requests of {size_name(job.size)} in flight, "
            "striped over all servers"
            for job in JOBS
        ],
        "idle_percent": "what the devices did not do of what they could, while a job had work",
        "slowdown": "completion time / the time of the job alone on all servers",
    }
    print_settings(settings)
    seen: dict[str, list[dict[str, float]]] = {control: [] for control in options.controls}
    last: dict[str, Run] = {}
    for _ in range(count):
        for control in options.controls:
            last[control] = measure(binaries, out / "control_impact", control, scale)
            seen[control].append(last[control].facts())
    by_control = {
        control: {name: median([facts[name] for facts in runs]) for name in runs[0]}
        for control, runs in seen.items()
    }
    jobs = [row for control, facts in by_control.items() for row in job_rows(control, facts, scale)]
    totals = [
        {"control": control, "runs": count, **{name: facts[name] for name in TOTAL_COLUMNS[2:]}}
        for control, facts in by_control.items()
    ]
    print("\n" + table(jobs, COLUMNS) + "\n\n" + table(totals, TOTAL_COLUMNS), flush=True)
    targets = check(by_control)
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(
        out / "control_impact.json",
        {"settings": settings, "rows": totals, "jobs": jobs, "runs": seen, "targets": targets},
    )
    plot.save(
        out / "control_impact",
        lambda: figure(
            last,
            by_control,
            plot.caption(
                settings,
                f"{SERVERS} servers of {MIB_PER_S} MiB/s, depth {DEPTH['depth_requests']} "
                "requests of each proxy",
                "writes of 1 MiB striped over all servers",
                f"medians of {count} runs; over time: the last one",
            ),
        ),
    )
    return 0
