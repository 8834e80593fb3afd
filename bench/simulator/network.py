"""script/bench network: what a flow costs in the simulator's network."""

from __future__ import annotations

import json
import pathlib
import subprocess

from lab import targets
from lab.harness import Problem, machine_settings, median
from lab.report import Json, print_settings, table, write_json

FLOWS = [100, 300, 1000]
JUDGED = 300  # flows at a time
LEAST = 20_000.0
COLUMNS = ["topology", "policy", "flows", "changes_per_second", "virtual_ms"]


def measure(program: pathlib.Path, out: pathlib.Path, ends: int) -> list[Json]:
    file = out / "network-run.json"
    done = subprocess.run(
        [
            str(program),
            "--flows",
            ",".join(map(str, FLOWS)),
            "--ends",
            str(ends),
            "--json",
            str(file),
        ],
        check=False,
        stdout=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise Problem(f"{program.name} failed")
    rows = json.loads(file.read_text())["rows"]
    file.unlink()
    return rows


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool) -> int:
    ends, runs = (300, 1) if quick else (2000, 3)
    settings = machine_settings() | {
        "quick": quick,
        "runs": runs,
        "ends": ends,
        "policies": "none (NP), priority (FP), apportioned 50:50 (BA)",
        "flows": "at any time, between two nodes at random, of 64 KiB to 1 MiB, both classes "
        "equally often",
        "changes_per_second": "starts and ends of flows; medians",
    }
    print_settings(settings)
    out.mkdir(parents=True, exist_ok=True)
    parts = [measure(binaries / "vpfs-bench-network", out, ends) for _ in range(runs)]
    rows = [
        row | {"changes_per_second": median([part[index]["changes_per_second"] for part in parts])}
        for index, row in enumerate(parts[0])
    ]
    print("\n" + table(rows, COLUMNS))
    judged = [
        targets.one_at_least(
            f"{row['topology']}, {row['policy']}, {JUDGED} flows: changes per second",
            LEAST,
            row["changes_per_second"],
        )
        for row in rows
        if row["flows"] == JUDGED
    ]
    print("\n" + table(judged, targets.COLUMNS))
    write_json(out / "network.json", {"settings": settings, "rows": rows, "targets": judged})
    return 0
