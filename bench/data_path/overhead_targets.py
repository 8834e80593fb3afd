"""Compares the rows of the overhead benchmark with what the proxy promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lab.file_systems import DIRECT
from lab.report import Row
from lab.targets import at_least, at_most

PROXIES = ["proxy-fifo", "proxy-sfq"]
SMALL = "4 KiB"
CPU_OF_HAPROXY = 1.3
RESIDENT_MIB = {64: 8.0, 1000: 16.0}  # at most, by the number of connections
KEY = ("op", "size", "outstanding", "connections")
Group = dict[str, Row]  # the rows of one case by path


def groups(rows: Sequence[Row]) -> list[Group]:
    found: dict[tuple[Any, ...], Group] = {}
    for row in rows:
        found.setdefault(tuple(row[field] for field in KEY), {})[str(row["path"])] = row
    return list(found.values())


def number(row: Row, field: str) -> float:
    value = row.get(field)
    return float(value) if isinstance(value, (int, float)) else float("nan")


def against(
    cases: Sequence[Group], proxy: str, field: str, other: Callable[[Group], float]
) -> list[float]:
    return [number(case[proxy], field) / other(case) for case in cases]


def best_haproxy(field: str, choose: Callable[..., float]) -> Callable[[Group], float]:
    return lambda case: choose(
        number(case["haproxy"], field), number(case["haproxy-splice"], field)
    )


def added_p99(case: Group, path: str) -> float:
    return number(case[path], "p99_us") - number(case[DIRECT], "p99_us")


def check_proxy(cases: Sequence[Group], proxy: str) -> list[Row]:
    small = [case for case in cases if case[proxy]["size"] == SMALL]
    large = [case for case in cases if case[proxy]["size"] != SMALL]

    def of(field: str, path: str) -> Callable[[Group], float]:
        return lambda case: number(case[path], field)

    best_ops = against(small, proxy, "ops_per_s", best_haproxy("ops_per_s", max))
    slower = [
        added_p99(case, proxy)
        - max(added_p99(case, path) for path in ("haproxy", "haproxy-splice"))
        for case in small
    ]
    return [
        at_least(
            f"{proxy}, 64 KiB and more: throughput / haproxy",
            1.0,
            against(large, proxy, "mib_per_s", of("mib_per_s", "haproxy")),
        ),
        at_least(
            f"{proxy}, 64 KiB and more: throughput / haproxy-splice",
            0.95,
            against(large, proxy, "mib_per_s", of("mib_per_s", "haproxy-splice")),
        ),
        at_most(
            f"{proxy}, 64 KiB and more: CPU per GiB / better haproxy",
            CPU_OF_HAPROXY,
            against(large, proxy, "cpu_s_per_gib", best_haproxy("cpu_s_per_gib", min)),
        ),
        at_least(
            f"{proxy}, 64 KiB and more: geometric mean / haproxy",
            1.0,
            against(large, proxy, "mib_per_s", of("mib_per_s", "haproxy")),
            mean=True,
        ),
        at_least(
            f"{proxy}, 64 KiB and more: geometric mean / haproxy-splice",
            1.0,
            against(large, proxy, "mib_per_s", of("mib_per_s", "haproxy-splice")),
            mean=True,
        ),
        at_least(
            f"{proxy}, 4 KiB: requests/s, geometric mean / better haproxy", 1.0, best_ops, mean=True
        ),
        at_least(f"{proxy}, 4 KiB: requests/s / better haproxy", 0.95, best_ops),
        at_most(
            f"{proxy}, 4 KiB: us that p99 grows over direct, less what it grows by with haproxy",
            0.0,
            slower,
        ),
    ]


def check(rows: Sequence[Row], limited: Sequence[Row], memory: Sequence[Row]) -> list[Row]:
    cases = groups(rows)
    found = [line for proxy in PROXIES for line in check_proxy(cases, proxy)]
    found += [
        at_least(
            f"{proxy}, storage-limited: throughput / direct",
            0.99,
            [
                number(case[proxy], "mib_per_s") / number(case[DIRECT], "mib_per_s")
                for case in groups(limited)
            ],
        )
        for proxy in PROXIES
    ]
    for connections, limit in RESIDENT_MIB.items():
        found.append(
            at_most(
                f"resident MiB with {connections} connections",
                limit,
                [number(row, "rss_mib") for row in memory if row["connections"] == connections],
            )
        )
    return found
