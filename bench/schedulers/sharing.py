"""script/bench sharing: do two applications share by their weights, and what does it cost?

The servers' device model is the bottleneck. `achieved` is the ratio of the bytes that the two
applications moved in the measured time; `total_vs_fifo` compares the total with the same load
through proxies with policy fifo.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import math
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lab import plot
from lab.cluster import Cluster, Depth, Front
from lab.file_systems import FILE_SYSTEMS
from lab.harness import Programs, machine_settings, median, require_programs
from lab.load import Application, application_of, run_load
from lab.numbers import above_zero, one_or_more
from lab.report import Json, Row, print_settings, result_name, size_name, table, write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WEIGHTS = [1, 2, 4, 8, 16, 32]
SIZES = [4 << 10, 64 << 10, 1 << 20]
READ_PERCENT = {"read": 100, "write": 0, "mixed": 50}
SERVERS = [1, 2, 4]
# The bandwidth of all servers together, whatever their number. It is low enough for two processors
# to run the servers, their proxies and the load.
TOTAL_MIB_PER_S = 400
PER_REQUEST = "250 us"
DEPTHS: dict[str, Depth] = {
    "orangefs": {"depth_requests": 4, "depth_bytes": "2 MiB"},
    "beegfs": {"depth_requests": 16, "depth_bytes": "16 MiB"},
}
PROCESSES = 2
STRIP = 64 << 10
# In flight per application and server. If each request goes to one server at random, some server's
# queue is empty for about (servers - 1) / (requests in flight) of the time. Many requests in flight
# make that rare.
OUTSTANDING = 32
OUTSTANDING_AT_RANDOM = 512
# BeeGFS: two nodes of 24 connections, far more than the depth, so that both queues stay full.
OUTSTANDING_OF_BEEGFS = 48
WARM_UP = 3.0
INTERVAL = 0.25
ALLOWED_PERCENT = {8: 1.0, math.inf: 3.0}  # largest error of the ratio, for weights up to the key
TOTAL_OF_FIFO = 0.98
WANTED = f"wanted (total: at least {TOTAL_OF_FIFO:g})"
COLUMNS = [
    "case",
    "op",
    "size",
    "servers",
    "target",
    "achieved",
    "error_percent",
    "allowed_percent",
    "total_vs_fifo",
    "mib_per_s",
]


@dataclasses.dataclass(frozen=True)
class Case:
    op: str
    size: int
    servers: int
    weight: int = 1
    case: str = "backlogged"  # or "16 against 1", "comes and goes"
    protocol: str = "orangefs"

    def fields(self) -> dict[str, object]:
        return {
            "case": self.case,
            "op": self.op,
            "size": size_name(self.size),
            "servers": self.servers,
            "target": float(self.weight),
            "allowed_percent": self.allowed_percent(),
        }

    def applications(self, seconds: float) -> list[Application]:
        def application(
            name: str,
            outstanding: int,
            processes: int,
            start: float = 0.0,
            stop: float | None = None,
        ) -> Application:
            return Application(
                name,
                self.size,
                outstanding,
                processes,
                READ_PERCENT[self.op],
                "random",
                file_size=16 << 20,
                start=start,
                stop=stop,
            )

        if self.case == "16 against 1":
            return [application("a", 16, 1), application("b", 1, 1)]
        each = self.in_flight() // PROCESSES
        if self.case == "comes and goes":
            begin, end = self.window(seconds)
            return [
                application("a", each, PROCESSES),
                application("b", each, PROCESSES, WARM_UP + begin, WARM_UP + end),
            ]
        return [application("a", each, PROCESSES), application("b", each, PROCESSES)]

    def in_flight(self) -> int:
        """The requests in flight with which an application keeps its queues full."""
        if self.protocol == "beegfs":
            return OUTSTANDING_OF_BEEGFS
        everywhere = self.size >= STRIP * self.servers
        return self.servers * (OUTSTANDING if everywhere else OUTSTANDING_AT_RANDOM)

    def device(self) -> dict[str, object]:
        return {
            "bandwidth": f"{TOTAL_MIB_PER_S // self.servers} MiB/s",
            "per_request": PER_REQUEST,
            "parallelism": 1,
        }

    @staticmethod
    def window(seconds: float) -> tuple[float, float]:
        """When the application that comes and goes is there, in seconds of the measured time."""
        return seconds / 3, seconds * 2 / 3

    def allowed_percent(self) -> float | None:
        """The largest allowed error of the ratio. None: an application cannot keep a queue."""
        if self.case == "16 against 1":
            return None
        return next(percent for most, percent in ALLOWED_PERCENT.items() if self.weight <= most)


@dataclasses.dataclass(frozen=True)
class Plan:
    seconds: float
    runs: int
    cases: list[Case]

    def on(self, protocol: str) -> Plan:
        """The plan without cases that need more servers than the protocol has here."""
        most = FILE_SYSTEMS[protocol].most_servers
        cases = [
            dataclasses.replace(case, protocol=protocol)
            for case in self.cases
            if case.servers <= most
        ]
        return dataclasses.replace(self, cases=cases)


def all_cases(
    servers: list[int], sizes: list[int], ops: list[str], weights: list[int]
) -> list[Case]:
    backlogged = [
        Case(op, size, count, weight)
        for count, op, size, weight in itertools.product(servers, ops, sizes, weights)
    ]
    others = [
        Case(op, size, count, 1, case)
        for count, op, size, case in itertools.product(
            servers[:1], ops[:2], sizes[-2:], ["16 against 1", "comes and goes"]
        )
    ]
    return backlogged + others


def quick_plan() -> Plan:
    cases = [
        Case("write", 1 << 20, 1, 2),
        Case("write", 1 << 20, 1, 8),
        Case("write", 1 << 20, 1, 32),
        Case("read", 64 << 10, 1, 4),
        Case("mixed", 4 << 10, 1, 2),
        Case("read", 1 << 20, 2, 2),
        Case("write", 64 << 10, 4, 4),
        Case("write", 1 << 20, 1, 1, "16 against 1"),
        Case("write", 1 << 20, 1, 1, "comes and goes"),
    ]
    return Plan(4.0, 1, cases)


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench sharing")
    parser.add_argument(
        "--seconds", type=above_zero, default=60.0, help="measured time of each run (default 60)"
    )
    parser.add_argument(
        "--runs",
        type=one_or_more,
        default=1,
        help="runs of each case, interleaved with fifo (default 1)",
    )
    parser.add_argument("--servers", type=one_or_more, nargs="+", default=SERVERS)
    parser.add_argument(
        "--sizes", type=one_or_more, nargs="+", default=SIZES, help="bytes of a request"
    )
    parser.add_argument("--ops", nargs="+", choices=READ_PERCENT, default=list(READ_PERCENT))
    parser.add_argument("--weights", type=one_or_more, nargs="+", default=WEIGHTS)
    parser.add_argument("--protocol", choices=FILE_SYSTEMS, default="orangefs")
    return parser


def shared_ratio(result: Json, case: Case, seconds: float) -> float:
    """The ratio of a's bytes to b's while both run."""
    a, b = (application_of(result, name) for name in ("a", "b"))
    if case.case != "comes and goes":
        return a["bytes"] / b["bytes"] if b["bytes"] else math.inf
    begin, end = case.window(seconds)
    inside = [
        index
        for index in range(1, len(a["timeline"]))
        if begin + INTERVAL <= a["timeline"][index - 1]["t"]
        and a["timeline"][index]["t"] <= end - INTERVAL
    ]
    sums = [
        sum(application["timeline"][index]["mib_per_s"] for index in inside)
        for application in (a, b)
    ]
    return sums[0] / sums[1] if sums[1] else math.inf


class Bench:
    """The fifo and sfq proxies of one case, which use the same servers in turn."""

    def __init__(
        self, binaries: pathlib.Path, work: pathlib.Path, seconds: float, runs: int
    ) -> None:
        self._binaries, self._work = binaries, work
        self._seconds, self._runs = seconds, runs
        self._fifo_totals: dict[tuple[Any, ...], float] = {}

    def _measure(self, case: Case, policy: str) -> Json:
        front = Front("px", "proxy", policy, {"a": case.weight, "b": 1}, **DEPTHS[case.protocol])
        with Programs(self._binaries, self._work) as programs:
            cluster = Cluster(
                programs, case.servers, [front], case.device(), protocol=case.protocol
            )
            cluster.start("px")
            return run_load(
                programs,
                "load",
                cluster.address("px"),
                case.applications(self._seconds),
                self._seconds,
                WARM_UP,
                interval=INTERVAL,
            )

    def _fifo_total(self, case: Case) -> float:
        """fifo ignores weights, so cases that differ only in weights share its runs."""
        key = (case.op, case.size, case.servers, case.case)
        if key not in self._fifo_totals:
            self._fifo_totals[key] = median(
                [self._measure(case, "fifo")["total_mib_per_s"] for _ in range(self._runs)]
            )
        return self._fifo_totals[key]

    def row(self, case: Case) -> Row:
        fifo = self._fifo_total(case)
        results = [self._measure(case, "sfq") for _ in range(self._runs)]
        achieved = median([shared_ratio(result, case, self._seconds) for result in results])
        total = median([result["total_mib_per_s"] for result in results])
        return case.fields() | {
            "achieved": achieved,
            "error_percent": abs(achieved / case.weight - 1) * 100,
            "total_vs_fifo": total / fifo,
            "mib_per_s": total,
        }


def judge(rows: list[Row]) -> None:
    held = [row for row in rows if row["allowed_percent"] is not None]
    off = [row for row in held if not row["error_percent"] <= row["allowed_percent"]]
    slow = [row for row in rows if not row["total_vs_fifo"] >= TOTAL_OF_FIFO]
    print(f"\nratio within what is allowed: {len(held) - len(off)} of {len(held)} rows")
    print(f"total at least {TOTAL_OF_FIFO} of fifo: {len(rows) - len(slow)} of {len(rows)} rows")


def figure(rows: Sequence[Row], caption: str) -> Figure:
    """The error of each ratio, and the total, by the wanted ratio; one column for each site."""
    own = [row for row in rows if row["case"] == "backlogged"]
    servers = sorted({int(row["servers"]) for row in own})
    weights = sorted({float(row["target"]) for row in own})
    kinds = list(dict.fromkeys(f"{row['op']} {row['size']}" for row in own))
    looks = plot.looks(kinds)
    sheet = plot.Sheet(
        "Achieved against wanted shares of two applications",
        caption,
        rows=2,
        columns=len(servers),
        heights=[2.4, 2.0],
        share_x=True,
        share_y=True,
    )
    edges = [
        min(weights) / 1.5,
        *(most for most in ALLOWED_PERCENT if min(weights) < most < max(weights)),
        max(weights) * 1.5,
    ]
    for index, (upper, lower, count) in enumerate(
        zip(sheet.panels, sheet.panels[len(servers) :], servers)
    ):
        for place, kind in enumerate(kinds):
            # Offset, so that no point hides another.
            shift = 1.06 ** (place - (len(kinds) - 1) / 2)
            of = [
                row
                for row in own
                if row["servers"] == count and f"{row['op']} {row['size']}" == kind
            ]
            deviations = [(row["achieved"] / row["target"] - 1) * 100 for row in of]
            totals = [row["total_vs_fifo"] for row in of]
            for panel, values in ((upper, deviations), (lower, totals)):
                plot.lines(
                    panel,
                    {kind: [(row["target"] * shift, value) for row, value in zip(of, values)]},
                    looks,
                    joined=False,
                )
        for begin, end in itertools.pairwise(edges):
            allowed = next(
                percent
                for most, percent in ALLOWED_PERCENT.items()
                if end <= most or most == math.inf
            )
            plot.band(
                upper, -allowed, allowed, "allowed" if begin == edges[0] else "", (begin, end)
            )
        plot.target(upper, 0, WANTED)
        plot.target(lower, TOTAL_OF_FIFO, WANTED)
        for panel in (upper, lower):
            plot.doubling(panel, weights)
            panel.set_xlim(edges[0], edges[-1])
        most_off = max(
            4.0, *(abs(end) for other in sheet.panels[: len(servers)] for end in other.get_ylim())
        )
        upper.set_ylim(-most_off, most_off)
        plot.label(
            upper,
            "",
            "error of the ratio (%)" if index == 0 else "",
            "1 server" if count == 1 else f"{count} servers",
        )
        plot.label(lower, "wanted ratio (a:b)", "total / fifo's (×)" if index == 0 else "")
    return sheet.finish()


def load_text(protocol: str) -> str:
    """Text about how the applications keep their queues full."""
    if protocol == "beegfs":
        each = OUTSTANDING_OF_BEEGFS // PROCESSES
        return (
            f"each application on {PROCESSES} nodes of {each} connections, each with one request "
            "in flight; random offsets in files of 16 MiB"
        )
    return (
        f"each application in {PROCESSES} processes of one connection, {OUTSTANDING} requests in "
        f"flight for each server, {OUTSTANDING_AT_RANDOM} where a request goes to one server of "
        "several; random offsets in files of 16 MiB striped over all servers"
    )


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    protocol = options.protocol
    require_programs(binaries, [FILE_SYSTEMS[protocol].program])
    plan = (
        quick_plan()
        if quick
        else Plan(
            options.seconds,
            options.runs,
            all_cases(options.servers, options.sizes, options.ops, options.weights),
        )
    )
    plan = plan.on(protocol)
    fifo_runs = len({(case.op, case.size, case.servers, case.case) for case in plan.cases})
    settings = machine_settings() | {
        "build": "release",
        "quick": quick,
        "protocol": protocol,
        "seconds": plan.seconds,
        "warm_up": WARM_UP,
        "runs": plan.runs,
        "depth of each proxy": DEPTHS[protocol],
        "device of all servers together": f"{TOTAL_MIB_PER_S} MiB/s, {PER_REQUEST} each request",
        "load": load_text(protocol),
        "16 against 1": "one process each with that many in flight: the one with 1 cannot keep a "
        "queue full, so its row has no allowed error",
        "comes and goes": "b is there for the middle third; achieved is the ratio in that time",
    }
    print_settings(settings)
    total = plan.runs * (len(plan.cases) + fifo_runs) * (plan.seconds + WARM_UP + 1.5)
    print(f"{len(plan.cases)} rows, about {total / 60:.0f} minutes\n")
    name = result_name("sharing", protocol)
    bench = Bench(binaries, out / name, plan.seconds, plan.runs)
    rows: list[Row] = []
    for case in plan.cases:
        rows.append(bench.row(case))
        # Each row is printed as soon as it is known. Rows to come already count for the widths of
        # columns.
        lines = table(
            [*rows, *(case.fields() for case in plan.cases[len(rows) :])], COLUMNS
        ).splitlines()
        first = len(lines) - len(plan.cases)
        print(
            "\n".join(lines[0 if len(rows) == 1 else first + len(rows) - 1 : first + len(rows)]),
            flush=True,
        )
    judge(rows)
    write_json(out / f"{name}.json", {"settings": settings, "rows": rows})
    plot.save(
        out / name,
        lambda: figure(
            rows,
            plot.caption(
                settings,
                f"{protocol}, all servers together {TOTAL_MIB_PER_S} MiB/s and {PER_REQUEST} each "
                "request",
                f"depth {DEPTHS[protocol]['depth_requests']} requests and "
                f"{DEPTHS[protocol]['depth_bytes']} of each proxy",
                "policy sfq, both applications always have requests waiting",
                f"{plan.runs} x {plan.seconds:g} s of each point, after {WARM_UP:g} s of warm-up",
            ),
        ),
    )
    return 0
