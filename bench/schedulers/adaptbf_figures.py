"""Figures of the AdapTBF experiments, over time and by the period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.schedulers.adaptbf_experiments import CAPACITY_MIB_PER_S, LENDERS, Experiment, Series
from lab import plot
from lab.plot_style import INK
from lab.points import bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOTAL = "total"
RATE = "bandwidth (MiB/s)"
TIME = "time (s)"
WANTED = "share by priority"
ROOM = 1.12  # above the capacity


def sentence(title: str) -> str:
    return title[0].upper() + title[1:]


def looks(experiment: Experiment) -> dict[str, plot.Look]:
    return plot.looks(experiment.jobs) | {TOTAL: plot.Look("#000000", "", "")}


def with_total(rates: Mapping[str, Series]) -> dict[str, Series]:
    return dict(rates) | {
        TOTAL: [
            (points[0][0], sum(value for _, value in points)) for points in zip(*rates.values())
        ]
    }


def news(experiment: Experiment, mark: float) -> str:
    """Which applications begin or end for good at this time."""
    found = [
        f"{application.name} ends"
        for application in experiment.applications
        if application.stop == mark
    ]
    found += [
        f"{application.name} begins"
        for application in experiment.applications
        if application.start == mark > 0
    ]
    return ", ".join(found)


def phases(experiment: Experiment, scale: float) -> list[tuple[float, float, str]]:
    return [
        (begin, end, news(experiment, begin * scale)) for begin, end in experiment.phases(scale)
    ]


def wanted(experiment: Experiment, end: float) -> dict[str, float]:
    """MiB/s of each job if priorities divide the capacity among the jobs at the end of a phase.

    `end` is not scaled.
    """
    there = {
        application.job
        for application in experiment.applications
        if application.start < end and (application.stop is None or application.stop >= end)
    }
    whole = sum(experiment.priorities[job] for job in there)
    return {
        job: CAPACITY_MIB_PER_S * experiment.priorities[job] / whole
        for job in experiment.jobs
        if job in there
    }


def draw_wanted(panel: Axes, experiment: Experiment, scale: float) -> None:
    own = looks(experiment)
    parts = experiment.phases(scale)
    for begin, end in parts:
        shares = wanted(experiment, end * scale)
        for value in sorted(set(shares.values())):
            jobs = [job for job, share in shares.items() if share == value]
            colour = own[jobs[0]].colour if len(jobs) == 1 else INK
            plot.target(
                panel,
                value,
                span=(begin, end),
                colour=colour,
                text=f"{value:.0f}" if end == parts[-1][1] else "",
            )
    plot.explain_targets(panel, WANTED)


def draw_rates(
    panel: Axes,
    experiment: Experiment,
    scale: float,
    rates: Mapping[str, Series],
    headings: bool = True,
) -> None:
    draw_wanted(panel, experiment, scale)
    plot.lines(
        panel,
        {name: bins(line) for name, line in with_total(rates).items()},
        looks(experiment),
    )
    plot.phases(
        panel,
        [
            (begin, end, title if headings else "")
            for begin, end, title in phases(experiment, scale)
        ],
    )
    panel.set_ylim(0, ROOM * CAPACITY_MIB_PER_S)


def run_figure(
    title: str,
    caption: str,
    experiment: Experiment,
    scale: float,
    rates: Mapping[str, Series],
    records: Mapping[str, Series],
) -> Figure:
    """Bandwidth, and the records that explain it if the policy keeps any."""
    kept = bool(records) and all(records.values())
    sheet = plot.Sheet(title, caption, rows=2 if kept else 1, heights=[2.8, 2.2], share_x=True)
    draw_rates(sheet.panels[0], experiment, scale, rates)
    plot.label(sheet.panels[0], "" if kept else TIME, RATE)
    if kept:
        panel = sheet.panels[1]
        plot.lines(panel, records, looks(experiment))
        panel.axhline(0, color=INK, linewidth=0.8)
        plot.phases(panel, [(begin, end, "") for begin, end, _ in phases(experiment, scale)])
        plot.label(panel, TIME, "record: lent less\nborrowed (tokens)")
    return sheet.finish()


def controls_figure(
    experiment: Experiment,
    caption: str,
    scale: float,
    runs: Mapping[str, Mapping[str, Series]],
    descriptions: Mapping[str, str],
) -> Figure:
    """One experiment under each control. `runs` has the bandwidths of each."""
    sheet = plot.Sheet(
        sentence(experiment.title),
        caption,
        rows=len(runs),
        heights=[1.7],
        share_x=True,
        share_y=True,
    )
    for index, (panel, (control, rates)) in enumerate(zip(sheet.panels, runs.items())):
        draw_rates(panel, experiment, scale, rates, headings=False)
        plot.label(panel, TIME if index == len(runs) - 1 else "", RATE, descriptions[control])
    return sheet.finish()


def sweep_figure(caption: str, by_period: Mapping[float, Mapping[str, float]]) -> Figure:
    periods = sorted(by_period)

    def of(field: str) -> Sequence[tuple[float, float]]:
        return [(period * 1000, by_period[period][field]) for period in periods]

    sheet = plot.Sheet("AdapTBF with other periods", caption, rows=2, columns=2, heights=[2.2])
    left, right, low_left, low_right = sheet.panels
    every_job = plot.looks(list(LENDERS))
    plot.lines(left, {TOTAL: of("total_mib_per_s")}, {TOTAL: plot.Look("#000000", "X", "")})
    plot.target(left, CAPACITY_MIB_PER_S, "capacity of the server")
    plot.lines(right, {job: of(f"{job} mib_per_s_after") for job in LENDERS}, every_job)
    plot.lines(low_left, {TOTAL: of("proxy_cpu_s_per_gib")}, {TOTAL: plot.Look("#000000", "X", "")})
    plot.lines(low_right, {job: of(f"{job}-bursts p99_ms") for job in LENDERS}, every_job)
    for panel, y, title in (
        (left, RATE, "All jobs together"),
        (right, RATE, "Each lender after its return"),
        (low_left, "processor time (s/GiB)", "Cost in the proxy"),
        (low_right, "latency, p99 (ms)", "Each lender's bursts"),
    ):
        plot.doubling(panel, periods_ms := [period * 1000 for period in periods])
        panel.set_xlim(min(periods_ms) * 0.8, max(periods_ms) * 1.25)
        panel.set_ylim(0, panel.get_ylim()[1] * 1.05)
        plot.label(panel, "period (ms)", y, title)
    return sheet.finish()
