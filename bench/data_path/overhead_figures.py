"""Figures of the overhead benchmark, with a column of panels per operation and a row per load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.data_path.overhead_targets import (
    CPU_OF_HAPROXY,
    PROXIES,
    RESIDENT_MIB,
    best_haproxy,
    groups,
    number,
)
from lab import plot
from lab.file_systems import DIRECT
from lab.points import beside
from lab.report import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Load = tuple[int, int]  # in flight on each connection, connections
SIZE = "request size"


def values(rows: Sequence[Row], field: str) -> list[Any]:
    """Each value once, in the order of the rows."""
    return list(dict.fromkeys(row[field] for row in rows))


def loads(rows: Sequence[Row]) -> list[Load]:
    return list(dict.fromkeys((row["outstanding"], row["connections"]) for row in rows))


def load_name(load: Load) -> str:
    outstanding, connections = load
    return f"{outstanding} in flight on " + (
        "1 connection" if connections == 1 else f"each of {connections} connections"
    )


def looks(paths: Sequence[str]) -> dict[str, plot.Look]:
    """The direct path is black. The others look the same in all figures."""
    others = plot.looks([path for path in paths if path != DIRECT])
    return {DIRECT: plot.Look("#000000", "X", ""), **others}


def number_of(rows: Sequence[Row], field: str, path: str, size: str) -> float | None:
    return next(
        (row.get(field) for row in rows if row["path"] == path and row["size"] == size), None
    )


def percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole > 0 else math.nan


# Its axes, its title, its rows, and whether it is in the last row and in the first column.
Panel = tuple["Axes", str, list[Row], bool, bool]


def grid(title: str, rows: Sequence[Row], caption: str) -> tuple[plot.Sheet, list[Panel]]:
    """A sheet with one panel per load and operation, and the rows of each panel."""
    ops, found = values(rows, "op"), loads(rows)
    sheet = plot.Sheet(
        title, caption, rows=len(found), columns=len(ops), heights=[1.9], share_y=True
    )
    parts = [
        (
            load,
            op,
            [
                row
                for row in rows
                if row["op"] == op and (row["outstanding"], row["connections"]) == load
            ],
        )
        for load in found
        for op in ops
    ]
    return sheet, [
        (panel, f"{op}, {load_name(load)}", part, load == found[-1], op == ops[0])
        for panel, (load, op, part) in zip(sheet.panels, parts)
    ]


def throughput_figure(rows: Sequence[Row], caption: str) -> Figure:
    sheet, panels = grid("Throughput through a proxy", rows, caption)
    sizes, paths = values(rows, "size"), [path for path in values(rows, "path") if path != DIRECT]
    for panel, title, part, lowest, leftmost in panels:
        own = [
            {**row, "part": percent(number(row, "mib_per_s"), number(case[DIRECT], "mib_per_s"))}
            for case in groups(part)
            for row in case.values()
        ]
        plot.bars(
            panel,
            sizes,
            {path: [number_of(own, "part", path, size) for size in sizes] for path in paths},
            looks(paths),
        )
        plot.target(panel, 100, "without any proxy")
        plot.label(
            panel, SIZE if lowest else "", "throughput (% of direct)" if leftmost else "", title
        )
    return sheet.finish()


def cpu_figure(rows: Sequence[Row], caption: str) -> Figure:
    sheet, panels = grid("Processor time that a proxy takes", rows, caption)
    sizes, paths = values(rows, "size"), [path for path in values(rows, "path") if path != DIRECT]
    for panel, title, part, lowest, leftmost in panels:
        plot.lines(
            panel,
            beside(
                {
                    path: [number_of(part, "cpu_s_per_gib", path, size) for size in sizes]
                    for path in paths
                }
            ),
            looks(paths),
            joined=False,
        )
        plot.categories(panel, sizes)
        plot.label(panel, SIZE if lowest else "", "CPU time (s/GiB)" if leftmost else "", title)
    for panel in sheet.panels:
        plot.logarithmic(panel, "y")
    return sheet.finish()


def cpu_ratio_figure(rows: Sequence[Row], caption: str) -> Figure:
    sheet, panels = grid("Processor time per GiB against the rival", rows, caption)
    sizes, proxies = (
        values(rows, "size"),
        [path for path in values(rows, "path") if path in PROXIES],
    )
    rival = best_haproxy("cpu_s_per_gib", min)
    for panel, title, part, lowest, leftmost in panels:
        own = [
            {**case[path], "part": percent(number(case[path], "cpu_s_per_gib"), rival(case))}
            for case in groups(part)
            for path in proxies
        ]
        plot.bars(
            panel,
            sizes,
            {path: [number_of(own, "part", path, size) for size in sizes] for path in proxies},
            looks(proxies),
        )
        plot.target(
            panel,
            100 * CPU_OF_HAPROXY,
            f"at most {100 * CPU_OF_HAPROXY:.0f} % wanted (64 KiB and more)",
        )
        plot.label(
            panel, SIZE if lowest else "", "CPU (% of better HAProxy)" if leftmost else "", title
        )
    return sheet.finish()


def latency_figure(rows: Sequence[Row], caption: str) -> Figure:
    sheet, panels = grid("Latency, 99th percentile", rows, caption)
    sizes, paths = values(rows, "size"), values(rows, "path")
    for panel, title, part, lowest, leftmost in panels:
        plot.lines(
            panel,
            beside(
                {path: [number_of(part, "p99_us", path, size) for size in sizes] for path in paths}
            ),
            looks(paths),
            joined=False,
        )
        plot.categories(panel, sizes)
        plot.label(panel, SIZE if lowest else "", "p99 latency (µs)" if leftmost else "", title)
    for panel in sheet.panels:
        plot.logarithmic(panel, "y")
    return sheet.finish()


def memory_figure(rows: Sequence[Row], caption: str) -> Figure:
    sheet = plot.Sheet("Resident memory of vpfs-proxy with many connections", caption)
    (panel,) = sheet.panels
    connections, sizes = values(rows, "connections"), values(rows, "size")
    plot.bars(
        panel,
        [f"{count:,} connections" for count in connections],
        {
            f"requests of {size}": [
                next(
                    (
                        row["rss_mib"]
                        for row in rows
                        if row["size"] == size and row["connections"] == count
                    ),
                    None,
                )
                for count in connections
            ]
            for size in sizes
        },
    )
    for place, count in enumerate(connections):
        if count in RESIDENT_MIB:
            plot.target(
                panel,
                RESIDENT_MIB[count],
                "at most wanted" if place == 0 else "",
                (place - 0.46, place + 0.46),
            )
    plot.label(panel, y="peak resident memory (MiB)")
    return sheet.finish()
