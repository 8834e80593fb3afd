"""Figures of control cycles: latency by number of stages, by phase, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bench.control.control_cycles_targets import RESIDENT_MIB, number, pick
from lab import plot
from lab.points import Points
from lab.report import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PHASES = ("collect", "compute", "enforce")
CYCLES = {"fused": "fused", "four": "four messages"}


def points(rows: Sequence[Row], x: str, y: str) -> Points:
    return [(number(row, x), number(row, y)) for row in rows if row.get(y) is not None]


def values(rows: Sequence[Row], field: str) -> list[Any]:
    return sorted({row[field] for row in rows})


def setting(row: Row) -> str:
    below = f" / {row['aggregators']}" if row["aggregators"] else ""
    return f"{row['stages']:,}{below}"


def transports(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["transport"]) for row in rows))


def latency(rows: Sequence[Row], caption: str) -> Figure:
    """Flat by the number of stages, and the largest site by the number of aggregators."""
    sheet = plot.Sheet(
        "Latency of a control cycle", caption, columns=2, heights=[3.2], share_y=True
    )
    names = [f"{name}, {transport}" for transport in transports(rows) for name in CYCLES.values()]
    looks = {name: plot.look(index) for index, name in enumerate(names)}
    flat, largest = pick(rows, aggregators=0), max(values(rows, "stages"))
    for panel, x, part in (
        (sheet.panels[0], "stages", flat),
        (sheet.panels[1], "aggregators", pick(rows, stages=largest)),
    ):
        for transport in transports(rows):
            for cycle, name in CYCLES.items():
                plot.lines(
                    panel,
                    {
                        f"{name}, {transport}": points(
                            pick(part, cycle=cycle, transport=transport), x, "p50_ms"
                        )
                    },
                    looks,
                )
    for transport in transports(rows):
        for cycle, name in CYCLES.items():
            floor = points(pick(flat, cycle=cycle, transport=transport), "stages", "floor_p50_ms")
            if floor and transport != "mtls":
                sheet.panels[0].plot(
                    *zip(*floor),
                    color=looks[f"{name}, {transport}"].colour,
                    linestyle=plot.DASHES,
                    linewidth=1.2,
                )
    plot.explain_targets(sheet.panels[0], "floor")
    plot.doubling(sheet.panels[0], values(flat, "stages"))
    plot.logarithmic(sheet.panels[0], "y")
    plot.label(sheet.panels[0], "stages", "median latency (ms)", "Flat")
    sheet.panels[1].set_xticks(values(pick(rows, stages=largest), "aggregators"))
    plot.label(sheet.panels[1], "aggregators", title=f"{largest:,} stages")
    return sheet.finish()


def phases(rows: Sequence[Row], caption: str) -> Figure:
    """The phases of a cycle on top of each other."""
    first = pick(rows, transport=transports(rows)[0])
    sheet = plot.Sheet(
        f"Phases of a control cycle over {transports(rows)[0]}", caption, rows=2, heights=[2.4]
    )
    looks = {name: plot.look(index) for index, name in enumerate(PHASES)}
    for panel, (cycle, name) in zip(sheet.panels, CYCLES.items()):
        part = pick(first, cycle=cycle)
        plot.stacked(
            panel,
            [setting(row) for row in part],
            {phase: [number(row, f"{phase}_ms") for row in part] for phase in PHASES},
            looks,
        )
        plot.label(panel, "stages / aggregators", "mean time (ms)", name.capitalize())
    return sheet.finish()


def resources(rows: Sequence[Row], caption: str) -> Figure:
    """Processor time, memory and traffic of each role."""
    first = pick(rows, transport=transports(rows)[0], cycle="fused")
    sheet = plot.Sheet(
        f"What a fused cycle costs over {transports(rows)[0]}", caption, rows=3, heights=[2.2]
    )
    roles = {"coordinator": "coordinator", "aggregator": "one aggregator", "stages": "all stages"}
    looks = {name: plot.look(index) for index, name in enumerate(roles.values())}
    names = [setting(row) for row in first]

    def series(value: Callable[[Row, str], float | None]) -> dict[str, list[float | None]]:
        return {name: [value(row, role) for row in first] for role, name in roles.items()}

    def of(row: Row, field: str) -> float | None:
        return None if row.get(field) is None else number(row, field)

    cpu, memory, network = sheet.panels
    plot.bars(cpu, names, series(lambda row, role: of(row, f"{role}_cpu_ms")), looks)
    plot.label(cpu, y="CPU (ms/cycle)", title="Processor time")
    plot.bars(memory, names, series(lambda row, role: of(row, f"{role}_rss_mib")), looks)
    plot.target(memory, RESIDENT_MIB, "at most wanted of the coordinator")
    plot.label(memory, y="resident (MiB)", title="Memory")
    plot.bars(
        network,
        names,
        series(
            lambda row, role: (
                None
                if of(row, f"{role}_tx_bytes") is None
                else (number(row, f"{role}_tx_bytes") + number(row, f"{role}_rx_bytes")) / 1024
            )
        ),
        looks,
    )
    plot.label(network, "stages / aggregators", "KiB/cycle", "Sent and received")
    return sheet.finish()


ALL = {"latency": latency, "phases": phases, "resources": resources}
