"""The figure of cycles by the number of aggregators, each role on a processor or machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lab import plot
from lab.points import Points
from lab.report import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERIES = {
    "shared_ms": "all roles share this machine",
    "composed_ms": "a processor for each role",
    "virtual_ms": "a machine for each role, in virtual time",
    "published_ms": "published (10 and 20: less)",
}
NAMES = {"fused": "Fused", "four": "Four messages"}


def points(rows: Sequence[Row], field: str) -> Points:
    return [
        (row["aggregators"], row[field])
        for row in rows
        if row["aggregators"] and row[field] is not None
    ]


def figure(rows: Sequence[Row], caption: str) -> Figure:
    cycles = list(dict.fromkeys(row["cycle"] for row in rows))
    sheet = plot.Sheet(
        "A control cycle by the number of aggregators",
        caption,
        columns=len(cycles),
        heights=[3.2],
        share_y=True,
    )
    looks = {name: plot.look(index) for index, name in enumerate(SERIES.values())}
    for panel, cycle in zip(sheet.panels, cycles):
        own = [row for row in rows if row["cycle"] == cycle]
        for field, name in SERIES.items():
            plot.lines(panel, {name: points(own, field)}, looks)
        flat = own[0]["composed_ms"]
        plot.target(panel, flat, "flat, a processor for each role")
        panel.set_xscale("log", base=2)
        counts = sorted({row["aggregators"] for row in own if row["aggregators"]})
        panel.set_xticks(counts, [str(count) for count in counts])
        panel.minorticks_off()
        plot.label(panel, "aggregators", "", NAMES[cycle])
    plot.logarithmic(sheet.panels[0], "y")
    sheet.panels[0].set_ylabel("mean latency (ms)")
    return sheet.finish()
