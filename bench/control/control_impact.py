"""script/bench control_impact: what control does to applications that come and go.

Four servers, whose device model is the bottleneck, each behind a vpfs-proxy. Four jobs have a fixed
amount of work each and start one after the other. The same is run without control, with static
limits, with limits that follow demand (psfa), and with shares of total service.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.control import control_impact_mount
from bench.control.control_impact_jobs import (
    JOBS,
    MIB_PER_S,
    SERVERS,
    WARM_UP,
    Outcome,
    Run,
)
from lab import plot
from lab.cluster import Cluster, Depth, Front
from lab.coordinator import CONTROL, Coordinator, Settings
from lab.harness import (
    MIB,
    Problem,
    Programs,
    machine_settings,
    median,
    require_programs,
)
from lab.load import check_errors, run_load
from lab.mount import require_mounts
from lab.numbers import one_or_more
from lab.points import bins
from lab.report import Row, print_settings, size_name, table, write_json
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import one_at_least, one_at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEVICE = {"bandwidth": f"{MIB_PER_S} MiB/s", "parallelism": 1}
DEPTH: Depth = {"depth_requests": 4, "depth_bytes": "4 MiB"}
PERIOD = 0.05
STRIP = 64 << 10
INTERVAL = 0.1
LONGEST = 120.0
DONE = 0.99  # of its amount, at least: processes end between two requests
PATH = "px"
CONTROLS = {
    "none": "fifo: first come, first served",
    "static": "each job limited to a quarter of every server",
    "psfa": f"limits follow demand, period {PERIOD * 1000:.0f} ms",
    "total": f"shares of total service, period {PERIOD * 1000:.0f} ms",
}
VPFS_LOAD = "vpfs-load"
LOADS = {
    VPFS_LOAD: "vpfs-load",
    "fio": "fio on a mount",
    "ior": "IOR on a mount",
}
COLUMNS = ["load", "control", "job", "start_s", "seconds", "alone_s", "slowdown"]
FACTS = [
    "makespan_s",
    "mib_per_s",
    "idle_percent",
    "mean_slowdown",
    "worst_slowdown",
]
TOTAL_COLUMNS = ["load", "control", "runs", *FACTS]
TOTAL_OF_NONE = 0.97


def coordinator_settings(control: str) -> Settings | None:
    if control == "none":
        return None
    if control == "static":
        limit = f"{MIB_PER_S * 1024 // len(JOBS)} KiB/s"
        return Settings("static", PERIOD, jobs=[{"name": job.name, "limit": limit} for job in JOBS])
    if control == "psfa":
        return Settings("psfa", PERIOD, capacity={"bytes": f"{SERVERS * MIB_PER_S} MiB/s"})
    return Settings("total", PERIOD)


def front(load: str, control: str) -> Front:
    policy = "fifo" if control == "none" else "sfq"
    return Front(
        PATH,
        "proxy",
        policy,
        {job.name: 1 for job in JOBS},
        scheduler={"cost": {"per_request": "0 B"}},
        control=CONTROL,
        proxy={} if load == VPFS_LOAD else control_impact_mount.PROXY,
        **DEPTH,
    )


def measure(
    binaries: pathlib.Path, work: pathlib.Path, load: str, control: str, scale: float
) -> Outcome:
    settings = coordinator_settings(control)
    with Programs(binaries, work) as programs:
        cluster = Cluster(
            programs,
            SERVERS,
            [front(load, control)],
            DEVICE,
            file_system={"strip_size": size_name(STRIP)},
        )
        cluster.start(PATH)
        if settings:
            Coordinator(programs, SERVERS).start(settings)
        if load != VPFS_LOAD:
            with control_impact_mount.on_a_mount(programs, cluster, PATH, load) as jobs:
                return jobs.run(scale)
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
        run = Run(result, scale)
        late = [job.name for job in JOBS if run.moved(job) < DONE * job.amount * scale]
        if late:
            raise Problem(f"not done within {LONGEST:g} s: {', '.join(late)}")
        return run


@dataclasses.dataclass
class Seen:
    """All runs of a load, by control."""

    facts: dict[str, list[dict[str, float]]]
    last: dict[str, Outcome]

    @staticmethod
    def measured(
        binaries: pathlib.Path,
        work: pathlib.Path,
        load: str,
        controls: Sequence[str],
        scale: float,
        count: int,
    ) -> Seen:
        seen = Seen({control: [] for control in controls}, {})
        for _ in range(count):
            for control in controls:
                seen.last[control] = measure(binaries, work, load, control, scale)
                seen.facts[control].append(seen.last[control].facts())
        return seen

    def by_control(self) -> dict[str, dict[str, float]]:
        return {
            control: {name: median([facts[name] for facts in runs]) for name in runs[0]}
            for control, runs in self.facts.items()
        }


def job_rows(load: str, control: str, facts: Mapping[str, float], scale: float) -> list[Row]:
    return [
        {
            "load": load,
            "control": control,
            "job": job.name,
            "start_s": job.start * scale,
            "seconds": facts[f"{job.name} seconds"],
            "alone_s": job.alone(scale),
            "slowdown": facts[f"{job.name} seconds"] / job.alone(scale),
        }
        for job in JOBS
    ]


def total_rows(load: str, runs: int, by_control: Mapping[str, Mapping[str, float]]) -> list[Row]:
    return [
        {"load": load, "control": control, "runs": runs, **{name: facts[name] for name in FACTS}}
        for control, facts in by_control.items()
    ]


def check(load: str, by_control: Mapping[str, Mapping[str, float]]) -> list[Row]:
    """Control must not cost throughput, and no job may wait for longer than without."""
    found = []
    none, static = by_control.get("none"), by_control.get("static")
    for control in ("psfa", "total"):
        own = by_control.get(control)
        if own is None:
            continue
        if none is not None:
            found += [
                one_at_least(
                    f"{load}, {control}: throughput / without control",
                    TOTAL_OF_NONE,
                    own["mib_per_s"] / none["mib_per_s"],
                ),
                one_at_most(
                    f"{load}, {control}: worst slowdown / without control",
                    1.0,
                    own["worst_slowdown"] / none["worst_slowdown"],
                ),
            ]
        if static is not None:
            found.append(
                one_at_most(
                    f"{load}, {control}: mean completion time / static limits",
                    1.0,
                    own["mean_slowdown"] / static["mean_slowdown"],
                )
            )
    return found


def figure(
    load: str,
    runs: Mapping[str, Outcome],
    by_control: Mapping[str, Mapping[str, float]],
    caption: str,
) -> Figure:
    names = [job.name for job in JOBS]
    sheet = plot.Sheet(
        f"Four jobs that come and go: {LOADS[load]}",
        caption,
        rows=len(runs) + 1,
        heights=[1.7] * len(runs) + [2.0],
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
        "--runs", type=one_or_more, help="of each control, interleaved (default 3; 1 with --quick)"
    )
    parser.add_argument("--controls", nargs="+", choices=CONTROLS, default=list(CONTROLS))
    parser.add_argument(
        "--loads",
        nargs="+",
        choices=LOADS,
        default=[VPFS_LOAD],
        help="what the jobs run; fio and ior need root and /dev/fuse (default: vpfs-load)",
    )
    return parser


def loads_here(binaries: pathlib.Path, wanted: Sequence[str]) -> list[str]:
    """Those that this machine can run. A line says why another one is skipped."""
    if set(wanted) != {VPFS_LOAD}:
        require_mounts()
        require_programs(binaries, ["vpfs-mount"])
    found = []
    for load in wanted:
        why = control_impact_mount.why_not(load)
        if why:
            print(f"skipped: {load}: {why}")
        else:
            found.append(load)
    if not found:
        raise Problem("none of the loads can run here")
    return found


def described(load: str, scale: float) -> list[str]:
    """What each job does with this load."""
    found = []
    for job in JOBS:
        flight = f"{job.processes} x {job.outstanding} requests of {size_name(job.size)} in flight"
        if load != VPFS_LOAD:
            flight = (
                f"{control_impact_mount.processes(load, job)} processes with one write of "
                f"{size_name(job.size)} each"
            )
        amount = round(job.amount * scale / MIB)
        found.append(f"{job.name}: {amount} MiB from {job.start * scale:g} s on, {flight}")
    return found


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    if set(options.controls) != {"none"}:
        require_programs(binaries, ["vpfs-coordinator"])
    loads = loads_here(binaries, options.loads)
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
        "jobs": {load: described(load, scale) for load in loads},
        "files": "striped over all servers",
        "idle_percent": "what the devices did not do of what they could, while a job had work",
        "slowdown": "completion time / the time of the job alone on all servers; that of fio and "
        "IOR counts from the start of the program to its end",
    }
    print_settings(settings)
    rows: list[Row] = []
    jobs: list[Row] = []
    seen: dict[str, Seen] = {}
    targets: list[Row] = []
    for load in loads:
        found = Seen.measured(
            binaries, out / "control_impact", load, options.controls, scale, count
        )
        seen[load] = found
        by_control = found.by_control()
        own = [
            row
            for control, facts in by_control.items()
            for row in job_rows(load, control, facts, scale)
        ]
        totals = total_rows(load, count, by_control)
        print("\n" + table(own, COLUMNS) + "\n\n" + table(totals, TOTAL_COLUMNS), flush=True)
        rows += totals
        jobs += own
        targets += check(load, by_control)
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(
        out / "control_impact.json",
        {
            "settings": settings,
            "rows": rows,
            "jobs": jobs,
            "runs": {load: found.facts for load, found in seen.items()},
            "targets": targets,
        },
    )
    text = plot.caption(
        settings,
        f"{SERVERS} servers of {MIB_PER_S} MiB/s, depth {DEPTH['depth_requests']} requests of "
        "each proxy",
        "writes of 1 MiB striped over all servers",
        f"medians of {count} runs; over time: the last one",
    )
    for load, found in seen.items():
        name = "control_impact" if load == VPFS_LOAD else f"control_impact-{load}"
        make = functools.partial(figure, load, found.last, found.by_control(), text)
        plot.save(out / name, make)
    return 0
