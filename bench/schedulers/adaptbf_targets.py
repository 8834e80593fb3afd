"""Compares the results of the AdapTBF experiments with the claims of the paper."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from bench.schedulers.adaptbf_experiments import (
    ADAPTIVE,
    BORROWER,
    CAPACITY_MIB_PER_S,
    LENDERS,
    PAYBACK,
)
from lab.report import Row
from lab.targets import one_at_least, one_at_most, verdict

TOTAL = 0.97
SHARE_ERROR = 0.05
# The results of a control in an experiment: medians over the runs.
Facts = Mapping[str, float]


def best_other(
    by_control: Mapping[str, Facts],
    field: str,
    choose: Callable[[Iterable[float]], float] = max,
) -> float:
    return choose(by_control[control][field] for control in ("none", "static"))


def check_priority(by_control: Mapping[str, Facts]) -> list[Row]:
    rows = []
    for control in ADAPTIVE:
        facts = by_control[control]
        rows.append(
            one_at_most(
                f"a, {control}: part of each job / its priority's, while all run, off by",
                SHARE_ERROR,
                facts["share_error"],
            )
        )
        rows.append(
            one_at_least(
                f"a, {control}: total / the better of none and static",
                TOTAL,
                facts["total_mib_per_s"] / best_other(by_control, "total_mib_per_s"),
            )
        )
    return rows


def check_redistribution(by_control: Mapping[str, Facts], jobs: Sequence[str]) -> list[Row]:
    rows = []
    for control in ADAPTIVE:
        for job in jobs:
            rate, tail = f"{job} burst_mib_per_s", f"{job} p99_ms"
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
    return rows


def paid_back(facts: Facts, job: str) -> Row:
    """The job gets back at least half of its record, or more bandwidth than its static share."""
    static = CAPACITY_MIB_PER_S * PAYBACK.share(job)
    owed, least, rate = (
        facts[f"{job} {field}"]
        for field in ("record_at_return", "least_record_after", "mib_per_s_after")
    )
    return verdict(
        f"{job} is paid back",
        f"half its record or > {static:.0f} MiB/s",
        f"record {owed:.0f} to {least:.0f}, {rate:.1f} MiB/s",
        owed > 0 and (least <= owed / 2 or rate > static),
    )


def check_payback(by_control: Mapping[str, Facts]) -> list[Row]:
    rows: list[Row] = []
    total = by_control["none"]["total_mib_per_s"]
    for control in ADAPTIVE:
        for job in LENDERS:
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
        rows.append(
            one_at_least(
                f"c, {control}: total / none", TOTAL, by_control[control]["total_mib_per_s"] / total
            )
        )
    rows.append(
        one_at_most(
            "c, static loses: total / none", TOTAL, by_control["static"]["total_mib_per_s"] / total
        )
    )
    return rows


def check_sweep(by_period: Mapping[float, Facts]) -> list[Row]:
    """Shorter periods are better: none is over one percent worse than the next longer one."""
    periods = sorted(by_period)
    totals = [by_period[period]["total_mib_per_s"] for period in periods]
    if len(periods) < 2:
        return []
    gains = [shorter / longer for shorter, longer in itertools.pairwise(totals)]
    worst = min(range(len(gains)), key=lambda index: gains[index])
    best = max(by_period, key=lambda period: by_period[period]["total_mib_per_s"])
    return [
        verdict(
            "d: total of each period / that of the next longer one",
            ">= 0.99",
            f"worst {gains[worst]:.3f} at {periods[worst] * 1000:.0f} ms",
            gains[worst] >= 0.99,
        ),
        verdict(
            "d: total of the shortest period / the longest",
            ">= 1",
            f"{totals[0] / totals[-1]:.3f}, the best is {best * 1000:.0f} ms",
            totals[0] >= totals[-1],
        ),
    ]
