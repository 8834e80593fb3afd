"""The set-ups of `script/bench total`: which servers applications use, and what is feasible."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction

from lab.cluster import Cluster, Depth, Front
from lab.coordinator import CONTROL
from lab.harness import MIB, Programs
from lab.load import Application, seconds
from lab.report import size_name
from lab.total.optimum import Services, User, feasible, local

STRIP = 16 << 10  # so that a request of 64 KiB touches four servers
SIZES = [64 << 10, 1 << 20]
OPS = {"read": 100, "write": 0}
WEIGHTS = [1, 2]  # of application a; the others have 1
PERIODS = [0.2, 0.05, 0.01]
# The bandwidth of each server. It is low enough for two processors to run four servers, their
# proxies and the load.
BANDWIDTH = {64 << 10: 10 * MIB, 1 << 20: 40 * MIB}
# For how long service on other servers may hold the head of a queue, in seconds: the default of a
# proxy.
LONGEST_DELAY = 0.5
DEPTH: Depth = {"depth_requests": 4, "depth_bytes": "4 MiB"}
# Requests in flight: of an application whose I/O touches all its servers, and for each server of
# any other one.
OUTSTANDING_STRIPED, OUTSTANDING_EACH = 24, 16
FILE = {64 << 10: 4 << 20, 1 << 20: 16 << 20}  # of each process
PATH = "px"


@dataclasses.dataclass(frozen=True)
class Setup:
    name: str
    uses: Mapping[str, tuple[int, ...]]  # servers by application
    pair: tuple[str, str]  # whose ratio counts

    @property
    def servers(self) -> int:
        return 1 + max(itertools.chain(*self.uses.values()))

    def __hash__(self) -> int:
        return hash(self.name)


SETUPS = {
    setup.name: setup
    for setup in (
        Setup("same 2", {"a": (0, 1), "b": (0, 1)}, ("a", "b")),
        Setup("same 4", {"a": (0, 1, 2, 3), "b": (0, 1, 2, 3)}, ("a", "b")),
        Setup("2 of 4", {"a": (0, 1), "b": (0, 1, 2, 3)}, ("a", "b")),
        Setup("half", {"a": (0, 1), "b": (1, 2)}, ("a", "b")),
        Setup("disjoint", {"a": (0, 1), "b": (2, 3), "c": (0, 1, 2, 3)}, ("a", "c")),
    )
}


@dataclasses.dataclass(frozen=True)
class Case:
    setup: Setup
    striped: bool
    op: str
    size: int
    weight: int

    @property
    def bandwidth(self) -> int:
        return BANDWIDTH[self.size]

    def fields(self) -> dict[str, object]:
        return {
            "setup": self.setup.name,
            "striped": self.striped,
            "op": self.op,
            "size": size_name(self.size),
            "weight": f"{self.weight}:1",
        }

    def title(self) -> str:
        return (
            f"{self.setup.name}, {'striped' if self.striped else 'unstriped'}, {self.op} "
            f"{size_name(self.size)}, {self.weight}:1"
        )

    def weights(self) -> dict[str, int]:
        return {name: self.weight if name == "a" else 1 for name in self.setup.uses}

    def users(self) -> list[User]:
        weights = self.weights()
        return [
            User(name, servers, self.striped, weights[name])
            for name, servers in self.setup.uses.items()
        ]

    def part(self, name: str) -> int:
        """The bytes of one I/O of an application that go to one server."""
        return self.size // len(self.setup.uses[name]) if self.striped else self.size

    @functools.cached_property
    def _feasible(self) -> Services:
        """The optimum if each application gets a request on each server within LONGEST_DELAY."""
        each = {
            name: Fraction(self.part(name)) / Fraction(self.bandwidth * LONGEST_DELAY)
            for name in self.setup.uses
        }
        return feasible(self.users(), each)

    def feasible(self) -> Services:
        return self._feasible

    def local(self) -> Services:
        return local(self.users())

    def ratio(self, services: Mapping[str, Fraction | float]) -> float:
        first, second = (services[name] for name in self.setup.pair)
        return float(first / second) if second > 0 else float("inf")

    def in_flight(self, name: str) -> int:
        """Requests that each server of the application may have waiting or under way."""
        return OUTSTANDING_STRIPED if self.striped else OUTSTANDING_EACH

    def application(self, name: str, start: float = 0.0, stop: float | None = None) -> Application:
        servers = self.setup.uses[name]
        return Application(
            name,
            self.size,
            self.in_flight(name),
            1 if self.striped else len(servers),
            OPS[self.op],
            "sequential",
            FILE[self.size],
            servers=[f"s{server}" for server in servers],
            datafiles=0 if self.striped else 1,
            start=start,
            stop=stop,
        )

    def applications(self) -> list[Application]:
        return [self.application(name) for name in self.setup.uses]

    def device(self) -> dict[str, object]:
        return {"bandwidth": f"{self.bandwidth // 1024} KiB/s", "parallelism": 1}

    def front(self) -> Front:
        return Front(
            PATH,
            "proxy",
            "sfq",
            self.weights(),
            scheduler={"cost": {"per_request": "0 B"}},
            control={**CONTROL, "longest_delay": seconds(LONGEST_DELAY)},
            **DEPTH,
        )

    def cluster(self, programs: Programs) -> Cluster:
        """Servers with their proxies."""
        cluster = Cluster(
            programs,
            self.setup.servers,
            [self.front()],
            self.device(),
            file_system={"strip_size": size_name(STRIP)},
        )
        cluster.start(PATH)
        return cluster


def all_cases(
    setups: Sequence[str] = tuple(SETUPS),
    striped: Sequence[bool] = (True, False),
    ops: Sequence[str] = tuple(OPS),
    sizes: Sequence[int] = tuple(SIZES),
    weights: Sequence[int] = tuple(WEIGHTS),
) -> list[Case]:
    return [
        Case(SETUPS[setup], *rest)
        for setup in setups
        for rest in itertools.product(striped, ops, sizes, weights)
    ]
