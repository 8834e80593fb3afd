"""script/bench adaptbf: the experiments of the AdapTBF paper, through real proxies and servers.

There is one proxy and one server, whose device model is the bottleneck. Every experiment runs
without control, with static limits, under AdapTBF as published, and under ours, which gives idle
tokens away. All times and amounts of the experiments are divided by one scale. So are the periods
and the tokens of AdapTBF.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

from bench.schedulers import adaptbf_overhead, adaptbf_targets, adaptbf_virtual
from bench.schedulers.adaptbf_experiments import (
    BURST_WRITERS,
    CAPACITY_MIB_PER_S,
    CONTROLS,
    DEPTH,
    DEVICE,
    EXPERIMENTS,
    PAYBACK,
    PERIOD,
    PERIODS,
    SETTLE,
    SMALL_WRITE,
    SWEPT,
    TOKEN,
    VIRTUAL,
    WRITE,
    WRITERS,
    Experiment,
    check_done,
    csv_text,
    front,
)
from bench.schedulers.adaptbf_figures import (
    controls_figure,
    gain_figure,
    overhead_figure,
    run_figure,
    sentence,
    sweep_figure,
    with_total,
)
from bench.schedulers.adaptbf_run import Run, medians
from bench.schedulers.adaptbf_tables import Case, cost_table, gain_table, sweep_table
from lab import plot
from lab.cluster import Cluster
from lab.harness import Programs, machine_settings
from lab.load import Application, check_errors, run_load
from lab.numbers import above_zero, one_or_more
from lab.report import Row, print_settings, size_name, table, write_json
from lab.status import StatusRecorder
from lab.targets import COLUMNS as TARGET_COLUMNS

SCALE, QUICK_SCALE = 4.0, 50.0
QUICK_PERIODS = [0.2, 1.0]
START_AND_STOP = 1.5  # seconds that a run takes besides its load
SWEEP, OVERHEAD = "d", "overhead"
ALL = [*EXPERIMENTS, SWEEP, OVERHEAD]


@dataclasses.dataclass(frozen=True)
class Plan:
    scale: float
    runs: int
    experiments: Sequence[str]
    periods: Sequence[float]
    quick: bool

    @property
    def interval(self) -> float:
        return max(0.1, 1.0 / self.scale)

    @property
    def chosen(self) -> list[Experiment]:
        return [EXPERIMENTS[name] for name in self.experiments if name in EXPERIMENTS]

    def seconds(self) -> float:
        each = sum(
            self._run_seconds(experiment, control)
            for experiment in self.chosen
            for control in CONTROLS
        )
        if SWEEP in self.experiments:
            cases = len(self.periods) * len(SWEPT)
            each += cases * self._run_seconds(PAYBACK, SWEPT[0])
        return self.runs * each

    def _run_seconds(self, experiment: Experiment, control: str) -> float:
        return experiment.expected(self.scale, control) + START_AND_STOP


class Bench:
    def __init__(self, binaries: pathlib.Path, out: pathlib.Path, plan: Plan) -> None:
        self._binaries, self._out, self._plan = binaries, out, plan

    def measure(self, experiment: Experiment, control: str, period: float = PERIOD) -> Run:
        """The period is that before scaling."""
        scale = self._plan.scale
        with Programs(self._binaries, self._out / "adaptbf") as programs:
            cluster = Cluster(programs, 1, [front(experiment, control, period, scale)], DEVICE)
            (proxy,) = cluster.start("px")
            recorder = StatusRecorder(cluster.status_file("px"))
            cpu = proxy.cpu_seconds()
            recorder.start()
            result = run_load(
                programs,
                "load",
                cluster.address("px"),
                experiment.scaled(scale),
                experiment.longest(scale),
                0.0,
                recorder.saw_line,
                interval=self._plan.interval,
                until_done=True,
            )
            statuses = recorder.stop()
            check_errors(result)
            check_done(result, experiment, scale)
            return Run(experiment, scale, result, statuses, proxy.cpu_seconds() - cpu)

    def draw(self, run: Run, name: str, title: str, caption: str) -> None:
        """Writes CSV and figures of bandwidth over time, and of records if there are any."""
        rates, records = run.bandwidths(), run.records()
        (self._out / f"{name}.csv").write_text(csv_text(with_total(rates)))
        if all(records.values()):
            (self._out / f"{name}-records.csv").write_text(csv_text(records))
        plot.save(
            self._out / name,
            lambda: run_figure(title, caption, run.experiment, run.phases(), rates, records),
        )

    def draw_controls(
        self,
        experiment: Experiment,
        last: Mapping[str, Run],
        by_control: Mapping[str, Mapping[str, float]],
        caption: str,
    ) -> None:
        name = self._out / f"adaptbf-{experiment.name}"
        lines = {control: (run.phases(), run.bandwidths()) for control, run in last.items()}
        plot.save(name, lambda: controls_figure(experiment, caption, lines, CONTROLS))
        plot.save(
            name.with_name(f"{name.name}-gain"),
            lambda: gain_figure(experiment, caption, by_control),
        )

    def draw_sweep(self, by_case: Mapping[Case, Mapping[str, float]], caption: str) -> None:
        plot.save(self._out / "adaptbf-d", lambda: sweep_figure(caption, by_case))


def described(application: Application) -> dict[str, object]:
    return application.config() | {"size": size_name(application.size)}


def settings_of(plan: Plan) -> dict[str, object]:
    return machine_settings() | {
        "quick": plan.quick,
        "runs of each": plan.runs,
        "statistic": "medians over the runs; plots over time and CSV show the last one",
        "scale": f"all times and amounts of the experiments are divided by {plan.scale:g}, and "
        "so are the periods and the tokens of AdapTBF",
        "servers": 1,
        "device": DEVICE,
        "depth": DEPTH,
        "token": f"{size_name(TOKEN)} before scaling",
        "period": f"{PERIOD * 1000:.0f} ms before scaling",
        "controls": CONTROLS,
        "writers": f"one request of {size_name(WRITE)} in flight each; {WRITERS} for applications "
        f"that write all the time, {BURST_WRITERS} for bursts (of {size_name(SMALL_WRITE)} in "
        "experiment c)",
        "seconds": "from the start of an application to its last request; MiB/s are of its bursts "
        "if it has some (in b while job4 has work), and the total is of the whole run",
        "bin": f"{plan.interval:g} s; means leave out {SETTLE / plan.scale:g} s after a change",
        "periods of d": [f"{period * 1000:.0f} ms before scaling" for period in plan.periods],
        "applications before scaling": {
            experiment.name: {
                "title": experiment.title,
                "priorities": dict(experiment.priorities),
                "applications": [described(each) for each in experiment.applications],
            }
            for experiment in plan.chosen
        },
    }


def caption_of(settings: Row, plan: Plan) -> str:
    return plot.caption(
        settings,
        f"one server of {CAPACITY_MIB_PER_S} MiB/s, depth {DEPTH['depth_requests']} requests and "
        f"{DEPTH['depth_bytes']}",
        f"period {PERIOD * 1000:.0f} ms unless another is named, tokens of {size_name(TOKEN)}",
        f"all times, amounts, periods and tokens divided by {plan.scale:g}",
        f"means of {plan.interval:g} s",
        "above a panel: +job begins its work, -job has done it",
        f"{plan.runs} run{'s' if plan.runs > 1 else ''} of each; over time: the last one",
    )


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench adaptbf")
    parser.add_argument(
        "--experiments",
        nargs="+",
        choices=ALL,
        default=ALL,
        help="a: priorities, b: redistribution, c: payback, d: c with other periods, overhead: "
        "what the end of a period costs",
    )
    parser.add_argument(
        "--overhead", action="store_true", help="only this, as --experiments overhead"
    )
    parser.add_argument(
        "--scale",
        type=above_zero,
        help=f"divisor of all times and amounts (default {SCALE:g}; {QUICK_SCALE:g} with --quick)",
    )
    parser.add_argument(
        "--runs",
        type=one_or_more,
        default=1,
        help="runs of each experiment and control (default 1)",
    )
    return parser


def run_experiment(
    bench: Bench, experiment: Experiment, plan: Plan, caption: str
) -> tuple[dict[str, list[dict[str, float]]], list[Row]]:
    """The numbers of all runs, and the targets."""
    seen: dict[str, list[dict[str, float]]] = {control: [] for control in CONTROLS}
    last: dict[str, Run] = {}
    for _ in range(plan.runs):
        for control in CONTROLS:
            run = last[control] = bench.measure(experiment, control)
            seen[control].append(run.facts())
            bench.draw(
                run,
                f"adaptbf-{experiment.name}-{control}",
                f"{sentence(experiment.title)} ({control})",
                caption,
            )
    by_control = {control: medians(runs) for control, runs in seen.items()}
    bench.draw_controls(experiment, last, by_control, caption)
    print(
        f"\n{experiment.name}: {experiment.title} (figures {' and '.join(experiment.figures)})\n"
        + gain_table(experiment, by_control),
        flush=True,
    )
    print("\n" + cost_table(by_control), flush=True)
    return seen, list(adaptbf_targets.check(experiment.name, by_control))


def run_sweep(
    binaries: pathlib.Path, out: pathlib.Path, plan: Plan, caption: str
) -> tuple[dict[str, list[dict[str, float]]], list[Row]]:
    bench = Bench(binaries, out, plan)
    seen: dict[Case, list[dict[str, float]]] = {
        (control, period): [] for control in SWEPT for period in plan.periods
    }
    virtual = {
        case: adaptbf_virtual.total(binaries, out / "adaptbf", control, period)
        for case in seen
        for control, period in [case]
    }
    for _ in range(plan.runs):
        for (control, period), runs in seen.items():
            run = bench.measure(PAYBACK, control, period)
            runs.append(run.facts() | {VIRTUAL: virtual[control, period]})
            bench.draw(
                run,
                f"adaptbf-d-{control}-{period * 1000:.0f}ms",
                f"{sentence(PAYBACK.title)} ({control}, period {period * 1000:.0f} ms)",
                caption,
            )
    by_case = {case: medians(runs) for case, runs in seen.items()}
    bench.draw_sweep(by_case, caption)
    print(
        "\nd: experiment c with other periods (figure 9)\n" + sweep_table(by_case),
        flush=True,
    )
    return {
        f"{control}, {period * 1000:.0f} ms": runs for (control, period), runs in seen.items()
    }, adaptbf_targets.check_sweep(by_case)


def run_overhead(
    binaries: pathlib.Path, out: pathlib.Path, plan: Plan, settings: Row
) -> tuple[list[Row], list[Row]]:
    found = adaptbf_overhead.measure(binaries, out, plan.quick)
    rows: list[Row] = found["rows"]
    print("\nthe end of a period, by the number of jobs that asked for something in it")
    print(adaptbf_overhead.overhead_table(rows), flush=True)
    caption = plot.caption(settings, f"medians of {found['settings']['periods']} periods")
    plot.save(out / "adaptbf-overhead", lambda: overhead_figure(caption, rows))
    return rows, adaptbf_overhead.check_overhead(rows)


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    plan = Plan(
        options.scale or (QUICK_SCALE if quick else SCALE),
        options.runs,
        [OVERHEAD] if options.overhead else options.experiments,
        QUICK_PERIODS if quick else PERIODS,
        quick,
    )
    settings = settings_of(plan)
    print_settings(settings)
    print(f"about {plan.seconds() / 60:.1f} minutes", flush=True)
    bench, caption = Bench(binaries, out, plan), caption_of(settings, plan)
    found: dict[str, object] = {}
    targets: list[Row] = []
    for experiment in plan.chosen:
        found[experiment.name], more = run_experiment(bench, experiment, plan, caption)
        targets += more
    if SWEEP in plan.experiments:
        found[SWEEP], more = run_sweep(binaries, out, plan, caption)
        targets += more
    if OVERHEAD in plan.experiments:
        found[OVERHEAD], more = run_overhead(binaries, out, plan, settings)
        targets += more
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "adaptbf.json", {"settings": settings, "runs": found, "targets": targets})
    return 0
