"""script/bench restart: what clients notice when a new vpfs-proxy takes over.

Applications read and write verified blocks through one proxy, which hands over again and again. The
device is their bottleneck. One application has a single read of 4 KiB in flight: its longest read
from the start of the new program on is the pause. Two others always want more than they get, so
their parts of the device are those of their weights, also in the second of a hand-over.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import re
import statistics
import time
from collections.abc import Mapping, Sequence

from lab.cluster import Cluster, Front
from lab.harness import MIB, Problem, Program, Programs, machine_settings
from lab.load import Application, line_time, run_begins, run_load
from lab.numbers import one_or_more
from lab.report import Json, Row, print_settings, table, write_json
from lab.status import read_status
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import one_at_most

KIB = 1 << 10
POLICIES = ("sfq", "fifo", "edf", "tbf", "adaptbf")
PROTOCOLS = ("orangefs", "beegfs")
TIMES, QUICK_TIMES = 200, 10
WARM_UP = 2.0
INTERVAL = 0.05  # of the load's timeline
SECOND = 1.0
SETTLE = 2.0  # after the last one
PATIENCE = 30.0
PATH = "px"
SOCKET = "restart.sock"
DEVICE = {"bandwidth": "300 MiB/s", "parallelism": 4}
DEPTH_REQUESTS, DEPTH_BYTES = 8, "4 MiB"
WEIGHTS = {"heavy": 2, "light": 1, "large": 1, "small": 1, "reader": 1}
BUSY = ("heavy", "light")
MOST_MS = {"p50_ms": 50.0, "worst_ms": 500.0}
MOST_OFF = 2.0  # percent
TAKEN_OVER = re.compile(
    r"has taken over: (\d+) connections within ([0-9.]+) ms; (\d+) more go there"
)
COLUMNS = [
    "protocol",
    "policy",
    "times",
    "connections",
    "handed_at_once",
    "paused_p50_ms",
    "paused_worst_ms",
    "read_p50_ms",
    "read_worst_ms",
    "read_else_p50_ms",
    "off_percent",
    "off_else_percent",
    "verified_blocks",
    "wrong_blocks",
    "errors",
    "slots_left",
]


@dataclasses.dataclass(frozen=True)
class Case:
    protocol: str
    policy: str
    times: int


@dataclasses.dataclass(frozen=True)
class HandOver:
    at: float  # second of the run
    connections: int
    stayed: int
    paused_ms: float


def applications(protocol: str) -> list[Application]:
    """64 connections; those of BeeGFS carry one request at a time."""

    def made(name: str, size: int, outstanding: int, processes: int, read: int) -> Application:
        return Application(
            name,
            size,
            outstanding,
            processes if protocol == "orangefs" else max(1, processes // outstanding),
            read,
            file_size=max(4 * MIB, 2 * size),
        )

    return [
        made("heavy", 64 * KIB, 4, 24, 50),
        made("light", 64 * KIB, 4, 24, 50),
        made("large", 4 * MIB, 1, 4, 50),
        made("small", 4 * KIB, 4, 11, 50),
        made("reader", 4 * KIB, 1, 1, 100),
    ]


def front(case: Case) -> Front:
    return Front(
        PATH,
        "proxy",
        case.policy,
        WEIGHTS,
        shares=shares(case.policy),
        scheduler={"cost": {"per_request": "0 B"}},
        proxy={"workers": 2, "status_interval": "500 ms"},
        control={"socket": "control.sock"},
        restart={"socket": SOCKET},
        depth_requests=DEPTH_REQUESTS,
        depth_bytes=DEPTH_BYTES,
    )


def shares(policy: str) -> Mapping[str, Mapping[str, object]]:
    """What a policy wants to be told besides weights. No rate is one that an application has."""
    if policy == "tbf":
        return {name: {"rate": f"{60 * weight} MiB/s"} for name, weight in WEIGHTS.items()}
    if policy == "edf":
        return {name: {"latency": f"{200 // weight} ms"} for name, weight in WEIGHTS.items()}
    return {}


class Restarts:
    """Hands over in every other second of a run, to compare it with the seconds between."""

    def __init__(
        self, programs: Programs, first: Program, config: pathlib.Path, times: int
    ) -> None:
        self._programs, self._config, self._times = programs, config, times
        self._running = first
        self._origin = 0.0
        self.done: list[HandOver] = []

    def on_line(self, line: str) -> None:
        if run_begins(line):
            self._origin = time.monotonic() + WARM_UP
        second = line_time(line)
        if second is not None and len(self.done) < self._times and round(second) % 2 == 0:
            self.done.append(self._hand_over())

    def _hand_over(self) -> HandOver:
        at = time.monotonic() - self._origin
        number = len(self.done) + 1
        successor = self._programs.start(
            f"{PATH}-{number}",
            "vpfs-proxy",
            "--config",
            str(self._config),
            "--take-over",
            str(self._programs.work / SOCKET),
        )
        before, self._running = self._running, successor
        successor.wait_for_line("ready", PATIENCE)
        before.wait_until_ended()
        if before.exit_code() != 0:
            raise Problem(f"{before.name} ended with {before.exit_code()}:\n{before.last_lines()}")
        found = TAKEN_OVER.search(before.log.read_text())
        if found is None:
            raise Problem(f"{before.name} has not handed over:\n{before.last_lines()}")
        return HandOver(at, int(found[1]), int(found[3]), float(found[2]))


@dataclasses.dataclass(frozen=True)
class Timeline:
    """The bins of an application; the second is that of their ends."""

    points: Sequence[Json]

    def between(self, begin: float, end: float) -> list[Json]:
        return [point for point in self.points if begin < point["t"] - INTERVAL / 2 <= end]

    def longest_ms(self, begin: float, end: float) -> float:
        return max((point["longest_us"] / 1000 for point in self.between(begin, end)), default=0.0)

    def mib(self, begin: float, end: float) -> float:
        return sum(point["mib_per_s"] * INTERVAL for point in self.between(begin, end))


def off_percent(lines: Mapping[str, Timeline], begin: float) -> float:
    """How far the ratio of the busy applications is from that of their weights, in a second."""
    got = [lines[name].mib(begin, begin + SECOND) / WEIGHTS[name] for name in BUSY]
    return 100 * abs(got[0] / got[1] - 1) if got[1] else 100.0


def facts(case: Case, result: Json, done: Sequence[HandOver], slots_left: int) -> Row:
    lines = {entry["name"]: Timeline(entry["timeline"]) for entry in result["applications"]}
    reader = lines["reader"]
    pauses = [reader.longest_ms(each.at, each.at + SECOND) for each in done]
    others = [reader.longest_ms(each.at + SECOND, each.at + 2 * SECOND) for each in done]
    by_share = case.policy == "sfq"
    off = [off_percent(lines, each.at) for each in done]
    off_else = [off_percent(lines, each.at + SECOND) for each in done]
    every = result["applications"]
    return {
        **dataclasses.asdict(case),
        "connections": max(each.connections + each.stayed for each in done),
        "handed_at_once": statistics.fmean(each.connections for each in done),
        "paused_p50_ms": statistics.median(each.paused_ms for each in done),
        "paused_worst_ms": max(each.paused_ms for each in done),
        "read_p50_ms": statistics.median(pauses),
        "read_worst_ms": max(pauses),
        "read_else_p50_ms": statistics.median(others),
        "off_percent": statistics.median(off) if by_share else None,
        "off_else_percent": statistics.median(off_else) if by_share else None,
        "verified_blocks": sum(entry["verified_blocks"] for entry in every),
        "wrong_blocks": sum(entry["verify_failures"] for entry in every),
        "errors": sum(entry["errors"] for entry in every),
        "slots_left": slots_left,
    }


def slots_in_use(file: pathlib.Path) -> int:
    """After the load, once the proxy has written its status anew."""
    time.sleep(2 * SECOND)
    return sum(int(row["outstanding_requests"]) for row in read_status(file)["virtual_pfs"])


def measure(binaries: pathlib.Path, work: pathlib.Path, case: Case) -> Row:
    with Programs(binaries, work) as programs:
        cluster = Cluster(programs, 1, [front(case)], DEVICE, protocol=case.protocol)
        restarts = Restarts(
            programs, cluster.start(PATH)[0], programs.work / f"{PATH}0.yaml", case.times
        )
        result = run_load(
            programs,
            "load",
            cluster.address(PATH),
            applications(case.protocol),
            2 * SECOND * case.times + SETTLE + 2 * SECOND,
            WARM_UP,
            restarts.on_line,
            interval=INTERVAL,
            verify=True,
            may_fail=True,
        )
        if len(restarts.done) < case.times:
            raise Problem(f"only {len(restarts.done)} of {case.times} hand-overs took place")
        return facts(case, result, restarts.done, slots_in_use(cluster.status_file(PATH)))


def check(row: Row) -> list[Row]:
    def number(name: str) -> float:
        return float(str(row[name]))

    name = f"{row['protocol']}, {row['policy']}"
    found = [
        one_at_most(f"{name}: {what}", 0, number(what))
        for what in ("wrong_blocks", "errors", "slots_left")
    ]
    found += [
        one_at_most(f"{name}: longest read of 4 KiB, {what}", limit, number(f"read_{what}"), " ms")
        for what, limit in MOST_MS.items()
    ]
    if row["off_percent"] is not None:
        found.append(
            one_at_most(
                f"{name}: 2:1 in the second of a hand-over is off by",
                MOST_OFF,
                number("off_percent"),
                " %",
            )
        )
    return found


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench restart")
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=list(POLICIES))
    parser.add_argument("--protocols", nargs="+", choices=PROTOCOLS, default=list(PROTOCOLS))
    parser.add_argument(
        "--times",
        type=one_or_more,
        help=f"hand-overs (default {TIMES}; {QUICK_TIMES} with --quick)",
    )
    return parser


def cases(options: argparse.Namespace, quick: bool) -> list[Case]:
    """All policies with OrangeFS; sfq with every protocol."""
    times = options.times or (QUICK_TIMES if quick else TIMES)
    return [
        Case(protocol, policy, times)
        for protocol in options.protocols
        for policy in options.policies
        if protocol == PROTOCOLS[0] or policy == POLICIES[0]
    ]


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    settings = machine_settings() | {
        "quick": quick,
        "device": f"{DEVICE['bandwidth']}, {DEVICE['parallelism']} at a time",
        "depth": f"{DEPTH_REQUESTS} requests, {DEPTH_BYTES}",
        "workers": 2,
        "hand-overs": "one in every other second; the columns with else are of the seconds between",
        "read": "the longest of an application with one read of 4 KiB in flight, in the second "
        "that begins with the new program",
        "off": f"{BUSY[0]} to {BUSY[1]} from {WEIGHTS[BUSY[0]]}:{WEIGHTS[BUSY[1]]}, in that second",
    }
    print_settings(settings)
    rows: list[Row] = []
    targets: list[Row] = []
    for case in cases(options, quick):
        row = measure(binaries, out / "restart", case)
        rows.append(row)
        targets += check(row)
        print(
            f"{case.protocol}, {case.policy}: {case.times} hand-overs, "
            f"paused {row['paused_p50_ms']:.1f} ms",
            flush=True,
        )
    print("\n" + table(rows, COLUMNS) + "\n\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "restart.json", {"settings": settings, "rows": rows, "targets": targets})
    return 0
