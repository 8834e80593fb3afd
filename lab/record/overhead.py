"""What a record keeps of `script/bench overhead`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lab.record.record import Row
from lab.record.summaries import Content, Found, crossed, groups, least, mean

CASE = ["op", "size", "outstanding", "connections"]
SMALL = "4 KiB"
PROXY = "proxy-sfq"
RIVALS = {"HAProxy as it comes": ["haproxy"], "HAProxy that splices": ["haproxy-splice"]}
BETTER = {"the better HAProxy": ["haproxy", "haproxy-splice"]}


def ratios(rows: Sequence[Found], rivals: Sequence[str], value: str, best: Any) -> list[float]:
    """The proxy's value / that of the best rival, in each case."""
    cases = [{row["path"]: row[value] for row in part} for part in groups(rows, CASE).values()]
    return [case[PROXY] / best(case[rival] for rival in rivals) for case in cases]


def large(content: Content) -> list[Found]:
    return [row for row in content["rows"] if row["size"] != SMALL]


def haproxy(content: Content) -> list[Row]:
    rows = large(content)
    return [
        {
            "`vpfs-proxy`, `sfq`, against": name,
            "throughput": mean(ratios(rows, rivals, "mib_per_s", max)),
            "in the worst case": least(ratios(rows, rivals, "mib_per_s", max)),
            "CPU of a GiB": mean(ratios(rows, rivals, "cpu_s_per_gib", min)),
        }
        for name, rivals in (RIVALS | BETTER).items()
    ]


def small(content: Content) -> list[Row]:
    rows = [row for row in content["rows"] if row["size"] == SMALL]
    return [
        {
            f"{SMALL}, `sfq`, against": name,
            "requests/s": mean(ratios(rows, rivals, "ops_per_s", max)),
            "in the worst case": least(ratios(rows, rivals, "ops_per_s", max)),
            "p99": mean(ratios(rows, rivals, "p99_us", min)),
        }
        for name, rivals in (RIVALS | BETTER).items()
    ]


def memory(content: Content) -> list[Row]:
    return [
        {
            "requests": f"{row['size']}, {row['connections']:,} connections",
            "resident MiB": row["rss_mib"],
            "at the start": row["start_rss_mib"],
        }
        for row in content.get("memory", [])
    ]


def device_bound(content: Content) -> list[Row]:
    made: list[Row] = []
    for (op,), part in groups(content["storage_limited"], ["op"]).items():
        rates = {row["path"]: row["mib_per_s"] for row in part}
        cells: Row = {"device of 400 MiB/s": op}
        for path in ("proxy-fifo", PROXY):
            cells[f"{path} / direct"] = rates[path] / rates["direct"]
        made.append(cells)
    return made


def calls(content: Content) -> list[Row]:
    return crossed(content["system_calls"], ["op", "size"], "path", "system_calls", "one in flight")
