#!/usr/bin/env python3
"""Runs a benchmark of bench/ by its name.

It prints settings and tables, and writes bench-out/NAME.json and figures.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import pathlib
import sys
import time
import types
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lab import interpreter

interpreter.with_packages()

from lab.harness import Problem, busy_share, require_programs, run_main
from lab.report import result_name


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """A module of bench/, and the programs that it cannot do without."""

    module: str
    programs: Sequence[str]

    def load(self) -> types.ModuleType:
        return importlib.import_module(f"bench.{self.module}")


LIVE = ("vpfs-server", "vpfs-proxy", "vpfs-load")
BENCHMARKS = {
    "overhead": Benchmark(
        "data_path.overhead", ["vpfs-proxy", "vpfs-load"]
    ),  # and the server of the protocol
    "sharing": Benchmark("schedulers.sharing", ["vpfs-proxy", "vpfs-load"]),
    "relay": Benchmark("data_path.relay", ["vpfs-bench-relay"]),
    "schedulers": Benchmark("schedulers.schedulers", ["vpfs-bench-schedulers"]),
    "anticipation": Benchmark(
        "schedulers.anticipation", [*LIVE, "vpfs-bench-anticipation", "vpfs-mount"]
    ),
    "adaptbf": Benchmark("schedulers.adaptbf", [*LIVE, "vpfs-bench-adaptbf", "vpfs-sim"]),
    "edf": Benchmark("schedulers.edf", LIVE),
    "vpfs": Benchmark("schedulers.vpfs", [*LIVE, "vpfs-coordinator", "vpfs-mount"]),
    "priority": Benchmark("schedulers.priority", LIVE),
    "node": Benchmark("schedulers.node", ["vpfs-bench-beegfs-storage", "vpfs-proxy", "vpfs-load"]),
    "attacks": Benchmark("attacks.run", [*LIVE, "vpfs-bench-beegfs-storage"]),
    "stage": Benchmark("data_path.stage", [*LIVE, "vpfs-bench-stage"]),
    "control": Benchmark(
        "control.control_cycles",
        ["vpfs-coordinator", "vpfs-bench-virtual-stages", "vpfs-bench-control-floor"],
    ),
    "control_port": Benchmark("control.control_port", [*LIVE, "vpfs-bench-control"]),
    "control_attack": Benchmark("control.control_attack", LIVE),
    "takeover": Benchmark("control.takeover", ["vpfs-coordinator", "vpfs-proxy", "vpfsctl"]),
    "members": Benchmark("control.members", ["vpfs-coordinator", "vpfs-bench-virtual-stages"]),
    "aggregators": Benchmark(
        "control.aggregators", ["vpfs-coordinator", "vpfs-bench-virtual-stages"]
    ),
    "total": Benchmark("control.total", [*LIVE, "vpfsctl"]),
    "control_impact": Benchmark("control.control_impact", LIVE),
    "insight": Benchmark("insight.insight", [*LIVE, "vpfs-coordinator", "vpfsctl"]),
    "restart": Benchmark("data_path.restart", LIVE),
    "policies": Benchmark("data_path.policies", LIVE),
    "fuse": Benchmark("mounts.fuse", ["vpfs-mount", "vpfs-server", "vpfs-load"]),
    "fio": Benchmark("mounts.fio", ["vpfs-mount", "vpfs-server", "vpfs-proxy"]),
    "ior": Benchmark("mounts.ior", ["vpfs-mount", "vpfs-server", "vpfs-proxy"]),
    "simulator": Benchmark("simulator.simulator", [*LIVE, "vpfs-sim"]),
    "scale": Benchmark("simulator.scale", ["vpfs-sim"]),
    "engine": Benchmark("simulator.engine", ["vpfs-bench-engine"]),
    "network": Benchmark("simulator.network", ["vpfs-bench-network"]),
    "placement": Benchmark("simulator.placement", ["vpfs-bench-placement"]),
}
BUSY = 0.3


def print_help(parser: argparse.ArgumentParser) -> None:
    """Prints the help of this script, and of the named benchmark or of all."""
    parser.print_help()
    for name in [name for name in BENCHMARKS if name in sys.argv] or BENCHMARKS:
        benchmark = BENCHMARKS[name].load()
        if hasattr(benchmark, "option_parser"):
            print()
            benchmark.option_parser().print_help()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="script/bench",
        description="Runs a benchmark of vpfs.",
        epilog="script/bench record runs the set of record (record --help has its options).",
        add_help=False,
    )
    parser.add_argument(
        "-h", "--help", action="store_true", help="show this and the benchmark's own options"
    )
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer sizes, fewer and shorter runs: at most 3 minutes (attacks: 10)",
    )
    parser.add_argument(
        "--bin",
        type=pathlib.Path,
        default=ROOT / "build/release/bin",
        help="where the programs are",
    )
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench-out")
    parser.add_argument("--anyway", action="store_true", help="measure even on a busy machine")
    if {"-h", "--help"} & set(sys.argv[1:]):
        print_help(parser)
        return 0
    options, rest = parser.parse_known_args()

    require_programs(options.bin, BENCHMARKS[options.name].programs)
    busy = busy_share()
    if busy > BUSY and not options.anyway:
        raise Problem(
            f"other programs use {busy:.0%} of the processors, so numbers would mean little "
            "(--anyway measures all the same)"
        )
    benchmark = BENCHMARKS[options.name].load()
    extra = (
        [benchmark.option_parser().parse_args(rest)] if hasattr(benchmark, "option_parser") else []
    )
    if rest and not extra:
        parser.error(f"unknown: {' '.join(rest)}")
    if options.quick:
        print("quick: fewer sizes, fewer and shorter runs than the numbers of record")
    start = time.monotonic()
    code = benchmark.run(options.bin.resolve(), options.out, options.quick, *extra)
    name = result_name(
        options.name, getattr(extra[0], "protocol", "orangefs") if extra else "orangefs"
    )
    figures = (
        f", figures {name}*.svg and .png beside it" if any(options.out.glob(f"{name}*.svg")) else ""
    )
    print(f"\n{options.out / name}.json{figures}, {time.monotonic() - start:.0f} s")
    return code


if __name__ == "__main__":
    run_main(main)
