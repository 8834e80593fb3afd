"""script/bench simulator: does vpfs-sim say what real proxies and servers do?

Each case runs twice: in virtual time, and with vpfs-load through two vpfs-proxy before two
vpfs-server with the same device model. Both read the same configuration of the proxy.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lab import plot
from lab.cluster import Cluster, Depth, Front
from lab.harness import Problem, Programs, machine_settings, median
from lab.load import Application, application_of, check_errors, run_load, seconds
from lab.numbers import above_zero, one_or_more
from lab.report import Row, print_settings, size_name, table, write_json
from lab.status import read_status, virtual_pfs_of
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERVERS = 2
DEVICE = {"bandwidth": "100 MiB/s", "per_request": "250 us", "parallelism": 1}
DEPTH: Depth = {"depth_requests": 4, "depth_bytes": "2 MiB"}
ROUND_TRIP = "150 us"  # loopback and the processes on it, without the device
FRONT = "px"
RATE_ERROR, WAIT_ERROR = 0.05, 0.20
# A wait below this is not the scheduler's but of the process, and the ratio of two of them says
# nothing.
LEAST_WAIT_US = 1000.0
WARM_UP = 1.0
KINDS = ["simulated", "real"]
COLUMNS = [
    "case",
    "application",
    "simulated_mib_per_s",
    "real_mib_per_s",
    "rate_error_percent",
    "simulated_wait_p99_us",
    "real_wait_p99_us",
    "wait_error_percent",
]


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    policy: str
    shares: Mapping[str, Mapping[str, object]]
    applications: Sequence[Application]
    scheduler: Mapping[str, object] = dataclasses.field(default_factory=dict)

    def front(self) -> Front:
        return Front(
            FRONT, "proxy", self.policy, shares=self.shares, scheduler=self.scheduler, **DEPTH
        )


@dataclasses.dataclass(frozen=True)
class Found:
    """What an application got, by the simulator or by the programs."""

    mib_per_s: float
    wait_p99_us: float


@dataclasses.dataclass(frozen=True)
class Plan:
    seconds: float
    runs: int


FULL = Plan(seconds=20.0, runs=3)
QUICK = Plan(seconds=8.0, runs=1)

# Files are small: a file that is read is written first, and the proxies count that as well.
# Requests of 64 KiB alternate between the servers. At random places the queues of both would drift
# apart by chance, in each run differently.
WRITER = Application("writer", 1 << 20, outstanding=16, file_size=16 << 20)
READER = Application(
    "reader",
    256 << 10,
    outstanding=16,
    processes=2,
    read_percent=100,
    pattern="random",
    file_size=4 << 20,
)
SMALL = Application(
    "small", 64 << 10, outstanding=16, processes=4, read_percent=100, file_size=1 << 20
)
# It has one request in flight, and takes its time between two.
MODEST = Application("modest", 256 << 10, think=0.005, file_size=16 << 20)
TWO, FOUR = [WRITER, READER], [WRITER, READER, SMALL, MODEST]
CASES = [
    Case("sfq, two", "sfq", {"writer": {"weight": 2}, "reader": {"weight": 1}}, TWO),
    Case(
        "sfq, four",
        "sfq",
        {
            "writer": {"weight": 4},
            "reader": {"weight": 2},
            "small": {"weight": 1},
            "modest": {"weight": 1},
        },
        FOUR,
    ),
    Case("tbf, two", "tbf", {"writer": {"rate": "50 MiB/s"}, "reader": {"rate": "20 MiB/s"}}, TWO),
    Case(
        "tbf, four",
        "tbf",
        {
            "writer": {"rate": "30 MiB/s"},
            "reader": {"rate": "20 MiB/s"},
            "small": {"rate": "10 MiB/s"},
            "modest": {},
        },
        FOUR,
    ),
    Case("adaptbf, two", "adaptbf", {"writer": {"nodes": 3}, "reader": {"nodes": 1}}, TWO),
    Case(
        "adaptbf, four",
        "adaptbf",
        {
            "writer": {"nodes": 4},
            "reader": {"nodes": 2},
            "small": {"nodes": 1},
            "modest": {"nodes": 1},
        },
        FOUR,
    ),
]


def scenario(case: Case, configuration: pathlib.Path, length: float) -> dict[str, object]:
    return {
        "configuration": str(configuration),
        "servers": {"count": SERVERS, "device": DEVICE, "round_trip": ROUND_TRIP},
        "duration": seconds(length),
        "warm_up": seconds(WARM_UP),
        # Connections are not simulated.
        "applications": [
            {key: value for key, value in application.config().items() if key != "connections"}
            for application in case.applications
        ],
    }


def simulate(
    programs: Programs, case: Case, configuration: pathlib.Path, length: float
) -> dict[str, Found]:
    file, result = programs.work / "scenario.yaml", programs.work / "simulated.json"
    file.write_text(json.dumps(scenario(case, configuration, length), indent=1) + "\n")
    done = subprocess.run(
        [programs.binaries / "vpfs-sim", str(file), "--json", str(result)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise Problem(f"vpfs-sim ended with {done.returncode}:\n{done.stderr}")
    (run,) = json.loads(result.read_text())
    return {
        entry["name"]: Found(entry["mib_per_s"], entry["wait_us"]["p99"])
        for entry in run["applications"]
    }


def measure(programs: Programs, cluster: Cluster, case: Case, length: float) -> dict[str, Found]:
    """Through the proxies, which must be fresh: they count from their start."""
    result = run_load(programs, "load", cluster.address(FRONT), case.applications, length, WARM_UP)
    check_errors(result)
    for proxy in cluster.running[FRONT]:
        proxy.stop()  # writes its last status
    statuses = [read_status(cluster.status_file(FRONT, index)) for index in range(SERVERS)]

    def wait_p99(name: str) -> float:
        waits = [virtual_pfs_of(status, name)["wait_us"]["p99"] for status in statuses]
        return sum(waits) / len(waits)

    return {
        application.name: Found(
            application_of(result, application.name)["mib_per_s"], wait_p99(application.name)
        )
        for application in case.applications
    }


def run_case(binaries: pathlib.Path, work: pathlib.Path, case: Case, plan: Plan) -> list[Row]:
    real: dict[str, list[Found]] = {application.name: [] for application in case.applications}
    for _ in range(plan.runs):
        with Programs(binaries, work) as programs:
            cluster = Cluster(programs, SERVERS, [case.front()], DEVICE)
            cluster.start(FRONT)
            for name, found in measure(programs, cluster, case, plan.seconds).items():
                real[name].append(found)
            simulated = simulate(programs, case, programs.work / f"{FRONT}0.yaml", plan.seconds)
    return [row(case, name, simulated[name], found) for name, found in real.items()]


def row(case: Case, name: str, simulated: Found, real: Sequence[Found]) -> Row:
    rate = median([found.mib_per_s for found in real])
    wait = median([found.wait_p99_us for found in real])
    is_held = max(wait, simulated.wait_p99_us) >= LEAST_WAIT_US
    return {
        "case": case.name,
        "application": name,
        "simulated_mib_per_s": simulated.mib_per_s,
        "real_mib_per_s": rate,
        "rate_error_percent": 100 * (simulated.mib_per_s / rate - 1),
        "simulated_wait_p99_us": simulated.wait_p99_us,
        "real_wait_p99_us": wait,
        "wait_error_percent": 100 * (simulated.wait_p99_us / wait - 1)
        if is_held and wait
        else None,
    }


def check(rows: Sequence[Row]) -> list[Row]:
    rates = [abs(float(row["rate_error_percent"])) / 100 for row in rows]
    waits = [
        abs(float(row["wait_error_percent"])) / 100
        for row in rows
        if row["wait_error_percent"] is not None
    ]
    return [
        at_most("bandwidth of each application: simulated beside real", RATE_ERROR, rates),
        at_most(
            f"p99 of its wait, where one of both is above {LEAST_WAIT_US / 1000:g} ms",
            WAIT_ERROR,
            waits,
        ),
    ]


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench simulator")
    parser.add_argument(
        "--runs",
        type=one_or_more,
        help=f"runs of each case (default {FULL.runs}; {QUICK.runs} with --quick)",
    )
    parser.add_argument(
        "--seconds",
        type=above_zero,
        help=f"length of each run (default {FULL.seconds:g}; {QUICK.seconds:g} with --quick)",
    )
    parser.add_argument(
        "--cases", nargs="+", choices=[case.name for case in CASES], help="only these"
    )
    return parser


def figure(rows: Sequence[Row], caption: str) -> Figure:
    sheet = plot.Sheet(
        "What the simulator says, beside what programs do", caption, columns=2, heights=[6.0]
    )
    names = [f"{row['case']}: {row['application']}" for row in rows]
    for panel, field, unit, title in (
        (sheet.panels[0], "mib_per_s", "MiB/s", "Bandwidth"),
        (sheet.panels[1], "wait_p99_us", "us", "p99 of the wait in the scheduler"),
    ):
        plot.dots(panel, names, {kind: [row[f"{kind}_{field}"] for row in rows] for kind in KINDS})
        plot.label(panel, unit, "", title)
    return sheet.finish()


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    asked = {
        field: getattr(options, field) for field in ("runs", "seconds") if getattr(options, field)
    }
    plan = dataclasses.replace(QUICK if quick else FULL, **asked)
    cases = [case for case in CASES if not options.cases or case.name in options.cases]
    settings = machine_settings() | {
        "quick": quick,
        "runs": plan.runs,
        "seconds": plan.seconds,
        "warm_up": WARM_UP,
        "statistic": "medians of the runs; waits are the mean of both servers' p99",
        "servers": SERVERS,
        "device": DEVICE,
        "depth": DEPTH,
        "round_trip of the simulator": ROUND_TRIP,
        "applications": {
            application.name: application.config() | {"size": size_name(application.size)}
            for application in FOUR
        },
        "shares": {case.name: case.shares for case in cases},
    }
    print_settings(settings)
    rows: list[Row] = []
    for case in cases:
        part = run_case(binaries, out / "simulator", case, plan)
        rows += part
        print("\n" + table(part, COLUMNS), flush=True)
    targets = check(rows)
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "simulator.json", {"settings": settings, "rows": rows, "targets": targets})
    plot.save(
        out / "simulator",
        lambda: figure(
            rows,
            plot.caption(
                settings,
                f"{SERVERS} servers of {DEVICE['bandwidth']}",
                f"medians of {plan.runs} runs of {plan.seconds:g} s",
            ),
        ),
    )
    return 0
