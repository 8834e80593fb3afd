#!/usr/bin/env python3
"""Runs a whole site in network namespaces, hits it with a fault every second, and checks it.

docs/chaos.md says what is hit and what is checked. The same seed makes the same faults. Exit codes:
0 nothing was violated, 1 something was, 77 it cannot run here.
"""

from __future__ import annotations

import argparse
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lab.chaos import configs
from lab.chaos import run as chaos
from lab.chaos.schedule import KINDS, schedule
from lab.harness import run_main
from lab.numbers import above_zero, whole

SKIPPED = 77
MOST_SEED = 1 << 32


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="script/chaos", description="Puts a whole site in trouble, and checks that it holds."
    )
    parser.add_argument(
        "--minutes", type=above_zero, default=60.0, help="how long faults come (60)"
    )
    parser.add_argument("--seed", type=whole, help="of the sequence of faults; any by default")
    parser.add_argument(
        "--only", metavar="KIND", action="append", choices=list(KINDS), help="these faults alone"
    )
    parser.add_argument(
        "--policy",
        choices=[configs.PSFA, configs.TOTAL],
        default=configs.PSFA,
        help="of the coordinators; total has no limits",
    )
    parser.add_argument("--list", action="store_true", help="print the faults and run nothing")
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "build/dev/bin")
    parser.add_argument("--logs", type=pathlib.Path, default=ROOT / "build/logs/chaos")
    options = parser.parse_args()
    seed = random.randrange(MOST_SEED) if options.seed is None else options.seed
    kinds = tuple(options.only or KINDS)
    if options.list:
        for fault in schedule(seed, options.minutes * 60, kinds):
            print(f"{fault.at:7.0f} s  {fault.title()}, {fault.until - fault.at:.1f} s")
        return 0
    if why := chaos.why_not():
        print(f"skipped: {why}")
        return SKIPPED
    seconds = options.minutes * 60
    return chaos.run(
        chaos.Options(seconds, seed, options.binaries, options.logs, kinds, options.policy)
    )


if __name__ == "__main__":
    run_main(main)
