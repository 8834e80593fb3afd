#!/usr/bin/env python3
"""Runs a benchmark of bench/: prints its settings and tables, writes bench-out/NAME.json and figures."""
from __future__ import annotations

import argparse
import importlib
import pathlib
import sys
import time
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import interpreter  # noqa: E402

interpreter.with_packages()

from bench.harness import Problem, busy_share, require_programs, run_main  # noqa: E402
from bench.report import result_name  # noqa: E402

BENCHMARKS = {
    "overhead": ["vpfs-proxy", "vpfs-load"],  # and the server of the protocol
    "sharing": ["vpfs-proxy", "vpfs-load"],
    "relay": ["vpfs-bench-relay"],
    "schedulers": ["vpfs-bench-schedulers"],
    "anticipation": ["vpfs-bench-anticipation", "vpfs-server", "vpfs-proxy", "vpfs-load", "vpfs-mount"],
    "adaptbf": ["vpfs-server", "vpfs-proxy", "vpfs-load"],
    "edf": ["vpfs-server", "vpfs-proxy", "vpfs-load"],
    "priority": ["vpfs-server", "vpfs-proxy", "vpfs-load"],
    "node": ["vpfs-bench-beegfs-storage", "vpfs-proxy", "vpfs-load"],
    "attacks": ["vpfs-server", "vpfs-bench-beegfs-storage", "vpfs-proxy", "vpfs-load"],
    "stage": ["vpfs-bench-stage", "vpfs-server", "vpfs-proxy", "vpfs-load"],
    "control": ["vpfs-coordinator", "vpfs-bench-virtual-stages", "vpfs-bench-control-floor"],
    "control_port": ["vpfs-bench-control", "vpfs-server", "vpfs-proxy", "vpfs-load"],
    "control_attack": ["vpfs-server", "vpfs-proxy", "vpfs-load"],
    "total": ["vpfs-server", "vpfs-proxy", "vpfs-load", "vpfsctl"],
    "control_impact": ["vpfs-server", "vpfs-proxy", "vpfs-load"],
    "policies": ["vpfs-server", "vpfs-proxy", "vpfs-load"],
    "fuse": ["vpfs-mount", "vpfs-server", "vpfs-load"],
    "fio": ["vpfs-mount", "vpfs-server", "vpfs-proxy"],
    "ior": ["vpfs-mount", "vpfs-server", "vpfs-proxy"],
    "simulator": ["vpfs-sim", "vpfs-server", "vpfs-proxy", "vpfs-load"],
    "scale": ["vpfs-sim"],
    "engine": ["vpfs-bench-engine"],
    "network": ["vpfs-bench-network"],
    "placement": ["vpfs-bench-placement"],
}
# Where bench/NAME.py has another name, since bench/NAME is a folder.
MODULES = {"control": "control_cycles"}
BUSY = 0.3


def module_of(name: str) -> types.ModuleType:
    return importlib.import_module(f"bench.{MODULES.get(name, name)}")


def print_help(parser: argparse.ArgumentParser) -> None:
    """Prints the help of this script, and of the named benchmark or of all."""
    parser.print_help()
    for name in [name for name in BENCHMARKS if name in sys.argv] or BENCHMARKS:
        benchmark = module_of(name)
        if hasattr(benchmark, "option_parser"):
            print()
            benchmark.option_parser().print_help()


def main() -> int:
    parser = argparse.ArgumentParser(prog="script/bench", description="Runs a benchmark of vpfs.", add_help=False)
    parser.add_argument("-h", "--help", action="store_true", help="show this and the benchmark's own options")
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument("--quick", action="store_true",
                        help="fewer sizes, fewer and shorter runs: at most 3 minutes (attacks: 10)")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin", help="where the programs are")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench-out")
    parser.add_argument("--anyway", action="store_true", help="measure even on a busy machine")
    if {"-h", "--help"} & set(sys.argv[1:]):
        print_help(parser)
        return 0
    options, rest = parser.parse_known_args()

    require_programs(options.bin, BENCHMARKS[options.name])
    busy = busy_share()
    if busy > BUSY and not options.anyway:
        raise Problem(f"other programs use {busy:.0%} of the processors, so numbers would mean little "
                      "(--anyway measures all the same)")
    benchmark = module_of(options.name)
    extra = [benchmark.option_parser().parse_args(rest)] if hasattr(benchmark, "option_parser") else []
    if rest and not extra:
        parser.error(f"unknown: {' '.join(rest)}")
    if options.quick:
        print("quick: fewer sizes, fewer and shorter runs than the numbers of record")
    start = time.monotonic()
    code = benchmark.run(options.bin.resolve(), options.out, options.quick, *extra)
    name = result_name(options.name, getattr(extra[0], "protocol", "orangefs") if extra else "orangefs")
    figures = f", figures {name}*.svg and .png beside it" if any(options.out.glob(f"{name}*.svg")) else ""
    print(f"\n{options.out / name}.json{figures}, {time.monotonic() - start:.0f} s")
    return code


if __name__ == "__main__":
    run_main(main)
