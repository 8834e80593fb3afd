"""script/bench stage: the cost of the parts of a stage that requests pass, and of holding its lock.

vpfs-bench-stage measures rules, copying counters, and retiring. The cost of a status of many
virtual PFSes is its effect on the latency of small reads through a proxy.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.data_path.overhead import Bench, Case, Plan
from lab import plot
from lab.cluster import Depth, Front
from lab.harness import Problem, Programs, machine_settings, median
from lab.report import Json, Row, print_settings, table, write_json
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import one_at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLASSIFY_US, COPY_US, LOCK_US, P99_OF_NONE = 1.0, 200.0, 10.0, 1.05  # at most
SECOND_MS, ANSWER_MS = 5.0, 20.0  # at most
RECORD_NS = 20.0  # at most
COLUMNS = ["case", "rules", "attribute", "virtual_pfs", "ns_p50", "ns_p99", "lock_us_max"]
PAST_COLUMNS = ["case", "seconds", "ms_p50", "ms_p99"]
RECORD_COLUMNS = ["case", "batches", "ns_off", "ns_on", "ns_of_it"]
MANY = 1000
INTERVAL = "1 s"
NONE, FEW, ALL = "no-status", "status-of-2", f"status-of-{MANY}"
READS = Case("read", 4 << 10, 16, 1)
FULL = Plan(runs=9, seconds=3.0, warm_up=0.5, sizes=[], loads=[])
QUICK = Plan(runs=3, seconds=2.0, warm_up=0.3, sizes=[], loads=[])
STATUS_COLUMNS = ["proxy", "ops_per_s", "p50_us", "p99_us", "p99_of_none"]


def fronts() -> list[Front]:
    """All but FEW have the same rules and virtual PFSes.

    The job that reads matches the last rule.
    """
    many = {f"job{i}": 1 for i in range(MANY - 2)} | {"a": 1}
    never, often = {"status_interval": "1 h"}, {"status_interval": INTERVAL}
    depth: Depth = {"depth_requests": 64, "depth_bytes": "64 MiB"}
    return [
        Front(NONE, "proxy", "sfq", many, proxy=never, **depth),
        Front(FEW, "proxy", "sfq", {"a": 1}, proxy=often, **depth),
        Front(ALL, "proxy", "sfq", many, proxy=often, **depth),
    ]


def measure_parts(binaries: pathlib.Path, quick: bool) -> list[Json]:
    command = [str(binaries / "vpfs-bench-stage"), *(["--quick"] if quick else [])]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise Problem(f"vpfs-bench-stage failed:\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure_status(binaries: pathlib.Path, out: pathlib.Path, plan: Plan) -> list[Row]:
    seen: dict[str, list[dict[str, float]]] = {front.name: [] for front in fronts()}
    with Programs(binaries, out / "stage") as programs:
        bench = Bench(programs, plan, fronts=fronts())
        for index in range(plan.runs):
            # Every other round goes backwards, so that a case does not always follow the same one.
            for name in seen if index % 2 == 0 else reversed(list(seen)):
                seen[name].append(bench.once(READS, name))
    return [
        {"proxy": name}
        | {
            field: median([run[field] for run in runs])
            for field in ("ops_per_s", "p50_us", "p99_us")
        }
        | {
            "p99_of_none": median(
                [own["p99_us"] / none["p99_us"] for own, none in zip(runs, seen[NONE])]
            )
        }
        for name, runs in seen.items()
    ]


def rows_of(parts: Sequence[Json], case: str) -> list[Json]:
    return [row for row in parts if row["case"] == case]


def check(parts: Sequence[Json], status: Sequence[Row]) -> list[Row]:
    classified = [row for row in rows_of(parts, "classify") if row["rules"] == 1000]
    copies = rows_of(parts, "copy")
    copied = next(row for row in copies if row["virtual_pfs"] == 1000)
    slowest = max(classified, key=lambda row: row["ns_p50"])
    return [
        one_at_most(
            f"1,000 rules that do not match, slowest attribute ({slowest['attribute']})",
            CLASSIFY_US,
            slowest["ns_p50"] / 1000,
            " us",
        ),
        one_at_most(
            "copying the counters of 1,000 virtual PFSes", COPY_US, copied["ns_p50"] / 1000, " us"
        ),
        one_at_most(
            "longest lock while 128 rows are copied",
            LOCK_US,
            max(row["lock_us_max"] for row in copies),
            " us",
        ),
        one_at_most(
            "a second of the history of 10,000 virtual PFSes",
            SECOND_MS,
            max(row["ns_p50"] for row in rows_of(parts, "history")) / 1e6,
            " ms",
        ),
        one_at_most(
            "longest lock while 8 rows are read for the history",
            LOCK_US,
            max(row["lock_us_max"] for row in rows_of(parts, "history")),
            " us",
        ),
        one_at_most(
            "an answer about a day with 128 busy virtual PFSes",
            ANSWER_MS,
            max(row["ms_p50"] for row in rows_of(parts, "past")),
            " ms",
        ),
        one_at_most(
            "a recording, for each request",
            RECORD_NS,
            rows_of(parts, "record")[0]["ns_of_it"],
            " ns",
        ),
        one_at_most(
            f"p99 of 4 KiB reads with the status of {MANY} / without status",
            P99_OF_NONE,
            float(next(row for row in status if row["proxy"] == ALL)["p99_of_none"]),
        ),
    ]


def rules_figure(parts: Sequence[Json], caption: str) -> Figure:
    """Groups by attribute, the slowest first; each number of rules is a series."""
    rows = rows_of(parts, "classify")
    counts = sorted({row["rules"] for row in rows})
    of = {(row["attribute"], row["rules"]): row["ns_p50"] for row in rows}
    attributes = sorted(
        {row["attribute"] for row in rows}, key=lambda name: -of.get((name, counts[-1]), 0.0)
    )
    sheet = plot.Sheet(
        "Finding the rule of a request when none matches",
        caption,
        heights=[0.6 + 0.2 * len(attributes)],
    )
    (panel,) = sheet.panels
    plot.dots(
        panel,
        [name.replace("_", " ") for name in attributes],
        {f"{count:,} rules": [of.get((name, count)) for name in attributes] for count in counts},
    )
    plot.limit(panel, CLASSIFY_US * 1000, f"at most {CLASSIFY_US * 1000:,.0f} ns")
    plot.logarithmic(panel, "x")
    panel.grid(axis="x")
    plot.label(panel, "median time (ns)")
    return sheet.finish()


def status_figure(parts: Sequence[Json], status: Sequence[Row], caption: str) -> Figure:
    sheet = plot.Sheet(
        "What a status of many virtual PFSes costs", caption, columns=2, heights=[2.9]
    )
    left, right = sheet.panels
    copies = rows_of(parts, "copy")
    names = ["median of a copy", "p99 of a copy", "longest lock", "p50 of a read", "p99 of a read"]
    looks = {name: plot.look(index) for index, name in enumerate(names)}
    counts = [row["virtual_pfs"] for row in copies]
    for name, field, factor in (
        ("median of a copy", "ns_p50", 1000),
        ("p99 of a copy", "ns_p99", 1000),
        ("longest lock", "lock_us_max", 1),
    ):
        plot.lines(
            left, {name: [(row["virtual_pfs"], row[field] / factor) for row in copies]}, looks
        )
    plot.target(left, COPY_US, colour=looks["median of a copy"].colour, text="copy")
    plot.target(left, LOCK_US, colour=looks["longest lock"].colour, text="lock")
    plot.explain_targets(left, "at most wanted")
    plot.doubling(left, counts)
    plot.logarithmic(left, "y")
    plot.label(left, "virtual PFSes (number)", "time (µs)", "Copying their counters")
    plot.bars(
        right,
        [str(row["proxy"]).replace("-", " ") for row in status],
        {
            name: [row[field] for row in status]
            for name, field in (("p50 of a read", "p50_us"), ("p99 of a read", "p99_us"))
        },
        looks,
    )
    plot.label(right, y="latency (µs)", title="Reads of 4 KiB beside it")
    return sheet.finish()


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool) -> int:
    plan = QUICK if quick else FULL
    settings = machine_settings() | {
        "quick": quick,
        "plan of the reads": dataclasses.asdict(plan),
        "status_interval": INTERVAL,
        "statistic": "of classify and retire: quantiles over batches of calls; of copy: over "
        "whole copies; of history: over whole seconds; of past: over answers; lock_us_max: the "
        "longest lock of a round, median over the rounds; of the status: medians of interleaved "
        "runs, ratios within a round",
        "reads": "4 KiB, one connection with 16 in flight, sequential, a file of 32 MiB in the "
        "server's memory; 1,000 rules by jobid, the last one matches",
    }
    print_settings(settings)
    parts = measure_parts(binaries, quick)
    past = rows_of(parts, "past")
    record = rows_of(parts, "record")
    print("\n" + table([row for row in parts if row not in past + record], COLUMNS))
    print("\n" + table(past, PAST_COLUMNS))
    print("\n" + table(record, RECORD_COLUMNS), flush=True)
    status = measure_status(binaries, out, plan)
    print("\n" + table(status, STATUS_COLUMNS))
    targets = check(parts, status)
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(
        out / "stage.json",
        {"settings": settings, "rows": parts, "status": status, "targets": targets},
    )
    plot.save(
        out / "stage-rules",
        lambda: rules_figure(
            parts,
            plot.caption(
                settings, "medians over batches of calls, by the attribute that the rules look at"
            ),
        ),
    )
    plot.save(
        out / "stage-status",
        lambda: status_figure(
            parts,
            status,
            plot.caption(
                settings,
                f"a status every {INTERVAL}",
                "reads: one connection with 16 in flight",
                f"medians of {plan.runs} interleaved runs of {plan.seconds:g} s",
            ),
        ),
    )
    return 0
