"""The configurations of script/bench placement, as vpfs-bench-placement reads them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence

# Sizes are those of the simulator's samples, where the study of ExaNeSt says none.
LINK_RATE = 1_250_000_000  # bytes per second of every link of the interconnect
COMPUTE_US = 100_000  # in the mean
DATA_BYTES = 1_024_000_000  # of an application, in, and as much out
MESSAGE_BYTES = 1_000_000  # of the largest message
BLOCKS = 100  # in the mean
ONE_WEIGHTS = [12, 13, 37, 37]  # compute, communicate, read, write: in percent; the rest ends
SAN = 4  # central servers, unless a figure is about them

ONE_NETWORKS = {"dragonfly": [2, 4, 2], "fat tree": [4, 3], "torus": [4, 4, 4]}
MANY_NETWORKS = {"dragonfly": [4, 6, 4], "fat tree": [8, 3], "torus": [8, 8, 8]}
TASKS = {"dragonfly": 72, "fat tree": 64, "torus": 64}
STG = [1, 2, 4, 8, 16, 32, 64]
HITS = [0, 25, 50, 75, 100]
STEADY = 50  # percent: of remote accesses where hits vary, and the other way round
PARTS = [5, 25, 45, 65, 85]  # of communication, with BA in figure 7
Priority = str | Sequence[int]  # NP, FP, or the two parts of BA, that of communication first


@dataclasses.dataclass(frozen=True)
class Mode:
    """How rates are shared, and devices serve."""

    name: str
    rates: str = "study"  # or max-min
    messages_rise: bool = True  # rates of messages
    hits_rise: bool = True  # rates of remote hits

    @property
    def is_study(self) -> bool:
        return self.rates == "study"


MODES = {
    mode.name: mode
    for mode in (
        Mode("max-min", "max-min"),
        Mode("study"),
        Mode("study-2", messages_rise=False),
        Mode("study-3", messages_rise=False, hits_rise=False),
    )
}


@dataclasses.dataclass(frozen=True)
class Settings:
    link_rate: int = LINK_RATE
    compute_us: int = COMPUTE_US
    data_bytes: int = DATA_BYTES
    least_percent: int = 1  # of the data, that a block moves; to 100
    message_bytes: int = MESSAGE_BYTES
    blocks: int = BLOCKS
    # That a task sends in a communication of a workload; more are bundled.
    workload_messages: int = 4
    # Which of the accesses that may be local are: node, share or whole (block_application.h). None:
    # node, and with the rules of the study whole.
    locality: str | None = None
    trace_order: bool | None = None  # at devices; None: with the rules of the study
    replicas: int | None = None  # of a central write; None: one, with the rules of the study none
    full_stg: bool = True  # STG-64 has a device for each of 72 tasks
    task_mean: int = 64  # of a workload's applications, exponential
    arrivals_ms: float = 1.0  # between two applications
    transitions: tuple[tuple[int, ...], ...] = ()  # a full matrix for the one application
    seeds: int = 3
    applications: int = 50  # of a workload
    networks: tuple[str, ...] = ("dragonfly",)  # of figures 6 and 7


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
    nodes: str = "sequential"  # that a batch system gives; or random, near data
    backfills: bool = False
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
            "nodes": self.nodes,
            "backfills": self.backfills,
        }

    def config(self, settings: Settings, mode: Mode, seed: int) -> dict[str, object]:
        networks = MANY_NETWORKS if self.many else ONE_NETWORKS
        found: dict[str, object] = {
            "network": {
                "kind": self.network,
                "size": networks[self.network],
                "link_rate": settings.link_rate,
            },
            "priority": priority_of(self.priority),
            "rates": mode.rates,
            "rules": rules(settings, mode),
            "san": self.san,
            "replicas": replicas(settings, mode),
            "access": self.access,
            "seed": seed,
        }
        if self.many:
            data = "central" if self.strategy == "san" else self.strategy
            return found | {
                "batch": {"nodes": self.nodes, "backfills": self.backfills, "data": data},
                "jobs": workload(settings, seed, nodes_of(self.network)),
            }
        tasks = TASKS[self.network]
        devices = {"cache": tasks, "san": 0}.get(self.strategy, self.stg)
        if devices == STG[-1] and settings.full_stg:
            devices = tasks
        return found | {"stg": devices, "profile": profile(settings, self, devices)}


def replicas(settings: Settings, mode: Mode) -> int:
    """How often a central write is repeated elsewhere."""
    if settings.replicas is not None:
        return settings.replicas
    return 0 if mode.is_study else 1


def rules(settings: Settings, mode: Mode) -> dict[str, object]:
    trace_order = mode.is_study if settings.trace_order is None else settings.trace_order
    return {
        "locality": settings.locality or ("whole" if mode.is_study else "node"),
        "trace_order": trace_order,
        "free_nodes": mode.is_study,
        "messages_rise": mode.messages_rise,
        "hits_rise": mode.hits_rise,
    }


def nodes_of(network: str) -> int:
    size = MANY_NETWORKS[network]
    if network == "dragonfly":
        nodes, routers, links = size
        return nodes * routers * (routers * links + 1)
    return size[0] ** size[1] if network == "fat tree" else size[0] * size[1] * size[2]


def priority_of(name: str) -> Priority:
    return [int(part) for part in name[3:].split("-")] if name.startswith("BA ") else name


def chain(settings: Settings, percents: Sequence[int]) -> list[list[int]]:
    """Weights of the next block and the end, the same behind each block."""
    row = [percent * (settings.blocks - 1) for percent in percents] + [sum(percents)]
    return [row] * 4


def profile(settings: Settings, case: Case, devices: int) -> dict[str, object]:
    """The single application: three quarters of its blocks are storage, the rest half and half."""
    tasks = TASKS[case.network]
    matrix = [list(row) for row in settings.transitions]
    return {
        "tasks": tasks,
        "readers": min(64, tasks),
        "writers": min(64, tasks),
        "devices": max(devices, 1),
        "next": matrix or chain(settings, ONE_WEIGHTS),
        "most_blocks": 20 * settings.blocks,
        "compute_us": settings.compute_us,
        "data_bytes": settings.data_bytes,
        "least_percent": settings.least_percent,
        "message_bytes": settings.message_bytes,
        "most_messages": 1000,
        "memory_percent": case.memory,
        "remote_percent": case.remote,
    }


def workload(settings: Settings, seed: int, nodes: int) -> list[Mapping[str, object]]:
    """Applications that come one after the other, the same ones for every configuration."""
    draw = random.Random(seed)
    jobs: list[Mapping[str, object]] = []
    for number in range(settings.applications):
        tasks = min(1 + round(draw.expovariate(1 / settings.task_mean)), 512, nodes)
        others = draw.randint(0, 99)
        compute = draw.randint(0, others)
        reads = draw.randint(0, 99 - others)
        percents = [compute, others - compute, reads, 99 - others - reads]
        jobs.append(
            {
                "tasks": tasks,
                "readers": draw.randint(1, tasks),
                "writers": draw.randint(1, tasks),
                "devices": draw.randint(1, tasks),
                "next": chain(settings, percents),
                "most_blocks": 20 * settings.blocks,
                "compute_us": settings.compute_us,
                "data_bytes": settings.data_bytes,
                "least_percent": settings.least_percent,
                "message_bytes": settings.message_bytes,
                "most_messages": settings.workload_messages,
                "memory_percent": draw.randint(0, 100),
                "remote_percent": draw.randint(0, 100),
                "arrival_us": round(number * settings.arrivals_ms * 1000),
                "wall_us": wall_us(settings, percents, tasks),
            }
        )
    return jobs


def wall_us(settings: Settings, percents: Sequence[int], tasks: int) -> int:
    """What a user would ask for: five times the blocks of the mean, all data from one's own NVM.

    Only backfilling looks at it.
    """
    part = settings.data_bytes / tasks / 2  # bytes of a task in a block, in the mean
    compute, _, reads, writes = percents
    block = compute * settings.compute_us + (reads / 2000 + writes / 1000) * part
    return round(5 * settings.blocks * block / 99) + 1_000_000


def cases_of(figure: int, quick: bool, networks: Sequence[str] = ("dragonfly",)) -> list[Case]:
    if figure in (6, 7):
        return {6: figure_6, 7: figure_7}[figure](quick, networks)
    return {8: figure_8, 9: figure_9, 10: figure_10}[figure](quick)


def figure_6(quick: bool, networks: Sequence[str]) -> list[Case]:
    """6a, 6b: hits vary, 50 % is remote. 6c, 6d: remote accesses vary, 50 % hit."""
    away = [0, 20, 50, 100] if quick else list(range(0, 101, 10))
    slices = [(hits, STEADY) for hits in HITS] + [(50, remote) for remote in away]
    points = list(dict.fromkeys(slices))
    return [
        Case(network, strategy, access, stg, SAN, hits, remote)
        for network in networks
        for strategy, counts in (("stg", STG), ("cache", [0]), ("san", [0]))
        for stg in counts
        for hits, remote in points
        for access in (("disperse", "affinity") if strategy != "cache" else ("local", "affinity"))
    ]


def figure_7(quick: bool, networks: Sequence[str]) -> list[Case]:
    """7a: BA at 50 % hits and 50 % remote. 7b: FP at 50 % hits, remote accesses vary."""
    away = [0, 50, 100] if quick else [0, 20, 40, 50, 60, 80, 100]
    shared = [(f"BA {share}-{100 - share}", STEADY) for share in PARTS]
    points = [(name, remote) for remote in away for name in ("NP", "FP")]
    return [
        Case(network, "stg", "disperse", stg, SAN, 50, remote, priority)
        for network in networks
        for stg in STG
        for priority, remote in points + shared
    ]


ALLOCATORS = [("near data", False), ("sequential", True), ("near data", True)]


def figure_8(_: bool) -> list[Case]:
    found = [
        Case(network, strategy, access, many=True)
        for network in MANY_NETWORKS
        for strategy in ("internal", "external")
        for access in ("disperse", "affinity")
    ]
    found += [Case(network, "cache", "local", many=True) for network in MANY_NETWORKS]
    return found + [
        Case("dragonfly", strategy, access, nodes=nodes, backfills=backfills, many=True)
        for strategy in ("internal", "external")
        for access in ("affinity",)
        for nodes, backfills in ALLOCATORS
    ]


def figure_9(quick: bool) -> list[Case]:
    servers = [1, 8, 16, 128] if quick else [1, 2, 4, 8, 16, 32, 64, 128]
    curves = (("san", "disperse"), ("internal", "affinity"), ("cache", "local"))
    found = [
        Case("dragonfly", strategy, access, san=count, many=True)
        for strategy, access in curves
        for count in servers
    ]
    found += [
        Case(network, strategy, access, san=count, many=True)
        for network in MANY_NETWORKS
        if network != "dragonfly"
        for strategy, access in curves[1:]
        for count in (8, 16, 128)
        if not quick
    ]
    return found + [
        Case("dragonfly", strategy, access, san=count, nodes=nodes, backfills=backfills, many=True)
        for strategy, access in curves[1:]
        for count in (16,)
        for nodes, backfills in ALLOCATORS
    ]


def figure_10(_: bool) -> list[Case]:
    return [
        Case("dragonfly", strategy, "disperse", priority=priority, many=True)
        for strategy in ("internal",)
        for priority in ("NP", "FP", "BA 95-5", "BA 50-50", "BA 5-95")
    ]
