"""Recorded measurements of bench/data_path."""

from __future__ import annotations

import pathlib
from unittest import mock

from bench.data_path import overhead, restart, system_calls
from lab.file_systems import DIRECT
from lab.report import Row, size_name
from recorded.samples import Option, Recorded, any_row, field, samples, size


def rows_of_memory(_: pathlib.Path, __: pathlib.Path, plan: overhead.Plan) -> list[Row]:
    return [
        {
            "op": "mixed",
            "size": name,
            "outstanding": plan.memory_outstanding,
            "connections": count,
            "path": "proxy-sfq",
            "requests": 9000,
            **samples(["mib_per_s", "start_rss_mib", "rss_mib"], name, count),
        }
        for name in ("64 KiB", "1 MiB")
        for count in overhead.MEMORY_CONNECTIONS
    ]


def once_of_overhead(_: object, case: overhead.Case, path: str) -> dict[str, float]:
    found = samples(overhead.NUMBERS, case, path)
    return {
        name: value
        for name, value in found.items()
        if path != DIRECT or name not in ("cpu_s_per_gib", "rss_mib")
    }


def rows_of_calls(_: pathlib.Path, __: pathlib.Path, plan: overhead.Plan) -> list[Row]:
    return [
        {"op": op, "size": size_name(bytes), "path": front.name, "system_calls": 7.0}
        for op, bytes in system_calls.CASES
        for front in plan.traced
    ]


PARTS_OF_OVERHEAD = {
    overhead.ROWS: "rows",
    overhead.STORAGE: "storage_limited",
    overhead.MEMORY: "memory",
    overhead.CALLS: "system_calls",
}


def size_of_overhead(row: Row, value: str) -> bool:
    """The option is of the first part only."""
    return row["part"] != overhead.ROWS or size(row, value)


def op_of_overhead(row: Row, value: str) -> bool:
    return row["part"] not in (overhead.ROWS, overhead.STORAGE) or row["op"] == value


OVERHEAD = Recorded(
    {
        "bench.data_path.overhead.Cluster": mock.MagicMock(),
        "bench.data_path.overhead.Bench.once": once_of_overhead,
        "bench.data_path.overhead.memory_rows": rows_of_memory,
        "bench.data_path.overhead.call_rows": rows_of_calls,
    },
    {
        "--sizes": Option(size_of_overhead, ["65536"]),
        "--ops": Option(op_of_overhead),
        "--parts": Option(field("part")),
        "--protocol": Option(any_row),
    },
    [["--sizes", "65536", "--ops", "read", "--parts", "rows", "--protocol", "beegfs"],
     ["--parts", "memory"]],
    rows=lambda content: [
        {"part": part, **row}
        for part, rows in PARTS_OF_OVERHEAD.items()
        for row in content[rows]
    ],
    base=["--sizes", "4096", "1048576"],
)

RESTART = Recorded(
    {
        "bench.data_path.restart.measure": lambda _, __, case: {
            "protocol": case.protocol,
            "policy": case.policy,
            "times": case.times,
            **samples(restart.COLUMNS[3:], case.protocol, case.policy),
        }
    },
    {
        "--policies": Option(field("policy"), ["sfq", "tbf"]),
        "--protocols": Option(field("protocol")),
        "--times": Option(lambda row, value: row["times"] == int(value), ["7"]),
    },
)
