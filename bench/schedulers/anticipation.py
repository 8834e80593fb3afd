"""script/bench anticipation: shares of an application that cannot keep a queue.

First a study in virtual time (vpfs-bench-anticipation), whose rows are the same on every machine.
Then the same kind of rows for real proxies and servers with a device model; the think time is the
load's own. Then OrangeFS's own server and programs, where they are installed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import subprocess
from collections.abc import Sequence

from bench.schedulers import anticipation_orangefs
from lab.cluster import Cluster, Front
from lab.harness import Problem, Programs, machine_settings, median
from lab.load import Application, application_of, run_load
from lab.report import Json, Row, print_settings, size_name, table, write_json
from lab.rounds import Rounds
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import not_measured, verdict

MAX_LOSS = 10.0  # percent
WITHIN, AT_BOUND, NEITHER = "within", "at bound", "neither"
TOLERANCE = 0.05
# The total counts as at its bound this near to it: a part of what may be lost, and for real runs,
# which move by some percent from one to the next, of the total.
BOUND_TOLERANCE = 0.15
REAL_TOLERANCE = 0.03
COLUMNS = [
    "in_flight_a",
    "in_flight_b",
    "weight",
    "size",
    "parallelism",
    "think_us",
    "ratio_off",
    "ratio_on",
    "feasible_ratio",
    "total_vs_fifo",
    "idle_percent",
]
# How the think times of the study in virtual time vary: the name, and the options of
# vpfs-bench-anticipation.
THINK_TIMES = {
    "constant": [],
    "half to one and a half": ["--spread", "0.5"],
    "one in 50 takes 5 times as long": ["--late-one-in", "50"],
}
MIB_PER_S = 200
PER_REQUEST_US = 250
DEPTH = 16
ROUNDS, QUICK_ROUNDS = Rounds(20.0, 3), Rounds(4.0, 1)  # of real servers
# What the proxy learns, with anticipation, takes about a thousand requests of all applications.
WARM_UP_REQUESTS = 2400
LEAST_WARM_UP = 4.0


Schedulers = dict[str, tuple[str, dict[str, object]]]


def schedulers(max_loss: float) -> Schedulers:
    """Policies and their settings; `max_loss` in percent."""
    return {
        "fifo": ("fifo", {}),
        "off": ("sfq", {}),
        "on": ("sfq", {"sfq": {"anticipation": {"max_loss": f"{max_loss:g} %"}}}),
    }


@dataclasses.dataclass(frozen=True)
class Case:
    in_flight_a: int = 1
    in_flight_b: int = 16
    weight: int = 1
    size: int = 1 << 20
    parallelism: int = 1
    think_us: int = 1000
    servers: int = 1  # that every file is on; the bandwidth is that of all of them

    def device(self) -> dict[str, object]:
        return {
            "bandwidth": f"{MIB_PER_S // self.servers} MiB/s",
            "per_request": f"{PER_REQUEST_US} us",
            "parallelism": self.parallelism,
        }

    def applications(self) -> list[Application]:
        def application(name: str, outstanding: int, think: float) -> Application:
            return Application(
                name, self.size, outstanding, 1, 100, "random", file_size=16 << 20, think=think
            )

        return [
            application("a", self.in_flight_a, self.think_us / 1e6),
            application("b", self.in_flight_b, 0.0),
        ]

    def warm_up(self) -> float:
        """Seconds. Every server has a part of each request."""
        of_one = self.size / (MIB_PER_S << 20) + PER_REQUEST_US / 1e6
        return max(LEAST_WARM_UP, WARM_UP_REQUESTS * of_one)

    def feasible_ratio(self, capacity: float, response: float) -> float:
        """`capacity` in bytes per second; `response` in seconds is what a request takes alone."""
        alone = self.in_flight_a * self.size / (self.think_us / 1e6 + response)
        got = min(alone, capacity * self.weight / (self.weight + 1))
        return got / (capacity - got)


QUICK = [Case(size=64 << 10), Case(weight=4, size=64 << 10), Case(servers=4)]
# With 16 requests in flight an application keeps a queue by itself. A few rows show that.
FULL = [
    Case(
        in_flight_a=a,
        in_flight_b=b,
        weight=weight,
        size=size,
        parallelism=parallelism,
        think_us=think,
    )
    for parallelism in (1, 4)
    for size in (64 << 10, 1 << 20)
    for think in (200, 2000)
    for weight in (1, 4)
    for a, b in ((1, 16), (4, 16), (16, 64))
    if a < 16 or (parallelism, think) == (1, 200)
]
# Requests that have a part on each of several servers.
STRIPED = [Case(weight=weight, servers=4) for weight in (1, 4)]


def percent(text: str) -> float:
    value = float(text)
    if not 0 < value <= 50 or round(value * 10) != value * 10:
        raise argparse.ArgumentTypeError("must be 0.1 to 50, with one decimal place at most")
    return value


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench anticipation")
    ROUNDS.add_options(parser, QUICK_ROUNDS)
    parser.add_argument(
        "--max-loss",
        type=percent,
        default=MAX_LOSS,
        metavar="PERCENT",
        help=f"what the total may fall by (default {MAX_LOSS:g})",
    )
    parser.add_argument(
        "--only", choices=["virtual", "real", "orangefs"], help="only a part of the rows"
    )
    return parser


def virtual_options(quick: bool, think_times: str, max_loss: float) -> list[str]:
    return [
        "--requests",
        "5000" if quick else "20000",
        "--max-loss",
        str(round(max_loss * 10)),
        *THINK_TIMES[think_times],
    ]


def virtual_rows(binaries: pathlib.Path, options: Sequence[str], think_times: str) -> list[Row]:
    program = binaries / "vpfs-bench-anticipation"
    done = subprocess.run([str(program), *options], check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Problem(f"{program.name} failed")
    return [json.loads(line) | {"think_times": think_times} for line in done.stdout.splitlines()]


def is_met(row: Row) -> bool:
    return abs(float(row["ratio_on"]) / float(row["feasible_ratio"]) - 1) <= TOLERANCE


def has_its_rate(row: Row) -> bool:
    """Whether a gets what it could. Then only b lacks what the total has lost."""
    ratio, feasible = float(row["ratio_on"]), float(row["feasible_ratio"])
    rate = float(row["total_vs_fifo"]) * ratio / (1 + ratio)
    return rate >= (1 - TOLERANCE) * feasible / (1 + feasible)


def state_of(row: Row, kind: str, max_loss: float) -> str:
    """Whether the ratio is WITHIN of the feasible one, the loss is AT_BOUND, or NEITHER."""
    tolerance = BOUND_TOLERANCE * max_loss / 100 if kind == "virtual" else REAL_TOLERANCE
    if is_met(row):
        return WITHIN
    is_at_bound = float(row["total_vs_fifo"]) <= 1 - max_loss / 100 + tolerance
    return AT_BOUND if is_at_bound else NEITHER


def check(rows: Sequence[Row], kind: str, name: str, max_loss: float) -> list[Row]:
    bound = 1 - max_loss / 100
    missed = [row for row in rows if not is_met(row)]
    neither = [row for row in rows if state_of(row, kind, max_loss) == NEITHER]
    worst = min(float(row["total_vs_fifo"]) for row in rows)
    return [
        verdict(
            f"{name}: ratio within {TOLERANCE:.0%} of the feasible one, or the loss at its bound",
            f"{len(rows)} of {len(rows)} rows",
            f"{len(rows) - len(missed)} within, {len(missed) - len(neither)} at the bound, "
            f"{len(neither)} neither; of these {sum(map(has_its_rate, neither))} where a has its "
            "rate",
            not neither,
        ),
        verdict(f"{name}: total / fifo", f">= {bound:.3f}", f"{worst:.3f}", worst >= bound - 0.005),
    ]


class RealServers:
    """The proxies of one case, which use the same server in turn."""

    def __init__(
        self, binaries: pathlib.Path, work: pathlib.Path, of: Schedulers, seconds: float, runs: int
    ) -> None:
        self._binaries, self._work, self._schedulers, self._seconds, self._runs = (
            binaries,
            work,
            of,
            seconds,
            runs,
        )

    def _measure(
        self, case: Case, which: str, applications: Sequence[Application]
    ) -> tuple[Json, float]:
        """The result, and the part of the time that slots were kept."""
        policy, scheduler = self._schedulers[which]
        warm_up = case.warm_up() if which == "on" else LEAST_WARM_UP
        front = Front(
            "px",
            "proxy",
            policy,
            {"a": case.weight, "b": 1},
            depth_requests=DEPTH,
            depth_bytes="64 MiB",
            scheduler=scheduler,
        )
        with Programs(self._binaries, self._work) as programs:
            cluster = Cluster(programs, case.servers, [front], case.device())
            cluster.start("px")
            result = run_load(
                programs,
                "load",
                cluster.address("px"),
                applications,
                self._seconds,
                warm_up,
            )
            kept = 0.0
            if which == "on":
                files = [cluster.status_file("px", server) for server in range(case.servers)]
                kept = (
                    sum(json.loads(file.read_text())["slots_kept_us"] for file in files)
                    / 1e6
                    / case.servers
                )
        return result, kept / (self._seconds + warm_up)

    def row(self, case: Case) -> Row:
        both = case.applications()
        runs = {
            which: [self._measure(case, which, both) for _ in range(self._runs)]
            for which in self._schedulers
        }
        alone, _ = self._measure(case, "fifo", both[:1])
        ratios = {
            which: median(
                [
                    application_of(result, "a")["bytes"] / application_of(result, "b")["bytes"]
                    for result, _ in runs[which]
                ]
            )
            for which in runs
        }
        total = {
            which: median([result["total_mib_per_s"] for result, _ in runs[which]])
            for which in runs
        }
        # What the application does alone includes its think time, and every delay on its way.
        rate = application_of(alone, "a")["bytes"] / self._seconds
        response = case.in_flight_a * case.size / rate - case.think_us / 1e6
        return dataclasses.asdict(case) | {
            "ratio_off": ratios["off"],
            "ratio_on": ratios["on"],
            "feasible_ratio": case.feasible_ratio(total["fifo"] * (1 << 20), response),
            "total_vs_fifo": total["on"] / total["fifo"],
            "idle_percent": 100 * max(1 - total["on"] / total["fifo"], 0.0),
            "kept_percent": 100 * median([kept for _, kept in runs["on"]]),
            "mib_per_s": total["on"],
        }


def shown(rows: Sequence[Row]) -> list[Row]:
    return [dict(row) | {"size": size_name(int(row["size"]))} for row in rows]


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    rounds = (QUICK_ROUNDS if quick else ROUNDS).asked(options)
    seconds, runs = rounds.seconds, rounds.runs
    cases = QUICK if quick else FULL + STRIPED
    max_loss, policies = options.max_loss, schedulers(options.max_loss)
    settings = machine_settings() | {
        "quick": quick,
        "max_loss": f"{max_loss:g} %",
        "seconds": seconds,
        "warm_up": f"{LEAST_WARM_UP:g} s; with anticipation {WARM_UP_REQUESTS} requests, if those "
        "take longer",
        "runs": runs,
        "vpfs-bench-anticipation": {
            name: " ".join(virtual_options(quick, name, max_loss)) for name in THINK_TIMES
        },
        "virtual time": "server of 400 MiB/s and 100 us each request, depth 16 (at least twice "
        "its parallelism)",
        "real": f"one server, or several, of {MIB_PER_S} MiB/s in all and {PER_REQUEST_US} us "
        f"each request, depth {DEPTH}; random reads; the feasible ratio comes from what a does "
        "alone",
        "OrangeFS": f"one pvfs2-server, depth {anticipation_orangefs.DEPTH}, writes of 1 MiB, "
        f"{anticipation_orangefs.WARM_UP:g} s of warm-up; think_us as the proxy has learnt it; "
        "copies: pvfs2-cp in loops, of two users; mounts: fio on two mounts of vpfs-mount",
        "idle_percent": "of the server's time; of a real server what the total is below that of "
        "fifo, under which it is never idle",
        "kept_percent": "of the time that a slot of the depth was kept empty for one application "
        "while others waited; most of them cost nothing",
    }
    print_settings(settings)
    rows: dict[str, list[Row]] = {"virtual": [], "real": [], "orangefs": []}
    targets: list[Row] = []
    if options.only in (None, "virtual"):
        for think_times in THINK_TIMES:
            part = virtual_rows(
                binaries, virtual_options(quick, think_times, max_loss), think_times
            )
            rows["virtual"] += [
                {**row, "state": state_of(row, "virtual", max_loss)} for row in part
            ]
            targets += check(part, "virtual", f"think times {think_times}", max_loss)
            missed = [row for row in part if not is_met(row)]
            print(
                f"\nvirtual time, think times {think_times}: {len(part)} rows; those that are not "
                "within "
                f"{TOLERANCE:.0%} of the feasible ratio:\n" + table(shown(missed), COLUMNS),
                flush=True,
            )
    if options.only in (None, "real"):
        servers = RealServers(binaries, out / "anticipation", policies, seconds, runs)
        for case in cases:
            rows["real"].append(servers.row(case))
            print(
                "\n"
                + table(
                    shown(rows["real"][-1:]), [*COLUMNS, "servers", "kept_percent", "mib_per_s"]
                ),
                flush=True,
            )
        targets += check(rows["real"], "real", "device model", max_loss)
    if options.only in (None, "orangefs"):
        for number, of in enumerate(anticipation_orangefs.cases()[: 2 if quick else None]):
            work = out / "anticipation-orangefs" / str(number)
            rows["orangefs"].append(
                anticipation_orangefs.row(binaries, work, of, policies, seconds, runs)
            )
            print(
                "\n" + table(shown(rows["orangefs"][-1:]), anticipation_orangefs.COLUMNS),
                flush=True,
            )
        targets += (
            check(rows["orangefs"], "real", "OrangeFS's own server", max_loss)
            if rows["orangefs"]
            else [not_measured("OrangeFS's own server (VPFS_ORANGEFS_PREFIX; as root)", "")]
        )
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "anticipation.json", {"settings": settings, "rows": rows, "targets": targets})
    return 0
