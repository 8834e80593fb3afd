"""script/bench overhead: the cost of the proxy, against a direct connection and against HAProxy.

One server holds the files in memory, and all paths lead to it. The paths are measured in turn, so
that a drift of the machine affects all of them.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import pathlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bench.data_path import overhead_figures, overhead_targets, system_calls
from lab import plot
from lab.cluster import Cluster, Front
from lab.file_systems import DIRECT, FILE_SYSTEMS
from lab.harness import Programs, machine_settings, median, require_programs
from lab.load import Application, quantile_us, run_load
from lab.meter import CpuMeter
from lab.numbers import above_zero, one_or_more
from lab.report import Row, print_settings, result_name, size_name, table, write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FRONTS = [
    Front("proxy-fifo", "proxy", "fifo", {"a": 1, "b": 1}, depth_requests=64, depth_bytes="64 MiB"),
    Front("proxy-sfq", "proxy", "sfq", {"a": 1, "b": 1}, depth_requests=64, depth_bytes="64 MiB"),
    Front("haproxy", "haproxy"),
    Front("haproxy-splice", "haproxy", splice=True),
]
PATHS = [DIRECT] + [front.name for front in FRONTS]
SIZES = [4 << 10, 64 << 10, 1 << 20, 4 << 20]
OPS = ["read", "write"]
LOADS = [(1, 1), (16, 1), (1, 8), (16, 8)]  # outstanding on each connection, connections
SERIAL_LOADS = [
    (1, 1),
    (1, 4),
    (1, 16),
]  # for BeeGFS, where a connection carries one request at a time
DEVICE = {"bandwidth": "400 MiB/s", "parallelism": 4}
MEMORY_CONNECTIONS = [64, 1000]
COLUMNS = [
    "op",
    "size",
    "outstanding",
    "connections",
    "path",
    "mib_per_s",
    "ops_per_s",
    "p50_us",
    "p99_us",
    "cpu_s_per_gib",
    "rss_mib",
    "client_cpu_s_per_gib",
    "server_cpu_s_per_gib",
]
NUMBERS = COLUMNS[5:]
MEMORY_COLUMNS = ["size", "connections", "requests", "mib_per_s", "start_rss_mib", "rss_mib"]
ROWS, STORAGE, MEMORY, CALLS = "rows", "device", "memory", "calls"
PARTS = [ROWS, STORAGE, MEMORY, CALLS]


@dataclasses.dataclass(frozen=True)
class Plan:
    runs: int
    seconds: float
    warm_up: float
    sizes: list[int]
    loads: list[tuple[int, int]]
    ops: list[str] = dataclasses.field(default_factory=lambda: list(OPS))
    protocol: str = "orangefs"
    limited_load: tuple[int, int] = (16, 8)
    memory_outstanding: int = 2
    traced: Sequence[Front] = tuple(FRONTS)

    def of_beegfs(self) -> Plan:
        sizes = [size for size in self.sizes if size <= 1 << 20]
        loads = (
            SERIAL_LOADS if len(self.loads) == len(LOADS) else [SERIAL_LOADS[0], SERIAL_LOADS[-1]]
        )
        return dataclasses.replace(
            self,
            sizes=sizes,
            loads=loads,
            protocol="beegfs",
            limited_load=(1, 16),
            memory_outstanding=1,
        )

    def with_settled_device(self) -> Plan:
        """A warm-up for a modelled device, where the first requests take a third of a second."""
        return dataclasses.replace(
            self, seconds=max(self.seconds, 2.0), warm_up=max(self.warm_up, 1.0)
        )


FULL = Plan(runs=5, seconds=2.0, warm_up=0.5, sizes=SIZES, loads=LOADS)
QUICK = Plan(
    runs=2,
    seconds=0.8,
    warm_up=0.2,
    sizes=[4 << 10, 1 << 20],
    loads=[(1, 1), (16, 8)],
    traced=FRONTS[1:2],
)


@dataclasses.dataclass(frozen=True)
class Case:
    op: str
    size: int
    outstanding: int
    connections: int

    def applications(self) -> list[Application]:
        """`connections` processes of one connection each.

        Half of them belong to the second application.
        """
        second = self.connections // 2
        counts = {"a": self.connections - second, "b": second}
        return [
            Application(
                name,
                self.size,
                self.outstanding,
                count,
                read_percent=100 if self.op == "read" else 0,
                file_size=max(32 << 20, 4 * self.size),
            )
            for name, count in counts.items()
            if count
        ]

    def fields(self) -> dict[str, object]:
        return {
            "op": self.op,
            "size": size_name(self.size),
            "outstanding": self.outstanding,
            "connections": self.connections,
        }


class Bench:
    def __init__(
        self,
        programs: Programs,
        plan: Plan,
        device: dict[str, object] | None = None,
        prefix: str = "",
        fronts: Sequence[Front] = FRONTS,
    ) -> None:
        self._programs = programs
        self._plan = plan
        self._cluster = Cluster(programs, 1, fronts, device, prefix, plan.protocol)
        for front in fronts:
            self._cluster.start(front.name)
        self._count = 0

    def once(self, case: Case, path: str) -> dict[str, float]:
        servers, middle = self._cluster.running[DIRECT], self._cluster.running[path]
        meter = CpuMeter({"server": servers} | ({} if path == DIRECT else {"middle": middle}))
        for program in middle:
            program.reset_peak_rss()
        self._count += 1

        plan = self._plan
        result = run_load(
            self._programs,
            f"load{self._count}-{path}",
            self._cluster.address(path),
            case.applications(),
            plan.seconds,
            plan.warm_up,
            on_line=meter.saw_line,
            on_start=meter.start,
        )
        used = meter.stop(plan.warm_up, plan.warm_up + plan.seconds)
        gib_per_s = result["total_mib_per_s"] / 1024
        facts = {
            "mib_per_s": result["total_mib_per_s"],
            "ops_per_s": result["total_ops_per_s"],
            "p50_us": quantile_us(result, 0.5),
            "p99_us": quantile_us(result, 0.99),
        }
        for name, column in (
            ("middle", "cpu_s_per_gib"),
            ("client", "client_cpu_s_per_gib"),
            ("server", "server_cpu_s_per_gib"),
        ):
            if name in used and gib_per_s > 0:
                facts[column] = used[name] / gib_per_s
        if path != DIRECT:
            facts["rss_mib"] = sum(program.peak_rss_mib() for program in middle)
        return facts

    def rows(self, case: Case, paths: list[str] = PATHS) -> list[Row]:
        """Measures the paths in turn, as often as the plan says. Returns medians."""
        seen: dict[str, list[dict[str, float]]] = {path: [] for path in paths}
        for _ in range(self._plan.runs):
            for path in paths:
                seen[path].append(self.once(case, path))
        rows: list[Row] = []
        for path, runs in seen.items():
            row: dict[str, object] = case.fields() | {"path": path}
            for column in NUMBERS:
                values = [run[column] for run in runs if column in run]
                row[column] = median(values) if values else None
            rows.append(row)
        return rows


def path_rows(binaries: pathlib.Path, work: pathlib.Path, plan: Plan) -> list[Row]:
    rows: list[Row] = []
    with Programs(binaries, work) as programs:
        bench = Bench(programs, plan)
        for op, size, (outstanding, connections) in itertools.product(
            plan.ops, plan.sizes, plan.loads
        ):
            part = bench.rows(Case(op, size, outstanding, connections))
            rows += part
            print("\n" + case_table(part), flush=True)
    return rows


def limited_rows(binaries: pathlib.Path, work: pathlib.Path, plan: Plan) -> list[Row]:
    """Runs with the server's storage device as the bottleneck."""
    with Programs(binaries, work) as programs:
        bench = Bench(programs, plan, DEVICE, "limited-")
        return [
            row
            for op in plan.ops
            for row in bench.rows(
                Case(op, 1 << 20, *plan.limited_load), [DIRECT, "proxy-fifo", "proxy-sfq"]
            )
        ]


def memory_rows(binaries: pathlib.Path, work: pathlib.Path, plan: Plan) -> list[Row]:
    """Peak resident memory of fresh proxies: of their start, and of many connections since then.

    All connections move data.
    """
    rows: list[Row] = []
    for size, connections in itertools.product([64 << 10, 1 << 20], MEMORY_CONNECTIONS):
        with Programs(binaries, work) as programs:
            cluster = Cluster(
                programs, 1, FRONTS[1:2], prefix=f"memory{connections}-", protocol=plan.protocol
            )
            (proxy,) = cluster.start("proxy-sfq")
            start = proxy.peak_rss_mib()
            proxy.reset_peak_rss()
            load = [
                Application(
                    name,
                    size,
                    plan.memory_outstanding,
                    connections // 2,
                    read_percent=50,
                    file_size=max(size, 1 << 20),
                )
                for name in ("a", "b")
            ]
            result = run_load(
                programs,
                f"memory{connections}",
                cluster.address("proxy-sfq"),
                load,
                max(2.0, plan.seconds),
                plan.warm_up,
            )
            rows.append(
                {
                    "op": "mixed",
                    "size": size_name(size),
                    "outstanding": plan.memory_outstanding,
                    "connections": connections,
                    "path": "proxy-sfq",
                    "mib_per_s": result["total_mib_per_s"],
                    "requests": sum(app["requests"] for app in result["applications"]),
                    "start_rss_mib": start,
                    "rss_mib": proxy.peak_rss_mib(),
                }
            )
    return rows


def call_rows(binaries: pathlib.Path, work: pathlib.Path, plan: Plan) -> list[Row]:
    with Programs(binaries, work) as programs:
        return system_calls.rows(programs, plan.traced, plan.protocol)


def case_table(rows: Sequence[Row]) -> str:
    """A table of the paths of one case, with the case as its title."""
    first = rows[0]
    load = overhead_figures.load_name((first["outstanding"], first["connections"]))
    return f"{first['op']} {first['size']}, {load}\n" + table(rows, ["path", *NUMBERS])


def draw(
    file: pathlib.Path, rows: Sequence[Row], memory: Sequence[Row], settings: Row, plan: Plan
) -> None:
    """FILE-throughput, FILE-cpu and so on."""
    haproxy = (
        "HAProxy mode tcp" if plan.protocol == "orangefs" else "HAProxy mode tcp, BeeGFS messages"
    )
    caption = plot.caption(
        settings,
        "one server with its files in memory",
        f"one vpfs-proxy of 1 worker, depth {FRONTS[0].depth_requests} requests and "
        f"{FRONTS[0].depth_bytes}",
        haproxy,
        f"medians of {plan.runs} interleaved runs of {plan.seconds:g} s after {plan.warm_up:g} s "
        "of warm-up",
    )

    def save(kind: str, make: Callable[[Sequence[Row], str], Figure], of: Sequence[Row]) -> None:
        if of:
            plot.save(file.parent / f"{file.name}-{kind}", lambda: make(of, caption))

    save("throughput", overhead_figures.throughput_figure, rows)
    save("cpu", overhead_figures.cpu_figure, rows)
    save("cpu-ratio", overhead_figures.cpu_ratio_figure, rows)
    save("latency", overhead_figures.latency_figure, rows)
    save("memory", overhead_figures.memory_figure, memory)


def settings_of(plan: Plan, quick: bool) -> dict[str, object]:
    return machine_settings() | {
        "build": "release",
        "quick": quick,
        "protocol": plan.protocol,
        "runs": plan.runs,
        "seconds": plan.seconds,
        "warm_up": plan.warm_up,
        "statistic": "median of interleaved runs; latencies are of all requests of both "
        "applications",
        "outstanding": "requests in flight on each connection",
        "connections": "processes of vpfs-load with one connection each; half of them belong to "
        "application a and half to b, with 1 b is idle; the same on every path",
        "pattern": "sequential, files of 32 MiB in the server's memory",
        "proxy": {
            front.name: {
                "policy": front.policy,
                "depth_requests": front.depth_requests,
                "depth_bytes": front.depth_bytes,
                "workers": 1,
                "local_congestion": "cubic",
            }
            for front in FRONTS
            if front.kind == "proxy"
        },
        "haproxy": "mode tcp, as packaged, threads by its default (one per processor)",
        "cpu_s_per_gib": "of what is in the middle; client_ and server_ are vpfs-load's and "
        + FILE_SYSTEMS[plan.protocol].program
        + "'s",
        "storage_limited": DEVICE,
    }


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench overhead")
    parser.add_argument(
        "--runs", type=one_or_more, help=f"interleaved runs of each case (default {FULL.runs})"
    )
    parser.add_argument(
        "--seconds", type=above_zero, help=f"measured in each run (default {FULL.seconds:g})"
    )
    parser.add_argument("--sizes", type=one_or_more, nargs="+", help="bytes of a request")
    parser.add_argument("--ops", nargs="+", choices=OPS)
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=PARTS,
        default=PARTS,
        help="paths beside each other, the same with a slow device, memory, system calls "
        "(default all)",
    )
    parser.add_argument("--protocol", choices=FILE_SYSTEMS, default="orangefs")
    return parser


def plan_of(quick: bool, options: argparse.Namespace) -> Plan:
    asked = {field: getattr(options, field) for field in ("runs", "seconds", "sizes", "ops")}
    plan = QUICK if quick else FULL
    plan = plan.of_beegfs() if options.protocol == "beegfs" else plan
    return dataclasses.replace(plan, **{field: value for field, value in asked.items() if value})


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    plan = plan_of(quick, options)
    require_programs(binaries, [FILE_SYSTEMS[plan.protocol].program])
    settings = settings_of(plan, quick)
    print_settings(settings)
    name = result_name("overhead", plan.protocol)
    work = out / name
    rows = path_rows(binaries, work, plan) if ROWS in options.parts else []
    limited: list[Row] = []
    memory: list[Row] = []
    calls: list[Row] = []
    if STORAGE in options.parts:
        limited = limited_rows(binaries, work, plan.with_settled_device())
        for case in overhead_targets.groups(limited):
            print(
                f"\nstorage-limited, {DEVICE['bandwidth']}: " + case_table(list(case.values())),
                flush=True,
            )
    if MEMORY in options.parts:
        memory = memory_rows(binaries, work, plan)
        print("\nresident memory\n" + table(memory, MEMORY_COLUMNS), flush=True)
    if CALLS in options.parts:
        calls = call_rows(binaries, work, plan)
        print(
            "\nsystem calls of an operation, one in flight\n" + table(calls, system_calls.COLUMNS)
        )

    targets = overhead_targets.check(rows, limited, memory)
    print("\n" + table(targets, ["target", "required", "measured", "verdict"]))
    write_json(
        out / f"{name}.json",
        {
            "settings": settings,
            "rows": rows,
            "storage_limited": limited,
            "memory": memory,
            "system_calls": calls,
            "targets": targets,
        },
    )
    draw(out / name, rows, memory, settings, plan)
    return 0
