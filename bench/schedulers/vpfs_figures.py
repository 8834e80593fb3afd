"""The figure of script/bench vpfs: overhead, ratios, smaller requests, files on other servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from bench.schedulers.vpfs_cases import ASYMMETRIC, FIFO, OVERHEAD, RATES, RATIOS, SFQ, TOTAL
from lab import plot
from lab.file_systems import DIRECT
from lab.report import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Looks = Mapping[str, plot.Look]


def looks_of(rows: Sequence[Row]) -> Mapping[str, plot.Look]:
    """One look for each name of a path or of a size, whichever panel it is in."""
    sizes = list(dict.fromkeys(str(row["size"]) for row in rows if row["part"] == RATES))
    return plot.looks([DIRECT, FIFO, SFQ, TOTAL, *sizes])


def overhead_panel(panel: Axes, rows: Sequence[Row], looks: Looks) -> None:
    groups = list(dict.fromkeys(f"{row['op']}\n{row['processes'].split()[-1]}" for row in rows))
    paths = list(dict.fromkeys(str(row["path"]) for row in rows))
    rates = {
        (f"{row['op']}\n{row['processes'].split()[-1]}", row["path"]): row["total_mib_per_s"]
        for row in rows
    }
    plot.bars(
        panel,
        groups,
        {path: [rates.get((group, path)) for group in groups] for path in paths},
        looks,
    )
    plot.label(panel, "processes", "MiB/s", "One application")


def ratios_panel(panel: Axes, rows: Sequence[Row], looks: Looks) -> None:
    shared = [row for row in rows if row["path"] == SFQ]
    points = [(float(row["wanted"]), float(row["ratio"])) for row in shared]
    wanted = [want for want, _ in points]
    plot.lines(panel, {SFQ: points}, looks)
    panel.plot(wanted, wanted, linestyle="--", color="black", linewidth=1, zorder=1)
    plot.doubling(panel, wanted)
    panel.set_yscale("log", base=2)
    panel.yaxis.set_major_formatter(plot.plain)
    plot.label(panel, "wanted ratio (a:b)", "ratio of MiB/s", "Two applications")


def rates_panel(panel: Axes, rows: Sequence[Row], looks: Looks) -> None:
    groups = list(dict.fromkeys(str(row["processes"]) for row in rows))
    sizes = list(dict.fromkeys(str(row["size"]) for row in rows))
    ratio = {(row["size"], row["processes"]): row["ratio"] for row in rows}
    plot.bars(
        panel,
        groups,
        {size: [ratio.get((size, group)) for group in groups] for size in sizes},
        looks,
    )
    plot.target(panel, float(rows[0]["wanted"]), "wanted")
    plot.label(panel, "processes", "ratio of MiB/s", "Smaller requests")


def asymmetric_panel(panel: Axes, rows: Sequence[Row], looks: Looks) -> None:
    setups = list(dict.fromkeys(str(row["setup"]) for row in rows))
    paths = list(dict.fromkeys(str(row["path"]) for row in rows))
    reached = {(row["setup"], row["path"]): row["of_wanted"] for row in rows}
    plot.bars(
        panel,
        [setup.replace(", ", ",\n").replace(" that", "\nthat") for setup in setups],
        {path: [100 * (reached.get((setup, path)) or 0) for setup in setups] for path in paths},
        looks,
    )
    plot.label(panel, "servers of a's files, and of b's", "of the fair ratio (%)", "All servers")


PANELS: dict[str, Callable[[Axes, Sequence[Row], Looks], None]] = {
    OVERHEAD: overhead_panel,
    RATIOS: ratios_panel,
    RATES: rates_panel,
    ASYMMETRIC: asymmetric_panel,
}


def figure(rows: Sequence[Row], caption: str) -> Figure:
    parts = [part for part in PANELS if any(row["part"] == part for row in rows)]
    sheet = plot.Sheet(
        "Two applications on a PFS of four servers, as in [VPFS]",
        caption,
        rows=len(parts),
        columns=1,
        heights=[2.4] * len(parts),
    )
    looks = looks_of(rows)
    for panel, part in zip(sheet.panels, parts):
        PANELS[part](panel, [row for row in rows if row["part"] == part], looks)
    return sheet.finish()
