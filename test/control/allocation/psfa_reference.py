"""PSFA in plain integers, for comparison with the program: simple and exact, not fast.

A unit is whatever the capacity counts: bytes, operations or metadata operations per second.
"""
from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence

UNBOUNDED = None
Demand = int | None
Pair = tuple[str, str]

CYCLES_BEFORE = 3  # that a demand remembers, besides the present one
LIMITED_PART = 10  # limited for a tenth of a cycle: the demand is unknown
GROWTH_PART = 4  # a demand may grow by a quarter
FLOORS_PART = 16  # all floors together are a sixteenth of the capacity at most


class BadRows(ValueError):
    """The rows of a cycle contradict each other. Nothing has changed."""


class ZeroFloor(ValueError):
    """A pair would have a floor of zero. The caps stay; the demands of the cycle are remembered."""


@dataclasses.dataclass(frozen=True)
class Row:
    """A job on a stage, and what happened there in a cycle."""

    job: str
    stage: str
    weight: int
    maximum: int  # of the job on all stages; 0: none
    arrived: int
    limited: int  # microseconds

    @property
    def pair(self) -> Pair:
        return self.job, self.stage


@dataclasses.dataclass(frozen=True)
class Claim:
    id: str
    weight: int
    demand: Demand


def ceil_div(number: int, divisor: int) -> int:
    return -(-number // divisor)


def satisfied_earlier(one: Claim, other: Claim) -> int:
    """Compares demand by weight, the unbounded last, and then ids: negative if `one` is first."""
    if one.demand is not None and other.demand is not None:
        difference = one.demand * other.weight - other.demand * one.weight
        if difference != 0:
            return difference
    elif (one.demand is None) != (other.demand is None):
        return 1 if one.demand is None else -1
    return -1 if one.id < other.id else 1


def fill(amount: int, claims: Iterable[Claim]) -> tuple[dict[str, int], int]:
    """Weighted max-min: what each got, and what is left over."""
    waiting = collections.deque(sorted(claims, key=functools.cmp_to_key(satisfied_earlier)))
    weights = sum(claim.weight for claim in waiting)
    given: dict[str, int] = {}
    while waiting:
        claim = waiting[0]
        if claim.demand is None or claim.demand * weights > amount * claim.weight:
            break
        given[claim.id] = claim.demand
        amount -= claim.demand
        weights -= claim.weight
        waiting.popleft()
    if not waiting:
        return given, amount
    for claim in waiting:
        given[claim.id] = amount * claim.weight // weights
    missing = amount - sum(given[claim.id] for claim in waiting)
    for claim in sorted(waiting, key=lambda claim: (-(amount * claim.weight % weights), claim.id))[:missing]:
        given[claim.id] += 1
    return given, 0


def jobs_of(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows by job, checked against each other."""
    jobs: dict[str, list[Row]] = collections.defaultdict(list)
    pairs: set[Pair] = set()
    for row in rows:
        if row.pair in pairs:
            raise BadRows(f"job {row.job} on stage {row.stage} is there twice")
        pairs.add(row.pair)
        jobs[row.job].append(row)
    for job, own in jobs.items():
        if any(row.weight < 1 for row in own):
            raise BadRows(f"job {job} has a weight below 1")
        if len({row.weight for row in own}) > 1:
            raise BadRows(f"job {job} has two weights")
        if len({row.maximum for row in own}) > 1:
            raise BadRows(f"job {job} has two maxima")
    return dict(jobs)


@dataclasses.dataclass(frozen=True)
class Seen:
    """A pair in one cycle."""

    rate: int  # of arrivals, per second
    was_limited: bool


class Psfa:
    """The caps of one cycle after the other."""

    def __init__(self, capacity: int, cycle_us: int, floor: int) -> None:
        self.capacity = capacity
        self.cycle_us = cycle_us
        self.floor = floor
        self.caps: dict[Pair, int] = {}
        self._seen: dict[Pair, list[Seen]] = {}

    def cycle(self, rows: Sequence[Row]) -> dict[Pair, int]:
        """The caps after a cycle with these rows. A cycle without rows forgets everything."""
        jobs = jobs_of(rows)
        self._remember(rows)
        floors = {job: self._floor_of(own, len(rows)) for job, own in jobs.items()}
        if not all(floors.values()):
            raise ZeroFloor(f"job {min(job for job, floor in floors.items() if floor == 0)} has no floor")
        demands = {row.pair: self._demand_of(row.pair) for row in rows}
        self.caps = {}
        for job, amount in self._amounts(jobs, floors, demands).items():
            for stage, extra in split(amount, jobs[job], floors[job], demands).items():
                self.caps[job, stage] = floors[job] + extra
        return dict(self.caps)

    def _remember(self, rows: Sequence[Row]) -> None:
        seen = {}
        for row in rows:
            now = Seen(ceil_div(row.arrived * 1_000_000, self.cycle_us), row.limited * LIMITED_PART >= self.cycle_us)
            seen[row.pair] = [*self._seen.get(row.pair, []), now][-(CYCLES_BEFORE + 1):]
        self._seen = seen

    def _demand_of(self, pair: Pair) -> Demand:
        seen = self._seen[pair]
        if any(cycle.was_limited for cycle in seen):
            return UNBOUNDED
        most = max(cycle.rate for cycle in seen)
        return most + ceil_div(most, GROWTH_PART)

    def _floor_of(self, own: Sequence[Row], pairs: int) -> int:
        floor = min(self.floor, self.capacity // (FLOORS_PART * pairs))
        maximum = own[0].maximum
        return min(floor, maximum // len(own)) if maximum else floor

    def _amounts(self, jobs: Mapping[str, Sequence[Row]], floors: Mapping[str, int],
                 demands: Mapping[Pair, Demand]) -> dict[str, int]:
        """What each job gets beyond its floors: by demand, then what is left by weight."""
        weights = {job: own[0].weight for job, own in jobs.items()}
        all_floors = {job: len(own) * floors[job] for job, own in jobs.items()}
        most = {job: own[0].maximum - all_floors[job] if own[0].maximum else UNBOUNDED for job, own in jobs.items()}

        by_demand, left = fill(
            self.capacity - sum(all_floors.values()),
            [Claim(job, weights[job], smaller(beyond([demands[row.pair] for row in own], all_floors[job]), most[job]))
             for job, own in jobs.items()])
        headroom, _ = fill(left, [Claim(job, weights[job], beyond([most[job]], by_demand[job])) for job in jobs])
        return {job: by_demand[job] + headroom[job] for job in jobs}


def smaller(one: Demand, other: Demand) -> Demand:
    if one is None:
        return other
    return one if other is None else min(one, other)


def beyond(demands: Iterable[Demand], amount: int) -> Demand:
    """How much the sum of the demands is more than `amount`."""
    total = 0
    for demand in demands:
        if demand is None:
            return UNBOUNDED
        total += demand
    return max(0, total - amount)


def split(amount: int, own: Sequence[Row], floor: int, demands: Mapping[Pair, Demand]) -> dict[str, int]:
    """What each stage of a job gets of what the job has beyond its floors."""
    by_demand, left = fill(amount, [Claim(row.stage, 1, beyond([demands[row.pair]], floor)) for row in own])
    evenly, _ = fill(left, [Claim(row.stage, 1, UNBOUNDED) for row in own])
    return {row.stage: by_demand[row.stage] + evenly[row.stage] for row in own}
