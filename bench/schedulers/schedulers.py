"""script/bench schedulers: the cost of one request in each policy, compared with its limit."""

from __future__ import annotations

import json
import pathlib
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lab import plot
from lab.harness import Problem, machine_settings
from lab.report import Json, Row, print_settings, table, write_json
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

YARDSTICK = "priority_queue"
TURNS = 4
# The yardstick's time on the machine for which the limits were set. Other machines must keep the
# same ratio.
REFERENCE_NS = {1000: 60.0, 100_000: 143.0}
LIMITS_NS = {
    "fifo": {1000: 20.0, 100_000: 20.0},
    "sfq": {1000: 100.0, 100_000: 250.0},
    "tbf": {1000: 150.0, 100_000: 350.0},
    "edf": {1000: 150.0, 100_000: 350.0},
}
# What anticipation may add to a request, with flows that keep a queue, have one request each, or
# think with one request.
ANTICIPATES = {"sfq+think": "sfq", "sfq+think, 1": "sfq, 1", "sfq+think, away": "sfq, away"}
MOST_MORE_NS = {1000: 20.0}


def check(rows: Sequence[Row], state: str = "") -> list[Row]:
    """A policy keeps its limit in nanoseconds, or as a ratio to the yardstick of the same run."""
    measured = {(row["policy"], row["flows"]): float(row["ns_per_request"]) for row in rows}
    lines = []
    for policy, limits in LIMITS_NS.items():
        for flows, limit in limits.items():
            if (policy, flows) not in measured:
                continue
            own, yardstick = measured[policy, flows], measured[YARDSTICK, flows]
            allowed = limit / REFERENCE_NS[flows]
            lines.append(
                verdict(
                    f"{policy}, {flows} flows{state}",
                    f"<= {limit:.0f} ns or {allowed:.2f} of {YARDSTICK}",
                    f"{own:.0f} ns, {own / yardstick:.2f} of its {yardstick:.0f} ns",
                    own <= limit or own / yardstick <= allowed,
                )
            )
    for policy, without in ANTICIPATES.items():
        for flows, most in MOST_MORE_NS.items():
            if (policy, flows) not in measured:
                continue
            more, yardstick = (
                measured[policy, flows] - measured[without, flows],
                measured[YARDSTICK, flows],
            )
            allowed = most / REFERENCE_NS[flows]
            lines.append(
                verdict(
                    f"{policy}, {flows} flows{state}",
                    f"<= {most:.0f} ns or {allowed:.2f} of {YARDSTICK} more than {without}",
                    f"{more:.0f} ns, {more / yardstick:.2f} of its {yardstick:.0f} ns",
                    more <= most or more / yardstick <= allowed,
                )
            )
    return lines


def figure(fresh: Sequence[Row], settled: Sequence[Row], caption: str) -> Figure:
    sheet = plot.Sheet(
        "What one request costs in a scheduler", caption, columns=2, heights=[3.4], share_y=True
    )
    flows = [float(row["flows"]) for row in fresh]
    policies = list(dict.fromkeys(str(row["policy"]) for row in fresh))
    policies.sort(
        key=lambda policy: (
            plot.POLICIES.index(policy) if policy in plot.POLICIES else len(plot.POLICIES)
        )
    )
    looks = plot.looks(policies)
    for panel, rows, title in zip(
        sheet.panels, (fresh, settled), ("New flows", f"Settled: {TURNS} turns of each flow before")
    ):
        plot.lines(
            panel,
            {
                policy: [
                    (row["flows"], row["ns_per_request"]) for row in rows if row["policy"] == policy
                ]
                for policy in policies
            },
            looks,
        )
        for policy, limits in LIMITS_NS.items():
            for count, limit in limits.items():
                plot.target(
                    panel, limit, span=(count / 2.2, count * 2.2), colour=looks[policy].colour
                )
        plot.explain_targets(panel, "limit of the policy in its colour (tbf and edf: the same)")
        plot.doubling(panel, flows)
        plot.label(
            panel,
            "flows (number)",
            "time per request (ns)" if panel is sheet.panels[0] else "",
            title,
        )
    for panel in sheet.panels:
        plot.logarithmic(panel, "y")
    return sheet.finish()


def measure(binaries: pathlib.Path, file: pathlib.Path, quick: bool, turns: int) -> Json:
    """Runs the program, and shows its table as well."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    command = [
        str(binaries / "vpfs-bench-schedulers"),
        "--json",
        str(file.resolve()),
        "--turns",
        str(turns),
        *(["--quick"] if quick else []),
    ]
    if subprocess.run(command, check=False).returncode != 0 or not file.exists():
        raise Problem("vpfs-bench-schedulers failed")
    return json.loads(file.read_text())


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool) -> int:
    settings = machine_settings() | {
        "quick": quick,
        "reference ns of the yardstick": REFERENCE_NS,
        "statistic": "medians of interleaved rounds; p50 to max are of requests timed one by one, "
        "minus what reading the clock takes",
        "settled": f"the second table: every flow has had {TURNS} turns before, so that the "
        "memory of many flows is visited in no particular order",
    }
    print_settings(settings)
    print(flush=True)
    fresh = measure(binaries, out / "schedulers" / "fresh.json", quick, 0)
    print("\nsettled", flush=True)
    settled = measure(binaries, out / "schedulers" / "settled.json", quick, TURNS)
    targets = check(fresh["rows"]) + check(settled["rows"], ", settled")
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(
        out / "schedulers.json",
        {
            "settings": settings | fresh["settings"],
            "rows": fresh["rows"],
            "settled": settled["rows"],
            "targets": targets,
        },
    )
    plot.save(
        out / "schedulers",
        lambda: figure(
            fresh["rows"],
            settled["rows"],
            plot.caption(
                settings,
                "enqueue, next and complete of one request; requests of 4 KiB to 1 MiB, weights 1 "
                "to 100",
                f"medians of {fresh['settings']['rounds']} interleaved rounds of "
                f"{fresh['settings']['requests']:,} requests",
                "the limits are for the machine that they were set on",
            ),
        ),
    )
    return 0
