"""Which processor each role of a site runs on."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from lab.harness import Problem

Cpus = frozenset[int]


@dataclasses.dataclass(frozen=True)
class Pins:
    """Processors of the coordinator, of all stages together, and of each aggregator."""

    coordinator: Cpus
    stages: Cpus
    aggregators: tuple[Cpus, ...] = ()

    def all(self) -> Cpus:
        return self.coordinator.union(self.stages, *self.aggregators)

    def describe(self) -> str:
        """The roles on each processor: which share one, and which have it alone."""
        roles = {"coordinator": self.coordinator, "stages": self.stages} | {
            f"aggregator {number}": cpus for number, cpus in enumerate(self.aggregators)
        }
        parts = []
        for cpu in sorted(self.all()):
            names = shortened([name for name, cpus in roles.items() if cpu in cpus])
            parts.append(f"CPU {cpu}: {', '.join(names)}")
        return "; ".join(parts)


def shortened(names: Sequence[str]) -> list[str]:
    """Names with several aggregators as one."""
    own = [name for name in names if name.startswith("aggregator")]
    if len(own) < 2:
        return list(names)
    others = [name for name in names if name not in own]
    return [*others, f"{len(own)} aggregators"]


def own_cpus() -> list[int]:
    """The processors that this program may use, and so its children."""
    return sorted(os.sched_getaffinity(0))


def one_each(aggregators: int, cpus: Sequence[int]) -> Pins:
    """A processor for each role while there are enough; otherwise aggregators share those left.

    The coordinator never shares. With two processors, aggregators share that of the stages.
    """
    require_two(cpus)
    coordinator, stages, *left = cpus
    shared = left or [stages]
    return Pins(
        frozenset([coordinator]),
        frozenset([stages]),
        tuple(frozenset([shared[index % len(shared)]]) for index in range(aggregators)),
    )


def coordinator_alone(aggregators: int, cpus: Sequence[int]) -> Pins:
    """The coordinator has a processor; everything else uses all the others."""
    require_two(cpus)
    others = frozenset(cpus[1:])
    return Pins(frozenset(cpus[:1]), others, (others,) * aggregators)


def aggregator_alone(cpus: Sequence[int]) -> Pins:
    """The one aggregator of a site has a processor.

    Where there are only two, the coordinator shares that of the stages: it has nothing to do while
    they have.
    """
    require_two(cpus)
    aggregator, stages, *left = cpus
    return Pins(frozenset(left[:1] or [stages]), frozenset([stages]), (frozenset([aggregator]),))


def require_two(cpus: Sequence[int]) -> None:
    if len(cpus) < 2:
        raise Problem(
            "to give roles a processor of their own takes two at least, and this may use "
            f"{len(cpus)}"
        )


def shares(pins: Pins) -> bool:
    """Whether some role has no processor of its own."""
    alone = [pins.coordinator, pins.stages, *pins.aggregators]
    return sum(map(len, alone)) > len(pins.all())
