"""Figures of control cycles: latency by number of stages, by phase, and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bench.control import control_cycles_units as units
from bench.control.control_cycles_targets import RESIDENT_MIB, number, pick
from lab import plot
from lab.points import Points
from lab.report import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PHASES = ("collect", "compute", "enforce")
CYCLES = {"fused": "fused", "four": "four messages"}
PUBLISHED = "published mean (10 and 20 aggregators: less)"


def points(rows: Sequence[Row], x: str, y: str) -> Points:
    return [(number(row, x), number(row, y)) for row in rows if row.get(y) is not None]


def values(rows: Sequence[Row], field: str) -> list[Any]:
    return sorted({row[field] for row in rows})


def setting(row: Row) -> str:
    below = f" / {row['aggregators']}" if row["aggregators"] else ""
    return f"{row['stages']:,}{below}"


def transports(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row["transport"]) for row in rows))


def cycles_of(rows: Sequence[Row]) -> dict[str, str]:
    """The kinds of cycles that the rows have, and their names."""
    return {cycle: name for cycle, name in CYCLES.items() if pick(rows, cycle=cycle)}


def published(rows: Sequence[Row], x: str) -> Points:
    """The study's mean latency of each of these sites that it has."""
    found = {number(row, x): units.published_ms(row) for row in rows}
    return [(place, latency) for place, latency in sorted(found.items()) if latency is not None]


def latency(rows: Sequence[Row], caption: str) -> Figure:
    """Flat by the number of stages, and the largest site by the number of aggregators."""
    flat, largest = pick(rows, aggregators=0), max(values(rows, "stages"))
    parts = [("aggregators", pick(rows, stages=largest), f"{largest:,} stages")]
    if flat:
        parts.insert(0, ("stages", flat, "Flat"))
    sheet = plot.Sheet(
        "Latency of a control cycle", caption, columns=len(parts), heights=[3.2], share_y=True
    )
    names = [f"{name}, {transport}" for transport in transports(rows) for name in CYCLES.values()]
    looks = {name: plot.look(index) for index, name in enumerate([*names, PUBLISHED])}
    kinds = [
        (cycle, transport, f"{name}, {transport}")
        for transport in transports(rows)
        for cycle, name in CYCLES.items()
    ]
    for panel, (x, part, title) in zip(sheet.panels, parts):
        for cycle, transport, name in kinds:
            line = points(pick(part, cycle=cycle, transport=transport), x, "p50_ms")
            plot.lines(panel, {name: line}, looks)
        plot.lines(panel, {PUBLISHED: published(part, x)}, looks)
        plot.label(panel, x, "", title)
    first = sheet.panels[0]
    for cycle, transport, name in kinds:
        floor = points(pick(flat, cycle=cycle, transport=transport), "stages", "floor_p50_ms")
        if floor and transport != "mtls":
            first.plot(*zip(*floor), color=looks[name].colour, linestyle=plot.DASHES, linewidth=1.2)
    if flat:
        plot.explain_targets(first, "floor")
        plot.doubling(first, values(flat, "stages"))
    plot.logarithmic(first, "y")
    first.set_ylabel("median latency (ms)")
    sheet.panels[-1].set_xticks(values(pick(rows, stages=largest), "aggregators"))
    return sheet.finish()


def phases(rows: Sequence[Row], caption: str) -> Figure:
    """The phases of a cycle on top of each other."""
    first = pick(rows, transport=transports(rows)[0])
    cycles = cycles_of(first)
    sheet = plot.Sheet(
        f"Phases of a control cycle over {transports(rows)[0]}",
        caption,
        rows=len(cycles),
        heights=[2.4],
    )
    looks = {name: plot.look(index) for index, name in enumerate(PHASES)}
    for panel, (cycle, name) in zip(sheet.panels, cycles.items()):
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
    """Processor time, memory and traffic of each role, in one kind of cycle."""
    first = pick(rows, transport=transports(rows)[0])
    cycle, name = next(iter(cycles_of(first).items()))
    first = pick(first, cycle=cycle)
    sheet = plot.Sheet(
        f"What a control cycle costs over {transports(rows)[0]}: {name}",
        caption,
        rows=3,
        heights=[2.2],
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


def in_units(rows: Sequence[Row], caption: str) -> Figure:
    """What controllers use in a second, at our rate of cycles and at the study's."""
    first = pick(rows, transport=transports(rows)[0])
    cycle, name = next(iter(cycles_of(first).items()))
    first = pick(first, cycle=cycle)
    sheet = plot.Sheet(
        f"What controllers use over {transports(rows)[0]}: {name}", caption, rows=3, heights=[2.2]
    )
    roles = {"coordinator": "coordinator", "aggregator": "one aggregator"}
    found = units.in_units(first)
    by_place = {(setting(row), row["role"]): row for row in found}
    names = [setting(row) for row in first]

    def series(own: str, theirs: str = "") -> dict[str, list[float | None]]:
        made = {}
        for role, text in roles.items():
            made[text] = [by_place.get((name, role), {}).get(own) for name in names]
            if theirs:
                at_theirs = [by_place.get((name, role), {}).get(theirs) for name in names]
                made[f"{text}, at the published rate"] = at_theirs
        return made

    every = series("cpu_percent", "their_cpu_percent")
    looks = {name: plot.look(index) for index, name in enumerate(every)}
    cpu, memory, network = sheet.panels
    plot.bars(cpu, names, every, looks)
    plot.label(cpu, y="CPU (% of one)", title="Processor time")
    plot.bars(memory, names, series("gb"), looks)
    plot.label(memory, y="GB", title="Memory")
    plot.bars(network, names, series("tx_mb_per_s", "their_tx_mb_per_s"), looks)
    plot.label(network, "stages / aggregators", "MB/s", "Sent")
    return sheet.finish()


ALL = {"latency": latency, "phases": phases, "resources": resources, "units": in_units}
