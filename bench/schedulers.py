"""script/bench schedulers: what one request costs in each policy, and that against what is promised."""
from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Sequence

from bench.harness import Problem, machine_settings
from bench.report import Row, print_settings, table, write_json
from bench.targets import COLUMNS as TARGET_COLUMNS
from bench.targets import verdict

YARDSTICK = "priority_queue"
TURNS = 4
# On the machine that the limits were set for, the yardstick took so long: elsewhere the same ratio counts.
REFERENCE_NS = {1000: 60.0, 100_000: 143.0}
LIMITS_NS = {
    "fifo": {1000: 20.0, 100_000: 20.0},
    "sfq": {1000: 100.0, 100_000: 250.0},
    "tbf": {1000: 150.0, 100_000: 350.0},
    "edf": {1000: 150.0, 100_000: 350.0},
}


def check(rows: Sequence[Row], state: str = "") -> list[Row]:
    """A limit is kept in nanoseconds, or in parts of the yardstick's of the same run."""
    measured = {(row["policy"], row["flows"]): float(row["ns_per_request"]) for row in rows}
    lines = []
    for policy, limits in LIMITS_NS.items():
        for flows, limit in limits.items():
            if (policy, flows) not in measured:
                continue
            own, yardstick = measured[policy, flows], measured[YARDSTICK, flows]
            allowed = limit / REFERENCE_NS[flows]
            lines.append(verdict(f"{policy}, {flows} flows{state}", f"<= {limit:.0f} ns or {allowed:.2f} of {YARDSTICK}",
                                 f"{own:.0f} ns, {own / yardstick:.2f} of its {yardstick:.0f} ns",
                                 own <= limit or own / yardstick <= allowed))
    return lines


def measure(binaries: pathlib.Path, file: pathlib.Path, quick: bool, turns: int) -> dict:
    """Shows the program's own table too."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    command = [str(binaries / "vpfs-bench-schedulers"), "--json", str(file.resolve()), "--turns", str(turns),
               *(["--quick"] if quick else [])]
    if subprocess.run(command, check=False).returncode != 0 or not file.exists():
        raise Problem("vpfs-bench-schedulers failed")
    return json.loads(file.read_text())


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool) -> int:
    settings = machine_settings() | {
        "quick": quick, "reference ns of the yardstick": REFERENCE_NS,
        "statistic": "medians of interleaved rounds; p50 to max are of requests timed one by one, less what reading the clock "
                     "takes",
        "settled": f"the second table: every flow has had {TURNS} turns before, so that what many flows have in memory comes in "
                   "no order any more",
    }
    print_settings(settings)
    print(flush=True)
    fresh = measure(binaries, out / "schedulers" / "fresh.json", quick, 0)
    print("\nsettled", flush=True)
    settled = measure(binaries, out / "schedulers" / "settled.json", quick, TURNS)
    targets = check(fresh["rows"]) + check(settled["rows"], ", settled")
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "schedulers.json", {"settings": settings | fresh["settings"], "rows": fresh["rows"],
                                         "settled": settled["rows"], "targets": targets})
    return 0
