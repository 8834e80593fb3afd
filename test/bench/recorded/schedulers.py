"""Recorded measurements of bench/schedulers."""

from __future__ import annotations

import dataclasses

from bench.schedulers import (
    adaptbf,
    adaptbf_overhead,
    anticipation,
    anticipation_orangefs,
    node,
    sharing,
)
from bench.schedulers.adaptbf_experiments import Experiment
from lab.report import Json, Row
from recorded.samples import (
    Option,
    Recorded,
    any_row,
    field,
    load_result,
    sample,
    samples,
    size,
    timeline,
)


def measured_of_sharing(_: object, case: sharing.Case, policy: str) -> Json:
    return load_result(
        ["a", "b"], 60.0, sharing.INTERVAL if case.case == "comes and goes" else 60.0, case, policy
    )


SHARING = Recorded(
    {"bench.schedulers.sharing.Bench._measure": measured_of_sharing},
    {
        "--servers": Option(field("servers"), ["1", "4"]),
        "--sizes": Option(size, ["4096", "1048576"]),
        "--ops": Option(field("op")),
        # Rows that are not about weights are always there.
        "--weights": Option(
            lambda row, value: row["case"] != "backlogged" or row["target"] == int(value),
            ["1", "2", "32"],
        ),
        "--protocol": Option(any_row),
    },
    [["--servers", "2", "--sizes", "65536", "--ops", "read", "--weights", "4"]],
    base=[
        "--servers",
        "1",
        "2",
        "--sizes",
        "4096",
        "65536",
        "--ops",
        "read",
        "mixed",
        "--weights",
        "2",
        "8",
    ],
)


def row_of_anticipation(case: object) -> Row:
    fields: Row = {"think_times": "constant", "case": str(case)}
    if isinstance(case, (anticipation.Case, anticipation_orangefs.Case)):
        fields = dataclasses.asdict(case)
    return {
        **fields,
        "ratio_on": 1.0,
        "ratio_off": 0.5,
        "feasible_ratio": sample(case, low=0.9, high=1.1),
        "total_vs_fifo": 0.97,
        "idle_percent": 3.0,
        "kept_percent": 5.0,
        "mib_per_s": 190.0,
        "size": 1 << 20,
    }


ANTICIPATION = Recorded(
    {
        "bench.schedulers.anticipation.virtual_rows": lambda _, __, times: [
            row_of_anticipation((times, turn)) for turn in range(9)
        ],
        "bench.schedulers.anticipation.RealServers.row": lambda _, case: row_of_anticipation(case),
        "bench.schedulers.anticipation_orangefs.row": lambda _, __, case, *___: row_of_anticipation(
            case
        ),
        "bench.schedulers.anticipation_orangefs.cases": lambda: anticipation_orangefs.CASES,
    },
    {"--only": Option(field("part"))},
    others=frozenset({"--max-loss"}),
    rows=lambda content: [
        {"part": part, **row} for part, rows in content["rows"].items() for row in rows
    ],
)


NODE = Recorded(
    {"bench.schedulers.node.once": lambda _, case, __: samples(node.NUMBERS, case)},
    {
        "--slow": Option(lambda row, value: row["slow"] in (0, int(value))),
        "--connections": Option(field("connections")),
    },
    [["--slow", "2", "--connections", "64"]],
)


def run_of_adaptbf(
    bench: adaptbf.Bench, experiment: Experiment, control: str, period: float = adaptbf.PERIOD
) -> adaptbf.Run:
    step, factor = bench._plan.interval, bench._plan.scale
    length = experiment.expected(factor, control)
    result = load_result(
        [application.name for application in experiment.applications], length, step, control, period
    )
    records = [
        (
            t["t"],
            {
                "capacity": 200 << 20,
                "virtual_pfs": [
                    {"name": job, "record": sample(job, low=-50, high=50)}
                    for job in experiment.jobs
                ],
            },
        )
        for t in timeline(length, 1.0)
    ]
    return adaptbf.Run(
        experiment, factor, result, records if control.startswith("adaptbf") else [], 1.5
    )


def overhead_of_adaptbf(_: object, __: object, quick: bool) -> Json:
    numbers = [name for name in adaptbf_overhead.COLUMNS if name != "jobs"]
    rows = [{"jobs": jobs} | samples(numbers, jobs) for jobs in adaptbf_overhead.JOBS]
    return {"settings": {"periods": 20 if quick else 200}, "rows": rows}


ADAPTBF = Recorded(
    {
        "bench.schedulers.adaptbf.Bench.measure": run_of_adaptbf,
        "bench.schedulers.adaptbf_overhead.measure": overhead_of_adaptbf,
        "bench.schedulers.adaptbf_virtual.total": lambda _, __, control, period: sample(
            control, period, low=150, high=200
        ),
    },
    {"--experiments": Option(field("experiment"))},
    [["--overhead"]],
    others=frozenset({"--scale", "--overhead"}),
    rows=lambda content: [{"experiment": name} for name in content["runs"]],
    draws_rows=False,
)
