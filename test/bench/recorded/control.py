"""Recorded measurements of bench/control."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from unittest import mock

from bench.control import aggregators, aggregators_compose, control_attack, control_cycles, control_cycles_site, control_impact, control_impact_mount, members, total_run, total_steps
from bench.control.scene import State
from lab.report import Row
from lab.total.series import Timeline
from lab.total.setups import all_cases
from recorded.samples import Option, Recorded, any_row, field, load_result, sample, samples


def once_of_control(_: object, case: control_cycles.Case) -> Mapping[str, float | None]:
    names = [
        *control_cycles.LATENCIES[1:],
        *control_cycles.COSTS,
        *control_cycles.FURTHER,
        *control_cycles.DEVIATIONS[:-1],
    ]
    of_floor = [name for name in names if "floor" in name]
    left_out = (
        of_floor if case.aggregators else [name for name in names if name.startswith("aggregator")]
    )
    found: dict[str, float | None] = dict(
        samples([name for name in names if name not in left_out], case)
    )
    return found | ({"of_floor": None} if case.transport == "mtls" else {})


CONTROL = Recorded(
    {
        "bench.control.control_cycles.Bench.once": once_of_control,
        "bench.control.control_cycles.Bench.traffic": lambda _, case: samples(
            [f"{role}_{way}_bytes" for role in control_cycles.ROLES for way in ("tx", "rx")], case
        ),
        "bench.control.control_cycles_pins.own_cpus": lambda: [0, 1],
    },
    {
        "--stages": Option(field("stages"), ["50", "10000"]),
        "--aggregators": Option(field("aggregators"), ["0", "1", "4"]),
        "--cycle": Option(field("cycle")),
        "--transport": Option(field("transport")),
    },
    [
        [
            "--stages",
            "2500",
            "10000",
            "--aggregators",
            "0",
            "4",
            "--cycle",
            "fused",
            "--transport",
            "unix",
        ],
        ["--stages", "10000", "--aggregators", "4", "--cycle", "four", "--transport", "mtls"],
        ["--pin", "--stages", "50", "--aggregators", "0"],
        ["--paper"],
        ["--paper", "--pin", "--cycle", "fused", "--transport", "unix", "mtls"],
    ],
    frozenset({"--resources", "--pin", "--paper"}),
)


def once_of_aggregators(_: object, case: control_cycles.Case, how: str) -> aggregators_compose.Measured:
    names = [*control_cycles.LATENCIES[2:], *control_cycles.COSTS, "deviation_percent"]
    cycles = [
        control_cycles_site.Cycle(case.stages, 0, *samples(control_cycles_site.TIMES, case, how, turn).values())
        for turn in range(3)
    ]
    return aggregators_compose.Measured(dict(samples(names, case, how)), cycles)


AGGREGATORS = Recorded(
    {
        "bench.control.aggregators.Bench.once": once_of_aggregators,
        "bench.control.aggregators.Bench.traffic": lambda _, case: samples(
            ["coordinator_tx_bytes", "coordinator_rx_bytes"], case
        ),
        "bench.control.control_cycles_pins.own_cpus": lambda: [0, 1],
    },
    {
        "--stages": Option(field("stages"), ["5000"]),
        "--aggregators": Option(
            lambda row, value: row["chain_ms"] is None or row["aggregators"] == int(value),
            ["3", "50"],
        ),
        "--cycle": Option(field("cycle")),
    },
    [["--aggregators", "2", "4", "8", "--cycle", "fused"]],
    frozenset({"--transport", "--delay-us", "--gbit"}),
)


def outcome_of_total(
    _: pathlib.Path,
    __: pathlib.Path,
    case: total_run.Case,
    periods: Sequence[float],
    times: total_run.Times,
) -> mock.Mock:
    rows = [
        {
            **case.fields(),
            "period_ms": period and round(1000 * period),
            "policy": "total" if period else "local",
            "settle_periods": period and 4,
            **samples(
                ["ratio", "feasible_ratio", "total_vs_local", "total_vs_feasible"], case, period
            ),
        }
        for period in (None, *periods)
    ]
    result = load_result(list(case.setup.uses), 1.0, 1.0, case)
    return mock.Mock(
        **{
            "rows.return_value": rows,
            "waits.side_effect": total_run.Outcome(case, times, result, []).waits,
        }
    )


def track_of_total(
    _: pathlib.Path, __: pathlib.Path, name: str, period: float
) -> total_steps.Track:
    phases = [
        total_steps.Phase(text, begin, begin + 6.0, total_steps.CASE, total_steps.CASE.feasible())
        for text, begin in (("it runs", 3.0), ("it has changed", 9.0))
    ]
    return total_steps.Track(
        name,
        period,
        Timeline(load_result(["a", "b"], 15.0, 0.05, name, period), ["a", "b"]),
        phases,
    )


def setup_and_way(row: Row, value: str) -> bool:
    return "scenario" in row or row["setup"] == value.strip("^,")


def part_of_total(row: Row, value: str) -> bool:
    return ("scenario" in row) == (value == "steps")


def period_of_total(row: Row, value: str) -> bool:
    return row.get("policy") == "local" or row["period_ms"] == int(value)


TOTAL = Recorded(
    {
        "bench.control.total.measure": outcome_of_total,
        "bench.control.total.run_scenario": track_of_total,
    },
    {
        "--rows": Option(setup_and_way, ["^2 of 4,", "^disjoint,"]),
        "--periods": Option(period_of_total, ["50", "10"]),
        "--parts": Option(part_of_total),
        "--scenarios": Option(lambda row, value: row.get("scenario", value) == value),
    },
    [
        ["--periods"],
        ["--periods", "--parts", "steps"],
        ["--rows", f"^{all_cases()[0].title()}$", "--periods", "20"],
    ],
    rows=lambda content: [*content.get("rows", []), *content.get("steps", [])],
    base=["--rows", "^(2 of 4|disjoint), .* 1 MiB, 1:1"],
)


def run_of_control_impact(
    _: pathlib.Path, __: pathlib.Path, load: str, control: str, factor: float
) -> control_impact.Outcome:
    names = [job.name for job in control_impact.JOBS]
    if load == control_impact.VPFS_LOAD:
        return control_impact.Run(load_result(names, 30.0, 0.25, control), factor)
    moved = [
        (0.1 * turn, {name: 1e7 * turn * sample(name, load, control) for name in names})
        for turn in range(300)
    ]
    ends = {job.name: factor * job.start + 10 for job in control_impact.JOBS}
    return control_impact_mount.MountRun(ends, moved, factor)


CONTROL_IMPACT = Recorded(
    {
        "bench.control.control_impact.measure": run_of_control_impact,
        "bench.control.control_impact.require_mounts": lambda: None,
        "bench.control.control_impact_mount.why_not": lambda _: "",
    },
    {"--controls": Option(field("control")), "--loads": Option(field("load"))},
    [["--controls", "static", "psfa"], ["--loads", "fio", "ior", "--controls", "none", "total"]],
)


def seen_of_control_attack(
    _: object, attackers: str, names: Sequence[str], rounds: control_attack.Rounds
) -> control_attack.Seen:
    fields = [name for name in control_attack.COLUMNS if name != "attackers"]
    rows = [
        {"attackers": attackers, "failures": [], **samples(fields, attackers, turn)}
        for turn in range(rounds.runs)
    ]
    return control_attack.Seen(
        attackers,
        rows,
        State(20.0, 12),
        State(20.5, 12),
        3,
        0,
        60.0,
        {name: {"ways": 9} for name in names},
    )


TAKEOVER = Recorded(
    {
        "bench.control.takeover.measure": lambda _, __, case: {
            **case.fields(),
            **samples(["p50_ms", "p90_ms", "worst_ms"], case.store, case.leader),
            "changes": case.times,
            "lost": 0,
        },
        "bench.control.takeover.measure_idle": lambda _, __, seconds: {
            "store": "etcd",
            "coordinators": 3,
            "requests_per_s": seconds / 3,
            "requests_each": seconds / 9,
        },
        "bench.control.takeover.etcd.missing": lambda: "",
    },
    {
        "--stores": Option(field("store")),
        "--kills": Option(lambda row, value: row["leader"] != "killed" or row["times"] == int(value), ["7"]),
    },
)

MEMBERS = Recorded(
    {
        "bench.control.members.measure": lambda place, kind, count, __: samples(
            members.COLUMNS[3:], place.stages, kind, count
        ),
        "bench.control.members.disturb": lambda _, count, times: {
            event: [sample(event, count, turn) for turn in range(times)]
            for event in ("a member is killed", "the one that leads is killed", "one comes back")
        },
    },
    {
        "--members": Option(field("processes"), ["1", "2", "4"]),
        "--stages": Option(field("stages"), ["50"]),
        "--times": Option(any_row, ["2"]),
    },
    [["--members", "2", "4"]],
)

CONTROL_ATTACK = Recorded(
    {
        "bench.control.control_attack.measure": seen_of_control_attack,
        "bench.control.control_attack.ControlScene": mock.Mock(),
    },
    {
        "--only": Option(
            lambda row, value: value in row["attack"],
            [*control_attack.ATTACKS, *control_attack.WRITERS_ATTACKS],
        )
    },
    rows=lambda content: [{"attack": name} for name in content["attacks"]],
)
