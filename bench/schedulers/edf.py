"""script/bench edf: does a promised latency hold beside a flood?

Small reads compete with large writes that keep the device busy. The reads have a low, fixed rate:
each process begins one at the start of every interval, even if earlier ones are slow.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lab import plot
from lab.cluster import Cluster, Depth, Front
from lab.harness import Programs, machine_settings, median
from lab.load import Application, Burst, application_of, check_errors, late_requests, run_load
from lab.numbers import above_zero, one_or_more
from lab.points import tail
from lab.report import Json, Row, print_settings, table, write_json
from lab.status import read_status, virtual_pfs_of
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import one_at_least, one_at_most, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE = "200 MiB/s"
DEVICE = {"bandwidth": RATE, "per_request": "50 us", "parallelism": 4}
# Room for two large writes and some small reads. With 2 MiB, one of the writes would have to wait
# whenever a read is at the server.
DEPTH: Depth = {"depth_requests": 8, "depth_bytes": "2112 KiB"}
POLICIES = ["edf", "fifo", "sfq"]
LATENCY = 0.02
PROMISE = {"rate": "4 MiB/s", "burst": "64 KiB", "latency": f"{LATENCY * 1000:.0f} ms"}
INTERACTIVE, FLOOD = "interactive", "flood"
# Each process may begin requests in 2 ms of every 20 ms: one request, unless its answer comes
# within that.
EVERY = 0.02  # seconds from one burst of reads to the next
READS = Application(
    INTERACTIVE,
    4 << 10,
    processes=4,
    read_percent=100,
    pattern="random",
    file_size=4 << 20,
    burst=Burst(0.002, EVERY),
)
WRITES = Application(FLOOD, 1 << 20, outstanding=16, processes=2, file_size=32 << 20)
APPLICATIONS = [READS, WRITES]
WARM_UP = 1.0
SECONDS, QUICK_SECONDS = 60.0, 5.0
NUMBERS = [
    "reads_per_s",
    "p50_ms",
    "p99_ms",
    "max_ms",
    "late",
    "late_percent",
    "deadline_misses",
    "worst_tardiness_ms",
    "read_mib_per_s",
    "flood_mib_per_s",
    "total_mib_per_s",
]
COLUMNS = ["policy", *NUMBERS]
HISTOGRAM = "read_histogram_us"  # for each bucket its upper end and its number of reads
Facts = Row


def front(policy: str) -> Front:
    if policy == "edf":
        return Front(
            "px",
            "proxy",
            policy,
            {INTERACTIVE: 1, FLOOD: 1},
            {INTERACTIVE: PROMISE},
            scheduler={"edf": {"capacity": RATE, "largest_request": "1 MiB"}},
            **DEPTH,
        )
    return Front("px", "proxy", policy, {INTERACTIVE: 1, FLOOD: 1}, **DEPTH)


def facts_of(result: Json, status: Json | None) -> Facts:
    reads, flood = application_of(result, INTERACTIVE), application_of(result, FLOOD)
    late, requests = late_requests(reads, LATENCY * 1e6)
    own = virtual_pfs_of(status, INTERACTIVE) if status else {}
    worst = own.get("worst_tardiness_us")
    return {
        "reads_per_s": reads["ops_per_s"],
        "late": late,
        "late_percent": 100 * late / max(1, requests),
        **{f"{field}_ms": reads["latency_us"][field] / 1000 for field in ("p50", "p99", "max")},
        "deadline_misses": own.get("deadline_misses"),
        "worst_tardiness_ms": None if worst is None else worst / 1000,
        "promised": own.get("promised"),
        "read_mib_per_s": reads["mib_per_s"],
        "flood_mib_per_s": flood["mib_per_s"],
        "total_mib_per_s": result["total_mib_per_s"],
        HISTOGRAM: reads["latency_us"]["histogram"],
    }


def measure(binaries: pathlib.Path, work: pathlib.Path, policy: str, seconds: float) -> Facts:
    with Programs(binaries, work) as programs:
        cluster = Cluster(programs, 1, [front(policy)], DEVICE)
        cluster.start("px")
        result = run_load(programs, "load", cluster.address("px"), APPLICATIONS, seconds, WARM_UP)
        check_errors(result)
        cluster.stop("px")  # at its end it writes the last status
        return facts_of(result, read_status(cluster.status_file("px")) if policy == "edf" else None)


def row_of(policy: str, runs: Sequence[Facts]) -> Row:
    """Medians; but sums of what must never happen, and the largest of maxima."""
    combine: dict[str, Callable[[Sequence[float]], float]] = {
        "late": sum,
        "deadline_misses": sum,
        "max_ms": max,
        "worst_tardiness_ms": max,
    }
    row: dict[str, object] = {"policy": policy}
    for field in NUMBERS:
        values = [run[field] for run in runs if run[field] is not None]
        row[field] = combine.get(field, median)(values) if values else None
    return row


def check(rows: Sequence[Row], runs: Sequence[Facts]) -> list[Row]:
    """`runs` are the runs with policy edf."""
    of = {str(row["policy"]): row for row in rows}
    misses = of["edf"]["deadline_misses"]
    promised = all(run["promised"] for run in runs)
    best = max(float(of[policy]["total_mib_per_s"]) for policy in POLICIES)
    return [
        verdict("edf: the reads' curve is admitted", "yes", "yes" if promised else "no", promised),
        verdict("edf: deadlines missed, as the proxy counts them", "0", str(misses), misses == 0),
        one_at_most(
            f"edf: reads above {LATENCY * 1000:.0f} ms as the client sees them",
            0,
            float(of["edf"]["late"]),
        ),
        one_at_least(
            "edf: total / the best policy's", 0.97, float(of["edf"]["total_mib_per_s"]) / best
        ),
    ]


def figure(seen: Mapping[str, Sequence[Facts]], rows: Sequence[Row], caption: str) -> Figure:
    sheet = plot.Sheet(
        "A promised latency beside a flood of writes", caption, columns=2, heights=[3.2]
    )
    left, right = sheet.panels
    looks = plot.looks(list(seen))
    plot.lines(
        left,
        {
            policy: [
                (upper / 1000, part)
                for upper, part in tail([bucket for run in runs for bucket in run[HISTOGRAM]])
            ]
            for policy, runs in seen.items()
        },
        looks,
    )
    plot.limit(left, LATENCY * 1000, f"promised: {LATENCY * 1000:.0f} ms")
    plot.logarithmic(left, "x")
    plot.logarithmic(left, "y")
    plot.label(left, "latency (ms)", "reads that took longer (%)", "Interactive reads of 4 KiB")
    plot.bars(
        right,
        ["reads", "flood", "total"],
        {
            str(row["policy"]): [row[f"{who}_mib_per_s"] for who in ("read", "flood", "total")]
            for row in rows
        },
        looks,
    )
    plot.label(right, y="bandwidth (MiB/s)", title="What each side gets")
    return sheet.finish()


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench edf")
    parser.add_argument(
        "--seconds",
        type=above_zero,
        help=f"length of each run (default {SECONDS:g}; {QUICK_SECONDS:g} with --quick)",
    )
    parser.add_argument(
        "--runs", type=one_or_more, default=1, help="interleaved runs of each policy (default 1)"
    )
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    seconds = options.seconds or (QUICK_SECONDS if quick else SECONDS)
    settings = machine_settings() | {
        "quick": quick,
        "seconds": seconds,
        "warm_up": WARM_UP,
        "runs": options.runs,
        "statistic": "medians over the runs; misses and late reads are summed, maxima are of all "
        "runs",
        "servers": 1,
        "device": DEVICE,
        "depth": DEPTH,
        "promise under edf": PROMISE,
        "edf": front("edf").scheduler_config()["edf"],
        "weights": "equal",
        "applications": [application.config() for application in APPLICATIONS],
        "late": f"reads above {LATENCY * 1000:.0f} ms in vpfs-load's histogram (a bucket that "
        "reaches beyond it counts: from 19.9 ms), warm-up not included",
        "deadline_misses": "as the proxy counts them, warm-up included",
    }
    print_settings(settings)
    seen: dict[str, list[Facts]] = {policy: [] for policy in POLICIES}
    for _ in range(options.runs):
        for policy in POLICIES:
            seen[policy].append(measure(binaries, out / "edf", policy, seconds))
    rows = [row_of(policy, runs) for policy, runs in seen.items()]
    print("\n" + table(rows, COLUMNS), flush=True)
    targets = check(rows, seen["edf"])
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(
        out / "edf.json", {"settings": settings, "rows": rows, "runs": seen, "targets": targets}
    )
    plot.save(
        out / "edf",
        lambda: figure(
            seen,
            rows,
            plot.caption(
                settings,
                f"one server of {RATE}, depth {DEPTH['depth_requests']} requests and "
                f"{DEPTH['depth_bytes']}",
                f"{READS.processes} readers every {EVERY * 1000:.0f} ms, "
                f"{WRITES.processes * WRITES.outstanding} writes of 1 MiB in flight",
                f"{options.runs} x {seconds:g} s of each policy, after {WARM_UP:g} s of warm-up",
            ),
        ),
    )
    return 0
