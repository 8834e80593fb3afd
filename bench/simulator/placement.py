"""script/bench placement: where should a job's data be, and do network priorities help?

It repeats figures 6 to 10 of the study of data-aware allocation of the ExaNeSt project, in virtual
time, and says which of its findings hold here.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import functools
import json
import math
import pathlib
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from bench.simulator.placement_cases import (
    MANY_NETWORKS,
    MODES,
    ONE_NETWORKS,
    TASKS,
    Case,
    Mode,
    Settings,
    cases_of,
    replicas,
    rules,
)
from bench.simulator.placement_figures import draw
from bench.simulator.placement_findings import COLUMNS as FINDING_COLUMNS
from bench.simulator.placement_findings import findings
from bench.simulator.placement_rows import NAMES
from lab import plot
from lab.harness import Problem, machine_settings
from lab.numbers import not_negative, one_or_more, zero_or_more
from lab.report import Json, Row, print_settings, table, write_json

PROGRAM = "vpfs-bench-placement"
Number = Callable[[str], float]
FIGURES = [6, 7, 8, 9, 10]
FULL, QUICK = Settings(seeds=3), Settings(seeds=1)
AT_ONCE = 16  # cases that one process gets
COLUMNS = ["mode", *NAMES, "wait_s", "run_s", "total_s", "relative"]


def simulate(binaries: pathlib.Path, configs: Sequence[dict[str, object]]) -> list[Json]:
    done = subprocess.run(
        [binaries / PROGRAM], input=json.dumps(configs), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise Problem(f"{PROGRAM} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def times_of(result: Json) -> tuple[float, float]:
    """Waiting and running, of a workload in the mean of its applications."""
    if "jobs" not in result:
        return 0.0, result["run_s"]
    jobs = result["jobs"]
    return sum(job["wait_s"] for job in jobs) / len(jobs), sum(job["run_s"] for job in jobs) / len(
        jobs
    )


def mean_of(numbers: Sequence[float]) -> float:
    """The geometric mean: that of ratios is then the ratio of those of times."""
    logs = [math.log(max(number, 1e-9)) for number in numbers]
    return math.exp(sum(logs) / len(logs))


def measure(
    binaries: pathlib.Path,
    figure: int,
    cases: Sequence[Case],
    settings: Settings,
    mode: Mode,
    at_once: int,
) -> list[Row]:
    runs = [(case, seed) for case in cases for seed in range(1, settings.seeds + 1)]
    size = 1 if cases[0].many else AT_ONCE
    parts = [runs[first : first + size] for first in range(0, len(runs), size)]
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        results = [
            result
            for part in pool.map(
                lambda part: simulate(
                    binaries, [case.config(settings, mode, seed) for case, seed in part]
                ),
                parts,
            )
            for result in part
        ]
    times: dict[Case, list[tuple[float, float]]] = {}
    for (case, _), result in zip(runs, results):
        times.setdefault(case, []).append(times_of(result))
    found: dict[Case, dict[str, Any]] = {}
    for case, seen in times.items():
        found[case] = (
            {"figure": figure, "mode": mode.name}
            | case.fields()
            | {
                "wait_s": mean_of([wait for wait, _ in seen]),
                "run_s": mean_of([run_ for _, run_ in seen]),
                "total_s": mean_of([wait + run_ for wait, run_ in seen]),
            }
        )
    for case, row in found.items():
        base = found.get(base_of(figure, case))
        row["relative"] = row["total_s"] / base["total_s"] if base else None
    return list(found.values())


def base_of(figure: int, case: Case) -> Case:
    """What a row is compared with."""
    if figure in (7, 10):
        return dataclasses.replace(case, priority="NP")
    if figure == 6:
        return dataclasses.replace(case, access="local" if case.strategy == "cache" else "disperse")
    if case.nodes != "sequential" or case.backfills:
        return dataclasses.replace(case, nodes="sequential", backfills=False)
    return dataclasses.replace(case, strategy="cache", access="local")


def shown(figure: int, rows: Sequence[Row]) -> Sequence[Row]:
    """The whole of figures 6 and 7 is in the JSON and in the plot; a screen gets a part."""
    if figure == 6:
        return [
            row
            for row in rows
            if row["stg"] in (0, 1, 16, 64)
            and row["memory_percent"] == 50
            and row["remote_percent"] in (0, 50, 100)
        ]
    if figure == 7:
        return [
            row
            for row in rows
            if row["stg"] in (1, 16, 64) and row["priority"] in ("FP", "BA 5-95", "BA 85-15")
        ]
    return rows


def overview(found: Sequence[Row]) -> str:
    """The findings, with the verdict of each mode beside each other."""
    modes = list(dict.fromkeys(row["mode"] for row in found))
    rows: dict[tuple[object, object], dict[str, Any]] = {}
    for row in found:
        at = rows.setdefault(
            (row["figure"], row["finding"]), {"figure": row["figure"], "finding": row["finding"]}
        )
        at[row["mode"]] = f"{row['here']}: {row['holds']}"
    return table(list(rows.values()), ["figure", "finding", *modes])


def count_that_hold(found: Sequence[Row]) -> str:
    held = {row["finding"] for row in found if row["holds"] != "no"}
    alone = {row["finding"] for row in found if row["mode"] == "max-min" and row["holds"] != "no"}
    every = {row["finding"] for row in found}
    return (
        f"{len(held)} of {len(every)} findings hold or nearly do in one of the modes, "
        f"{len(alone)} with max-min"
    )


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench placement")
    chosen = Settings()

    def number(name: str, default: int | None, text: str, kind: Number = zero_or_more) -> None:
        parser.add_argument(name, type=kind, default=default, help=f"{text} (default {default})")

    parser.add_argument(
        "--figure",
        nargs="+",
        type=int,
        choices=FIGURES,
        default=FIGURES,
        help="of the study (default: all)",
    )
    parser.add_argument(
        "--mode",
        nargs="+",
        choices=list(MODES),
        help="max-min: rates are fair. study: as in the simulator of the study; with study-2 "
        "rates of messages never rise, with study-3 those of messages and remote hits (default: "
        "all; figures 8 and 9: max-min and study)",
    )
    parser.add_argument(
        "--seeds", type=one_or_more, help="means of so many runs (default: 3, quick: 1)"
    )
    parser.add_argument(
        "--networks",
        nargs="+",
        choices=list(ONE_NETWORKS),
        default=list(chosen.networks),
        help="of figures 6 and 7 (default: dragonfly)",
    )
    number("--link-rate", chosen.link_rate, "bytes per second of each link")
    number("--compute", chosen.compute_us, "microseconds of a block of computing, in the mean")
    number("--data-size", chosen.data_bytes, "bytes of an application, in, and as much out")
    number("--least-percent", chosen.least_percent, "of the data, that a block moves at least")
    number("--message-size", chosen.message_bytes, "bytes of the largest message")
    number("--blocks", chosen.blocks, "of an application, in the mean")
    number(
        "--workload-messages",
        chosen.workload_messages,
        "of a task in a communication of figures 8 to 10; more are bundled",
    )
    number("--task-mean", chosen.task_mean, "tasks of an application of figures 8 to 10")
    number(
        "--arrivals", None, "ms between two applications of figures 8 to 10; else 1", not_negative
    )
    parser.add_argument(
        "--locality",
        choices=["node", "share", "whole"],
        help="local are accesses of tasks with a device on their node, or of each task the part "
        "that devices are of tasks, or none but with a device for each task (default: node; in "
        "the modes of the study whole)",
    )
    parser.add_argument(
        "--trace-order",
        choices=["yes", "no"],
        help="devices serve in the order of the trace (default: in the modes of the study)",
    )
    parser.add_argument(
        "--replicas",
        type=zero_or_more,
        help="of a write to a central server (default 1, in the modes of the study 0)",
    )
    parser.add_argument(
        "--spare-tasks",
        action="store_true",
        help="STG-64 has 64 devices for 72 tasks, not one for each",
    )
    parser.add_argument(
        "--transitions",
        type=pathlib.Path,
        help="JSON file: a row for each of compute, communicate, read and write, with the weights "
        "of these and of the end as the next block, for the application of figures 6 and 7",
    )
    parser.add_argument(
        "--jobs", type=one_or_more, default=2, help="runs at the same time (default 2)"
    )
    return parser


def read_transitions(path: pathlib.Path | None) -> tuple[tuple[int, ...], ...]:
    if path is None:
        return ()
    try:
        rows = tuple(tuple(row) for row in json.loads(path.read_text()))
    except (OSError, ValueError, TypeError) as error:
        raise Problem(f"{path}: {error}") from error
    if [len(row) for row in rows] != [5] * 4 or not all(
        type(weight) is int and weight >= 0 for row in rows for weight in row
    ):
        raise Problem(f"{path}: four rows of five whole numbers were expected")
    if not all(sum(row) > 0 for row in rows):
        raise Problem(f"{path}: a row has no weight")
    return rows


def settings_of(base: Settings, options: argparse.Namespace) -> Settings:
    return dataclasses.replace(
        base,
        seeds=options.seeds or base.seeds,
        networks=tuple(dict.fromkeys(("dragonfly", *options.networks))),
        link_rate=options.link_rate,
        compute_us=options.compute,
        data_bytes=options.data_size,
        least_percent=options.least_percent,
        message_bytes=options.message_size,
        blocks=options.blocks,
        workload_messages=options.workload_messages,
        task_mean=options.task_mean,
        arrivals_ms=base.arrivals_ms if options.arrivals is None else options.arrivals,
        locality=options.locality,
        trace_order=None if options.trace_order is None else options.trace_order == "yes",
        replicas=options.replicas,
        full_stg=not options.spare_tasks,
        transitions=read_transitions(options.transitions),
    )


def modes_of(figure: int, options: argparse.Namespace) -> list[Mode]:
    names = options.mode or (["max-min", "study"] if figure in (8, 9) else list(MODES))
    return [MODES[name] for name in names]


def describe(settings: Settings) -> dict[str, object]:
    return {
        "statistic": f"geometric means of {settings.seeds} seeds; of a workload, means of its "
        "applications",
        "link rate": f"{settings.link_rate / 1e9:g} GB/s",
        "memory, NVM": "10 GB/s; 2 GB/s read, 1 GB/s write",
        "data": f"{settings.data_bytes / 1e6:g} MB of an application, in and out; a block moves "
        f"{settings.least_percent} to 100 %",
        "blocks": f"{settings.blocks} in the mean; computing {settings.compute_us / 1000:g} ms in "
        "the mean",
        "messages": f"tasks + 0 to 9 of each task, in 1 to 10 rounds; one of five to "
        f"{settings.message_bytes / 1e6:g} MB; figures 8 to 10: at most "
        f"{settings.workload_messages} of each task, of the same bytes",
        "one application": f"tasks: {TASKS}; 75 % storage, the rest half and half"
        + (", or a matrix of its own" if settings.transitions else ""),
        "workloads": f"{settings.applications} applications, {settings.task_mean} tasks in the "
        f"mean, exponential; {settings.arrivals_ms:g} ms apart",
        "networks, one application": {name: ONE_NETWORKS[name] for name in settings.networks},
        "networks, many": MANY_NETWORKS,
        "rules": {
            mode.name: rules(settings, mode) | {"replicas": replicas(settings, mode)}
            for mode in MODES.values()
        },
        "devices of STG-64": "one for each task" if settings.full_stg else 64,
    } | ({"transitions": settings.transitions} if settings.transitions else {})


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    settings = settings_of(QUICK if quick else FULL, options)
    described = machine_settings() | {"quick": quick} | describe(settings)
    print_settings(described)
    rows: list[Row] = []
    found: list[Row] = []
    for figure in options.figure:
        part: list[Row] = []
        held: list[Row] = []
        for mode in modes_of(figure, options):
            cases = cases_of(figure, quick, settings.networks)
            measured = measure(binaries, figure, cases, settings, mode, options.jobs)
            part += measured
            held += findings(figure, mode.name, measured)
        rows += part
        found += held
        print(f"\nfigure {figure}\n" + table(shown(figure, part), COLUMNS))
        print("\n" + table(held, FINDING_COLUMNS), flush=True)
        plot.save(
            out / f"placement-{figure}",
            functools.partial(
                draw,
                figure,
                part,
                plot.caption(
                    described,
                    f"links of {settings.link_rate / 1e9:g} GB/s, virtual time",
                    f"means of {settings.seeds} seeds",
                ),
            ),
        )
    print("\n" + overview(found) + "\n\n" + count_that_hold(found))
    write_json(out / "placement.json", {"settings": described, "rows": rows, "findings": found})
    return 0
