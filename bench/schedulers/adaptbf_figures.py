"""Figures of the AdapTBF experiments: over time, of gains, by the period and by the jobs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from bench.schedulers.adaptbf_experiments import (
    BASES,
    CAPACITY_MIB_PER_S,
    CONTROLS,
    LENDERS,
    REAL,
    VIRTUAL,
    Experiment,
    Phase,
    Series,
)
from bench.schedulers.adaptbf_tables import WHOLE, Case, gain_rows
from lab import plot
from lab.plot_style import INK
from lab.points import bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]
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


def wanted(experiment: Experiment, jobs: Sequence[str]) -> dict[str, float]:
    """MiB/s of each job if priorities divide the capacity among these jobs."""
    whole = sum(experiment.priorities[job] for job in jobs)
    return {job: CAPACITY_MIB_PER_S * experiment.priorities[job] / whole for job in jobs}


def draw_wanted(panel: Axes, experiment: Experiment, parts: Sequence[Phase]) -> None:
    own = looks(experiment)
    for part in parts:
        shares = wanted(experiment, part.jobs)
        for value in sorted(set(shares.values())):
            jobs = [job for job, share in shares.items() if share == value]
            colour = own[jobs[0]].colour if len(jobs) == 1 else INK
            plot.target(
                panel,
                value,
                span=(part.begin, part.end),
                colour=colour,
                text=f"{value:.0f}" if part is parts[-1] else "",
            )
    plot.explain_targets(panel, WANTED)


def draw_phases(panel: Axes, parts: Sequence[Phase], headings: bool) -> None:
    plot.phases(panel, [(part.begin, part.end, part.news if headings else "") for part in parts])


def draw_rates(
    panel: Axes,
    experiment: Experiment,
    parts: Sequence[Phase],
    rates: Mapping[str, Series],
    headings: bool = True,
) -> None:
    draw_wanted(panel, experiment, parts)
    plot.lines(
        panel,
        {name: bins(line) for name, line in with_total(rates).items()},
        looks(experiment),
    )
    draw_phases(panel, parts, headings)
    panel.set_ylim(0, ROOM * CAPACITY_MIB_PER_S)


def run_figure(
    title: str,
    caption: str,
    experiment: Experiment,
    parts: Sequence[Phase],
    rates: Mapping[str, Series],
    records: Mapping[str, Series],
) -> Figure:
    """Bandwidth, and the records that explain it if the policy keeps any."""
    kept = bool(records) and all(records.values())
    sheet = plot.Sheet(title, caption, rows=2 if kept else 1, heights=[2.8, 2.2], share_x=True)
    draw_rates(sheet.panels[0], experiment, parts, rates)
    plot.label(sheet.panels[0], "" if kept else TIME, RATE)
    if kept:
        panel = sheet.panels[1]
        plot.lines(panel, records, looks(experiment))
        panel.axhline(0, color=INK, linewidth=0.8)
        draw_phases(panel, parts, headings=False)
        plot.label(panel, TIME, "record: lent less\nborrowed (tokens)")
    return sheet.finish()


def controls_figure(
    experiment: Experiment,
    caption: str,
    runs: Mapping[str, tuple[Sequence[Phase], Mapping[str, Series]]],
    descriptions: Mapping[str, str],
) -> Figure:
    """One experiment under each control. `runs` has the phases and the bandwidths of each."""
    sheet = plot.Sheet(
        sentence(experiment.title), caption, rows=len(runs), heights=[1.7], share_x=True
    )
    for index, (panel, (control, (parts, rates))) in enumerate(zip(sheet.panels, runs.items())):
        draw_rates(panel, experiment, parts, rates, headings=False)
        plot.label(panel, TIME if index == len(runs) - 1 else "", RATE, descriptions[control])
    # Controls take different times for the same work.
    sheet.panels[0].set_xlim(0, max(parts[-1].end for parts, _ in runs.values()))
    return sheet.finish()


def gain_figure(
    experiment: Experiment, caption: str, by_control: Mapping[str, Mapping[str, float]]
) -> Figure:
    """What each application gains or loses, against no control and against static limits."""
    sheet = plot.Sheet(
        f"Gain or loss (figure {experiment.figures[1]}b): {experiment.title}",
        caption,
        rows=4,
        heights=[1.7],
    )
    rows = gain_rows(experiment, by_control)
    names = list(dict.fromkeys(str(row["application"]) for row in rows))
    every_look = plot.looks(list(by_control))
    for panel, (field, base) in zip(
        sheet.panels, itertools.product(("percent more than", "p99 /"), BASES)
    ):
        is_tail = field == "p99 /"
        column, shown = f"{field} {base}", [name for name in names if not is_tail or name != WHOLE]
        controls = [control for control in by_control if control not in ("none", base)]
        plot.bars(
            panel,
            shown,
            {
                control: [
                    row[column]
                    for row in rows
                    if row["control"] == control and row["application"] in shown
                ]
                for control in controls
            },
            every_look,
        )
        plot.target(panel, 1 if is_tail else 0, "the same as it")
        plot.label(
            panel,
            "",
            "p99 (ratio)" if is_tail else "MiB/s (% more)",
            f"Beside {CONTROLS[base]}",
        )
    return sheet.finish()


def sweep_figure(caption: str, by_case: Mapping[Case, Mapping[str, float]]) -> Figure:
    periods = sorted({period for _, period in by_case})
    controls = list(dict.fromkeys(control for control, _ in by_case))

    def lines(number: Callable[[Mapping[str, float]], float]) -> dict[str, list[Point]]:
        return {
            control: [
                (period * 1000, number(by_case[control, period]))
                for period in periods
                if (control, period) in by_case
            ]
            for control in controls
        }

    sheet = plot.Sheet(
        "AdapTBF with other periods (figure 9)", caption, rows=2, columns=2, heights=[2.2]
    )
    for panel, y, title, number in (
        (sheet.panels[0], RATE, "All jobs together", lambda facts: facts[REAL]),
        (
            sheet.panels[1],
            RATE,
            "The slowest lender after its return",
            lambda facts: min(facts[f"{job} mib_per_s_after"] for job in LENDERS),
        ),
        (
            sheet.panels[2],
            RATE,
            "All jobs together, in virtual time",
            lambda facts: facts[VIRTUAL],
        ),
        (
            sheet.panels[3],
            "latency, p99 (ms)",
            "The worst bursts of a lender",
            lambda facts: max(facts[f"{job}-bursts p99_ms"] for job in LENDERS),
        ),
    ):
        plot.lines(panel, lines(number), plot.looks(controls))
        plot.doubling(panel, periods_ms := [period * 1000 for period in periods])
        panel.set_xlim(min(periods_ms) * 0.8, max(periods_ms) * 1.25)
        panel.set_ylim(0, panel.get_ylim()[1] * 1.05)
        plot.label(panel, "period before scaling (ms)", y, title)
    for panel in (sheet.panels[0], sheet.panels[2]):
        plot.target(panel, CAPACITY_MIB_PER_S, "capacity of the server")
        panel.set_ylim(0, ROOM * CAPACITY_MIB_PER_S)
    return sheet.finish()


def overhead_figure(caption: str, rows: Sequence[Mapping[str, float]]) -> Figure:
    sheet = plot.Sheet("What the end of a period costs", caption, columns=2, heights=[2.6])
    jobs = [float(row["jobs"]) for row in rows]
    fields = {"all of it": "us_per_job", "its allocator": "allocator_us_per_job"}
    plot.lines(
        sheet.panels[0],
        {name: [(row["jobs"], row[field]) for row in rows] for name, field in fields.items()},
    )
    plot.lines(
        sheet.panels[1],
        {
            "all of it": [(row["jobs"], row["ms_per_period"]) for row in rows],
            "its longest call": [(row["jobs"], row["longest_call_us"] / 1000) for row in rows],
        },
        plot.looks(["all of it", *fields, "its longest call"]),
    )
    for panel, y, title in zip(
        sheet.panels, ("time per job (us)", "time per period (ms)"), ("Each job", "A period")
    ):
        plot.doubling(panel, jobs)
        plot.label(panel, "jobs (number)", y, title)
    plot.from_zero(sheet.panels[:1])
    times = [row["ms_per_period"] for row in rows] + [row["longest_call_us"] / 1000 for row in rows]
    sheet.panels[1].set_ylim(min(times) / 1.5, max(times) * 1.5)
    plot.logarithmic(sheet.panels[1], "y")
    return sheet.finish()
