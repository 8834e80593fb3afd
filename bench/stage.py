"""script/bench stage: what the parts of a stage cost that lie on the way of requests, and what waits for its lock.

Rules, copying of counters and retiring are measured by vpfs-bench-stage; the status of many virtual PFSes by what it does
to the latency of small reads through a proxy.
"""
from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
from collections.abc import Sequence

from bench.cluster import Front
from bench.harness import Problem, Programs, machine_settings, median
from bench.overhead import Bench, Case, Plan
from bench.report import Row, print_settings, table, write_json
from bench.targets import COLUMNS as TARGET_COLUMNS
from bench.targets import one_at_most

COLUMNS = ["case", "rules", "attribute", "virtual_pfs", "ns_p50", "ns_p99", "lock_us_max"]
MANY = 1000
INTERVAL = "1 s"
NONE, FEW, ALL = "no-status", "status-of-2", f"status-of-{MANY}"
READS = Case("read", 4 << 10, 16, 1)
FULL = Plan(runs=9, seconds=3.0, warm_up=0.5, sizes=[], loads=[])
QUICK = Plan(runs=3, seconds=2.0, warm_up=0.3, sizes=[], loads=[])
STATUS_COLUMNS = ["proxy", "ops_per_s", "p50_us", "p99_us", "p99_of_none"]


def fronts() -> list[Front]:
    """All have the same rules and virtual PFSes but the one of few; the job that reads matches the last rule."""
    many = {f"job{i}": 1 for i in range(MANY - 2)} | {"a": 1}
    never, often = {"status_interval": "1 h"}, {"status_interval": INTERVAL}
    depth = {"depth_requests": 64, "depth_bytes": "64 MiB"}
    return [Front(NONE, "proxy", "sfq", many, proxy=never, **depth), Front(FEW, "proxy", "sfq", {"a": 1}, proxy=often, **depth),
            Front(ALL, "proxy", "sfq", many, proxy=often, **depth)]


def measure_parts(binaries: pathlib.Path, quick: bool) -> list[dict]:
    command = [str(binaries / "vpfs-bench-stage"), *(["--quick"] if quick else [])]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise Problem(f"vpfs-bench-stage failed:\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure_status(binaries: pathlib.Path, out: pathlib.Path, plan: Plan) -> list[Row]:
    seen: dict[str, list[dict[str, float]]] = {front.name: [] for front in fronts()}
    with Programs(binaries, out / "stage") as programs:
        bench = Bench(programs, plan, fronts=fronts())
        for index in range(plan.runs):
            # There and back, so that whoever comes after whom differs.
            for name in seen if index % 2 == 0 else reversed(list(seen)):
                seen[name].append(bench.once(READS, name))
    return [{"proxy": name} | {field: median([run[field] for run in runs]) for field in ("ops_per_s", "p50_us", "p99_us")}
            | {"p99_of_none": median([own["p99_us"] / none["p99_us"] for own, none in zip(runs, seen[NONE])])}
            for name, runs in seen.items()]


def check(parts: Sequence[dict], status: Sequence[Row]) -> list[Row]:
    rows = lambda case: [row for row in parts if row["case"] == case]  # noqa: E731
    classified = [row for row in rows("classify") if row["rules"] == 1000]
    copied = next(row for row in rows("copy") if row["virtual_pfs"] == 1000)
    slowest = max(classified, key=lambda row: row["ns_p50"])
    return [
        one_at_most(f"1,000 rules that do not match, slowest attribute ({slowest['attribute']})", 1.0, slowest["ns_p50"] / 1000, " us"),
        one_at_most("copying the counters of 1,000 virtual PFSes", 200.0, copied["ns_p50"] / 1000, " us"),
        one_at_most("longest lock while 128 rows are copied", 10.0, max(row["lock_us_max"] for row in rows("copy")), " us"),
        one_at_most(f"p99 of 4 KiB reads with the status of {MANY} / without status", 1.05,
                    float(next(row for row in status if row["proxy"] == ALL)["p99_of_none"])),
    ]


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool) -> int:
    plan = QUICK if quick else FULL
    settings = machine_settings() | {
        "quick": quick, "plan of the reads": dataclasses.asdict(plan), "status_interval": INTERVAL,
        "statistic": "of classify and retire: quantiles over batches of calls; of copy: over whole copies; lock_us_max: the "
                     "longest lock of a round, median over the rounds; of the status: medians of interleaved runs, ratios "
                     "within a round",
        "reads": "4 KiB, one connection with 16 in flight, sequential, a file of 32 MiB in the server's memory; 1,000 rules "
                 "by jobid, the last one matches",
    }
    print_settings(settings)
    parts = measure_parts(binaries, quick)
    print("\n" + table(parts, COLUMNS), flush=True)
    status = measure_status(binaries, out, plan)
    print("\n" + table(status, STATUS_COLUMNS))
    targets = check(parts, status)
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "stage.json", {"settings": settings, "rows": parts, "status": status, "targets": targets})
    return 0
