"""Compares the results of the AdapTBF experiments with the statements of the paper.

The paper says that AdapTBF keeps proportions while all jobs press, moves about as much as a server
without control, more than static limits do, is quicker for important bursts than both, and pays
lenders back. The limits of these comparisons are ours; so is what a longer period may change if
idle tokens are given away, where the paper has no such mode.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from bench.schedulers.adaptbf_experiments import (
    ADAPTIVE,
    BASES,
    BORROWER,
    BURSTERS,
    LENDERS,
    PRIORITY,
    REAL,
    SMALL_BURSTS,
    SWEPT,
    VIRTUAL,
)
from lab.report import Row
from lab.targets import one_at_least, one_at_most, verdict

TOTAL = 0.97
SHARE_ERROR = 0.05
LOSS = 0.97  # of the total with the longest period, at most, if longer periods lose
UNCHANGED = 0.97
LONGEST = SMALL_BURSTS.interval + 1e-6  # the longest period that figure 9 is about
STRICT = "adaptbf-strict"
# The results of a control in an experiment: medians over the runs.
Facts = Mapping[str, float]
Case = tuple[str, float]  # of the sweep: the control and the period in seconds, before scaling


def best_other(
    by_control: Mapping[str, Facts],
    field: str,
    choose: Callable[[Iterable[float]], float] = max,
) -> float:
    return choose(by_control[control][field] for control in BASES)


def check_totals(name: str, by_control: Mapping[str, Facts]) -> list[Row]:
    """The aggregate throughput, of the same amounts, against no control and static limits."""
    none, static = (by_control[base]["total_mib_per_s"] for base in BASES)
    rows = []
    for control in ADAPTIVE:
        if control in by_control:
            total = by_control[control]["total_mib_per_s"]
            rows.append(one_at_least(f"{name}, {control}: total / none", TOTAL, total / none))
            rows.append(one_at_least(f"{name}, {control}: total / static", 1.0, total / static))
    rows.append(one_at_most(f"{name}, static loses: total / none", TOTAL, static / none))
    return rows


def check_priority(by_control: Mapping[str, Facts]) -> list[Row]:
    rows = []
    important = max(PRIORITY.priorities, key=lambda job: PRIORITY.priorities[job])
    for control in ADAPTIVE:
        if control not in by_control:
            continue
        facts, rate, tail = by_control[control], f"{important} mib_per_s", f"{important} p99_ms"
        rows += [
            one_at_most(
                f"a, {control}: part of each job / its priority's, while all run, off by",
                SHARE_ERROR,
                facts["share_error"],
            ),
            one_at_least(
                f"a, {control}: {important}, MiB/s / none",
                1.0,
                facts[rate] / by_control["none"][rate],
            ),
            one_at_most(
                f"a, {control}: {important}, p99 / none",
                1.0,
                facts[tail] / by_control["none"][tail],
            ),
        ]
    return rows + check_totals("a", by_control)


def check_redistribution(by_control: Mapping[str, Facts]) -> list[Row]:
    rows = []
    for control, job in itertools.product(ADAPTIVE, BURSTERS):
        if control not in by_control:
            continue
        rate, tail = f"{job} mib_per_s", f"{job} p99_ms"
        facts = by_control[control]
        rows.append(
            one_at_least(
                f"b, {control}: {job}, MiB/s in its bursts / the better of none and static",
                1.0,
                facts[rate] / best_other(by_control, rate),
            )
        )
        rows.append(
            one_at_most(
                f"b, {control}: {job}, p99 / the better of none and static",
                1.0,
                facts[tail] / best_other(by_control, tail, min),
            )
        )
    return rows + check_totals("b", by_control)


def paid_back(facts: Facts, job: str) -> Row:
    """The job gets back at least half of its record."""
    owed, least, rate = (
        facts[f"{job} {field}"]
        for field in ("record_at_return", "least_record_after", "mib_per_s_after")
    )
    return verdict(
        f"{job} is paid back",
        "half its record",
        f"record {owed:.0f} to {least:.0f}, {rate:.1f} MiB/s",
        owed > 0 and least <= owed / 2,
    )


def check_payback(by_control: Mapping[str, Facts]) -> list[Row]:
    rows: list[Row] = []
    for control, job in itertools.product(ADAPTIVE, LENDERS):
        if control not in by_control:
            continue
        facts = by_control[control]
        row = paid_back(facts, job)
        rows.append({**row, "target": f"c, {control}: {row['target']}"})
        rows.append(
            one_at_least(
                f"c, {control}: {job} on its return / {BORROWER} at that time",
                1.0,
                facts[f"{job} mib_per_s_after"] / facts[f"{job} borrower_mib_per_s"],
            )
        )
    return rows + check_totals("c", by_control)


def totals_by_period(by_case: Mapping[Case, Facts], control: str, field: str) -> dict[float, float]:
    return {
        period: facts[field] for (each, period), facts in sorted(by_case.items()) if each == control
    }


def check_sweep(by_case: Mapping[Case, Facts]) -> list[Row]:
    """As published, longer periods lose; if idle tokens are given away, they change nothing.

    Periods are those before scaling. In one that is longer than from burst to burst, no lender is
    ever idle, so there is less to lose again.
    """
    rows: list[Row] = []
    for control, (field, time) in itertools.product(
        SWEPT, ((VIRTUAL, "virtual time"), (REAL, "real"))
    ):
        totals = totals_by_period(by_case, control, field)
        name = f"d, {control}, {time}"
        if control != STRICT and len(totals) > 1:
            rows += check_given(name, totals)
        claimed = {period: total for period, total in totals.items() if period <= LONGEST}
        if control == STRICT and len(claimed) > 1:
            rows += check_strict(name, claimed)
    return rows


def check_strict(name: str, totals: Mapping[float, float]) -> list[Row]:
    shortest, longest = min(totals), max(totals)
    worst = min(itertools.pairwise(totals), key=lambda pair: totals[pair[0]] / totals[pair[1]])
    step = totals[worst[0]] / totals[worst[1]]
    return [
        one_at_most(
            f"{name} (figure 9): total at {longest * 1000:.0f} ms / at {shortest * 1000:.0f} ms",
            LOSS,
            totals[longest] / totals[shortest],
        ),
        verdict(
            f"{name} (figure 9): total of each period / that of the next longer one",
            ">= 0.99",
            f"worst {step:.3f} at {worst[0] * 1000:.0f} ms",
            step >= 0.99,
        ),
    ]


def check_given(name: str, totals: Mapping[float, float]) -> list[Row]:
    worst = min(totals, key=lambda period: totals[period])
    part = totals[worst] / max(totals.values())
    return [
        verdict(
            f"{name} (ours): least total of a period / the largest",
            f">= {UNCHANGED:.2f}",
            f"{part:.3f} at {worst * 1000:.0f} ms",
            part >= UNCHANGED,
        )
    ]


def check(name: str, by_control: Mapping[str, Facts]) -> Sequence[Row]:
    """The targets of the experiment of this name."""
    checks = {"a": check_priority, "b": check_redistribution, "c": check_payback}
    return checks[name](by_control)
