"""script/bench control: what control cycles take, by stages, with and without aggregators.

Virtual stages dial a coordinator, or aggregators below it, and answer its cycles with the real
messages; every allocation changes in every cycle. One cycle follows the other. Beside it, in turn,
the floor: messages of the same sizes in the same directions, without contents, by plain epoll.
"""

from __future__ import annotations

import argparse
import functools
import json
import pathlib
import statistics
import subprocess
from collections.abc import Mapping, Sequence

from bench.control import control_cycles_figures as figures
from bench.control import control_cycles_pins as pins
from bench.control import control_cycles_units as units
from bench.control.control_cycles_site import CAPACITY, DEADLINE, LEASE, PER_JOB, Case, Site
from bench.control.control_cycles_targets import check, reasons
from lab import plot
from lab.harness import Problem, Programs, machine_settings
from lab.numbers import one_or_more, zero_or_more
from lab.report import Json, Row, print_settings, table, write_json
from lab.rounds import Rounds, medians
from lab.targets import COLUMNS as TARGET_COLUMNS

STAGES = (50, 500, 1250, 2500, 10_000)
BELOW = ((2500, 1), (10_000, 4), (10_000, 5), (10_000, 10), (10_000, 20))  # stages, aggregators
CYCLES, TRANSPORTS = ("fused", "four"), ("unix", "tcp", "mtls")
WARM_UP = 1.0
LEAST_CYCLES = 20
FLOOR_SECONDS = 30.0  # at most: its median comes from hundreds of cycles by then
TRAFFIC_SECONDS = 1.0
FULL, QUICK = Rounds(seconds=4, runs=3), Rounds(seconds=1, runs=1)
# The set-up of a study of control planes at scale: its sites, and its runs of five minutes.
PAPER = Rounds(seconds=300, runs=3)
PAPER_STAGES = (50, 500, 1250, 2500)
PAPER_CYCLE, PAPER_TRANSPORT = "four", "tcp"  # it asks, then limits, between machines
QUICK_CASES = (
    *(Case(50, 0, cycle, transport) for cycle in CYCLES for transport in TRANSPORTS),
    Case(50, 2, "fused", "unix"),
    Case(50, 2, "four", "unix"),
)
ROLES = ("coordinator", "aggregator", "stages")
KEY = ["stages", "aggregators", "cycle", "transport"]
LATENCIES = [
    "runs",
    "cycles",
    "mean_ms",
    "std_ms",
    "p50_ms",
    "p99_ms",
    "collect_ms",
    "compute_ms",
    "enforce_ms",
    "floor_p50_ms",
    "critical_path_ms",
]
COSTS = [
    f"{role}_{what}" for role in ROLES for what in ("cpu_ms", "tx_bytes", "rx_bytes", "rss_mib")
]
FURTHER = [
    "of_floor",
    "cpu_of_floor",
    "floor_mean_ms",
    "floor_coordinator_cpu_ms",
    "floor_stages_cpu_ms",
    "late",
    "changed",
    "admitted_ms",
    "cycles_per_s",
]
DEVIATIONS = [
    "deviation_percent",
    "deviation_of_most_percent",
    "deviation_of_runs_percent",
    "others_percent",
    "stolen_percent",
    "preempted_per_cycle",
    "published_ms",
]
EXPLANATIONS = {
    "deviation": "of the cycles of a run, in percent of their mean; of most: without the "
    "slowest 1 %; of runs: of their means",
    "others, stolen": "processor time that other programs, or the host of the machine, took",
    "preempted": "so often the coordinator had to leave its processor",
    "published": "mean latency of the study's cycles; 10 and 20 aggregators: it is less",
    "units": "100 % is one processor; GB and MB of 10^9 and 10^6 bytes; theirs: our use of a "
    "cycle at the study's rate of cycles, one right after the other",
}
Facts = Mapping[str, float | None]


def all_cases() -> list[Case]:
    flat = [
        Case(stages, 0, cycle, transport)
        for transport in TRANSPORTS
        for stages in STAGES
        for cycle in CYCLES
    ]
    below = [
        Case(stages, aggregators, cycle, transport)
        for transport in TRANSPORTS
        for stages, aggregators in BELOW
        for cycle in CYCLES
    ]
    return flat + below


def paper_cases(options: argparse.Namespace) -> list[Case]:
    """Its sites, by its kind of cycle unless others are asked for."""
    transports = options.transport or [PAPER_TRANSPORT]
    return [
        Case(stages, aggregators, options.cycle or PAPER_CYCLE, transport)
        for transport in transports
        for stages, aggregators in (*((each, 0) for each in PAPER_STAGES), *BELOW)
    ]


def chosen(cases: Sequence[Case], options: argparse.Namespace) -> list[Case]:
    found = [
        case
        for case in cases
        if (not options.stages or case.stages in options.stages)
        and (options.aggregators is None or case.aggregators in options.aggregators)
        and (not options.cycle or case.cycle == options.cycle)
        and (not options.transport or case.transport in options.transport)
    ]
    if not found:
        raise Problem("no row is like that")
    return found


class Bench:
    def __init__(
        self,
        binaries: pathlib.Path,
        work: pathlib.Path,
        seconds: float,
        resources: Sequence[str],
        cpus: Sequence[int] = (),
    ) -> None:
        """With `cpus`, roles have processors of their own as far as these go."""
        self._binaries, self._work, self._seconds, self._resources = (
            binaries,
            work,
            seconds,
            resources,
        )
        self._cpus = cpus

    def _pins(self, case: Case) -> pins.Pins | None:
        return pins.one_each(case.aggregators, self._cpus) if self._cpus else None

    def once(self, case: Case) -> Facts:
        """A run. Without aggregators, the floor is measured after it."""
        with Programs(self._binaries, self._work) as programs:
            site = Site(programs, case, self._resources, pins=self._pins(case))
            found = site.measure(WARM_UP, self._seconds, LEAST_CYCLES)
            sizes = site.sizes()
        if case.aggregators:
            return found
        floor = self._floor(case, sizes)
        of_floor = None if case.transport == "mtls" else (found["p50_ms"] or 0) / floor["p50_ms"]
        return found | {
            "floor_p50_ms": floor["p50_ms"],
            "floor_mean_ms": floor["mean_ms"],
            "of_floor": of_floor,
            "cpu_of_floor": (found["coordinator_cpu_ms"] or 0) / floor["coordinator_cpu_ms"],
            "floor_coordinator_cpu_ms": floor["coordinator_cpu_ms"],
            "floor_stages_cpu_ms": floor["stages_cpu_ms"],
        }

    def _floor(self, case: Case, sizes: Sequence[int]) -> Json:
        command = [
            str(self._binaries / "vpfs-bench-control-floor"),
            "--stages",
            str(case.stages),
            "--transport",
            "unix" if case.transport == "unix" else "tcp",
            "--sizes",
            ",".join(map(str, sizes)),
            "--seconds",
            str(min(self._seconds, FLOOR_SECONDS)),
            "--least-cycles",
            str(LEAST_CYCLES),
        ]
        if placed := self._pins(case):
            command = ["taskset", "-c", ",".join(map(str, sorted(placed.all()))), *command]
        done = subprocess.run(command, cwd=self._work, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise Problem(f"vpfs-bench-control-floor failed:\n{done.stderr}")
        return json.loads(done.stdout)

    def traffic(self, case: Case) -> Facts:
        """The traffic of aggregators, in a run of its own: to count messages takes time.

        It is the same over any transport.
        """
        with Programs(self._binaries, self._work) as programs:
            plain = Case(case.stages, case.aggregators, case.cycle, "unix")
            site = Site(programs, plain, self._resources, tap=True)
            return site.observe_traffic(TRAFFIC_SECONDS, LEAST_CYCLES)


def row_of(case: Case, runs: Sequence[Facts], traffic: Facts) -> Row:
    numbers = [
        name
        for name in dict.fromkeys([*LATENCIES, *COSTS, *FURTHER, *DEVIATIONS])
        if name not in ("runs", "cycles", "published_ms", "deviation_of_runs_percent")
    ]
    means = [run["mean_ms"] or 0.0 for run in runs]
    cycles = sum(int(run["cycles"] or 0) for run in runs)
    return {
        **case.fields(),
        "runs": len(runs),
        "cycles": cycles,
        **medians(runs, numbers),
        **traffic,
        "std_of_runs_ms": statistics.pstdev(means),
        "deviation_of_runs_percent": 100 * statistics.pstdev(means) / statistics.fmean(means),
        "published_ms": units.published_ms(case.fields()),
    }


def measure(bench: Bench, cases: Sequence[Case], runs: int) -> list[Row]:
    seen: dict[Case, list[Facts]] = {case: [] for case in cases}
    for index in range(runs):
        # Every other round goes backwards, so that a case does not always follow the same one.
        for case in cases if index % 2 == 0 else list(reversed(cases)):
            seen[case].append(bench.once(case))
            last = seen[case][-1]
            beside = f", of the floor {last['of_floor']:.2f}" if last.get("of_floor") else ""
            print(
                f"run {index + 1}: {case.name()}: p50 {last['p50_ms']:.2f} ms{beside}", flush=True
            )
    traffic = {
        (case.stages, case.aggregators, case.cycle): bench.traffic(case)
        for case in {
            (each.stages, each.aggregators, each.cycle): each for each in cases if each.aggregators
        }.values()
    }
    return [
        row_of(case, seen[case], traffic.get((case.stages, case.aggregators, case.cycle), {}))
        for case in cases
    ]


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench control")
    FULL.add_options(parser, QUICK)
    parser.add_argument(
        "--stages", type=one_or_more, nargs="+", help="only rows with so many stages"
    )
    parser.add_argument(
        "--aggregators",
        type=zero_or_more,
        nargs="+",
        help="only rows with so many aggregators; 0: flat",
    )
    parser.add_argument("--cycle", choices=CYCLES, help="only such rows")
    parser.add_argument("--transport", nargs="+", choices=TRANSPORTS, help="only such rows")
    parser.add_argument(
        "--resources",
        nargs="+",
        choices=list(CAPACITY),
        default=list(CAPACITY),
        help="what is divided (default: all)",
    )
    parser.add_argument(
        "--pin",
        action="store_true",
        help="a processor for each role; where there are fewer, aggregators share",
    )
    parser.add_argument(
        "--paper",
        action="store_true",
        help=f"the sites and runs of a published study: {PAPER.runs} of {PAPER.seconds:g} s, "
        f"cycles of four messages over {PAPER_TRANSPORT}; other options change that",
    )
    return parser


def pinning(cases: Sequence[Case], cpus: Sequence[int]) -> str:
    """Where the roles of the largest site run, and what that means."""
    placed = pins.one_each(max(case.aggregators for case in cases), cpus)
    text = placed.describe()
    if pins.shares(placed):
        text += (
            ". These are fewer processors than roles: where aggregators share one, more of them "
            "cannot be faster (script/bench aggregators measures each alone)"
        )
    return text


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    rounds = (QUICK if quick else PAPER if options.paper else FULL).asked(options)
    there = QUICK_CASES if quick else paper_cases(options) if options.paper else all_cases()
    cases = chosen(there, options)
    cpus = pins.own_cpus() if options.pin else []
    settings = machine_settings() | {
        "pinning": pinning(cases, cpus) if options.pin else "none",
        "quick": quick,
        "runs": rounds.runs,
        "seconds": rounds.seconds,
        "warm_up": WARM_UP,
        "least cycles": LEAST_CYCLES,
        "statistic": "of a run: over its cycles; of a row: medians of interleaved runs; of_floor: "
        "within a run; cpu_of_floor: of the coordinator's side, which other programs on the "
        "machine hardly change",
        "cycles": "period 0: one right after the other; times from the coordinator's own log, "
        "from the first message sent until the last answer",
        "policy": f"psfa over {', '.join(options.resources)}; {PER_JOB} stages to a job; demands "
        "vary with each report, and the part of allocations that changed is measured",
        "lease, deadline": f"{LEASE}, {DEADLINE}: no stage is late",
        "stages": "one process with one thread and the real messages; they dial",
        "floor": "two processes with one thread each, plain epoll, the sizes of the same run's "
        f"messages, {FLOOR_SECONDS:g} s at most; of mtls: plain TCP's",
        "aggregators": "a process each, on this machine; over TCP they dial the coordinator's "
        "UNIX socket",
        "cpu_ms, bytes": "of a cycle; CPU from /proc/PID/task/*/schedstat; bytes: messages with "
        "their lengths, before TLS, counted by the stages, and by a relay before the coordinator "
        "in a run of its own; of aggregators: the mean of one",
        "rss_mib": "the largest (VmHWM)",
        "critical_path_ms": "CPU of the coordinator and of the slowest aggregator: what more "
        "processors would leave",
    }
    settings |= EXPLANATIONS
    print_settings(settings)
    rows = measure(
        Bench(binaries, out / "control", rounds.seconds, options.resources, cpus),
        cases,
        rounds.runs,
    )
    targets = check(rows)
    in_units = units.in_units(rows)
    tables = [table(rows, [*KEY, *part]) for part in (LATENCIES, COSTS, FURTHER, DEVIATIONS)]
    tables += [table(in_units, units.COLUMNS), table(targets, TARGET_COLUMNS)]
    print("\n" + "\n\n".join(tables))
    for line in reasons(rows):
        print(line)
    write_json(
        out / "control.json",
        {"settings": settings, "rows": rows, "units": in_units, "targets": targets},
    )
    caption = plot.caption(
        settings,
        f"{PER_JOB} stages to a job, psfa, one cycle right after the other",
        f"medians of {rounds.runs} interleaved runs of {rounds.seconds:g} s",
    )
    for name, make in figures.ALL.items():
        plot.save(out / f"control-{name}", functools.partial(make, rows, caption))
    return 0
