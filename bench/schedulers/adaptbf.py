"""script/bench adaptbf: the experiments of the AdapTBF paper, through real proxies and servers.

There is one proxy and one server, whose device model is the bottleneck. Every experiment runs
without control, with static limits, and under AdapTBF. All times of the experiments are divided by
one scale. The period of AdapTBF is not scaled.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
from collections.abc import Callable, Mapping

from bench.schedulers.adaptbf_experiments import (
    BORROWER,
    BURST_WRITERS,
    CAPACITY_MIB_PER_S,
    CONTROLS,
    DEPTH,
    DEVICE,
    EXPERIMENTS,
    LENDERS,
    PAYBACK,
    PERIOD,
    PERIODS,
    PRIORITY,
    REDISTRIBUTION,
    SETTLE,
    SMALL_WRITE,
    TOKEN,
    WRITE,
    WRITERS,
    Experiment,
    Series,
    bandwidths,
    burst_rates,
    csv_text,
    front,
    mean_between,
    phase_rates,
    share_error,
    value_at,
)
from bench.schedulers.adaptbf_figures import (
    controls_figure,
    run_figure,
    sentence,
    sweep_figure,
    with_total,
)
from bench.schedulers.adaptbf_targets import (
    check_payback,
    check_priority,
    check_redistribution,
    check_sweep,
)
from lab import plot
from lab.cluster import Cluster
from lab.harness import MIB, Programs, machine_settings, median
from lab.load import Application, check_errors, run_load
from lab.report import Json, Row, print_settings, size_name, table, write_json
from lab.status import StatusRecorder
from lab.targets import COLUMNS as TARGET_COLUMNS

SCALE, QUICK_SCALE = 4.0, 20.0
QUICK_PERIODS = [0.02, 0.1, 0.5]
START_AND_STOP = 1.5  # seconds that a run takes besides its load
CAPACITY_FIELDS = ["capacity_least", "capacity_most"]  # MiB/s, as the proxy measured it


@dataclasses.dataclass(frozen=True)
class Plan:
    scale: float
    runs: int
    experiments: list[str]
    periods: list[float]

    @property
    def interval(self) -> float:
        return max(0.1, 1.0 / self.scale)

    def seconds(self) -> float:
        each = sum(
            len(CONTROLS) * self._run_seconds(EXPERIMENTS[name])
            for name in self.experiments
            if name in EXPERIMENTS
        )
        sweep = len(self.periods) * self._run_seconds(PAYBACK) if "d" in self.experiments else 0.0
        return self.runs * (each + sweep)

    def _run_seconds(self, experiment: Experiment) -> float:
        return experiment.length(self.scale) + START_AND_STOP


@dataclasses.dataclass(frozen=True)
class Run:
    experiment: Experiment
    scale: float
    result: Json
    statuses: list[tuple[float, Json]]
    proxy_cpu_seconds: float

    def bandwidths(self) -> dict[str, Series]:
        return bandwidths(self.result, self.experiment)

    def records(self) -> dict[str, Series]:
        """The tokens that each job has lent, minus those that it has borrowed.

        Empty if the policy keeps no records.
        """
        found: dict[str, Series] = {job: [] for job in self.experiment.jobs}
        for t, status in self.statuses:
            for row in status["virtual_pfs"]:
                if row["name"] in found and "record" in row:
                    found[row["name"]].append((t, float(row["record"])))
        return found

    def facts(self) -> dict[str, float]:
        """The numbers for targets and tables."""
        length = self.experiment.length(self.scale)
        total = self.result["total_mib_per_s"]
        facts = {
            "total_mib_per_s": total,
            "proxy_cpu_s_per_gib": self.proxy_cpu_seconds / (total * length / 1024),
        }
        # The proxy needs a second to measure it.
        capacities = [
            status["capacity"] / MIB
            for t, status in self.statuses
            if t > 1 and "capacity" in status
        ]
        if capacities:
            facts |= {"capacity_least": min(capacities), "capacity_most": max(capacities)}
        for entry in self.result["applications"]:
            latency = entry["latency_us"]
            facts |= {
                f"{entry['name']} {field}_ms": latency[field] / 1000
                for field in ("p50", "p99", "max")
            }
        for name, rate in burst_rates(self.result, self.experiment, self.scale).items():
            facts[f"{name} burst_mib_per_s"] = rate
        for index, rates in enumerate(phase_rates(self.bandwidths(), self.experiment, self.scale)):
            facts |= {f"phase{index} {job}": rate for job, rate in rates.items()}
        if self.experiment is PRIORITY:
            facts["share_error"] = share_error(
                phase_rates(self.bandwidths(), PRIORITY, self.scale)[0], PRIORITY
            )
        if self.experiment is PAYBACK:
            facts |= self._lenders()
        return facts

    def _lenders(self) -> dict[str, float]:
        facts: dict[str, float] = {}
        series, records = self.bandwidths(), self.records()
        for job, start in LENDERS.items():
            facts[f"{job} record_at_return"] = value_at(records[job], start / self.scale)
            later = [record for t, record in records[job] if t > start / self.scale]
            facts[f"{job} least_record_after"] = min(later, default=0.0)
            begin, end = start + SETTLE, min(mark for mark in PAYBACK.marks if mark > start)
            for name, field in ((job, "mib_per_s_after"), (BORROWER, "borrower_mib_per_s")):
                facts[f"{job} {field}"] = mean_between(
                    series[name], begin / self.scale, end / self.scale
                )
        return facts


class Bench:
    def __init__(self, binaries: pathlib.Path, out: pathlib.Path, plan: Plan) -> None:
        self._binaries, self._out, self._plan = binaries, out, plan

    def measure(self, experiment: Experiment, control: str, period: float = PERIOD) -> Run:
        with Programs(self._binaries, self._out / "adaptbf") as programs:
            cluster = Cluster(programs, 1, [front(experiment, control, period)], DEVICE)
            (proxy,) = cluster.start("px")
            recorder = StatusRecorder(cluster.status_file("px"))
            cpu = proxy.cpu_seconds()
            recorder.start()
            result = run_load(
                programs,
                "load",
                cluster.address("px"),
                experiment.scaled(self._plan.scale),
                experiment.length(self._plan.scale),
                0.0,
                recorder.saw_line,
                interval=self._plan.interval,
            )
            statuses = recorder.stop()
            check_errors(result)
            return Run(experiment, self._plan.scale, result, statuses, proxy.cpu_seconds() - cpu)

    def draw(self, run: Run, name: str, title: str, caption: str) -> None:
        """Writes CSV and figures of bandwidth over time, and of records if there are any."""
        rates, records = run.bandwidths(), run.records()
        (self._out / f"{name}.csv").write_text(csv_text(with_total(rates)))
        if all(records.values()):
            (self._out / f"{name}-records.csv").write_text(csv_text(records))
        plot.save(
            self._out / name,
            lambda: run_figure(title, caption, run.experiment, run.scale, rates, records),
        )

    def draw_controls(
        self, experiment: Experiment, rates: dict[str, dict[str, Series]], caption: str
    ) -> None:
        plot.save(
            self._out / f"adaptbf-{experiment.name}",
            lambda: controls_figure(experiment, caption, self._plan.scale, rates, CONTROLS),
        )

    def draw_sweep(self, by_period: dict[float, dict[str, float]], caption: str) -> None:
        plot.save(self._out / "adaptbf-d", lambda: sweep_figure(caption, by_period))


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {field: median([run[field] for run in runs]) for field in runs[0]}


def phase_table(
    experiment: Experiment, by_control: dict[str, dict[str, float]], scale: float
) -> str:
    rows: list[Row] = []
    for index, (begin, end) in enumerate(experiment.phases(scale)):
        for control, facts in by_control.items():
            rates = {job: facts[f"phase{index} {job}"] for job in experiment.jobs}
            rows.append(
                {"seconds": f"{begin:g}-{end:g}", "control": control}
                | rates
                | {"total": sum(rates.values())}
            )
    for control, facts in by_control.items():
        row: dict[str, object] = {
            "seconds": "whole run",
            "control": control,
            "total": facts["total_mib_per_s"],
            "proxy_cpu_s_per_gib": facts["proxy_cpu_s_per_gib"],
        }
        rows.append(row | {field: facts.get(field) for field in CAPACITY_FIELDS})
    return table(
        rows,
        ["seconds", "control", *experiment.jobs, "total", "proxy_cpu_s_per_gib", *CAPACITY_FIELDS],
    )


def latency_table(experiment: Experiment, by_control: dict[str, dict[str, float]]) -> str:
    rows: list[Row] = []
    for application in experiment.applications:
        for control, facts in by_control.items():
            name = application.name
            rows.append(
                {
                    "application": name,
                    "control": control,
                    "mib_per_s_in_bursts": facts.get(f"{name} burst_mib_per_s"),
                }
                | {f"{field}_ms": facts[f"{name} {field}_ms"] for field in ("p50", "p99", "max")}
            )
    return table(
        rows, ["application", "control", "mib_per_s_in_bursts", "p50_ms", "p99_ms", "max_ms"]
    )


def sweep_table(by_period: dict[float, dict[str, float]]) -> str:
    rows: list[Row] = [
        {
            "period_ms": round(period * 1000),
            "total": facts["total_mib_per_s"],
            "proxy_cpu_s_per_gib": facts["proxy_cpu_s_per_gib"],
        }
        | {f"{job} after": facts[f"{job} mib_per_s_after"] for job in LENDERS}
        | {f"{job} bursts p99_ms": facts[f"{job}-bursts p99_ms"] for job in LENDERS}
        for period, facts in by_period.items()
    ]
    return table(rows, list(rows[0]))


def settings_of(plan: Plan, quick: bool) -> dict[str, object]:
    def describe(application: Application) -> dict[str, object]:
        return application.config() | {"size": size_name(application.size)}

    return machine_settings() | {
        "quick": quick,
        "runs of each": plan.runs,
        "statistic": "medians over the runs; plots and CSV show the last one",
        "scale": f"all times of the experiments are divided by {plan.scale:g}; the period of "
        "AdapTBF is not",
        "seconds of each run": {
            name: EXPERIMENTS[name].length(plan.scale)
            for name in plan.experiments
            if name in EXPERIMENTS
        },
        "servers": 1,
        "device": DEVICE,
        "depth": DEPTH,
        "token": TOKEN,
        "period": f"{PERIOD * 1000:.0f} ms",
        "controls": CONTROLS,
        "writers": f"one request of {size_name(WRITE)} in flight each; {WRITERS} for applications "
        f"that write all the time, {BURST_WRITERS} for bursts (of {size_name(SMALL_WRITE)} in "
        "experiment c)",
        "bin": f"{plan.interval:g} s; means of a phase leave out its first "
        f"{SETTLE / plan.scale:g} s",
        "periods of d": [f"{period * 1000:.0f} ms" for period in plan.periods],
        "applications before scaling": {
            name: {
                "title": EXPERIMENTS[name].title,
                "priorities": dict(EXPERIMENTS[name].priorities),
                "applications": [
                    describe(application) for application in EXPERIMENTS[name].applications
                ],
            }
            for name in plan.experiments
            if name in EXPERIMENTS
        },
    }


def caption_of(settings: Row, plan: Plan) -> str:
    return plot.caption(
        settings,
        f"one server of {CAPACITY_MIB_PER_S} MiB/s, depth {DEPTH['depth_requests']} requests and "
        f"{DEPTH['depth_bytes']}",
        f"period {PERIOD * 1000:.0f} ms unless it is named, tokens of {TOKEN}",
        f"all times of the paper divided by {plan.scale:g}",
        f"means of {plan.interval:g} s",
        f"{plan.runs} run{'s' if plan.runs > 1 else ''} of each; over time: the last one",
    )


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench adaptbf")
    parser.add_argument(
        "--experiments",
        nargs="+",
        choices=[*EXPERIMENTS, "d"],
        default=[*EXPERIMENTS, "d"],
        help="a: priorities, b: redistribution, c: payback, d: c with other periods",
    )
    parser.add_argument(
        "--scale",
        type=float,
        help=f"divisor of all times (default {SCALE:g}; {QUICK_SCALE:g} with --quick)",
    )
    parser.add_argument(
        "--runs", type=int, default=1, help="runs of each experiment and control (default 1)"
    )
    return parser


def run_experiment(
    bench: Bench, experiment: Experiment, plan: Plan, caption: str
) -> dict[str, list[dict[str, float]]]:
    seen: dict[str, list[dict[str, float]]] = {control: [] for control in CONTROLS}
    last: dict[str, dict[str, Series]] = {}
    for _ in range(plan.runs):
        for control in CONTROLS:
            run = bench.measure(experiment, control)
            seen[control].append(run.facts())
            last[control] = run.bandwidths()
            bench.draw(
                run,
                f"adaptbf-{experiment.name}-{control}",
                f"{sentence(experiment.title)} ({control})",
                caption,
            )
    bench.draw_controls(experiment, last, caption)
    by_control = {control: medians(runs) for control, runs in seen.items()}
    print(
        f"\n{experiment.name}: {experiment.title}\n"
        + phase_table(experiment, by_control, plan.scale),
        flush=True,
    )
    print("\n" + latency_table(experiment, by_control), flush=True)
    return seen


def run_sweep(bench: Bench, plan: Plan, caption: str) -> dict[float, list[dict[str, float]]]:
    seen: dict[float, list[dict[str, float]]] = {period: [] for period in plan.periods}
    for _ in range(plan.runs):
        for period in plan.periods:
            run = bench.measure(PAYBACK, "adaptbf", period)
            seen[period].append(run.facts())
            bench.draw(
                run,
                f"adaptbf-d-{period * 1000:.0f}ms",
                f"{sentence(PAYBACK.title)} (period {period * 1000:.0f} ms)",
                caption,
            )
    by_period = {period: medians(runs) for period, runs in seen.items()}
    bench.draw_sweep(by_period, caption)
    print("\nd: experiment c with other periods\n" + sweep_table(by_period), flush=True)
    return seen


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    plan = Plan(
        options.scale or (QUICK_SCALE if quick else SCALE),
        options.runs,
        options.experiments,
        QUICK_PERIODS if quick else PERIODS,
    )
    settings = settings_of(plan, quick)
    print_settings(settings)
    print(f"about {plan.seconds() / 60:.1f} minutes", flush=True)
    bench, caption = Bench(binaries, out, plan), caption_of(settings, plan)
    checks: dict[str, Callable[[Mapping[str, Mapping[str, float]]], list[Row]]] = {
        PRIORITY.name: check_priority,
        PAYBACK.name: check_payback,
        REDISTRIBUTION.name: lambda by_control: check_redistribution(
            by_control, REDISTRIBUTION.jobs[:-1]
        ),
    }
    found: dict[str, object] = {}
    targets: list[Row] = []
    for experiment in [EXPERIMENTS[name] for name in plan.experiments if name in EXPERIMENTS]:
        seen = run_experiment(bench, experiment, plan, caption)
        found[experiment.name] = seen
        targets += checks[experiment.name](
            {control: medians(runs) for control, runs in seen.items()}
        )
    if "d" in plan.experiments:
        sweep = run_sweep(bench, plan, caption)
        found["d"] = {f"{period * 1000:.0f} ms": runs for period, runs in sweep.items()}
        targets += check_sweep({period: medians(runs) for period, runs in sweep.items()})
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "adaptbf.json", {"settings": settings, "runs": found, "targets": targets})
    return 0
