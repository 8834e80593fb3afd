"""What recorded measurements are made of: numbers that stay the same, and results of vpfs-load."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from lab.report import Json, Row, size_name

Holds = Callable[[Row, str], bool]  # whether a row is of a value of the option


def sample(*of: object, low: float = 1.0, high: float = 2.0) -> float:
    """A number that is the same each time for the same things."""
    return low + (high - low) * (sum(map(ord, repr(of))) * 37 % 101) / 100


def samples(names: Sequence[str], *of: object) -> dict[str, float]:
    return {name: sample(name, *of) for name in names}


def field(name: str) -> Holds:
    return lambda row, value: str(row[name]) == value


def size(row: Row, value: str) -> bool:
    return row["size"] == size_name(int(value))


def any_row(_: Row, __: str) -> bool:
    return True


@dataclasses.dataclass(frozen=True)
class Option:
    """An option that chooses rows.

    The values are tried one by one; () are the choices of the parser.
    """

    holds: Holds
    values: Sequence[str] = ()


def rows_of(content: Json) -> list[Row]:
    return content["rows"]


@dataclasses.dataclass(frozen=True)
class Recorded:
    replaced: Mapping[str, object]  # by what is replaced
    options: Mapping[str, Option]
    together: Sequence[Sequence[str]] = ()  # arguments that are tried as well
    others: frozenset[str] = frozenset()  # options that choose no rows
    rows: Callable[[Json], Sequence[Row]] = rows_of  # of the file that the benchmark writes
    base: Sequence[str] = ()  # arguments before each option, for fewer rows
    draws_rows: bool = True  # a figure with the same name is another one when other rows are chosen


def timeline(end: float, step: float, *of: object) -> list[dict[str, float]]:
    times = [(index + 1) * step for index in range(round(end / step))]
    return [{"t": t, "mib_per_s": sample(t, *of, low=20, high=24)} for t in times]


def load_result(names: Sequence[str], end: float, step: float, *of: object) -> Json:
    """What vpfs-load says of applications with these names."""
    return {
        "duration_s": end,
        "total_mib_per_s": 20.0 * len(names),
        "applications": [
            {
                "name": name,
                "bytes": round(sample(name, *of) * (1 << 30)),
                "errors": 0,
                "last_s": end - 1,
                "mib_per_s": 20.0,
                "latency_us": {
                    "p50": 900.0,
                    "p99": 2000.0,
                    "max": sample(name, *of, low=1e4, high=4e5),
                },
                "timeline": timeline(end, step, name, *of),
            }
            for name in names
        ],
    }
