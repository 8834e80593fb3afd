"""Puts a control cycle together from what each role took on a processor of its own."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from bench.control import aggregators_model as model
from bench.control.aggregators_model import Network
from bench.control.control_cycles_site import Cycle
from bench.control.control_cycles_units import PUBLISHED_MS
from lab.harness import Problem, median
from lab.report import Row
from lab.targets import not_measured, verdict

COLUMNS = [
    "cycle",
    "stages",
    "aggregators",
    "shared_ms",
    "composed_ms",
    "virtual_ms",
    "published_ms",
    "coordinator_cpu_ms",
    "aggregator_cpu_ms",
]
PARTS = [
    "cycle",
    "aggregators",
    "below_each",
    "chain_ms",
    "chain_deviation_percent",
    "slowest_collect_ms",
    "compute_ms",
    "slowest_enforce_ms",
    "others_cpu_ms",
    "composed_ms",
]
MOST_AGGREGATORS = 200  # as processes; in virtual time there may be more
ROUNDS = {"fused": 1, "four": 2}
WAYS = {"shared_ms": "all roles share", "composed_ms": "a processor each", "virtual_ms": "virtual"}


@dataclasses.dataclass(frozen=True)
class Measured:
    """A run: what it used, and its cycles."""

    facts: Mapping[str, float | None]
    cycles: Sequence[Cycle]


@dataclasses.dataclass(frozen=True)
class Flat:
    """The runs of a site without aggregators."""

    shared: Sequence[Measured]
    alone: Sequence[Measured]  # the coordinator has a processor of its own
    same_scale: Sequence[Measured]  # likewise, with as many stages as one of the fewest aggregators


@dataclasses.dataclass(frozen=True)
class Below:
    """The runs with so many aggregators."""

    aggregators: int
    stages: int  # below each
    shared: Sequence[Measured]
    alone: Sequence[Measured]  # the coordinator has a processor of its own
    chain: Sequence[Measured]  # one aggregator, which has one


def of(runs: Sequence[Measured], field: str) -> float:
    return median([run.facts[field] or 0.0 for run in runs])


def messages_ms(runs: Sequence[Measured]) -> float:
    """The coordinator's processor time of a cycle, without its computing."""
    return median(
        [
            max(0.0, (run.facts["coordinator_cpu_ms"] or 0.0) - (run.facts["compute_ms"] or 0.0))
            for run in runs
        ]
    )


def slowest(runs: Sequence[Measured], phase: str, count: int) -> float:
    """The time of the slowest of so many aggregators in a phase."""
    return median(
        [model.slowest_of([getattr(cycle, phase) for cycle in run.cycles], count) for run in runs]
    )


def composed(it: Below) -> Row:
    """The slowest chain of each phase, and what the coordinator does for the other aggregators."""
    parts = {
        "slowest_collect_ms": slowest(it.chain, "collect", it.aggregators),
        "compute_ms": of(it.alone, "compute_ms"),
        "slowest_enforce_ms": slowest(it.chain, "enforce", it.aggregators),
        "others_cpu_ms": max(0.0, messages_ms(it.alone) - messages_ms(it.chain)),
    }
    return parts | {"composed_ms": sum(parts.values())}


def costs_of(
    rounds: int, stages: int, flat: Flat, below: Sequence[Below], traffic: Mapping[str, float]
) -> model.Costs:
    """The costs of the model, from medians of the runs in which the role had a processor."""

    def seconds(milliseconds: float) -> float:
        return milliseconds / 1000 / rounds

    aggregator = [(it.stages, seconds(of(it.chain, "aggregator_cpu_ms"))) for it in below]
    coordinator = [(it.aggregators, seconds(messages_ms(it.alone))) for it in below]
    return model.Costs(
        rounds,
        median([of(it.alone, "compute_ms") for it in below]) / 1000,
        model.even(0.0, seconds(messages_ms(flat.alone)) / stages),
        model.even(*model.line(aggregator)),
        model.even(*model.line(coordinator)),
        seconds(of(flat.alone, "stages_cpu_ms")) / stages,
        model.Sizes(
            of(flat.alone, "stages_rx_bytes") / rounds / stages,
            of(flat.alone, "stages_tx_bytes") / rounds / stages,
        ),
        model.Sizes(
            traffic["coordinator_tx_bytes"] / rounds / stages,
            traffic["coordinator_rx_bytes"] / rounds / stages,
        ),
    )


def rows(
    cycle: str,
    stages: int,
    flat: Flat,
    below: Sequence[Below],
    traffic: Mapping[str, float],
    network: Network,
    more: Sequence[int],
) -> list[Row]:
    """Flat, with each number of aggregators, and with more of them in virtual time alone."""
    costs = costs_of(ROUNDS[cycle], stages, flat, below, traffic)

    def row(count: int, found: Row) -> Row:
        empty = dict.fromkeys([*COLUMNS, *PARTS, "same_scale_ms"])
        return {
            **empty,
            "cycle": cycle,
            "stages": stages,
            "aggregators": count,
            "virtual_ms": 1000 * model.cycle_seconds(costs, stages, count, network),
            "published_ms": PUBLISHED_MS.get((stages, count)),
            **found,
        }

    made = [
        row(
            0,
            {
                "shared_ms": of(flat.shared, "mean_ms"),
                "composed_ms": of(flat.alone, "mean_ms"),
                "coordinator_cpu_ms": of(flat.alone, "coordinator_cpu_ms"),
                "same_scale_ms": of(flat.same_scale, "mean_ms"),
                "costs": dataclasses.asdict(costs),
            },
        )
    ]
    for it in below:
        found = {
            "below_each": it.stages,
            "shared_ms": of(it.shared, "mean_ms"),
            "chain_ms": of(it.chain, "mean_ms"),
            "chain_deviation_percent": of(it.chain, "deviation_percent"),
            "coordinator_cpu_ms": of(it.alone, "coordinator_cpu_ms"),
            "aggregator_cpu_ms": of(it.chain, "aggregator_cpu_ms"),
            **composed(it),
        }
        made.append(row(it.aggregators, found))
    largest = max(it.aggregators for it in below)
    return made + [row(count, {}) for count in more if largest < count <= stages]


def check(rows: Sequence[Row]) -> list[Row]:
    """What the study observed, for each kind of cycle and each way of measuring."""
    found = []
    for cycle in dict.fromkeys(row["cycle"] for row in rows):
        own = [row for row in rows if row["cycle"] == cycle]
        found += [more_are_faster(own, cycle, way) for way in WAYS]
        found.append(a_level_costs_time(own, cycle))
        found.append(aggregators_beat_flat(own, cycle))
    return found


def more_are_faster(own: Sequence[Row], cycle: str, way: str) -> Row:
    target, required = f"{cycle}, {WAYS[way]}: more aggregators are faster", "each less"
    times = [row[way] for row in own if row["chain_ms"] is not None]
    if len(times) < 2:
        return not_measured(target, required)
    is_so = all(later < earlier for earlier, later in itertools.pairwise(times))
    return verdict(target, required, f"{', '.join(f'{time:.3g}' for time in times)} ms", is_so)


def a_level_costs_time(own: Sequence[Row], cycle: str) -> Row:
    """Both have as many stages, below one aggregator and without."""
    flat = own[0]["same_scale_ms"]
    fewest = next(row for row in own if row["chain_ms"] is not None)
    return verdict(
        f"{cycle}, {fewest['below_each']:,} stages: flat is faster than one aggregator",
        "> 1",
        f"{fewest['chain_ms'] / flat:.2f}",
        fewest["chain_ms"] > flat,
    )


def aggregators_beat_flat(own: Sequence[Row], cycle: str) -> Row:
    best = min(row["composed_ms"] for row in own if row["chain_ms"] is not None)
    ratio = best / own[0]["composed_ms"]
    return verdict(
        f"{cycle}, a processor each: the best number of aggregators / flat",
        "< 1",
        f"{ratio:.2f}",
        ratio < 1,
    )


def check_counts(stages: int, counts: Sequence[int]) -> None:
    if wrong := [count for count in counts if not 1 <= count <= min(stages, MOST_AGGREGATORS)]:
        raise Problem(
            f"--aggregators {wrong[0]}: there must be 1 to {MOST_AGGREGATORS}, each a process, and "
            f"for each of them one of the {stages} stages"
        )
