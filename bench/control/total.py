"""script/bench total: how near do shares over all servers come to what is feasible?

Servers whose device model is the bottleneck, each behind a vpfs-proxy with sfq. In each run every
server first shares for itself; then a vpfs-coordinator with the policy `total` works with one
period after the other. `feasible_ratio` and the total that `total_vs_feasible` divides by are
theory (lab/total/optimum.py).
"""

from __future__ import annotations

import argparse
import functools
import math
import pathlib
import re
from collections.abc import Sequence

from bench.control.total_figures import (
    RATIO_ERROR,
    TOTAL,
    ratio_error,
    rows_figure,
    steps_figure,
    window_text,
)
from bench.control.total_run import SETTLED, Outcome, Times, measure
from bench.control.total_steps import BACK_WITHIN, SCENARIOS, SEED, Track, check, run_scenario
from bench.control.total_steps import COLUMNS as STEP_COLUMNS
from lab import plot
from lab.harness import Problem, machine_settings, require_programs
from lab.numbers import above_zero
from lab.report import Row, print_settings, size_name, table, write_json
from lab.scripted_load import WARM_UP
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import at_least, at_most
from lab.total.setups import (
    BANDWIDTH,
    DEPTH,
    LONGEST_DELAY,
    OUTSTANDING_EACH,
    OUTSTANDING_STRIPED,
    PERIODS,
    SETUPS,
    STRIP,
    Case,
    all_cases,
)

COLUMNS = [
    "setup",
    "striped",
    "op",
    "size",
    "weight",
    "period_ms",
    "policy",
    "ratio",
    "feasible_ratio",
    "total_vs_local",
    "total_vs_feasible",
    "settle_periods",
]
WAIT_COLUMNS = [
    "setup",
    "striped",
    "op",
    "size",
    "weight",
    "application",
    "longest_wait_s",
    "bound_s",
]
FULL = Times(local=3.0, each=5.0, counted=3.0)
QUICK = Times(local=2.0, each=4.0, counted=2.5)
QUICK_PERIODS, STEP_PERIODS = [0.05], [0.05, 0.2, 0.01]
START_AND_STOP = 1.5  # seconds of a run beside its load
COORDINATOR = "vpfs-coordinator"


def quick_cases() -> list[Case]:
    return [
        *all_cases(ops=["write"], sizes=[1 << 20], weights=[1]),
        Case(SETUPS["2 of 4"], True, "read", 64 << 10, 2),
        Case(SETUPS["2 of 4"], False, "read", 64 << 10, 2),
    ]


def pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}': {error}") from None


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench total")
    parser.add_argument(
        "--rows",
        type=pattern,
        default="",
        metavar="REGEX",
        help="only cases whose title matches, such as '^2 of 4, striped, write 1 MiB, 1:1'",
    )
    parser.add_argument(
        "--periods",
        type=above_zero,
        nargs="*",
        metavar="MS",
        help="of the coordinator (default 200 50 10); none: only local sharing, which needs no "
        "coordinator",
    )
    parser.add_argument("--parts", nargs="+", choices=["rows", "steps"], default=["rows", "steps"])
    parser.add_argument(
        "--scenarios", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), help="of the steps"
    )
    return parser


def settings_of(
    quick: bool, cases: Sequence[Case], periods: Sequence[float], times: Times
) -> dict[str, object]:
    return machine_settings() | {
        "build": "release",
        "quick": quick,
        "cases": len(cases),
        "periods": [f"{period * 1000:.0f} ms" for period in periods],
        "warm_up": WARM_UP,
        "seconds": {
            "local sharing": times.local,
            "each period": times.each,
            "of them counted": times.counted,
            "local again between": times.between,
        },
        "set-ups": {
            setup.name: {name: list(servers) for name, servers in setup.uses.items()}
            for setup in SETUPS.values()
        },
        "ratio": "of a to b; in `disjoint` of a to c. Application a has the weight of the row, "
        "the others 1",
        "devices": {
            size_name(size): f"{size_name(rate)}/s each" for size, rate in BANDWIDTH.items()
        },
        "depth of each proxy": DEPTH,
        "longest_delay": f"{LONGEST_DELAY * 1000:.0f} ms",
        "striped": f"strips of {size_name(STRIP)}: each I/O touches all servers of its "
        f"application; {OUTSTANDING_STRIPED} in flight",
        "unstriped": f"a file on each server of the application, {OUTSTANDING_EACH} in flight for "
        "each",
        "settle_periods": f"from the first cycle until the ratio stays within {SETTLED:.0%} of "
        f"the feasible one; {window_text()}",
        "costs": "bytes",
        "jitter's seed": SEED,
    }


class Printer:
    """Prints each row as soon as it is known. Rows to come count for the widths of columns."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._samples = [case.fields() | {"policy": "total"} for case in cases]
        self._printed = 0

    def show(self, rows: Sequence[Row]) -> None:
        lines = table([*rows, *self._samples], COLUMNS).splitlines()
        head = len(lines) - len(rows) - len(self._samples)
        begin = 0 if self._printed == 0 else head + self._printed
        print("\n".join(lines[begin : head + len(rows)]), flush=True)
        self._printed = len(rows)


def check_rows(rows: Sequence[Row], waits: Sequence[Row]) -> list[Row]:
    targets = []
    for period in dict.fromkeys(row["period_ms"] for row in rows if row["policy"] == "total"):
        own = [row for row in rows if row["period_ms"] == period]
        settled = [
            math.inf if row["settle_periods"] is None else float(row["settle_periods"])
            for row in own
        ]
        targets += [
            at_most(
                f"{period} ms: the ratio is off the feasible one by, in percent",
                100 * RATIO_ERROR,
                [abs(ratio_error(row)) for row in own],
            ),
            at_least(
                f"{period} ms: total / the feasible total",
                TOTAL,
                [float(row["total_vs_feasible"]) for row in own],
            ),
            at_most(f"{period} ms: periods until it has settled", BACK_WITHIN, settled),
        ]
    return [
        *targets,
        at_most(
            "longest wait of a request / its bound by longest_delay",
            1.0,
            [float(row["longest_wait_s"]) / float(row["bound_s"]) for row in waits],
        ),
    ]


def run_rows(
    binaries: pathlib.Path,
    out: pathlib.Path,
    cases: Sequence[Case],
    periods: Sequence[float],
    times: Times,
) -> tuple[list[Row], list[Row]]:
    seconds = len(cases) * (WARM_UP + times.length(len(periods)) + START_AND_STOP)
    print(
        f"\n{len(cases)} cases, {len(cases) * (1 + len(periods))} rows, about {seconds / 60:.0f} "
        "minutes\n",
        flush=True,
    )
    rows: list[Row] = []
    waits: list[Row] = []
    printer = Printer(cases)
    for case in cases:
        outcome: Outcome = measure(binaries, out / "total", case, periods, times)
        rows += outcome.rows()
        waits += outcome.waits()
        printer.show(rows)
    print("\n" + table(waits, WAIT_COLUMNS))
    return rows, waits


def run_steps(
    binaries: pathlib.Path,
    out: pathlib.Path,
    scenarios: Sequence[str],
    periods: Sequence[float],
    settings: Row,
) -> tuple[list[Row], list[Track]]:
    rows: list[Row] = []
    tracks = []
    for period in periods:
        own = [run_scenario(binaries, out / "total", name, period) for name in scenarios]
        found = [row for track in own for row in track.rows()]
        print("\n" + table(found, STEP_COLUMNS), flush=True)
        rows += found
        tracks += own
        caption = plot.caption(
            settings,
            "a on servers 1 and 2, b on all four, writes of 1 MiB, striped, equal weights",
            window_text(),
            "; ".join(SCENARIOS[name].title.lower() for name in scenarios),
        )
        plot.save(
            out / f"total-steps-{period * 1000:.0f}ms",
            functools.partial(steps_figure, own, period, caption),
        )
    return rows, tracks


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    default = QUICK_PERIODS if quick else PERIODS
    periods = default if options.periods is None else [period / 1000 for period in options.periods]
    if periods:
        require_programs(binaries, [COORDINATOR])
    times = QUICK if quick else FULL
    cases = [
        case
        for case in (quick_cases() if quick else all_cases())
        if re.search(options.rows, case.title())
    ]
    if "rows" in options.parts and not cases:
        raise Problem(f"--rows: no case has a title with '{options.rows.pattern}'")
    settings = settings_of(quick, cases, periods, times)
    print_settings(settings)
    found: dict[str, object] = {"settings": settings}
    targets: list[Row] = []
    if "rows" in options.parts and cases:
        rows, waits = run_rows(binaries, out, cases, periods, times)
        found |= {"rows": rows, "waits": waits}
        targets += check_rows(rows, waits)
        plot.save(
            out / "total",
            lambda: rows_figure(
                rows,
                plot.caption(
                    settings,
                    ", ".join(
                        f"{size_name(size)}: {size_name(rate)}/s for each server"
                        for size, rate in BANDWIDTH.items()
                    ),
                    f"depth {DEPTH['depth_requests']} requests of each proxy",
                    f"no head waits for longer than {LONGEST_DELAY * 1000:.0f} ms",
                    f"the last {times.counted:g} s of {times.each:g} s with each period",
                    "one point for each kind of request",
                ),
            ),
        )
    if "steps" in options.parts and periods:
        steps, _ = run_steps(
            binaries,
            out,
            options.scenarios,
            [period for period in STEP_PERIODS if period in periods] or periods,
            settings,
        )
        found["steps"] = steps
        targets += check(steps)
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "total.json", found | {"targets": targets})
    return 0
