"""script/bench aggregators: are more aggregators faster, with a processor for each role?

A machine with two processors cannot run twenty aggregators at once. So each role is measured while
it has a processor of its own, one role after the other, and the parts of a cycle are put together.
The same costs then make a cycle in virtual time, in which each role has a machine. Beside both is
what the whole site takes here, where all roles share the processors.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence

from bench.control import aggregators_compose as compose
from bench.control import control_cycles_pins as pins
from bench.control.aggregators_compose import Measured
from bench.control.aggregators_figures import figure
from bench.control.aggregators_model import Network
from bench.control.control_cycles_site import CAPACITY, PER_JOB, Case, Site
from lab import plot
from lab.harness import Programs, machine_settings
from lab.numbers import above_zero, not_negative, one_or_more, zero_or_more
from lab.report import Row, print_settings, table, write_json
from lab.rounds import Rounds
from lab.targets import COLUMNS as TARGET_COLUMNS

FULL, QUICK = Rounds(seconds=4, runs=3), Rounds(seconds=1, runs=1)
WARM_UP, LEAST_CYCLES, TRAFFIC_SECONDS = 1.0, 20, 1.0
CYCLES = ("fused", "four")
STAGES, AGGREGATORS = 10_000, (4, 5, 10, 20)
QUICK_STAGES, QUICK_AGGREGATORS = 1000, (2, 4)
MORE = (40, 80, 160)  # in virtual time alone
DELAY_US, GBIT = 50.0, 100.0
SHARED, COORDINATOR, AGGREGATOR = "shared", "coordinator", "aggregator"  # what has a processor


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is measured of one kind of cycle."""

    stages: int
    aggregators: Sequence[int]
    cycle: str
    transport: str

    def case(self, stages: int, aggregators: int) -> Case:
        return Case(stages, aggregators, self.cycle, self.transport)

    def below(self, aggregators: int) -> int:
        """The most stages below one of them."""
        return -(-self.stages // aggregators)

    def same_scale(self) -> int:
        """As many stages as one aggregator of the fewest has; a coordinator has them, too."""
        return self.below(min(self.aggregators))

    def runs(self) -> list[tuple[Case, str]]:
        found = [(self.case(self.stages, 0), how) for how in (SHARED, COORDINATOR)]
        found.append((self.case(self.same_scale(), 0), COORDINATOR))
        for count in self.aggregators:
            whole = self.case(self.stages, count)
            found += [(whole, SHARED), (whole, COORDINATOR)]
            found.append((self.case(self.below(count), 1), AGGREGATOR))
        return found


class Bench:
    def __init__(
        self, binaries: pathlib.Path, work: pathlib.Path, seconds: float, cpus: Sequence[int]
    ) -> None:
        self._binaries, self._work, self._seconds, self._cpus = binaries, work, seconds, cpus

    def once(self, case: Case, how: str) -> Measured:
        placed = {
            SHARED: None,
            COORDINATOR: pins.coordinator_alone(case.aggregators, self._cpus),
            AGGREGATOR: pins.aggregator_alone(self._cpus),
        }[how]
        with Programs(self._binaries, self._work) as programs:
            site = Site(programs, case, list(CAPACITY), pins=placed)
            facts = site.measure(WARM_UP, self._seconds, LEAST_CYCLES)
            return Measured(facts, tuple(site.cycles))

    def traffic(self, case: Case) -> Mapping[str, float]:
        """Bytes of a cycle between the coordinator and its aggregators; it takes a run."""
        with Programs(self._binaries, self._work) as programs:
            plain = dataclasses.replace(case, transport="unix")
            site = Site(programs, plain, list(CAPACITY), tap=True)
            return site.observe_traffic(TRAFFIC_SECONDS, LEAST_CYCLES)


def measure(bench: Bench, plan: Plan, runs: int, network: Network) -> list[Row]:
    seen: dict[tuple[Case, str], list[Measured]] = {each: [] for each in plan.runs()}
    for index in range(runs):
        for case, how in plan.runs() if index % 2 == 0 else list(reversed(plan.runs())):
            found = bench.once(case, how)
            seen[case, how].append(found)
            print(f"run {index + 1}: {case.name()}, {how}: {found.facts['mean_ms']:.2f} ms")
    traffic = bench.traffic(plan.case(plan.stages, min(plan.aggregators)))

    def all_of(stages: int, aggregators: int, how: str) -> list[Measured]:
        return seen[plan.case(stages, aggregators), how]

    flat = compose.Flat(
        all_of(plan.stages, 0, SHARED),
        all_of(plan.stages, 0, COORDINATOR),
        all_of(plan.same_scale(), 0, COORDINATOR),
    )
    below = [
        compose.Below(
            count,
            plan.below(count),
            all_of(plan.stages, count, SHARED),
            all_of(plan.stages, count, COORDINATOR),
            all_of(plan.below(count), 1, AGGREGATOR),
        )
        for count in plan.aggregators
    ]
    return compose.rows(plan.cycle, plan.stages, flat, below, traffic, network, MORE)


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench aggregators")
    FULL.add_options(parser, QUICK)
    parser.add_argument("--stages", type=one_or_more, help=f"of the site (default {STAGES})")
    parser.add_argument(
        "--aggregators",
        type=zero_or_more,
        nargs="+",
        help=f"how many (default {list(AGGREGATORS)})",
    )
    parser.add_argument("--cycle", choices=CYCLES, help="only this kind of cycles")
    parser.add_argument("--transport", choices=("unix", "tcp", "mtls"), default="unix")
    parser.add_argument(
        "--delay-us",
        type=not_negative,
        default=DELAY_US,
        help=f"of a message between machines, in virtual time (default {DELAY_US:g})",
    )
    parser.add_argument(
        "--gbit",
        type=above_zero,
        default=GBIT,
        help=f"rate of each machine's link, in virtual time (default {GBIT:g})",
    )
    return parser


def plans(quick: bool, options: argparse.Namespace) -> list[Plan]:
    stages = options.stages or (QUICK_STAGES if quick else STAGES)
    counts = options.aggregators or (QUICK_AGGREGATORS if quick else AGGREGATORS)
    compose.check_counts(stages, counts)
    return [
        Plan(stages, sorted(set(counts)), cycle, options.transport)
        for cycle in CYCLES
        if options.cycle in (None, cycle)
    ]


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    rounds = (QUICK if quick else FULL).asked(options)
    chosen = plans(quick, options)
    network = Network(options.delay_us / 1e6, options.gbit * 1e9 / 8)
    cpus = pins.own_cpus()
    most = max(chosen[0].aggregators)
    settings = machine_settings() | {
        "quick": quick,
        "runs": rounds.runs,
        "seconds": rounds.seconds,
        "stages": f"{chosen[0].stages:,}, {PER_JOB} to a job, psfa over {', '.join(CAPACITY)}, "
        f"over {options.transport}; one cycle right after the other",
        "statistic": "medians of interleaved runs",
        "pinning": "by affinity, one role after the other: "
        f"coordinator: {pins.coordinator_alone(most, cpus).describe()}. "
        f"Aggregator: {pins.aggregator_alone(cpus).describe()}",
        "shared_ms": "the whole site here; all roles share the processors",
        "chain_ms": "one aggregator with its part of the stages, below a coordinator; it has a "
        "processor of its own",
        "composed_ms": "the slowest of so many chains in each phase (the mean of the largest of so "
        "many cycles), + the coordinator's computing and what it needs for the other aggregators, "
        "measured in the whole site while it has a processor of its own. Flat: measured so",
        "virtual_ms": f"each role on a machine, {options.delay_us:g} us and {options.gbit:g} Gb/s "
        "between them, with the measured processor time of each role",
        "published_ms": "mean latency of the study; 10 and 20 aggregators: it is less",
        "cpu_ms": "of a cycle, while the role has a processor of its own",
    }
    print_settings(settings)
    bench = Bench(binaries, out / "aggregators", rounds.seconds, cpus)
    rows = [row for plan in chosen for row in measure(bench, plan, rounds.runs, network)]
    judged = compose.check(rows)
    print(
        "\n"
        + table(rows, compose.COLUMNS)
        + "\n\n"
        + table([row for row in rows if row["chain_ms"] is not None], compose.PARTS)
        + "\n\n"
        + table(judged, TARGET_COLUMNS)
    )
    write_json(out / "aggregators.json", {"settings": settings, "rows": rows, "targets": judged})
    caption = plot.caption(
        settings,
        f"{chosen[0].stages:,} stages, psfa, over {options.transport}",
        f"between machines {options.delay_us:g} us and {options.gbit:g} Gb/s",
        f"medians of {rounds.runs} interleaved runs of {rounds.seconds:g} s",
    )
    plot.save(out / "aggregators", functools.partial(figure, rows, caption))
    return 0
