"""Recorded measurements of bench/simulator."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence

from bench.simulator import scale, simulator
from lab.harness import Programs
from lab.report import Json, Row
from recorded.samples import Option, Recorded, field, sample, samples


def rows_of_simulator(
    _: pathlib.Path, __: pathlib.Path, case: simulator.Case, plan: simulator.Plan
) -> list[Row]:
    return [
        simulator.row(
            case,
            application.name,
            simulator.Found(sample(case, "simulated"), 3000.0),
            [simulator.Found(sample(case, run), 2900.0) for run in range(plan.runs)],
        )
        for application in case.applications
    ]


SIMULATOR = Recorded(
    {"bench.simulator.simulator.run_case": rows_of_simulator}, {"--cases": Option(field("case"))}
)


def row_of_scale(_: Programs, case: scale.Case, __: float) -> Row:
    away = (
        samples(["away_jain", "away_worst_ratio", "away_idle_percent"], case)
        if case.away
        else {"away_jain": None}
    )
    return {
        "servers": case.servers,
        "clients": 20 * case.servers,
        "jobs": 9,
        "policy": case.policy,
        "cycle_ms": round(case.cycle * 1000) if case.cycle else None,
        "delay_s": case.delay if case.policy == "total" else None,
        "settle_s": None,
        "worst_job": "wide",
        **samples(
            [
                "jain",
                "worst_ratio",
                "idle_percent",
                "wall_s",
                "rss_mib",
                "events_per_s",
                "virtual_s",
            ],
            case,
        ),
        **away,
    }


SCALE = Recorded(
    {"bench.simulator.scale.run_case": row_of_scale},
    {"--servers": Option(field("servers"), ["10", "100"])},
    others=frozenset({"--jobs"}),
)


def results_of_placement(_: pathlib.Path, configs: Sequence[Mapping[str, object]]) -> list[Json]:
    return [
        {
            "run_s": sample(config),
            "jobs": [{"wait_s": sample(config, "wait"), "run_s": sample(config)}],
        }
        for config in configs
    ]


PLACEMENT = Recorded(
    {"bench.simulator.placement.simulate": results_of_placement},
    {"--figure": Option(field("figure"))},
    others=frozenset(
        {
            "--mode",
            "--seeds",
            "--networks",
            "--link-rate",
            "--compute",
            "--data-size",
            "--least-percent",
            "--message-size",
            "--blocks",
            "--workload-messages",
            "--task-mean",
            "--arrivals",
            "--locality",
            "--trace-order",
            "--replicas",
            "--spare-tasks",
            "--transitions",
            "--jobs",
        }
    ),
)
