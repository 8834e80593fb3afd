"""What script/bench vpfs measures: the parts of [VPFS]'s evaluation, and what is fair in each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction

from lab.file_systems import DIRECT
from lab.report import size_name
from lab.total.optimum import User, feasible

SERVERS = 4
ALL = tuple(range(SERVERS))
MIB_PER_S = 40  # of each server: two processors keep four of them busy
LONGEST_DELAY = 0.5  # seconds: what a proxy lets service on other servers hold a request back
SCHEDULER = {"cost": {"per_request": "0 B"}}  # shares are of bytes, as in the paper
FIFO, SFQ, TOTAL = "fifo", "sfq", "total"  # total: sfq with a coordinator over the servers
OVERHEAD, RATIOS, RATES, ASYMMETRIC = "overhead", "ratios", "rates", "asymmetric"
WRITE, READ = "write", "read"
WEIGHTS = (1, 2, 4, 8, 16, 32)  # of application a; b has 1
IOR_SIZE = 1 << 20
# Which servers the files of a and of b are on.
SETUPS: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "all, 3 of 4": (ALL, ALL[:3]),
    "all, 2 of 4": (ALL, ALL[:2]),
    "all, 1 of 4": (ALL, ALL[:1]),
    "halves that share one": ((0, 1), (1, 2)),
}


@dataclasses.dataclass(frozen=True)
class Case:
    part: str
    path: str
    op: str = WRITE
    size: int = IOR_SIZE
    processes: int = 32  # of each application
    weight: int = 1
    applications: tuple[str, ...] = ("a", "b")
    setup: str = ""  # empty: the files of both are on all servers

    def weights(self) -> dict[str, int]:
        return {"a": self.weight, "b": 1}

    def servers(self, application: str) -> tuple[int, ...]:
        if not self.setup:
            return ALL
        return SETUPS[self.setup][("a", "b").index(application)]

    def key(self) -> tuple[object, ...]:
        """What cases have in common that differ only in the path."""
        return (self.part, self.op, self.size, self.processes, self.weight, self.setup)

    def fields(self) -> dict[str, object]:
        return {
            "op": self.op,
            "size": size_name(self.size),
            "processes": f"{len(self.applications)} x {self.processes}",
            "setup": self.setup or "all",
            "wanted": self.wanted() if len(self.applications) > 1 else None,
            "path": self.path,
        }

    def wanted(self) -> float:
        """The ratio of a's service to b's that is fair.

        Where their files are on different servers it is the feasible one (lab/total/optimum.py).
        """
        if not self.setup:
            return float(self.weight)
        users = [
            User(name, self.servers(name), True, weight) for name, weight in self.weights().items()
        ]
        bandwidth = Fraction(MIB_PER_S << 20)
        requests = {
            user.name: Fraction(self.size, len(user.servers))
            / (bandwidth * Fraction(str(LONGEST_DELAY)))
            for user in users
        }
        services = feasible(users, requests)
        return float(services["a"] / services["b"])


@dataclasses.dataclass(frozen=True)
class Plan:
    alone: Sequence[int]  # processes of the one application of `overhead`
    weights: Sequence[int]
    sizes: Sequence[int]
    processes: Sequence[int]  # of each application, in `rates`
    setups: Sequence[str]

    def cases(self, parts: Sequence[str]) -> list[Case]:
        found: list[Case] = []
        if OVERHEAD in parts:
            found += [
                Case(OVERHEAD, path, op, processes=processes, applications=("a",))
                for op in (WRITE, READ)
                for processes in self.alone
                for path in (DIRECT, FIFO, SFQ)
            ]
        if RATIOS in parts:
            found += [
                Case(RATIOS, path, weight=weight)
                for weight in self.weights
                for path in (DIRECT, FIFO, SFQ)
                # Only sfq looks at weights.
                if path == SFQ or weight == self.weights[0]
            ]
        if RATES in parts:
            found += [
                Case(RATES, SFQ, size=size, processes=processes, weight=4)
                for size in self.sizes
                for processes in self.processes
            ]
        if ASYMMETRIC in parts:
            found += [
                Case(ASYMMETRIC, path, setup=setup)
                for setup in self.setups
                for path in (SFQ, TOTAL)
            ]
        return found


PARTS = {
    OVERHEAD: "one application: what the proxies cost",
    RATIOS: "two applications of 32 processes each, at ratios of 1:1 to 32:1",
    RATES: "smaller requests and other numbers of processes, at 4:1",
    ASYMMETRIC: "files on different servers, at 1:1 of what both get on all of them",
}
FULL = Plan(
    alone=(1, 4, 16, 64),
    weights=WEIGHTS,
    sizes=(64 << 10, 256 << 10, 1 << 20),
    processes=(2, 8, 32),
    setups=tuple(SETUPS),
)
QUICK = Plan(
    alone=(16,), weights=(1, 4, 32), sizes=(64 << 10,), processes=(8,), setups=tuple(SETUPS)[1:2]
)
