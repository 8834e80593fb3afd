"""The figures of `script/bench total`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.control.total_run import SETTLED, WINDOW_REQUESTS
from bench.control.total_steps import SCENARIOS, Track
from lab import plot
from lab.report import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATIO_ERROR, TOTAL = 0.02, 0.97
MOST_SHOWN = 60.0  # percent


def policy_of(row: Row) -> str:
    return "local" if row["policy"] == "local" else f"total, {row['period_ms']} ms"


def rows_figure(rows: Sequence[Row], caption: str) -> Figure:
    """The error of each ratio, and the total, by set-up; one series for each policy and period."""
    series = list(dict.fromkeys(policy_of(row) for row in rows))
    looks = plot.looks(series)
    layouts = list(dict.fromkeys(row["striped"] for row in rows))
    sheet = plot.Sheet(
        "Shares of the service on all servers together",
        caption,
        rows=2,
        columns=len(layouts),
        heights=[3.0, 2.2],
        share_x=False,
        share_y=True,
    )
    for column, striped in enumerate(layouts):
        own = [row for row in rows if row["striped"] == striped]
        names = list(dict.fromkeys(f"{row['setup']}, {row['weight']}" for row in own))
        upper, lower = sheet.panels[column], sheet.panels[len(layouts) + column]
        for panel, value in (
            (upper, ratio_error),
            (lower, lambda row: float(row["total_vs_feasible"])),
        ):
            points = {
                name: [
                    (place + (series.index(name) - (len(series) - 1) / 2) * 0.16, value(row))
                    for place, setup in enumerate(names)
                    for row in own
                    if f"{row['setup']}, {row['weight']}" == setup and policy_of(row) == name
                ]
                for name in series
            }
            plot.lines(panel, points, looks, joined=False)
            plot.categories(panel, names)
        plot.band(upper, -100 * RATIO_ERROR, 100 * RATIO_ERROR, f"within {RATIO_ERROR:.0%}")
        plot.target(lower, TOTAL, "wanted")
        upper.set_ylim(-MOST_SHOWN, MOST_SHOWN)
        plot.label(
            upper,
            "",
            "ratio / feasible ratio (%)" if column == 0 else "",
            "striped" if striped else "unstriped",
        )
        plot.label(lower, "", "total / feasible total (×)" if column == 0 else "")
    return sheet.finish()


def ratio_error(row: Row) -> float:
    return 100 * (float(row["ratio"]) / float(row["feasible_ratio"]) - 1)


def steps_figure(tracks: Sequence[Track], period: float, caption: str) -> Figure:
    """The ratio over time in each scenario."""
    own = [track for track in tracks if track.period == period]
    sheet = plot.Sheet(
        f"The ratio of two applications while things change, period {period * 1000:.0f} ms",
        caption,
        rows=len(own),
        heights=[2.3],
    )
    for panel, track in zip(sheet.panels, own):
        window = max(track.window(phase) for phase in track.phases)
        first = track.phases[0]
        ratios = track.timeline.ratios(
            first.case.setup.pair, 0.0, track.phases[-1].end, window, window / 4
        )
        plot.lines(
            panel,
            {"ratio": [(begin + window / 2, ratio) for begin, ratio in ratios]},
            {"ratio": plot.look(0)},
        )
        for index, phase in enumerate(track.phases):
            wanted = phase.case.ratio(phase.wanted)
            span = (phase.begin, phase.end)
            plot.target(panel, wanted, "feasible" if index == 0 else "", span)
            plot.band(
                panel,
                wanted * (1 - SETTLED),
                wanted * (1 + SETTLED),
                f"within {SETTLED:.0%}" if index == 0 else "",
                span,
            )
        starts = [phase.begin for phase in track.phases]
        ends = [*starts[1:], track.phases[-1].end]
        plot.phases(
            panel,
            [(0.0, starts[0], "local"), *zip(starts, ends, [phase.name for phase in track.phases])],
        )
        panel.set_ylim(bottom=0)
        plot.label(panel, "time (s)", "ratio", "")
    return sheet.finish()


def window_text() -> str:
    return f"ratios in windows of {WINDOW_REQUESTS} requests of the slower application at least"


def title_of(name: str) -> str:
    return SCENARIOS[name].title
