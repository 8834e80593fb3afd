"""How findings look at the rows of script/bench placement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lab.report import Row

SAME = 0.02  # a difference that is none
QUARTER = 1.25  # what is within a quarter is nearly so
STEPS = 16  # in which a quarter is tried
Check = Callable[[float], bool]

NAMES = (
    "network",
    "strategy",
    "access",
    "stg",
    "san",
    "memory_percent",
    "remote_percent",
    "priority",
    "nodes",
    "backfills",
)


def verdict(value: float, holds: Check, is_amount: bool) -> str:
    """yes; nearly, if an amount within a quarter holds; or no."""
    if holds(value):
        return "yes"
    steps = [QUARTER ** (step / STEPS) for step in range(-STEPS, STEPS + 1)]
    return "nearly" if is_amount and any(holds(value * step) for step in steps) else "no"


def some(number: float) -> Check:
    """Within a twentieth of a number; within a quarter it is nearly so."""
    return lambda value: 0.95 * number <= value <= 1.05 * number


def up_to(most: float) -> Check:
    return lambda value: SAME < value <= most + 0.005


def at_least(number: float) -> Check:
    return lambda value: value >= 0.995 * number


def at_most(number: float) -> Check:
    return lambda value: value <= 1.005 * number


def where(rows: Iterable[Row], **wanted: object) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def one(rows: Iterable[Row], **wanted: object) -> Row:
    (row,) = where(rows, **wanted)
    return row


def total(rows: Iterable[Row], **wanted: object) -> float:
    return float(one(rows, **wanted)["total_s"])


def ratios(rows: Sequence[Row], key: str, value: object, base: object) -> list[tuple[Row, float]]:
    """Each row with `value`, and its time divided by that of the row with `base` instead.

    The two rows differ in `key` alone.
    """
    place = {tuple(row[name] for name in NAMES): row for row in rows}
    found = []
    for row in where(rows, **{key: value}):
        other = place.get(tuple(base if name == key else row[name] for name in NAMES))
        if other is not None:
            found.append((row, row["total_s"] / other["total_s"]))
    return found


def gain(pairs: Iterable[tuple[Row, float]]) -> float:
    """The most that a row saves."""
    return max((1 - ratio for _, ratio in pairs), default=0.0)


def change(pairs: Iterable[tuple[Row, float]]) -> float:
    """The largest difference, either way."""
    return max((abs(1 - ratio) for _, ratio in pairs), default=0.0)
