"""Tables of the AdapTBF experiments. Facts are those of a control: medians over its runs."""

from __future__ import annotations

from collections.abc import Mapping

from bench.schedulers.adaptbf_experiments import BASES, LENDERS, REAL, VIRTUAL, Experiment
from bench.schedulers.adaptbf_run import CAPACITY_FIELDS
from lab.report import Row, table

Facts = Mapping[str, float]
Case = tuple[str, float]  # of the sweep: the control and the period in seconds, before scaling
WHOLE = "all jobs"


def gain_percent(own: float, base: float) -> float | None:
    """More (or less) than without; None: there was nothing to compare with."""
    return 100 * (own / base - 1) if base > 0 else None


def ratio(own: float, base: float) -> float | None:
    return own / base if base > 0 else None


def gain_rows(experiment: Experiment, by_control: Mapping[str, Facts]) -> list[Row]:
    """Each application under each control, beside no control and static limits."""
    rows: list[Row] = []
    for name in [*(each.name for each in experiment.applications), WHOLE]:
        rate = "total_mib_per_s" if name == WHOLE else f"{name} mib_per_s"
        seconds, tail = ("seconds", "") if name == WHOLE else (f"{name} seconds", f"{name} p99_ms")
        for control, facts in by_control.items():
            row: dict[str, object] = {
                "application": name,
                "control": control,
                "seconds": facts[seconds],
                "mib_per_s": facts[rate],
                "p99_ms": facts[tail] if tail else None,
            }
            for base in BASES:
                other = by_control[base]
                same = base == control
                row[f"percent more than {base}"] = (
                    None if same else gain_percent(facts[rate], other[rate])
                )
                row[f"p99 / {base}"] = (
                    ratio(facts[tail], other[tail]) if tail and not same else None
                )
            rows.append(row)
    return rows


def gain_table(experiment: Experiment, by_control: Mapping[str, Facts]) -> str:
    columns = ["application", "control", "seconds", "mib_per_s"]
    columns += [f"percent more than {base}" for base in BASES]
    return table(
        gain_rows(experiment, by_control),
        [*columns, "p99_ms", *(f"p99 / {base}" for base in BASES)],
    )


def cost_table(by_control: Mapping[str, Facts]) -> str:
    rows: list[Row] = [
        {"control": control, "proxy_cpu_s_per_gib": facts["proxy_cpu_s_per_gib"]}
        | {field: facts.get(field) for field in CAPACITY_FIELDS}
        for control, facts in by_control.items()
    ]
    return table(rows, ["control", "proxy_cpu_s_per_gib", *CAPACITY_FIELDS])


def sweep_table(by_case: Mapping[Case, Facts]) -> str:
    rows: list[Row] = [
        {
            "control": control,
            "period_ms": round(period * 1000),
            "total": facts[REAL],
            "in virtual time": facts[VIRTUAL],
            "proxy_cpu_s_per_gib": facts["proxy_cpu_s_per_gib"],
        }
        | {f"{job} after": facts[f"{job} mib_per_s_after"] for job in LENDERS}
        | {f"{job} bursts p99_ms": facts[f"{job}-bursts p99_ms"] for job in LENDERS}
        for (control, period), facts in by_case.items()
    ]
    return table(rows, list(rows[0]))
