"""The set of record: what is run for it, with which settings, and what is kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from lab.record import overhead, summaries
from lab.record.summaries import Summary

ROUNDS = 5
MOST_MINUTES = 30  # of one run of a benchmark


@dataclasses.dataclass(frozen=True)
class Entry:
    """A record. Each round runs the benchmark once with each part's arguments."""

    name: str
    benchmark: str
    tables: Mapping[str, Summary]
    parts: tuple[tuple[str, ...], ...] = ((),)
    minutes: float = 10  # of a round, about
    rounds: int = ROUNDS

    def command(self, part: int, quick: bool = False) -> list[str]:
        if not quick:
            return [self.benchmark, *self.parts[part]]
        words = list(self.parts[part])
        for long in ("--seconds", "--scale"):
            if long in words:
                at = words.index(long)
                del words[at : at + 2]
        return [self.benchmark, *words, "--quick"]


SITES = (10, 100, 1000)  # servers
OF_WANTED = {"ratio": "ratio", "of_wanted": "of the wanted", "total_mib_per_s": "MiB/s"}
VPFS_PARTS = ("overhead", "ratios", "rates", "asymmetric")
SECONDS_OF_REAL = {"asymmetric": "15"}  # a coordinator is at its goal after some seconds


def tables_of_vpfs(site: str) -> dict[str, Summary]:
    """Those of script/bench vpfs with the servers and clients of `site`."""
    return {
        "overhead": summaries.of_vpfs(
            site,
            "overhead",
            ["op", "processes", "path"],
            {"total_mib_per_s": "MiB/s", "of_direct": "of direct"},
        ),
        "ratios": summaries.of_vpfs(
            site, "ratios", ["wanted", "path"], {**OF_WANTED, "of_direct": "of direct"}
        ),
        "rates": summaries.of_vpfs(site, "rates", ["size", "processes"], OF_WANTED),
        "asymmetric": summaries.of_vpfs(site, "asymmetric", ["setup", "path"], OF_WANTED),
    }


ONCE = ("--runs", "1")  # in each round; the rounds are the runs
SET = [
    Entry(
        "overhead",
        "overhead",
        {
            "haproxy": overhead.haproxy,
            "small": overhead.small,
            "device": overhead.device_bound,
            "calls": overhead.calls,
        },
        ((*ONCE, "--seconds", "2", "--parts", "rows", "device", "calls"),),
        10,
    ),
    Entry("memory", "overhead", {"resident": overhead.memory}, (("--parts", "memory"),), minutes=1),
    Entry(
        "sharing",
        "sharing",
        {"shares": summaries.shares},
        # On four servers the lighter application waits 6 s for its first answers of 1 MiB at 32:1.
        tuple(
            (
                *(*ONCE, "--seconds", seconds, "--servers", servers, "--ops", "read", "write"),
                *("--sizes", *sizes, "--weights", "2", "8", "32"),
            )
            for seconds, servers, sizes in (
                ("4", "1", ("65536", "1048576")),
                ("4", "4", ("65536",)),
                ("20", "4", ("1048576",)),
            )
        ),
        15,
    ),
    Entry(
        "schedulers",
        "schedulers",
        {
            "fresh": summaries.nanoseconds("rows"),
            "settled": summaries.nanoseconds("settled"),
            "ratios": summaries.beside_a_plain_queue,
        },
        minutes=5,
    ),
    Entry(
        "fuse",
        "fuse",
        {
            "posix": summaries.mounts("posix-fifo"),
            "directory": summaries.beside_directory,
            "orangefs": summaries.mounts("orangefs"),
        },
        ((*ONCE, "--seconds", "2"),),
        5,
    ),
    Entry(
        "fio",
        "fio",
        {"shares": summaries.heavier_shares(["profile", "processes", "mounts"])},
        (("--seconds", "10", "--scale", "0.5", "--processes", "1", "16", "--mounts", "1"),),
        8,
    ),
    Entry("ior", "ior", {"shares": summaries.heavier_shares(["test", "op"])}, minutes=4),
    Entry(
        "anticipation",
        "anticipation",
        {
            "virtual": summaries.virtual_anticipation,
            "real": summaries.real_anticipation("real"),
            "orangefs": summaries.real_anticipation("orangefs"),
        },
        tuple(
            (*ONCE, "--seconds", "3", "--only", part) for part in ("virtual", "real", "orangefs")
        ),
        33,
        rounds=2,
    ),
    Entry(
        "control",
        "control",
        {"cycles": summaries.cycles},
        (
            (
                *(*ONCE, "--seconds", "2"),
                *("--stages", "50", "2500", "10000", "--aggregators", "0", "4"),
            ),
        ),
        5,
    ),
    Entry("aggregators", "aggregators", {"cycles": summaries.by_aggregators}, (ONCE,), 4),
    Entry(
        "control_impact",
        "control_impact",
        {"loads": summaries.loads_under_control},
        ((*ONCE, "--loads", "vpfs-load", "fio", "ior"),),
        8,
        rounds=3,
    ),
    Entry(
        "total",
        "total",
        {"ratios": summaries.totals},
        (("--periods", "50", "--parts", "rows", "--rows", "2:1$"),),
        8,
    ),
    Entry(
        "attacks",
        "attacks",
        {"victims": summaries.victims},
        tuple(("--protocol", protocol) for protocol in ("orangefs", "beegfs", "mount")),
        40,
        rounds=1,  # it has many attacks, and the worst second of each counts
    ),
    Entry(
        "vpfs",
        "vpfs",
        tables_of_vpfs("vpfs-server"),
        tuple(
            (*ONCE, "--seconds", "5", "--servers", "vpfs-server", "--parts", part)
            for part in VPFS_PARTS
        ),
        8,
    ),
    Entry(
        "vpfs-real",  # OrangeFS's own servers
        "vpfs",
        tables_of_vpfs("mpiio"),
        tuple(
            (
                *ONCE,
                "--servers",
                "mpiio",
                "--parts",
                part,
                "--seconds",
                SECONDS_OF_REAL.get(part, "5"),
            )
            for part in VPFS_PARTS
        ),
        8,
        rounds=3,
    ),
    Entry(
        "adaptbf",
        "adaptbf",
        {
            "throughput": summaries.beside_none("mib_per_s", "total_mib_per_s"),
            "p99": summaries.beside_none("p99_ms"),
            "shares": summaries.share_errors,
            "paid-back": summaries.pay_backs,
            "periods": summaries.token_periods,
            "overhead": summaries.period_costs,
        },
        tuple(
            (*ONCE, "--scale", "8", "--experiments", *experiments)
            for experiments in (("a", "b"), ("c",), ("d",), ("overhead",))
        ),
        20,
        rounds=3,
    ),
    # A run has many faults, or hand-overs, whose worst counts.
    Entry(
        "takeover",
        "takeover",
        {"takeovers": summaries.takeovers, "idle": summaries.idle_requests},
        minutes=12,
        rounds=1,
    ),
    Entry(
        "members",
        "members",
        {"cycles": summaries.members, "again": summaries.led_again},
        (("--runs", "5"),),
        minutes=8,
        rounds=1,
    ),
    Entry(
        "restart",
        "restart",
        {
            "pauses": summaries.pauses,
            "faults": summaries.hand_over_faults,
            "shares": summaries.shares_in_hand_overs,
        },
        tuple(
            ("--policies", policy, "--protocols", *protocols, "--times", times)
            for policy, protocols, times in (
                ("sfq", ("orangefs", "beegfs"), "200"),
                ("fifo", ("orangefs",), "50"),
                ("edf", ("orangefs",), "50"),
                ("tbf", ("orangefs",), "50"),
                ("adaptbf", ("orangefs",), "50"),
            )
        ),
        minutes=22,
        rounds=1,
    ),
    Entry(
        "anticipation-2",  # with a loss of at most 2 %
        "anticipation",
        {"virtual": summaries.virtual_anticipation},
        (("--only", "virtual", "--max-loss", "2"),),
        rounds=1,
    ),
    Entry("engine", "engine", {"events": summaries.events}, minutes=1),
    # In virtual time, each run of it gives the same.
    Entry(
        "scale",
        "scale",
        {f"servers-{count}": summaries.site(count) for count in SITES},
        tuple(("--servers", str(count)) for count in SITES),
        45,
        rounds=1,
    ),
]
