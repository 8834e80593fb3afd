"""script/bench policies: does every policy cost as much as fifo, if nothing is limited?

One server holds its files in memory, without a modelled device. A proxy with each policy is before
it. The proxies are measured in turn, and each is compared with fifo in the same round.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.data_path.overhead import Bench, Case, Plan
from lab import plot
from lab.cluster import Front
from lab.harness import Programs, machine_settings, median
from lab.numbers import above_zero, one_or_more
from lab.points import beside
from lab.report import Row, print_settings, table, write_json
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import one_at_least, one_at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POLICIES = ["fifo", "sfq", "tbf", "edf", "adaptbf"]
FRONTS = [
    Front(
        policy,
        "proxy",
        policy,
        {"a": 1},
        proxy={"busy_poll": "0 s"},  # polling would hide what a policy costs
        depth_requests=64,
        depth_bytes="64 MiB",
    )
    for policy in POLICIES
]
CASES = [
    Case("read", 4 << 10, 16, 1),
    Case("write", 4 << 10, 16, 1),
    Case("read", 1 << 20, 16, 1),
    Case("write", 1 << 20, 16, 1),
]
TOLERANCE = 0.03
FULL = Plan(runs=7, seconds=1.5, warm_up=0.5, sizes=[], loads=[])
QUICK = Plan(runs=3, seconds=1.0, warm_up=0.2, sizes=[], loads=[])
NUMBERS = ["mib_per_s", "ops_per_s", "p50_us", "p99_us", "cpu_s_per_gib"]
COLUMNS = ["op", "size", "policy", *NUMBERS, "throughput_of_fifo", "cpu_of_fifo"]
Seen = dict[str, list[dict[str, float]]]  # the runs of each policy, by round


RATIOS = {"throughput_of_fifo": "ops_per_s", "cpu_of_fifo": "cpu_s_per_gib"}


def ratios_to_fifo(seen: Seen, policy: str, field: str) -> list[float]:
    """Ratios within a round, where a drift of the machine affects both."""
    return [
        own[field] / fifo[field]
        for own, fifo in zip(seen[policy], seen["fifo"])
        if field in own and field in fifo
    ]


def rows_of(case: Case, seen: Seen) -> list[Row]:
    fields = {field: value for field, value in case.fields().items() if field in COLUMNS}
    rows: list[Row] = []
    for policy, runs in seen.items():
        row = (
            fields
            | {"policy": policy}
            | {field: median([run[field] for run in runs if field in run]) for field in NUMBERS}
        )
        for name, field in RATIOS.items():
            ratios = ratios_to_fifo(seen, policy, field)
            row |= {
                name: median(ratios),
                f"{name}_range": [min(ratios, default=math.nan), max(ratios, default=math.nan)],
            }
        rows.append(row)
    return rows


def figure(rows: Sequence[Row], caption: str) -> Figure:
    sheet = plot.Sheet(
        "What each policy costs the data path, against fifo",
        caption,
        columns=2,
        heights=[3.2],
        share_y=True,
    )
    others = [policy for policy in POLICIES if policy != "fifo"]
    cases = list(dict.fromkeys(f"{row['op']} {row['size']}" for row in rows))
    looks = plot.looks(POLICIES)
    for panel, name, title in zip(
        sheet.panels,
        RATIOS,
        ("Requests per second: higher is better", "Processor time: lower is better"),
    ):
        of = {policy: [row for row in rows if row["policy"] == policy] for policy in others}
        points = beside({policy: [row[name] for row in own] for policy, own in of.items()})
        for policy, own in of.items():
            plot.spread(panel, points[policy], [row[f"{name}_range"] for row in own], looks[policy])
        plot.lines(panel, points, looks, joined=False)
        plot.band(panel, 1 - TOLERANCE, 1 + TOLERANCE, f"within {TOLERANCE * 100:.0f} %")
        plot.target(panel, 1.0, "as fifo")
        plot.categories(panel, cases)
        plot.label(panel, "", "ratio to fifo (×)" if panel is sheet.panels[0] else "", title)
    return sheet.finish()


def check(rows: Sequence[Row]) -> list[Row]:
    lines = []
    for row in rows:
        if row["policy"] == "fifo":
            continue
        case = f"{row['policy']}, {row['op']} {row['size']}"
        lines.append(
            one_at_least(
                f"{case}: throughput / fifo", 1 - TOLERANCE, float(row["throughput_of_fifo"])
            )
        )
        lines.append(
            one_at_most(f"{case}: CPU per byte / fifo", 1 + TOLERANCE, float(row["cpu_of_fifo"]))
        )
    return lines


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench policies")
    parser.add_argument(
        "--runs",
        type=one_or_more,
        help=f"rounds of each case (default {FULL.runs}; {QUICK.runs} with --quick)",
    )
    parser.add_argument(
        "--seconds",
        type=above_zero,
        help=f"length of each run (default {FULL.seconds:g}; {QUICK.seconds:g} with --quick)",
    )
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    asked = {
        field: getattr(options, field) for field in ("runs", "seconds") if getattr(options, field)
    }
    plan = dataclasses.replace(QUICK if quick else FULL, **asked)
    settings = machine_settings() | {
        "quick": quick,
        "runs": plan.runs,
        "seconds": plan.seconds,
        "warm_up": plan.warm_up,
        "statistic": "medians of interleaved runs; ratios are medians over the rounds of the "
        "ratio within a round",
        "load": "one application in one process with one connection and 16 requests in flight; "
        "sequential, a file of 32 MiB in the server's memory",
        "proxies": {front.name: front.scheduler_config() for front in FRONTS},
        "virtual_pfs": "one, without any limit, promise or minimum; adaptbf measures the capacity "
        "itself",
        "cpu_s_per_gib": "of the proxy",
    }
    print_settings(settings)
    rows: list[Row] = []
    with Programs(binaries, out / "policies") as programs:
        bench = Bench(programs, plan, fronts=FRONTS)
        for case in CASES:
            seen: Seen = {policy: [] for policy in POLICIES}
            for index in range(plan.runs):
                # Every other round goes backwards, so that a policy does not always follow the same
                # one.
                for policy in POLICIES if index % 2 == 0 else reversed(POLICIES):
                    seen[policy].append(bench.once(case, policy))
            part = rows_of(case, seen)
            rows += part
            print("\n" + table(part, COLUMNS), flush=True)
    targets = check(rows)
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "policies.json", {"settings": settings, "rows": rows, "targets": targets})
    plot.save(
        out / "policies",
        lambda: figure(
            rows,
            plot.caption(
                settings,
                "one server with its files in memory; one application, one connection, 16 "
                "requests in flight",
                f"medians of {plan.runs} rounds of {plan.seconds:g} s each, the lines from the "
                "least to the most of them",
            ),
        ),
    )
    return 0
