"""script/bench node: a quick application among slow ones on one BeeGFS node.

A node has few connections to a storage server, and each carries one request at a time. So waiting
requests of slow applications could keep the quick one from the server.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lab import plot
from lab.cluster import Cluster, Front
from lab.harness import Problem, Programs, machine_settings
from lab.load import Application, application_of, run_load
from lab.report import Row, print_settings, table, write_json
from lab.rounds import STATISTIC, Facts, Rounds
from lab.status import read_status
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import at_least

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUICK_ONE = "quick"
RATE = "256 KiB/s"  # of each slow application: 16 requests per second
SIZE, FILE = 16 << 10, 16 << 20
TASKS = 16  # of each slow application
DEVICE = {"bandwidth": "1 GiB/s", "per_request": "1 ms", "parallelism": 8}
WARM_UP = 7.0  # until requests that were sent back have been repeated
FULL, QUICK = Rounds(seconds=10, runs=3), Rounds(seconds=4, runs=1)
CONNECTIONS = [12, 64]
SLOW = [0, 1, 2, 4, 8]
READ, WRITE = "read", "write"
NUMBERS = [
    "quick_ops_per_s",
    "quick_p99_ms",
    "slow_mib_per_s",
    "slow_least_mib_per_s",
    "slow_max_ms",
    "sent_back",
]
PART = 0.6  # of its rate when it is alone


class Case(NamedTuple):
    connections: int
    slow: int  # slow applications; 0: the quick one is alone
    operation: str  # of the slow applications


def slow_names(case: Case) -> list[str]:
    return [f"slow{index}" for index in range(case.slow)]


def front(case: Case) -> Front:
    # Readers' files are written first, with the burst that a share begins with.
    burst = "16 MiB" if case.operation == READ else "16 KiB"
    shares = {name: {"rate": RATE, "burst": burst} for name in slow_names(case)}
    return Front("px", "proxy", "sfq", {QUICK_ONE: 1}, shares)


def applications(case: Case) -> list[Application]:
    quick = Application(
        QUICK_ONE,
        4 << 10,
        read_percent=100,
        pattern="random",
        file_size=1 << 20,
        node="n1",
        connections=case.connections,
    )
    slow = [
        Application(
            name,
            SIZE,
            TASKS,
            read_percent=100 if case.operation == READ else 0,
            file_size=FILE,
            node="n1",
            connections=case.connections,
        )
        for name in slow_names(case)
    ]
    return [*slow, quick]


def once(programs: Programs, case: Case, seconds: float) -> dict[str, float]:
    cluster = Cluster(programs, 1, [front(case)], DEVICE, protocol="beegfs")
    cluster.start("px")
    # The end of the run cuts off requests of slow applications, which makes the exit code 1.
    result = run_load(
        programs,
        "load",
        cluster.address("px"),
        applications(case),
        seconds,
        WARM_UP if case.slow else 1.0,
        may_fail=case.slow > 0,
    )
    quick = application_of(result, QUICK_ONE)
    if quick["errors"]:
        raise Problem(f"{quick['errors']} requests of the quick application failed")
    facts = {
        "quick_ops_per_s": quick["ops_per_s"],
        "quick_p99_ms": quick["latency_us"]["p99"] / 1000,
    }
    if case.slow:
        slow = [application_of(result, name) for name in slow_names(case)]
        cluster.stop("px")  # at its end it writes the last status
        facts |= {
            "slow_mib_per_s": sum(each["mib_per_s"] for each in slow),
            "slow_least_mib_per_s": min(each["mib_per_s"] for each in slow),
            "slow_max_ms": max(each["latency_us"]["max"] for each in slow) / 1000,
            "sent_back": read_status(cluster.status_file("px"))["counters"]["excess_requests"],
        }
    return facts


def check(rows: Sequence[Row]) -> list[Row]:
    alone = {row["connections"]: float(row["quick_ops_per_s"]) for row in rows if row["slow"] == 0}
    return [
        at_least(
            f"{connections} connections: the quick one beside slow ones / alone",
            PART,
            [
                float(row["quick_ops_per_s"]) / alone[connections]
                for row in rows
                if row["connections"] == connections and row["slow"] != 0
            ],
        )
        for connections in alone
    ]


def figure(rows: Sequence[Row], caption: str) -> Figure:
    connections = list(dict.fromkeys(row["connections"] for row in rows))
    sheet = plot.Sheet(
        "A quick application on a node that it shares with slow ones",
        caption,
        rows=2,
        columns=len(connections),
        heights=[2.2, 2.0],
        share_x=True,
        share_y=True,
    )
    for index, (upper, lower, count) in enumerate(
        zip(sheet.panels, sheet.panels[len(connections) :], connections)
    ):
        own = [row for row in rows if row["connections"] == count]
        alone = next(row for row in own if row["slow"] == 0)
        for operation in (READ, WRITE):
            of = [
                alone,
                *(row for row in own if row["slow"] != 0 and row["operation"] == operation),
            ]
            name = f"slow ones {operation}"
            looks = plot.looks([f"slow ones {READ}", f"slow ones {WRITE}"])
            plot.lines(
                upper,
                {
                    name: [
                        (row["slow"], 100 * row["quick_ops_per_s"] / alone["quick_ops_per_s"])
                        for row in of
                    ]
                },
                looks,
            )
            plot.lines(lower, {name: [(row["slow"], row["quick_p99_ms"]) for row in of]}, looks)
        plot.target(upper, 100 * PART, f"at least {100 * PART:.0f} % of what it has alone")
        for panel in (upper, lower):
            panel.set_xticks(sorted({int(row["slow"]) for row in own}))
        plot.label(
            upper, "", "requests/s, of alone (%)" if index == 0 else "", f"{count} connections"
        )
        plot.label(lower, "slow applications (number)", "p99 latency (ms)" if index == 0 else "")
    plot.from_zero(sheet.panels)
    return sheet.finish()


def cases(slow: Sequence[int], connections: Sequence[int]) -> list[Case]:
    all_cases = (Case(*each) for each in itertools.product(connections, [0, *slow], [READ, WRITE]))
    return [case for case in all_cases if case.slow or case.operation == READ]


def numbers(choices: Sequence[int]) -> dict[str, Any]:
    """Arguments of an option that takes some of these numbers."""
    return {"type": int, "nargs": "+", "choices": choices, "default": choices}


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench node")
    FULL.add_options(parser, QUICK)
    parser.add_argument("--slow", help="numbers of slow applications", **numbers(SLOW[1:]))
    parser.add_argument(
        "--connections", help="numbers of connections of the node", **numbers(CONNECTIONS)
    )
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    rounds = (QUICK if quick else FULL).asked(options)
    settings = machine_settings() | {
        "quick": quick,
        "seconds": rounds.seconds,
        "warm_up": WARM_UP,
        "runs": rounds.runs,
        "statistic": STATISTIC,
        "protocol": "beegfs",
        "device": DEVICE,
        "slow": f"each with {TASKS} readers or writers of {SIZE >> 10} KiB, held to {RATE}",
        "quick one": "1 reader of 4 KiB on the same node",
        "policy": "sfq, depth 16",
        "max_held_per_client": "auto",
    }
    print_settings(settings)

    def one(case: Case) -> Facts:
        with Programs(binaries, out / "node") as programs:
            return once(programs, case, rounds.seconds)

    rows = rounds.rows(
        cases(options.slow, options.connections),
        one,
        lambda case: {**case._asdict(), "operation": case.operation if case.slow else ""},
        NUMBERS,
    )
    print("\n" + table(rows, [*Case._fields, *NUMBERS]), flush=True)
    targets = check(rows)
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "node.json", {"settings": settings, "rows": rows, "targets": targets})
    plot.save(
        out / "node",
        lambda: figure(
            rows,
            plot.caption(
                settings,
                f"BeeGFS; each slow one {TASKS} requests of {SIZE >> 10} KiB at a time, held to "
                f"{RATE}",
                "the quick one: 1 reader of 4 KiB",
                f"one server of {DEVICE['bandwidth']}, {DEVICE['per_request']} each request",
                f"medians of {rounds.runs} x {rounds.seconds:g} s after {WARM_UP:g} s of warm-up",
            ),
        ),
    )
    return 0
