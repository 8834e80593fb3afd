"""Which fault comes when: the same for the same seed. Pure."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence

COORDINATORS = ("c0", "c1", "c2")
ETCD = ("e0", "e1", "e2")
AGGREGATORS = ("a0", "a1")
PROXIES = tuple(f"p{index}" for index in range(8))
MOUNT = "m"
LOADER = "l"  # the host that puts load on the proxies
# Coordinators dial the first two, the next two dial coordinators, and each aggregator has two more.
DIALLED, DIALLING = PROXIES[:2], PROXIES[2:4]
OF_AGGREGATOR = {"a0": PROXIES[4:6], "a1": PROXIES[6:8]}
STAGES = (*PROXIES, MOUNT)
# Those that can be killed: a mount's death is an error for whoever has files open there.
MORTAL = (*COORDINATORS, *AGGREGATORS, *PROXIES)


def control_pairs() -> list[tuple[str, str]]:
    """Pairs of hosts that talk about control, as often as they are hit.

    Data passes between others.
    """
    pairs = [(one, other) for one in COORDINATORS for other in COORDINATORS if one < other]
    pairs += [(one, other) for one in ETCD for other in ETCD if one < other]
    # More often than others: what is decided between these matters most.
    pairs += [(one, node) for one in COORDINATORS for node in ETCD] * 3
    below = (*AGGREGATORS, *DIALLED, *DIALLING, MOUNT)
    pairs += [(one, stage) for one in COORDINATORS for stage in below]
    pairs += [(one, stage) for one, stages in OF_AGGREGATOR.items() for stage in stages]
    return pairs


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of fault."""

    title: str
    targets: Sequence[tuple[str, ...]]  # one of these is hit
    shortest: float  # seconds that it lasts
    longest: float
    weight: int = 1


def _each(names: Sequence[str]) -> list[tuple[str, ...]]:
    return [(name,) for name in names]


_PAIRS: list[tuple[str, ...]] = [*control_pairs()]
# A standby that is refused takes the leader for dead.
_REFUSED = [*_PAIRS, *([(one, other) for one, other in _PAIRS if {one[0], other[0]} == {"c"}] * 10)]
KINDS: Mapping[str, Kind] = {
    "kill": Kind("kill -9 of", _each([*MORTAL, *COORDINATORS]), 0.2, 1.5, 3),
    "stop": Kind("SIGSTOP of", _each([*COORDINATORS, *COORDINATORS, *AGGREGATORS]), 0.3, 5, 2),
    "stop-node": Kind("SIGSTOP of etcd on", _each(ETCD), 0.3, 4),
    "stop-stage": Kind("SIGSTOP of stage", _each(STAGES), 0.1, 2.5),
    "restart": Kind("restart of", _each(MORTAL), 0.1, 0.5, 2),
    "cut": Kind("cut between", _PAIRS, 1, 6, 3),
    "refuse": Kind("connections refused between", _REFUSED, 1, 6, 2),
    "loss": Kind("10 % loss between", _PAIRS, 2, 6, 2),
    "slow": Kind("1 Mb/s between", _PAIRS, 2, 6, 2),
    "full": Kind("full disk of", _each([*ETCD, *AGGREGATORS, *PROXIES, MOUNT]), 1, 5, 2),
    "clock": Kind("clock an hour off at", _each([*MORTAL, MOUNT]), 1, 5, 2),
    "certificate": Kind("certificate that expires at", _each([*STAGES, *AGGREGATORS]), 3, 6),
    "node": Kind("etcd node lost:", _each(ETCD), 1, 4, 2),
    "nodes": Kind("two etcd nodes lost:", [("e0", "e1"), ("e0", "e2"), ("e1", "e2")], 1, 5),
    "reload": Kind("reload with a mistake of", _each(STAGES), 0.5, 1),
    "rule": Kind("rule changed:", [("site",)], 0, 0, 3),
}
BETWEEN = ("cut", "refuse", "loss", "slow")  # these kinds hit two hosts
DOWN, UP = -3600, 3600  # what a clock jumps by


@dataclasses.dataclass(frozen=True)
class Fault:
    number: int
    at: float  # seconds since the beginning
    kind: str
    targets: tuple[str, ...]
    until: float
    choice: int  # of what the kind leaves open

    def title(self) -> str:
        return f"{KINDS[self.kind].title} {' and '.join(self.targets)}"


def schedule(seed: int, seconds: float, kinds: Sequence[str] = tuple(KINDS)) -> list[Fault]:
    """One fault every second, none at what another one has hit and not left yet.

    Each kind comes once before the first comes a second time, so a short run has all of them.
    """
    source = random.Random(seed)
    free_from: dict[str, float] = {}
    faults: list[Fault] = []
    waiting: list[str] = []
    number = 0
    while (at := float(number)) < seconds:
        if not waiting:
            waiting = [kind for kind in kinds for _ in range(KINDS[kind].weight)]
            source.shuffle(waiting)
        kind = KINDS[name := waiting.pop()]
        length = source.uniform(kind.shortest, kind.longest)
        targets = [
            each
            for each in kind.targets
            if all(free_from.get(key, 0) <= at for key in _keys(name, each))
        ]
        choice = source.randrange(1 << 30)
        if targets:
            chosen = targets[source.randrange(len(targets))]
            for key in _keys(name, chosen):
                # Afterwards a program that was started has some time.
                free_from[key] = at + length + 1
            faults.append(Fault(number, at, name, chosen, at + length, choice))
        number += 1
    return faults


def _keys(kind: str, targets: tuple[str, ...]) -> list[str]:
    """What no other fault may have hit at the same time."""
    if kind == "rule":
        return []
    if kind in BETWEEN:
        return [" ".join(targets)]
    if kind in ("node", "nodes", "stop-node") or targets[0] in ETCD:
        return ["etcd"]  # two nodes at most are away
    return list(targets)
