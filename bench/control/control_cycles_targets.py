"""Compares control cycles with what the coordinator promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lab.report import Row
from lab.targets import at_least, at_most, not_measured, one_at_most

OF_FLOOR = 1.5
FUSED_2500_MS = 20.0
AGGREGATED_MS = 103.0  # published: 10,000 stages with 4 aggregators
COMPUTE_MS = 1.0
RESIDENT_MIB = 64.0
DEVIATION = 0.06
CHANGED = 0.99
ADMITTED_MS = 5000.0


def number(row: Row, field: str) -> float:
    value = row.get(field)
    return float(value) if isinstance(value, (int, float)) else float("nan")


def pick(rows: Sequence[Row], **wanted: object) -> list[Row]:
    return [row for row in rows if all(row[field] == value for field, value in wanted.items())]


def check(rows: Sequence[Row]) -> list[Row]:
    plain = [row for row in rows if row["transport"] != "mtls"]
    flat = pick(plain, aggregators=0)
    large = pick(flat, stages=10_000)

    def each(
        name: str, limit: float, found: Sequence[Row], value: Callable[[Row], float], unit: str
    ) -> list[Row]:
        lines = [
            one_at_most(f"{name}, {row['transport']}", limit, value(row), unit) for row in found
        ]
        return lines or [not_measured(name, f"<= {limit:g}{unit}")]

    return [
        at_most(
            "flat, p50 / p50 of the floor", OF_FLOOR, [number(row, "of_floor") for row in flat]
        ),
        *each(
            "2,500 stages flat, fused: mean",
            FUSED_2500_MS,
            pick(flat, stages=2500, cycle="fused"),
            lambda row: number(row, "mean_ms"),
            " ms",
        ),
        *each(
            "10,000 stages, 4 aggregators, fused: mean",
            AGGREGATED_MS,
            pick(plain, stages=10_000, aggregators=4, cycle="fused"),
            lambda row: number(row, "mean_ms"),
            " ms",
        ),
        *each(
            "10,000 stages, 4 aggregators, four messages: mean",
            AGGREGATED_MS,
            pick(plain, stages=10_000, aggregators=4, cycle="four"),
            lambda row: number(row, "mean_ms"),
            " ms",
        ),
        at_most(
            "10,000 stages flat: computing (ms)",
            COMPUTE_MS,
            [number(row, "compute_ms") for row in large],
        ),
        at_most(
            "10,000 stages flat: resident memory (MiB)",
            RESIDENT_MIB,
            [number(row, "coordinator_rss_mib") for row in large],
        ),
        at_most(
            "10,000 stages flat: from dialling until all are admitted (ms)",
            ADMITTED_MS,
            [number(row, "admitted_ms") for row in large],
        ),
        at_most(
            "standard deviation of cycles / mean",
            DEVIATION,
            [number(row, "std_ms") / number(row, "mean_ms") for row in plain],
        ),
        at_most(
            "standard deviation of the runs' means / mean",
            DEVIATION,
            [number(row, "std_of_runs_ms") / number(row, "mean_ms") for row in plain],
        ),
        at_least("allocations that changed", CHANGED, [number(row, "changed") for row in rows]),
    ]


def reasons(rows: Sequence[Row]) -> list[str]:
    """Why cycles of a row deviate by more than they should: a line for each such row."""
    return [
        f"{row['stages']:,} stages, {row['aggregators']} aggregators, {row['cycle']}, "
        f"{row['transport']}: {reason(row)}"
        for row in rows
        if number(row, "deviation_percent") > 100 * DEVIATION
    ]


def reason(row: Row) -> str:
    most, limit = number(row, "deviation_of_most_percent"), 100 * DEVIATION
    where = (
        f"without the slowest 1 % of the cycles it is {most:.1f} %, so those are the reason"
        if most <= limit
        else f"without the slowest 1 % of the cycles it is still {most:.1f} %, so all of them vary"
    )
    return (
        f"cycles deviate by {number(row, 'deviation_percent'):.1f} %; {where}. Other programs had "
        f"{number(row, 'others_percent'):.0f} % of the processors, the host "
        f"{number(row, 'stolen_percent'):.0f} %; the coordinator was preempted "
        f"{number(row, 'preempted_per_cycle'):.2g} times in a cycle"
    )
