"""script/bench node: two applications on one BeeGFS node, one of them held to a crawl.

A node's connections to a storage server are few and carry one request at a time, so requests of the slow
application that wait would keep the fast one from the server.
"""
from __future__ import annotations

import argparse
import itertools
import pathlib
from collections.abc import Sequence

from bench.cluster import Cluster, Front
from bench.harness import Programs, machine_settings
from bench.load import Application, application_of, check_errors, run_load
from bench.report import Row, print_settings, table, write_json
from bench.rounds import STATISTIC, Facts, Rounds
from bench.status import read_status
from bench.targets import COLUMNS as TARGET_COLUMNS
from bench.targets import one_at_least

SLOW, FAST = "slow", "fast"
RATE = "1 MiB/s"  # what the slow one may have: 16 requests each second
READERS = 40
DEVICE = {"bandwidth": "1 GiB/s", "per_request": "1 ms", "parallelism": 8}
WARM_UP = 12.0  # until what was sent back has come again twice
FULL, QUICK = Rounds(seconds=20, runs=3), Rounds(seconds=6, runs=1)
CONNECTIONS = [12, 64]
LIMITS = ["off", "auto"]
NUMBERS = ["fast_ops_per_s", "fast_p99_ms", "slow_mib_per_s", "slow_p99_ms", "slow_max_ms", "sent_back"]


def front(limit: str) -> Front:
    return Front("px", "proxy", "sfq", {SLOW: 1, FAST: 1}, {SLOW: {"rate": RATE, "burst": "64 KiB"}},
                 limits={"max_held_per_client": limit})


def applications(connections: int, with_slow: bool) -> list[Application]:
    fast = Application(FAST, 4 << 10, read_percent=100, pattern="random", file_size=1 << 20, node="n1",
                       connections=connections)
    slow = Application(SLOW, 64 << 10, READERS, read_percent=100, pattern="random", file_size=4 << 20, node="n1",
                       connections=connections)
    return [slow, fast] if with_slow else [fast]


def once(programs: Programs, connections: int, limit: str, with_slow: bool, seconds: float) -> dict[str, float]:
    cluster = Cluster(programs, 1, [front(limit)], DEVICE, protocol="beegfs")
    cluster.start("px")
    result = run_load(programs, "load", cluster.address("px"), applications(connections, with_slow), seconds,
                      WARM_UP if with_slow else 1.0)
    check_errors(result)
    fast = application_of(result, FAST)
    facts = {"fast_ops_per_s": fast["ops_per_s"], "fast_p99_ms": fast["latency_us"]["p99"] / 1000}
    if with_slow:
        slow = application_of(result, SLOW)
        cluster.stop("px")  # which writes its last status
        facts |= {"slow_mib_per_s": slow["mib_per_s"], "slow_p99_ms": slow["latency_us"]["p99"] / 1000,
                  "slow_max_ms": slow["latency_us"]["max"] / 1000,
                  "sent_back": read_status(cluster.status_file("px"))["counters"]["excess_requests"]}
    return facts


def check(rows: Sequence[Row]) -> list[Row]:
    of = {(row["connections"], row["max_held_per_client"]): row for row in rows}
    return [one_at_least(f"{connections} connections, auto: the fast one beside the slow one / alone", 0.7,
                         float(of[connections, "auto"]["fast_ops_per_s"]) / float(of[connections, "alone"]["fast_ops_per_s"]))
            for connections in CONNECTIONS]


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench node")
    FULL.add_options(parser, QUICK)
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    rounds = (QUICK if quick else FULL).asked(options)
    settings = machine_settings() | {
        "quick": quick, "seconds": rounds.seconds, "warm_up": WARM_UP, "runs": rounds.runs, "statistic": STATISTIC,
        "protocol": "beegfs", "device": DEVICE, "slow": f"{READERS} readers of 64 KiB, held to {RATE}",
        "fast": "1 reader of 4 KiB on the same node", "policy": "sfq, depth 16",
        "alone": "the fast one without the slow one",
    }
    print_settings(settings)

    def one(case: tuple[int, str]) -> Facts:
        connections, limit = case
        alone = limit == "alone"
        with Programs(binaries, out / "node") as programs:
            return once(programs, connections, "auto" if alone else limit, not alone, rounds.seconds)

    rows = rounds.rows(itertools.product(CONNECTIONS, ["alone", *LIMITS]), one,
                       lambda case: {"connections": case[0], "max_held_per_client": case[1]}, NUMBERS)
    print("\n" + table(rows, ["connections", "max_held_per_client", *NUMBERS]), flush=True)
    targets = check(rows)
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "node.json", {"settings": settings, "rows": rows, "targets": targets})
    return 0
