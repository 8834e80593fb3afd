"""script/bench network: what a flow costs in the simulator's network."""

from __future__ import annotations

import pathlib

from bench.simulator.rates import Rates
from lab.report import Row

FLOWS = [100, 300, 1000]
JUDGED = 300  # flows at a time


def target(row: Row) -> str | None:
    if row["flows"] != JUDGED:
        return None
    return f"{row['topology']}, {row['policy']}, {JUDGED} flows: changes per second"


NETWORK = Rates(
    name="network",
    columns=["topology", "policy", "flows", "changes_per_second", "virtual_ms"],
    rate="changes_per_second",
    least=20_000.0,
    target=target,
)


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool) -> int:
    ends, runs = (300, 1) if quick else (2000, 3)
    settings = {
        "quick": quick,
        "ends": ends,
        "policies": "none (NP), priority (FP), apportioned 50:50 (BA)",
        "flows": "at any time, between two nodes at random, of 64 KiB to 1 MiB, both classes "
        "equally often",
        "changes_per_second": "starts and ends of flows; medians",
    }
    options = {"flows": ",".join(map(str, FLOWS)), "ends": ends}
    return NETWORK.run(binaries, out, options, settings, runs)
