"""script/bench vpfs: the evaluation of [VPFS], in its own set-up.

Two applications write and read files that are striped over four servers, straight, through proxies
that pass on what comes first (fifo), through proxies that share (sfq), and with a coordinator over
these (total). Where OrangeFS's own servers and IOR are installed, they do the same.
"""

from __future__ import annotations

import argparse
import functools
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Protocol

from bench.schedulers import vpfs_double, vpfs_figures, vpfs_real
from bench.schedulers.vpfs_cases import (
    ASYMMETRIC,
    FULL,
    OVERHEAD,
    PARTS,
    QUICK,
    RATES,
    RATIOS,
    READ,
    SFQ,
    TOTAL,
    WRITE,
    Case,
)
from lab import ior, plot
from lab.file_systems import DIRECT
from lab.harness import machine_settings
from lab.report import Row, print_settings, table, write_json
from lab.rounds import STATISTIC, Facts, Rounds
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import at_least

SITES = [vpfs_double.NAME, *vpfs_real.CLIENTS]
LENGTHS, SHORT = Rounds(seconds=8, runs=3), Rounds(seconds=3, runs=1)
# What the paper's summary says of its prototype.
LEAST_OF_DIRECT = {WRITE: 0.97, READ: 0.99}
LEAST_OF_RATIO = 0.96
NUMBERS = ["a_mib_per_s", "b_mib_per_s", "total_mib_per_s", "ratio"]
COLUMNS = {
    OVERHEAD: ["op", "size", "processes", "path", "total_mib_per_s", "of_direct"],
    RATIOS: ["wanted", "path", "ratio", "of_wanted", "total_mib_per_s", "of_direct"],
    RATES: ["size", "processes", "wanted", "ratio", "of_wanted", "total_mib_per_s"],
    ASYMMETRIC: ["setup", "path", "wanted", "ratio", "of_wanted", "total_mib_per_s"],
}


class Site(Protocol):
    """Where cases are measured."""

    def why_not(self, case: Case) -> str:
        """Why a case cannot be measured; empty if it can."""

    def measure(self, case: Case, length: float) -> Mapping[str, float]:
        """MiB/s by application."""


def facts_of(rates: Mapping[str, float]) -> Facts:
    ratio = None
    if "b" in rates:
        ratio = rates["a"] / rates["b"] if rates["b"] else math.inf
    return {
        **{f"{name}_mib_per_s": rate for name, rate in rates.items()},
        "total_mib_per_s": sum(rates.values()),
        "ratio": ratio,
    }


def closeness(ratio: float, wanted: float) -> float:
    """How much of the wanted ratio was reached; what is above it counts as what is below.

    Zero: one of them got nothing.
    """
    return min(ratio / wanted, wanted / ratio) if ratio else 0.0


def compared(cases: Sequence[Case], rows: Sequence[Row]) -> list[Row]:
    """The rows, each beside the wanted ratio and beside what goes straight to the servers."""
    direct = {
        case.key()[:-2]: row["total_mib_per_s"]
        for case, row in zip(cases, rows)
        if case.path == DIRECT
    }
    found: list[Row] = []
    for case, row in zip(cases, rows):
        beside = direct.get(case.key()[:-2])
        ratio = row["ratio"]
        found.append(
            {
                **row,
                "part": case.part,
                "of_direct": float(row["total_mib_per_s"]) / float(beside) if beside else None,
                "of_wanted": None if ratio is None else closeness(float(ratio), case.wanted()),
            }
        )
    return found


def measure(site: Site, cases: Sequence[Case], rounds: Rounds) -> list[Row]:
    left_out: dict[str, int] = {}
    for case in cases:
        if why := site.why_not(case):
            left_out[why] = left_out.get(why, 0) + 1
    for why, count in left_out.items():
        print(f"{count} rows are left out: {why}", flush=True)
    measured = [case for case in cases if not site.why_not(case)]

    def once(case: Case) -> Facts:
        facts = facts_of(site.measure(case, rounds.seconds))
        ratio = f", {facts['ratio']:.2f}:1" if facts["ratio"] is not None else ""
        words = " ".join(
            str(value) for value in case.fields().values() if value not in (None, "all")
        )
        print(f"{case.part} {words}: {facts['total_mib_per_s']:.1f} MiB/s{ratio}", flush=True)
        return facts

    rows = rounds.rows(measured, once, lambda case: case.fields(), NUMBERS)
    return compared(measured, rows)


def judge(rows: Sequence[Row]) -> list[Row]:
    def numbers(name: str, part: str, **fields: str) -> list[float]:
        return [
            float(row[name])
            for row in rows
            if row["part"] == part
            and row[name] is not None
            and all(row[field] == value for field, value in fields.items())
        ]

    processes = [int(str(row["processes"]).split()[-1]) for row in rows if row["part"] == RATES]
    most = max(processes, default=0)
    return [
        *(
            at_least(
                f"one application, {op}: of what it gets without proxies",
                least,
                numbers("of_direct", OVERHEAD, op=op, path=SFQ),
            )
            for op, least in LEAST_OF_DIRECT.items()
        ),
        at_least(
            "1:1 to 32:1: of the wanted ratio",
            LEAST_OF_RATIO,
            numbers("of_wanted", RATIOS, path=SFQ),
        ),
        at_least(
            "1:1 to 32:1: of the total without proxies",
            LEAST_OF_DIRECT[WRITE],
            numbers("of_direct", RATIOS, path=SFQ),
        ),
        at_least(
            "most processes, requests of all sizes: of the wanted ratio",
            LEAST_OF_RATIO,
            numbers("of_wanted", RATES, processes=f"2 x {most}"),
        ),
        at_least(
            "files on different servers, with a coordinator: of the fair ratio",
            LEAST_OF_RATIO,
            numbers("of_wanted", ASYMMETRIC, path=TOTAL),
        ),
    ]


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="script/bench vpfs",
        add_help=False,
        description=f"Real servers take root, VPFS_ORANGEFS_PREFIX and {ior.PREFIX}.",
    )
    LENGTHS.add_options(parser, SHORT)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument(
        "--servers",
        nargs="+",
        choices=SITES,
        help="whose servers and clients (default: all that are installed)",
    )
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    rounds = (SHORT if quick else LENGTHS).asked(options)
    cases = (QUICK if quick else FULL).cases(options.parts)
    chosen = options.servers or [vpfs_double.NAME, *vpfs_real.installed()]
    settings = machine_settings() | {
        "quick": quick,
        "runs": rounds.runs,
        "seconds": rounds.seconds,
        "statistic": STATISTIC,
        "parts": {name: PARTS[name] for name in options.parts},
        **vpfs_double.SETTINGS,
        "depth of each proxy": vpfs_double.DEPTH,
        "real servers": vpfs_real.SETTINGS if chosen != [vpfs_double.NAME] else "not measured",
    }
    print_settings(settings)
    found: dict[str, object] = {}
    for name in chosen:
        print(f"\n{name}", flush=True)
        if name == vpfs_double.NAME:
            rows = measure(vpfs_double.Site(binaries, out / "vpfs"), cases, rounds)
        else:
            with vpfs_real.opened(binaries, out / f"vpfs-{name}", name) as site:
                rows = measure(site, cases, rounds)
        targets = judge(rows)
        for part in options.parts:
            of_part = [row for row in rows if row["part"] == part]
            print(f"\n{name}, {part}: {PARTS[part]}\n" + table(of_part, COLUMNS[part]))
        print("\n" + table(targets, TARGET_COLUMNS), flush=True)
        found[name] = {"rows": rows, "targets": targets}
        caption = plot.caption(settings, name, f"{rounds.runs} x {rounds.seconds:g} s each")
        plot.save(out / f"vpfs-{name}", functools.partial(vpfs_figures.figure, rows, caption))
    write_json(out / "vpfs.json", {"settings": settings, "found": found})
    return 0
