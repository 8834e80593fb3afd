"""What the framework of AdapTBF costs: the end of a period, by the number of jobs."""

from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Sequence

from lab.harness import Problem
from lab.report import Json, Row, table
from lab.targets import one_at_most

PROGRAM = "vpfs-bench-adaptbf"
JOBS = (10, 100, 1000, 10_000)
PERIODS, QUICK_PERIODS = 200, 20
COLUMNS = [
    "jobs",
    "us_per_job",
    "allocator_us_per_job",
    "ms_per_period",
    "percent_of_period",
    "calls",
    "longest_call_us",
]
# A request may wait for one call. Ours, not the paper's.
LONGEST_CALL_US = 500.0
MOST_PERCENT = 5.0  # of a processor, with the most jobs


def measure(binaries: pathlib.Path, out: pathlib.Path, quick: bool) -> Json:
    file = out / "adaptbf" / "overhead.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    command = [
        str(binaries / PROGRAM),
        "--json",
        str(file.resolve()),
        "--periods",
        str(QUICK_PERIODS if quick else PERIODS),
        "--jobs",
        *map(str, JOBS),
    ]
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    if done.returncode != 0 or not file.exists():
        raise Problem(f"{PROGRAM} failed")
    found: Json = json.loads(file.read_text())
    return found


def overhead_table(rows: Sequence[Row]) -> str:
    return table(rows, COLUMNS)


def check_overhead(rows: Sequence[Row]) -> list[Row]:
    most = max(rows, key=lambda row: row["jobs"])
    return [
        one_at_most(
            f"overhead (ours): part of a processor with {most['jobs']:,} jobs",
            MOST_PERCENT,
            most["percent_of_period"],
            " %",
        ),
        one_at_most(
            "overhead (ours): the longest call of a period, median",
            LONGEST_CALL_US,
            max(row["longest_call_us"] for row in rows),
            " us",
        ),
    ]
