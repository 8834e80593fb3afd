"""script/bench relay: the cost of moving bytes, by mechanism.

It uses a model client and server, not vpfs. The proxy's mechanism was chosen by this comparison.
"""

from __future__ import annotations

import functools
import itertools
import json
import pathlib
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lab import plot
from lab.harness import Problem, machine_settings, median
from lab.report import Row, print_settings, size_name, table, write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VARIANTS = {
    "direct": "no relay",
    "copy-64k": "recv and send, buffer of 64 KiB",
    "copy-256k": "recv and send, buffer of 256 KiB",
    "recv8k-splice": "recv of 8 KiB, then splice of the rest of a message above 32 KiB",
    "adaptive": "recv8k-splice after a large message, recv of up to 256 KiB after a small one",
    "peek-splice": "peek at the headers, splice whole messages",
    "peek-or-copy": "while messages are large: peek at 2 KiB, splice whole messages; else "
    "copy-256k (as vpfs-proxy)",
    "uring-256k": "io_uring recv and send, buffer of 256 KiB",
}
SIZES = [4 << 10, 64 << 10, 256 << 10, 1 << 20]
CONGESTION_CONTROL = "cubic"
COLUMNS = [
    "op",
    "size",
    "outstanding",
    "connections",
    "variant",
    "mib_per_s",
    "of_direct",
    "cpu_s_per_gib",
]


def run_once(
    program: pathlib.Path, variant: str, op: str, size: int, load: tuple[int, int], seconds: float
) -> Row:
    command = [
        str(program),
        "--variant",
        variant,
        "--op",
        op,
        "--size",
        str(size),
        "--outstanding",
        str(load[0]),
        "--connections",
        str(load[1]),
        "--seconds",
        str(seconds),
        "--congestion-control",
        CONGESTION_CONTROL,
    ]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=seconds + 30
    )
    if done.returncode != 0:
        raise Problem(f"{variant}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def rows_of(
    program: pathlib.Path, op: str, size: int, load: tuple[int, int], runs: int, seconds: float
) -> list[Row]:
    """Runs all variants in turn, `runs` times. Returns medians."""
    seen: dict[str, list[Row]] = {variant: [] for variant in VARIANTS}
    for _ in range(runs):
        for variant in VARIANTS:
            seen[variant].append(run_once(program, variant, op, size, load, seconds))
    direct = median([run["mib_per_s"] for run in seen["direct"]])
    rows: list[Row] = []
    for variant, results in seen.items():
        rate = median([run["mib_per_s"] for run in results])
        cpu = median([run["relay_cpu_s_per_gib"] for run in results])
        rows.append(
            {
                "op": op,
                "size": size_name(size),
                "outstanding": load[0],
                "connections": load[1],
                "variant": variant,
                "mib_per_s": rate,
                "of_direct": rate / direct,
                "cpu_s_per_gib": None if variant == "direct" else cpu,
            }
        )
    return rows


def figure(rows: Sequence[Row], load: tuple[int, int], caption: str) -> Figure:
    sheet = plot.Sheet(
        "What moving bytes costs, by mechanism",
        caption,
        rows=2,
        columns=2,
        heights=[2.5],
        share_x=True,
        share_y=True,
    )
    own = [row for row in rows if (row["outstanding"], row["connections"]) == load]
    sizes = [size for size in map(size_name, SIZES) if any(row["size"] == size for row in own)]
    relays = [variant for variant in VARIANTS if variant != "direct"]
    looks = plot.looks(relays)
    for panel, (field, op) in zip(
        sheet.panels, itertools.product(["of_direct", "cpu_s_per_gib"], ["read", "write"])
    ):
        factor = 100 if field == "of_direct" else 1
        of = {
            (row["variant"], row["size"]): float(row[field]) * factor
            for row in own
            if row["op"] == op and row[field] is not None
        }
        plot.lines(
            panel,
            {
                variant: [
                    (place, of[variant, size])
                    for place, size in enumerate(sizes)
                    if (variant, size) in of
                ]
                for variant in relays
            },
            looks,
        )
        plot.categories(panel, sizes)
        if field == "of_direct":
            plot.target(panel, 100, "no relay")
            plot.label(panel, "", "throughput (% of direct)" if op == "read" else "", op)
        else:
            plot.label(panel, "operation size", "CPU time (s/GiB)" if op == "read" else "")
    plot.from_zero(sheet.panels)
    return sheet.finish()


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool) -> int:
    runs, seconds = (3, 0.25) if quick else (5, 1.0)
    loads = [(16, 8)] if quick else [(1, 1), (16, 8)]
    settings = machine_settings() | {
        "congestion_control": f"{CONGESTION_CONTROL} on every socket",
        "model": "requests of 300 bytes, answers of 40, data in messages of at most 256 KiB; one "
        "thread each for the client, the relay and the server",
        "outstanding": "operations in flight on each connection",
        "runs": runs,
        "seconds": seconds,
        "statistic": "median of interleaved runs",
        "quick": quick,
        "variants": VARIANTS,
    }
    print_settings(settings)
    rows: list[Row] = []
    for op, size, load in itertools.product(["read", "write"], SIZES, loads):
        part = rows_of(binaries / "vpfs-bench-relay", op, size, load, runs, seconds)
        rows += part
        print("\n" + table(part, COLUMNS), flush=True)
    write_json(out / "relay.json", {"settings": settings, "rows": rows})
    for load in loads:
        plot.save(
            out / f"relay-{load[0]}x{load[1]}",
            functools.partial(
                figure,
                rows,
                load,
                plot.caption(
                    settings,
                    f"{load[0]} in flight on each of {load[1]} connections",
                    "a model client, relay and server of one thread each, cubic",
                    f"medians of {runs} interleaved runs of {seconds:g} s",
                ),
            ),
        )
    return 0
