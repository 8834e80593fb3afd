"""What controllers use in a second, in the units of a study of such sites, and its latencies.

The study ran one cycle after the other on nodes of a large machine. Its own use of processors,
memory and network is in its tables II to IV; only its latencies are known here, from which its rate
of cycles follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.report import Row

# Mean latencies in milliseconds, by stages and aggregators.
PUBLISHED_MS: Mapping[tuple[int, int], float] = {
    (50, 0): 1.11,
    (2500, 0): 40.4,
    (10_000, 4): 103.0,
    (10_000, 10): 80.0,  # it says: less
    (10_000, 20): 70.0,  # likewise
}
BOUNDS = {(10_000, 10), (10_000, 20)}
ROLES = ("coordinator", "aggregator")
COLUMNS = [
    "stages",
    "aggregators",
    "cycle",
    "role",
    "cycles_per_s",
    "cpu_percent",
    "gb",
    "tx_mb_per_s",
    "rx_mb_per_s",
    "their_cycles_per_s",
    "their_cpu_percent",
    "their_tx_mb_per_s",
    "their_rx_mb_per_s",
]
GB_OF_MIB = (1 << 20) / 1e9


def published_ms(row: Row) -> float | None:
    return PUBLISHED_MS.get((row["stages"], row["aggregators"]))


def in_units(rows: Sequence[Row]) -> list[Row]:
    """A row for each controller of each row: at the rate of its own cycles, and at the study's.

    100 % is one processor. A row of aggregators is for one of them.
    """
    return [
        unit_row(row, role)
        for row in rows
        for role in ROLES
        if row.get(f"{role}_cpu_ms") is not None
    ]


def unit_row(row: Row, role: str) -> Row:
    latency = published_ms(row)
    theirs = 1000 / latency if latency else None
    own: float = row["cycles_per_s"]
    return {
        "stages": row["stages"],
        "aggregators": row["aggregators"],
        "cycle": row["cycle"],
        "transport": row["transport"],
        "role": role,
        "cycles_per_s": own,
        "cpu_percent": percent(row[f"{role}_cpu_ms"], own),
        "gb": row[f"{role}_rss_mib"] * GB_OF_MIB,
        "tx_mb_per_s": megabytes(row.get(f"{role}_tx_bytes"), own),
        "rx_mb_per_s": megabytes(row.get(f"{role}_rx_bytes"), own),
        "their_cycles_per_s": theirs,
        "their_cpu_percent": percent(row[f"{role}_cpu_ms"], theirs),
        "their_tx_mb_per_s": megabytes(row.get(f"{role}_tx_bytes"), theirs),
        "their_rx_mb_per_s": megabytes(row.get(f"{role}_rx_bytes"), theirs),
    }


def percent(milliseconds: float, per_second: float | None) -> float | None:
    return None if per_second is None else milliseconds * per_second / 10


def megabytes(size: float | None, per_second: float | None) -> float | None:
    return None if size is None or per_second is None else size * per_second / 1e6
