"""The plots of script/bench placement: the study's figures, a row of panels for each mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from lab import plot
from lab.report import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Series = dict[str, list[tuple[float, float]]]
TITLES = {
    6: "Hits and remote accesses",
    7: "Priorities of communication",
    8: "Where the data of many applications are",
    9: "Central servers",
    10: "Priorities with many applications",
}
PANELS = {6: 4, 7: 2, 8: 3, 9: 2, 10: 1}


def draw(figure: int, rows: Sequence[Row], caption: str) -> Figure:
    modes = list(dict.fromkeys(str(row["mode"]) for row in rows))
    sheet = plot.Sheet(
        f"{TITLES[figure]} (figure {figure})",
        caption,
        rows=len(modes),
        columns=PANELS[figure],
        heights=[2.6],
    )
    panels = list(sheet.panels)
    for number, mode in enumerate(modes):
        here = [
            row
            for row in rows
            if row["mode"] == mode and row["nodes"] == "sequential" and not row["backfills"]
        ]
        first = number * PANELS[figure]
        DRAWN[figure](panels[first : first + PANELS[figure]], here, mode)
    return sheet.finish()


def _label(row: Row) -> str:
    return f"STG-{row['stg']}" if row["strategy"] == "stg" else str(row["strategy"]).upper()


def _against(rows: Sequence[Row], x: str, access: str, value: str) -> Series:
    found: Series = {}
    for row in rows:
        own = "local" if row["strategy"] == "cache" and access == "disperse" else access
        if row["access"] == own:
            found.setdefault(_label(row), []).append((float(row[x]), float(row[value])))
    return {name: sorted(points) for name, points in found.items()}


def _figure_6(panels: Sequence[Any], rows: Sequence[Row], mode: str) -> None:
    dragonfly = [row for row in rows if row["network"] == "dragonfly"]
    hits = [row for row in dragonfly if row["remote_percent"] == 50]
    away = [row for row in dragonfly if row["memory_percent"] == 50]
    slices = [("hits (%)", "memory_percent", hits), ("remote (%)", "remote_percent", away)]
    for place, (name, key, part) in enumerate(slices):
        plot.lines(panels[2 * place], _against(part, key, "disperse", "run_s"))
        plot.logarithmic(panels[2 * place], "y")
        plot.label(panels[2 * place], name, "s", f"{mode}, 6{'ac'[place]}: disperse")
        plot.lines(panels[2 * place + 1], _against(part, key, "affinity", "relative"))
        plot.label(panels[2 * place + 1], name, "of disperse", f"{mode}, 6{'bd'[place]}: affinity")


def _figure_7(panels: Sequence[Any], rows: Sequence[Row], mode: str) -> None:
    dragonfly = [row for row in rows if row["network"] == "dragonfly"]
    shared: Series = {}
    first: Series = {}
    for row in dragonfly:
        name = f"STG-{row['stg']}"
        if str(row["priority"]).startswith("BA") and row["remote_percent"] == 50:
            part = float(str(row["priority"])[3:].split("-")[0])
            shared.setdefault(name, []).append((part, float(row["relative"])))
        elif row["priority"] == "FP":
            first.setdefault(name, []).append((float(row["remote_percent"]), row["relative"]))
    plot.lines(panels[0], {name: sorted(points) for name, points in shared.items()})
    plot.label(panels[0], "for communication (%)", "of NP", f"{mode}, 7a: BA")
    plot.lines(panels[1], {name: sorted(points) for name, points in first.items()})
    plot.label(panels[1], "remote (%)", "of NP", f"{mode}, 7b: FP")


def _dots(panel: Any, rows: Sequence[Row], names: list[str]) -> None:
    plot.dots(
        panel,
        names,
        {
            "waiting": [row["wait_s"] for row in rows],
            "running": [row["run_s"] for row in rows],
        },
    )


def _figure_8(panels: Sequence[Any], rows: Sequence[Row], mode: str) -> None:
    for panel, network in zip(panels, dict.fromkeys(row["network"] for row in rows)):
        here = [row for row in rows if row["network"] == network]
        _dots(panel, here, [f"{row['strategy']} {row['access']}" for row in here])
        plot.label(panel, "s", "", f"{mode}, {network}")


def _figure_9(panels: Sequence[Any], rows: Sequence[Row], mode: str) -> None:
    dragonfly = [row for row in rows if row["network"] == "dragonfly"]
    for panel, name, strategies in (
        (panels[0], "9a", ("internal", "cache")),
        (panels[1], "9b", ("internal", "cache", "san")),
    ):
        plot.lines(
            panel,
            {
                strategy: [
                    (row["san"], row["total_s"]) for row in dragonfly if row["strategy"] == strategy
                ]
                for strategy in strategies
            },
        )
        plot.logarithmic(panel, "x")
        plot.logarithmic(panel, "y")
        plot.label(panel, "central servers", "waiting and running, s", f"{mode}, {name}")


def _figure_10(panels: Sequence[Any], rows: Sequence[Row], mode: str) -> None:
    _dots(panels[0], rows, [str(row["priority"]) for row in rows])
    plot.label(panels[0], "s", "", mode)


DRAWN: dict[int, Callable[[Sequence[Any], Sequence[Row], str], None]] = {
    6: _figure_6,
    7: _figure_7,
    8: _figure_8,
    9: _figure_9,
    10: _figure_10,
}
