"""script/bench priority: what traffic classes do for small reads that compete with large writes.

Within a class the policy is fifo, so that all differences come from the classes.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.schedulers.edf import DEPTH, DEVICE, INTERACTIVE, READS, WARM_UP, WRITES
from lab import plot
from lab.cluster import Cluster, Front
from lab.harness import Programs, machine_settings
from lab.load import application_of, check_errors, run_load
from lab.points import beside
from lab.report import Json, Row, print_settings, table, write_json
from lab.rounds import STATISTIC, Facts, Rounds
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import one_at_least, one_at_most, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POLICY = "fifo"
BULK = "bulk"
STARVATION = "100 ms"
NAMES = [{"name": INTERACTIVE}, {"name": BULK}]
MODES: dict[str, dict[str, object]] = {
    "none": {"mode": "none", "names": NAMES},
    "apportion 50:50": {"mode": "apportion", "names": [name | {"share": 50} for name in NAMES]},
    "strict": {"mode": "strict", "names": NAMES},
    f"strict, at most {STARVATION}": {
        "mode": "strict",
        "names": NAMES,
        "max_starvation": STARVATION,
    },
}
BULK_WRITES = dataclasses.replace(WRITES, name=BULK)
LOADS = {
    "now and then": [READS, BULK_WRITES],
    "all the time": [
        dataclasses.replace(
            READS, size=64 << 10, outstanding=16, processes=2, file_size=16 << 20, burst=None
        ),
        BULK_WRITES,
    ],
}
FULL, QUICK = Rounds(seconds=4, runs=5), Rounds(seconds=2, runs=1)
FIELDS = ["mib_per_s", "ops_per_s", "p50_ms", "p99_ms", "max_ms"]
NUMBERS = [f"{name} {field}" for name, field in itertools.product([INTERACTIVE, BULK], FIELDS)] + [
    "total_mib_per_s"
]


def front(mode: str) -> Front:
    return Front(
        "px",
        "proxy",
        POLICY,
        {INTERACTIVE: 1, BULK: 1},
        classes={INTERACTIVE: INTERACTIVE, BULK: BULK},
        scheduler={"classes": MODES[mode]},
        **DEPTH,
    )


def facts_of(result: Json) -> dict[str, float | None]:
    facts: dict[str, float | None] = {"total_mib_per_s": result["total_mib_per_s"]}
    for name in (INTERACTIVE, BULK):
        entry = application_of(result, name)
        facts |= {f"{name} {field}": entry[field] for field in ("mib_per_s", "ops_per_s")}
        # Without requests there is no latency.
        facts |= {
            f"{name} {field}_ms": entry["latency_us"][field] / 1000 if entry["requests"] else None
            for field in ("p50", "p99", "max")
        }
    return facts


def check(rows: Sequence[Row]) -> list[Row]:
    of = {(row["reads"], row["classes"]): row for row in rows}
    rare, none = "now and then", "none"
    lines = [
        one_at_most(
            f"reads now and then, {mode}: p99 / without classes",
            1.0,
            float(of[rare, mode][f"{INTERACTIVE} p99_ms"])
            / float(of[rare, none][f"{INTERACTIVE} p99_ms"]),
        )
        for mode in list(MODES)[1:]
    ]
    press = {mode: of["all the time", mode] for mode in MODES}
    apportioned = press["apportion 50:50"]
    ratio = float(apportioned[f"{INTERACTIVE} mib_per_s"]) / float(apportioned[f"{BULK} mib_per_s"])
    lines.append(
        verdict(
            "reads all the time, apportion 50:50: reads / writes",
            "0.97 to 1.03",
            f"{ratio:.3f}",
            0.97 <= ratio <= 1.03,
        )
    )
    strict, bounded = (press[mode] for mode in list(MODES)[2:])
    lines.append(
        one_at_most(
            "reads all the time, strict: writes, part of the total",
            0.03,
            float(strict[f"{BULK} mib_per_s"]) / float(strict["total_mib_per_s"]),
        )
    )
    # A write may go whenever the first one has waited this long.
    lines.append(
        one_at_least(
            f"reads all the time, strict, at most {STARVATION}: writes/s",
            9.0,
            float(bounded[f"{BULK} ops_per_s"]),
        )
    )
    return lines


def load_table(rows: Sequence[Row]) -> str:
    """One row per class."""
    return table(
        [
            {"classes": row["classes"], "class": name, "total_mib_per_s": row["total_mib_per_s"]}
            | {field: row[f"{name} {field}"] for field in FIELDS}
            for row in rows
            for name in (INTERACTIVE, BULK)
        ],
        ["classes", "class", *FIELDS, "total_mib_per_s"],
    )


def figure(rows: Sequence[Row], caption: str) -> Figure:
    of = {load: [row for row in rows if row["reads"] == load] for load in LOADS}
    rare, steady = of.values()
    sheet = plot.Sheet(
        "Traffic classes: small reads beside large writes", caption, columns=2, heights=[3.0]
    )
    left, right = sheet.panels
    quantiles = {"p50": "median latency", "p99": "p99 latency", "max": "longest latency"}
    names = [*quantiles.values(), "reads", "writes"]
    looks = {name: plot.look(index) for index, name in enumerate(names)}
    plot.lines(
        left,
        beside(
            {
                name: [row[f"{INTERACTIVE} {field}_ms"] for row in rare]
                for field, name in quantiles.items()
            }
        ),
        looks,
        joined=False,
    )
    plot.categories(left, [str(row["classes"]) for row in rare])
    plot.logarithmic(left, "y")
    plot.label(left, "classes", "latency (ms)", "Reads now and then: their latency")
    plot.bars(
        right,
        [str(row["classes"]) for row in steady],
        {
            "reads": [row[f"{INTERACTIVE} mib_per_s"] for row in steady],
            "writes": [row[f"{BULK} mib_per_s"] for row in steady],
        },
        looks,
    )
    plot.label(right, "classes", "bandwidth (MiB/s)", "Reads all the time: what each class gets")
    return sheet.finish()


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench priority")
    FULL.add_options(parser, QUICK)
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    rounds = (QUICK if quick else FULL).asked(options)
    settings = machine_settings() | {
        "quick": quick,
        "seconds": rounds.seconds,
        "warm_up": WARM_UP,
        "runs": rounds.runs,
        "statistic": STATISTIC,
        "servers": 1,
        "device": DEVICE,
        "depth": DEPTH,
        "policy inside a class": POLICY,
        "classes": MODES,
        "applications": {
            name: [application.config() for application in load] for name, load in LOADS.items()
        },
    }
    print_settings(settings)

    def one(case: tuple[str, str]) -> Facts:
        load, mode = case
        with Programs(binaries, out / "priority") as programs:
            cluster = Cluster(programs, 1, [front(mode)], DEVICE)
            cluster.start("px")
            result = run_load(
                programs, "load", cluster.address("px"), LOADS[load], rounds.seconds, WARM_UP
            )
        check_errors(result)
        return facts_of(result)

    rows = rounds.rows(
        itertools.product(LOADS, MODES),
        one,
        lambda case: {"reads": case[0], "classes": case[1]},
        NUMBERS,
    )
    for load in LOADS:
        print(
            f"\nreads {load}\n" + load_table([row for row in rows if row["reads"] == load]),
            flush=True,
        )
    targets = check(rows)
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "priority.json", {"settings": settings, "rows": rows, "targets": targets})
    plot.save(
        out / "priority",
        lambda: figure(
            rows,
            plot.caption(
                settings,
                f"one server of {DEVICE['bandwidth']}, depth {DEPTH['depth_requests']} requests "
                f"and {DEPTH['depth_bytes']}",
                f"policy {POLICY} inside a class",
                "reads of 4 KiB now and then, of 64 KiB all the time; writes of 1 MiB",
                f"medians of {rounds.runs} x {rounds.seconds:g} s, after {WARM_UP:g} s of warm-up",
            ),
        ),
    )
    return 0
