"""script/bench engine: events per second of the simulator's engine, by how many are pending."""

from __future__ import annotations

import json
import pathlib
import subprocess

from lab import targets
from lab.harness import Problem, machine_settings, median
from lab.report import Json, print_settings, table, write_json

PENDING = [1, 100, 10_000, 1_000_000]
JUDGED = 10_000  # pending events: a run of vpfs-sim has some thousands
LEAST = 2_000_000.0
COLUMNS = ["pending", "cancel_percent", "events_per_second"]


def measure(program: pathlib.Path, out: pathlib.Path, events: int) -> list[Json]:
    file = out / "engine-run.json"
    done = subprocess.run(
        [
            str(program),
            "--pending",
            ",".join(map(str, PENDING)),
            "--events",
            str(events),
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
    events, runs = (1_000_000, 1) if quick else (5_000_000, 5)
    settings = machine_settings() | {
        "quick": quick,
        "runs": runs,
        "events": events,
        "model": "each event plans another one after up to 1 ms; one core",
        "cancel_percent": "events that also cancel another one and plan it anew",
        "events_per_second": "without cancelled ones; medians",
    }
    print_settings(settings)
    out.mkdir(parents=True, exist_ok=True)
    parts = [measure(binaries / "vpfs-bench-engine", out, events) for _ in range(runs)]
    rows = [
        row | {"events_per_second": median([part[index]["events_per_second"] for part in parts])}
        for index, row in enumerate(parts[0])
    ]
    print("\n" + table(rows, COLUMNS))
    judged = [
        targets.one_at_least(
            f"{JUDGED} pending, {row['cancel_percent']} % cancel: events per second",
            LEAST,
            row["events_per_second"],
        )
        for row in rows
        if row["pending"] == JUDGED
    ]
    print("\n" + table(judged, targets.COLUMNS))
    write_json(out / "engine.json", {"settings": settings, "rows": rows, "targets": judged})
    return 0
