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
import pathlib
import subprocess
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.simulator.placement_cases import (
    MANY_NETWORKS,
    ONE_NETWORKS,
    STG,
    Case,
    Settings,
    cases_of,
)
from bench.simulator.placement_findings import COLUMNS as FINDING_COLUMNS
from bench.simulator.placement_findings import findings
from lab import plot
from lab.harness import Problem, machine_settings, median
from lab.report import Json, Row, print_settings, size_name, table, write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PROGRAM = "vpfs-bench-placement"
FIGURES = [6, 7, 8, 9, 10]
FULL, QUICK = Settings(seeds=5), Settings(seeds=1)
AT_ONCE = 16  # cases that one process gets
COLUMNS = [
    "network",
    "strategy",
    "access",
    "stg",
    "san",
    "memory_percent",
    "remote_percent",
    "priority",
    "wait_s",
    "run_s",
    "total_s",
    "relative",
]


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


def measure(
    binaries: pathlib.Path, figure: int, cases: Sequence[Case], settings: Settings, at_once: int
) -> list[Row]:
    runs = [(case, seed) for case in cases for seed in range(1, settings.seeds + 1)]
    size = 1 if cases[0].many else AT_ONCE
    parts = [runs[first : first + size] for first in range(0, len(runs), size)]
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        results = [
            result
            for part in pool.map(
                lambda part: simulate(
                    binaries, [case.config(settings, seed) for case, seed in part]
                ),
                parts,
            )
            for result in part
        ]
    times: dict[Case, list[tuple[float, float]]] = {}
    for (case, _), result in zip(runs, results):
        times.setdefault(case, []).append(times_of(result))
    found: dict[Case, Json] = {}
    for case, seen in times.items():
        wait, run_ = median([wait for wait, _ in seen]), median([run_ for _, run_ in seen])
        total = median([wait + run_ for wait, run_ in seen])
        found[case] = (
            {"figure": figure} | case.fields() | {"wait_s": wait, "run_s": run_, "total_s": total}
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
        return dataclasses.replace(case, access="disperse")
    return dataclasses.replace(case, strategy="cache", access="local", staged=figure == 9)


def shown(figure: int, rows: Sequence[Row]) -> Sequence[Row]:
    """The whole of figures 6 and 7 is in the JSON and in the plot; a screen gets a part."""
    if figure == 6:
        return [
            row
            for row in rows
            if row["stg"] in (0, 1, 16, 64)
            and row["memory_percent"] in (0, 100)
            and row["remote_percent"] in (0, 100)
        ]
    if figure == 7:
        return [
            row
            for row in rows
            if row["stg"] in (1, 16, 64) and row["priority"] in ("FP", "BA 5-95", "BA 85-15")
        ]
    return rows


def draw(figure: int, rows: Sequence[Row], caption: str) -> Figure:
    titles = {
        6: "Running time by remote access",
        7: "Priorities of communication, against none",
        8: "Where the data of many applications are",
        9: "Central servers",
        10: "Priorities with many applications",
    }
    networks = list(dict.fromkeys(row["network"] for row in rows))
    sheet = plot.Sheet(
        f"{titles[figure]} (figure {figure})",
        caption,
        columns=3,
        heights=[3.6],
        share_y=figure != 6,
    )
    for panel, network in zip(sheet.panels, networks):
        here = [row for row in rows if row["network"] == network]
        if figure == 6:
            series = {
                f"STG-{stg}": [
                    (row["remote_percent"], row["run_s"])
                    for row in here
                    if row["stg"] == stg
                    and row["memory_percent"] == 0
                    and row["access"] == "disperse"
                ]
                for stg in STG
            }
            plot.lines(panel, series)
            plot.logarithmic(panel, "y")
            plot.label(panel, "remote (%)", "s", network)
        elif figure == 9:
            series = {
                name: [(row["san"], row["total_s"]) for row in here if row["strategy"] == name]
                for name in ("san", "cache")
            }
            plot.lines(panel, series)
            plot.logarithmic(panel, "x")
            plot.logarithmic(panel, "y")
            plot.label(panel, "central servers", "waiting and running, s", network)
        elif figure == 7:
            here = [row for row in here if row["priority"] != "NP"]
            names = list(dict.fromkeys(row["priority"] for row in here))
            counts = list(dict.fromkeys(row["stg"] for row in here))
            most = max(row["remote_percent"] for row in here)
            plot.dots(
                panel,
                names,
                {
                    f"STG-{stg}": [
                        row["relative"]
                        for row in here
                        if row["stg"] == stg and row["remote_percent"] == most
                    ]
                    for stg in counts
                },
            )
            plot.label(panel, f"of NP, {most} % remote", "", network)
        else:
            names = [
                f"{row['strategy']} {row['access']}" if figure == 8 else str(row["priority"])
                for row in here
            ]
            plot.dots(
                panel,
                names,
                {
                    "waiting": [row["wait_s"] for row in here],
                    "running": [row["run_s"] for row in here],
                },
            )
            plot.label(panel, "s", "", network)
    return sheet.finish()


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench placement")
    parser.add_argument(
        "--figure",
        nargs="+",
        type=int,
        choices=FIGURES,
        default=FIGURES,
        help="of the study (default: all)",
    )
    chosen = Settings()
    parser.add_argument("--seeds", type=int, help="medians of so many runs (default: 5, quick: 1)")
    parser.add_argument(
        "--rates",
        choices=["max-min", "equal-share"],
        default=chosen.rates,
        help="equal-share: a flow has the lowest of its equal parts of its links, and what it "
        f"leaves of the others is lost (default {chosen.rates})",
    )
    parser.add_argument(
        "--link-rate",
        type=int,
        default=chosen.link_rate,
        help=f"bytes per second of each link (default {chosen.link_rate})",
    )
    parser.add_argument(
        "--message-size",
        type=int,
        default=chosen.message_bytes,
        help="bytes that a task sends in a communication; of mixed sizes: the largest message "
        f"(default {chosen.message_bytes})",
    )
    parser.add_argument(
        "--mixed-sizes", action="store_true", help="messages are many small ones and few large ones"
    )
    parser.add_argument(
        "--messages",
        type=int,
        default=chosen.messages,
        help=f"to each partner in a communication, one after the other (default {chosen.messages})",
    )
    parser.add_argument(
        "--own-steps",
        action="store_true",
        help="each task has its own sequence of steps, not each application one",
    )
    parser.add_argument(
        "--io-size",
        type=int,
        default=chosen.io_bytes,
        help=f"bytes of a task's data, and of an access at most (default {chosen.io_bytes})",
    )
    parser.add_argument(
        "--least-io-percent",
        type=int,
        default=chosen.least_io_percent,
        help=f"of a task's data, that an access moves (default {chosen.least_io_percent})",
    )
    parser.add_argument(
        "--workload-compute",
        type=int,
        default=chosen.workload_compute,
        help="computing takes so many times as long in workloads (default "
        f"{chosen.workload_compute})",
    )
    parser.add_argument(
        "--workload-steps",
        type=int,
        default=chosen.workload_steps,
        help=f"of an application of a workload, at most (default {chosen.workload_steps})",
    )
    parser.add_argument(
        "--replicas",
        type=int,
        default=chosen.replicas,
        help=f"of a write to a central server (default {chosen.replicas})",
    )
    parser.add_argument("--jobs", type=int, default=2, help="runs at the same time (default 2)")
    return parser


def describe(settings: Settings) -> dict[str, object]:
    accesses = size_name(settings.io_bytes)
    if settings.least_io_percent < 100:
        accesses = f"{settings.least_io_percent} to 100 % of {accesses}"
    messages = size_name(settings.message_bytes)
    if settings.mixed:
        messages = f"of 1 byte to {messages}, mostly small"
    return {
        "statistic": f"medians of {settings.seeds} seeds; of a workload, means of its applications",
        "link rate": f"{settings.link_rate / 1e9:g} GB/s, chosen here; rates are {settings.rates}",
        "memory, NVM": "10 GB/s; 2 GB/s read, 1 GB/s write",
        "data": f"{size_name(settings.io_bytes)} of a task; staged in and out with CACHE of "
        "figures 6 and 9",
        "central servers": "10 Gb/s front end, 40 Gb/s between them and to their devices, "
        f"{settings.replicas} replica(s) of each write",
        "one application": f"64 tasks, {settings.steps} steps: 75 % storage of {accesses}, 12.5 % "
        f"computing of {settings.compute_us / 1000:g} ms, 12.5 % communication of {messages}; "
        "sizes chosen here",
        "messages": f"{settings.messages} to each partner in a communication, one after the other",
        "sequences of steps": "each task has its own" if settings.own_steps else "one of all tasks",
        "workloads": f"{settings.applications} applications of 8 to 128 tasks and "
        f"{settings.workload_steps // 4} to {settings.workload_steps} steps, "
        f"{settings.arrivals:g} a second in the mean, first come, first served; computing of "
        f"{settings.workload_compute * settings.compute_us / 2000:g} to "
        f"{settings.workload_compute * settings.compute_us / 200:g} ms",
        "networks, one application": ONE_NETWORKS,
        "networks, many": MANY_NETWORKS,
    }


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    base = QUICK if quick else FULL
    settings = dataclasses.replace(
        base,
        seeds=options.seeds or base.seeds,
        rates=options.rates,
        link_rate=options.link_rate,
        message_bytes=options.message_size,
        mixed=options.mixed_sizes,
        messages=options.messages,
        own_steps=options.own_steps,
        io_bytes=options.io_size,
        least_io_percent=options.least_io_percent,
        workload_compute=options.workload_compute,
        workload_steps=options.workload_steps,
        replicas=options.replicas,
    )
    described = machine_settings() | {"quick": quick} | describe(settings)
    print_settings(described)
    rows: list[Row] = []
    found: list[Row] = []
    for figure in options.figure:
        part = measure(binaries, figure, cases_of(figure, quick), settings, options.jobs)
        held = findings(figure, part)
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
                    f"medians of {settings.seeds} seeds",
                ),
            ),
        )
    write_json(out / "placement.json", {"settings": described, "rows": rows, "findings": found})
    return 0
