"""The configurations of script/bench placement, as vpfs-bench-placement reads them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence

# What the study of ExaNeSt leaves open is chosen here, once for all figures.
LINK_RATE = 1_000_000_000  # bytes per second of every link of the interconnect
STEPS = 64
COMPUTE_US = 20_000
IO_BYTES = 64 << 20
MESSAGE_BYTES = 16 << 20
REPLICAS = 1
WORKLOAD_COMPUTE = 10  # times as long as in one application
TASKS = 64
SAN = 4  # central servers, unless a figure is about them

ONE_NETWORKS = {"dragonfly": [2, 4, 2], "fat tree": [4, 3], "torus": [4, 4, 4]}
MANY_NETWORKS = {"dragonfly": [4, 6, 4], "fat tree": [8, 3], "torus": [8, 8, 8]}
STG = [1, 2, 4, 8, 16, 32, 64]
Priority = str | Sequence[int]  # NP, FP, or the two parts of BA, that of communication first


@dataclasses.dataclass(frozen=True)
class Settings:
    link_rate: int = LINK_RATE
    rates: str = "max-min"  # or "equal-share": what a flow leaves of a link, others do not get
    # That a task sends in a communication; if they are mixed, the largest message.
    message_bytes: int = MESSAGE_BYTES
    mixed: bool = False  # many small messages, few large ones
    messages: int = 1  # to each partner in a communication, one after the other
    own_steps: bool = False  # each task has its own sequence of steps; else an application has one
    io_bytes: int = IO_BYTES  # a task's data
    least_io_percent: int = 100  # of a task's data that an access moves: from so many to all
    compute_us: int = COMPUTE_US
    workload_compute: int = WORKLOAD_COMPUTE
    replicas: int = REPLICAS
    seeds: int = 3
    steps: int = STEPS
    workload_steps: int = 60  # at most, of each application of a workload
    applications: int = 50  # of a workload
    arrivals: float = 2.0  # of them in a second


@dataclasses.dataclass(frozen=True)
class Case:
    """One point of a figure."""

    network: str
    strategy: str  # stg, cache or san; with many applications internal, external, cache or san
    access: str = "disperse"
    stg: int = 0
    san: int = SAN
    memory: int = 0
    remote: int = 0
    priority: str = "NP"  # NP, FP or "BA x-y"
    # Data are fetched from the central servers before an application, and brought back behind it.
    staged: bool = False
    many: bool = False

    def fields(self) -> dict[str, object]:
        return {
            "network": self.network,
            "strategy": self.strategy,
            "access": self.access,
            "stg": self.stg,
            "san": self.san,
            "memory_percent": self.memory,
            "remote_percent": self.remote,
            "priority": self.priority,
        }

    def config(self, settings: Settings, seed: int) -> dict[str, object]:
        networks = MANY_NETWORKS if self.many else ONE_NETWORKS
        found: dict[str, object] = {
            "network": {
                "kind": self.network,
                "size": networks[self.network],
                "link_rate": settings.link_rate,
            },
            "priority": priority_of(self.priority),
            "rates": settings.rates,
            "san": self.san,
            "replicas": settings.replicas,
            "access": self.access,
            "seed": seed,
            "staged": self.staged,
        }
        if self.many:
            data = "central" if self.strategy == "san" else self.strategy
            return found | {
                "batch": {"nodes": "sequential", "backfills": False, "data": data},
                "jobs": workload(settings, seed),
            }
        devices = TASKS if self.strategy == "cache" else self.stg
        return found | {"stg": devices, "profile": profile(settings, self.memory, self.remote)}


def priority_of(name: str) -> Priority:
    return [int(part) for part in name[3:].split("-")] if name.startswith("BA ") else name


def profile(settings: Settings, memory: int, remote: int) -> dict[str, object]:
    """The single application: three quarters of its steps are storage, the rest half and half."""
    return {
        "tasks": TASKS,
        "io_tasks": TASKS,
        "steps": settings.steps,
        "compute": 125,
        "read": 375,
        "write": 375,
        "compute_us": settings.compute_us,
        "io_bytes": settings.io_bytes,
        "data_bytes": settings.io_bytes,
        "least_io_percent": settings.least_io_percent,
        "message_bytes": settings.message_bytes,
        "pattern": "permutation",
        "messages": settings.messages,
        "sizes": "mixed" if settings.mixed else "equal",
        "lockstep": not settings.own_steps,
        "memory_percent": memory,
        "remote_percent": remote,
    }


def workload(settings: Settings, seed: int) -> list[Mapping[str, object]]:
    """Applications that come one after the other, the same ones for every configuration."""
    draw = random.Random(seed)
    jobs: list[Mapping[str, object]] = []
    arrival = 0.0
    for _ in range(settings.applications):
        tasks = draw.choice([8, 16, 32, 64, 128])
        storage = draw.choice([250, 500, 750])
        reads = draw.randint(0, storage)
        arrival += draw.expovariate(settings.arrivals)
        io_bytes = settings.io_bytes // draw.choice([1, 2, 4])
        jobs.append(
            {
                "tasks": tasks,
                "io_tasks": tasks * draw.choice([25, 50, 100]) // 100,
                "steps": draw.randint(settings.workload_steps // 4, settings.workload_steps),
                "compute": (1000 - storage) // 2,
                "read": reads,
                "write": storage - reads,
                "compute_us": settings.workload_compute
                * draw.randint(settings.compute_us // 2, 5 * settings.compute_us),
                "io_bytes": io_bytes,
                "data_bytes": io_bytes,
                "least_io_percent": settings.least_io_percent,
                "message_bytes": settings.message_bytes // draw.choice([1, 4, 16]),
                "pattern": draw.choice(["permutation", "neighbours", "ring", "all to all"]),
                "messages": settings.messages,
                "sizes": "mixed" if settings.mixed else "equal",
                "lockstep": not settings.own_steps,
                "memory_percent": draw.choice([0, 25, 50, 75, 100]),
                "remote_percent": draw.choice([0, 25, 50, 75, 100]),
                "arrival_us": round(arrival * 1e6),
                "wall_us": 3_600_000_000,
            }
        )
    return jobs


def cases_of(figure: int, quick: bool) -> list[Case]:
    return {6: figure_6, 7: figure_7, 8: figure_8, 9: figure_9, 10: figure_10}[figure](quick)


def figure_6(quick: bool) -> list[Case]:
    memory = [0, 50, 100] if quick else [0, 25, 50, 75, 100]
    remote = [0, 20, 50, 100] if quick else list(range(0, 101, 10))
    found = [
        Case(network, "stg", access, stg, SAN, hits, away)
        for network in ONE_NETWORKS
        for stg in STG
        for hits in memory
        for away in remote
        for access in ("disperse", "affinity")
    ]
    found += [
        Case(network, "cache", access, 0, SAN, hits, staged=True)
        for network in ONE_NETWORKS
        for hits in memory
        for access in ("disperse", "affinity")
    ]
    return found + [
        Case(network, "san", access, 0, SAN, hits, 100)
        for network in ONE_NETWORKS
        for hits in memory
        for access in ("disperse", "affinity")
    ]


def figure_7(quick: bool) -> list[Case]:
    shares = [5, 45, 85] if quick else [5, 25, 45, 65, 85]
    remote = [0, 50, 100] if quick else [0, 20, 50, 80, 100]
    priorities = ["NP", "FP", *(f"BA {share}-{100 - share}" for share in shares)]
    return [
        Case(network, "stg", "disperse", stg, SAN, 0, away, priority)
        for network in ONE_NETWORKS
        for stg in ([1, 16, 64] if quick else STG)
        for away in remote
        for priority in priorities
    ]


def figure_8(_: bool) -> list[Case]:
    found = [
        Case(network, strategy, access, many=True)
        for network in MANY_NETWORKS
        for strategy in ("internal", "external")
        for access in ("disperse", "affinity", "local")
    ]
    return found + [Case(network, "cache", "local", many=True) for network in MANY_NETWORKS]


def figure_9(quick: bool) -> list[Case]:
    servers = [1, 4, 16, 128] if quick else [1, 2, 4, 8, 16, 32, 64, 128]
    return [
        Case(network, strategy, access, san=count, many=True, staged=strategy == "cache")
        for network in MANY_NETWORKS
        for strategy, access in (("san", "disperse"), ("cache", "local"))
        for count in servers
    ]


def figure_10(_: bool) -> list[Case]:
    return [
        Case(network, "internal", "disperse", priority=priority, many=True)
        for network in MANY_NETWORKS
        for priority in ("NP", "FP", "BA 95-5", "BA 50-50", "BA 5-95")
    ]
