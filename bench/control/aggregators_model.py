"""A control cycle in virtual time: what it takes if each role has a machine of its own.

A role works on one thing at a time: it sends a message to each of its children, one after another,
and then takes their answers in the order in which they arrive. Each machine has one link, which
carries one message at a time each way. What a role needs for a message was measured. Times are
seconds, sizes bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from lab.points import Points


@dataclasses.dataclass(frozen=True)
class Network:
    delay: float  # one way
    bandwidth: float  # bytes in a second


@dataclasses.dataclass(frozen=True)
class Effort:
    """Processor time of a role for one round: once, and for each child."""

    once: float
    send: float
    receive: float


@dataclasses.dataclass(frozen=True)
class Sizes:
    down: float
    up: float


@dataclasses.dataclass(frozen=True)
class Costs:
    """What was measured of one kind of cycle."""

    rounds: int  # 1: fused; 2: it asks, then limits
    compute: float  # of the coordinator, in a cycle
    flat: Effort  # of a coordinator that speaks with stages itself
    to_stage: Effort  # of an aggregator
    to_aggregator: Effort  # of a coordinator
    stage: float  # of a stage, for a message and its answer
    stage_sizes: Sizes
    aggregator_sizes: Sizes  # for each stage below it


Child = Callable[[float], float]  # from when a message has arrived until its answer leaves


def gather(
    begin: float, effort: Effort, children: Sequence[Child], sizes: Sizes, network: Network
) -> float:
    """When the last answer was taken."""
    clock, down, arrivals = begin + effort.once, begin, []
    for child in children:
        clock += effort.send
        down = max(down, clock) + sizes.down / network.bandwidth
        arrivals.append(child(down + network.delay) + network.delay)
    up = clock
    for arrival in sorted(arrivals):
        up = max(up, arrival) + sizes.up / network.bandwidth
        clock = max(clock, up) + effort.receive
    return clock


def parts(stages: int, aggregators: int) -> list[int]:
    """The stages below each aggregator."""
    return [
        stages * (index + 1) // aggregators - stages * index // aggregators
        for index in range(aggregators)
    ]


def round_seconds(costs: Costs, stages: int, aggregators: int, network: Network) -> float:
    def stage(at: float) -> float:
        return at + costs.stage

    def group(count: int) -> Child:
        return lambda at: gather(at, costs.to_stage, [stage] * count, costs.stage_sizes, network)

    if not aggregators:
        return gather(0.0, costs.flat, [stage] * stages, costs.stage_sizes, network)
    below = stages / aggregators
    sizes = Sizes(costs.aggregator_sizes.down * below, costs.aggregator_sizes.up * below)
    children = [group(count) for count in parts(stages, aggregators)]
    return gather(0.0, costs.to_aggregator, children, sizes, network)


def cycle_seconds(costs: Costs, stages: int, aggregators: int, network: Network) -> float:
    """0 aggregators: the coordinator speaks with the stages itself."""
    return costs.rounds * round_seconds(costs, stages, aggregators, network) + costs.compute


def line(points: Points) -> tuple[float, float]:
    """Intercept and slope of the least squares through them, neither below zero.

    From one point the slope alone.
    """
    count = len(points)
    x_mean, y_mean = (sum(values) / count for values in zip(*points))
    spread = sum((x - x_mean) ** 2 for x, _ in points)
    slope = sum((x - x_mean) * (y - y_mean) for x, y in points) / spread if spread else -1.0
    if slope <= 0 or y_mean < slope * x_mean:  # there is one point, or noise
        return 0.0, sum(x * y for x, y in points) / sum(x * x for x, _ in points)
    return y_mean - slope * x_mean, slope


def even(once: float, each: float) -> Effort:
    """Sending and receiving need as much. How it is split hardly counts for a role that is busy."""
    return Effort(once, each / 2, each / 2)


def slowest_of(values: Sequence[float], count: int) -> float:
    """The mean of the largest of so many values that are drawn from these."""
    ordered = sorted(values)
    total = len(ordered)
    return sum(
        value * (((index + 1) / total) ** count - (index / total) ** count)
        for index, value in enumerate(ordered)
    )
