"""script/bench scale: which way of sharing fits which site, with up to 1,000 servers.

Everything runs in virtual time, in vpfs-sim: the stages of proxies with their real schedulers, and
the real cycles of a coordinator over them. Half of the time a tenth of the jobs is missing; when
they come, the others have to make room.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import dataclasses
import json
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.simulator.scale_site import REQUEST, WEIGHTS, Job, entitled, jobs_of
from lab import plot
from lab.harness import Problem, Programs, machine_settings
from lab.load import seconds
from lab.numbers import one_or_more
from lab.report import Json, Row, print_settings, size_name, table, write_json
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import one_at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BANDWIDTH, PER_REQUEST = 100, 500e-6  # MiB/s and seconds of each server's device
CAPACITY = 1 / (REQUEST / (1 << 20) / BANDWIDTH + PER_REQUEST)  # MiB/s, with requests of REQUEST
DEPTH = {"requests": 4, "bytes": "8 MiB"}
INTERVAL = 0.5  # of the rates over time
WARM_UP = 5.0
DELAYS = [
    0.5,
    5.0,
]  # control.longest_delay of the proxies: as it comes, and half of the time that they hold requests
# This part of the time before the change is over when jobs are measured, so that they have settled.
BEFORE = 0.4
SETTLED = 0.05  # of all that is moved goes to other jobs than at the end
MOST_SECONDS, MOST_MIB = 900.0, 4096.0
COLUMNS = [
    "servers",
    "clients",
    "jobs",
    "policy",
    "cycle_ms",
    "delay_s",
    "jain",
    "worst_ratio",
    "worst_job",
    "idle_percent",
    "settle_s",
    "away_jain",
    "wall_s",
    "rss_mib",
]
SUMMARY = re.compile(r"([0-9.]+) s of virtual time, (\d+) events in ([0-9.]+) s, .* (\d+) MiB")


@dataclasses.dataclass(frozen=True)
class Case:
    servers: int
    policy: str  # adaptbf, sfq, psfa or total; the last two with a coordinator over sfq
    cycle: float = 0.0  # seconds; 0: no coordinator
    # Total: a job that got more than its share elsewhere gets a request here in that many seconds.
    delay: float = 0.5
    away: bool = False  # the coordinator is dead for a minute at the end of the run

    def title(self) -> str:
        cycle = f", cycles of {self.cycle * 1000:g} ms" if self.cycle else ""
        cycle += f", delay of {self.delay:g} s" if self.policy == "total" else ""
        return (
            f"{self.servers} servers, "
            f"{self.policy}{cycle}{', away for a minute' if self.away else ''}"
        )


@dataclasses.dataclass(frozen=True)
class Plan:
    seconds: float  # measured, half of it before the change
    servers: Sequence[int]
    cycles: Sequence[float]

    def cases(self) -> list[Case]:
        ways = [("adaptbf", [0.0], 0.0), ("sfq", [0.0], 0.0), ("psfa", self.cycles, 0.0)]
        ways += [("total", self.cycles, delay) for delay in DELAYS]
        found = [
            Case(servers, policy, cycle, delay)
            for servers in self.servers
            for policy, cycles, delay in ways
            for cycle in cycles
        ]
        middle = min(self.servers, key=lambda count: abs(count - 100))
        return [
            *found,
            Case(middle, "psfa", 0.1, away=True),
            Case(middle, "total", 0.1, DELAYS[-1], away=True),
        ]


FULL = Plan(60.0, [10, 100, 1000], [0.01, 0.1, 1.0])
QUICK = Plan(20.0, [10, 100], [0.1])
AWAY = 60.0


def proxy_config(case: Case) -> dict[str, object]:
    word = "nodes" if case.policy == "adaptbf" else "weight"
    return {
        "proxy": {"listen": "127.0.0.1:1", "upstream": "127.0.0.1:2"},
        "scheduler": {"policy": "adaptbf" if case.policy == "adaptbf" else "sfq", "depth": DEPTH},
        "virtual_pfs": {f"{weight}-{{jobid}}": {word: weight} for weight in WEIGHTS},
        "control": {"socket": "none.sock", "longest_delay": seconds(case.delay or 0.5)},
        "rules": [
            {"match": {"hint": {"jobid": f"*-{weight}-*"}}, "virtual_pfs": f"{weight}-{{jobid}}"}
            for weight in WEIGHTS
        ],
    }


def scenario(
    case: Case, configuration: str, jobs: Sequence[Job], length: float
) -> dict[str, object]:
    found: Json = {
        "configuration": configuration,
        "servers": {
            "count": case.servers,
            "flow_buffer_size": size_name(REQUEST),
            "device": {
                "bandwidth": f"{BANDWIDTH} MiB/s",
                "per_request": f"{round(PER_REQUEST * 1e6)} us",
            },
        },
        "duration": seconds(length),
        "warm_up": seconds(WARM_UP),
        "interval": seconds(INTERVAL),
        "applications": [
            {
                "name": job.name,
                "processes": job.clients,
                "size": size_name(REQUEST),
                "file_size": size_name(16 * REQUEST),
                "datafiles": 1,
                "servers": {"first": job.first, "count": job.servers},
            }
            | ({"start": seconds(WARM_UP + change(case, length))} if job.late else {})
            for job in jobs
        ],
    }
    if case.cycle:
        found["coordinator"] = {
            "policy": case.policy,
            "period": seconds(case.cycle),
            "lease": seconds(max(1.0, 4 * case.cycle)),
            "round_trip": "1 ms",
        }
        if case.policy == "psfa":
            found["coordinator"] |= {
                "capacity": f"{round(CAPACITY * case.servers)} MiB/s",
                "floor": "64 KiB/s",
            }
        if case.away:
            found["coordinator"] |= {
                "away": {
                    "from": seconds(WARM_UP + length - AWAY),
                    "until": seconds(WARM_UP + length),
                }
            }
    return found


def change(case: Case, length: float) -> float:
    """When the late jobs come, in measured seconds."""
    return (length - AWAY if case.away else length) / 2


def jain(values: Sequence[float]) -> float:
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def mean_rates(
    courses: Mapping[str, Sequence[float]], begin: float, end: float
) -> dict[str, float]:
    first, last = round(begin / INTERVAL), round(end / INTERVAL)
    return {name: sum(course[first:last]) / (last - first) for name, course in courses.items()}


def settle_seconds(
    courses: Mapping[str, Sequence[float]], begin: float, end: float
) -> float | None:
    """The seconds from the change until rates stay as in the last quarter, up to SETTLED of all.

    None: they never do.
    """
    final = mean_rates(courses, end - (end - begin) / 4, end)
    total, settled = sum(final.values()), None
    for index in range(round(end / INTERVAL) - 2, round(begin / INTERVAL) - 1, -1):
        now = mean_rates(
            courses, index * INTERVAL, (index + 2) * INTERVAL
        )  # a second: one request of a slow job counts less
        if sum(abs(now[name] - final[name]) for name in final) / 2 > SETTLED * total:
            break
        settled = index * INTERVAL - begin
    return settled


def fairness(case: Case, jobs: Sequence[Job], rates: Mapping[str, float]) -> dict[str, object]:
    """How fair it is what jobs get on all servers together."""
    wanted = entitled(jobs, CAPACITY)
    ratios = {job.name: rates[job.name] / wanted[job.name] for job in jobs}
    worst = min(ratios, key=lambda name: ratios[name])
    return {
        "jain": jain(list(ratios.values())),
        "worst_ratio": ratios[worst],
        "worst_job": worst.split("-")[0],
        "idle_percent": 100 * (1 - sum(rates.values()) / (CAPACITY * case.servers)),
    }


def run_case(programs: Programs, case: Case, length: float) -> Row:
    length += AWAY if case.away else 0.0
    jobs = jobs_of(case.servers)
    name = case.title().replace(" ", "-").replace(",", "")
    folder = programs.work / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "proxy.yaml").write_text(json.dumps(proxy_config(case), indent=1))
    (folder / "scenario.yaml").write_text(
        json.dumps(scenario(case, "proxy.yaml", jobs, length), indent=1)
    )
    simulator = programs.start(
        name, "vpfs-sim", f"{folder}/scenario.yaml", "--json", f"{folder}/result.json"
    )
    code = simulator.wait()
    summary = SUMMARY.search(simulator.log.read_text())
    if code != 0 or summary is None:
        raise Problem(f"vpfs-sim ended with {code}:\n{simulator.last_lines()}")
    (result,) = json.loads((folder / "result.json").read_text())
    courses = {entry["name"]: entry["course_mib_per_s"] for entry in result["applications"]}
    at = change(case, length)
    end = 2 * at
    row: dict[str, object] = (
        {
            "servers": case.servers,
            "clients": sum(job.clients for job in jobs),
            "jobs": len(jobs),
            "policy": case.policy,
            "cycle_ms": round(case.cycle * 1000) if case.cycle else None,
            "delay_s": case.delay if case.policy == "total" else None,
        }
        | fairness(case, jobs, mean_rates(courses, at + (end - at) * BEFORE, end))
        | {
            "settle_s": settle_seconds(courses, at, end),
            "away_jain": None,
            "wall_s": float(summary[3]),
            "rss_mib": int(summary[4]),
            "events_per_s": int(summary[2]) / float(summary[3]),
            "virtual_s": float(summary[1]),
        }
    )
    if case.away:
        gone = fairness(case, jobs, mean_rates(courses, end + 5, length))  # its leases have ended
        row |= {
            "away_jain": gone["jain"],
            "away_worst_ratio": gone["worst_ratio"],
            "away_idle_percent": gone["idle_percent"],
        }
    return row


def check(rows: Sequence[Row]) -> list[Row]:
    largest = max(rows, key=lambda row: row["servers"])["servers"]
    heavy = [row for row in rows if row["servers"] == largest]
    return [
        one_at_most(
            f"{largest} servers, the slowest run",
            MOST_SECONDS,
            max(row["wall_s"] for row in heavy),
            " s",
        ),
        one_at_most(
            f"{largest} servers, the largest run",
            MOST_MIB,
            max(row["rss_mib"] for row in heavy),
            " MiB",
        ),
    ]


def figure(rows: Sequence[Row], caption: str) -> Figure:
    sheet = plot.Sheet("Which way of sharing fits which site", caption, columns=3, heights=[5.0])
    counts = list(dict.fromkeys(row["servers"] for row in rows))
    here = [row for row in rows if row["away_jain"] is None]
    names = list(dict.fromkeys(way(row) for row in here))
    by_place = {(row["servers"], way(row)): row for row in here}
    for panel, field, title in zip(
        sheet.panels,
        ("jain", "worst_ratio", "idle_percent"),
        (
            "Jain's index of what jobs get of their due",
            "The worst job's part of its due",
            "Idle (%)",
        ),
    ):
        plot.dots(
            panel,
            names,
            {
                f"{count} servers": [
                    (by_place.get((count, name)) or {}).get(field) for name in names
                ]
                for count in counts
            },
        )
        plot.label(panel, "", "", title)
    return sheet.finish()


def way(row: Row) -> str:
    if row["delay_s"]:
        return f"{row['policy']} {row['cycle_ms']} ms, {row['delay_s']:g} s"
    return f"{row['policy']} {row['cycle_ms']} ms" if row["cycle_ms"] else f"{row['policy']} alone"


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench scale")
    parser.add_argument(
        "--servers",
        nargs="+",
        type=one_or_more,
        help=f"sizes of sites, multiples of ten (default {FULL.servers})",
    )
    parser.add_argument(
        "--jobs", type=one_or_more, default=2, help="runs at the same time (default 2)"
    )
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    plan = QUICK if quick else FULL
    if options.servers:
        plan = dataclasses.replace(plan, servers=options.servers)
    settings = machine_settings() | {
        "quick": quick,
        "seconds": f"{plan.seconds:g} of virtual time after {WARM_UP:g} of warm-up; {AWAY:g} more "
        "where the coordinator is away",
        "device of each server": f"{BANDWIDTH} MiB/s, {PER_REQUEST * 1e6:g} us a request, so "
        f"{CAPACITY:.1f} MiB/s",
        "depth": DEPTH,
        "requests": f"{size_name(REQUEST)}, one in flight of each client",
        "jobs": "wide: on all servers, 2 clients on each; middle: on a tenth of them, 10 clients "
        "on each; narrow: on one, 25 clients; weights 1, 2 and 4 in turn; a fifth of the middle "
        "ones comes at half time",
        "due": "weighted max-min fair shares of the service on all servers together",
        "settled": f"within {SETTLED:.0%} of the rates at the end",
        "runs at the same time": options.jobs,
    }
    print_settings(settings)
    with (
        concurrent.futures.ThreadPoolExecutor(options.jobs) as pool,
        Programs(binaries, out / "scale") as programs,
        contextlib.ExitStack() as cleanup,
    ):
        # After an error, what has not begun does not begin, and what runs is stopped.
        cleanup.callback(pool.shutdown, wait=False, cancel_futures=True)
        futures = [pool.submit(run_case, programs, case, plan.seconds) for case in plan.cases()]
        rows = []
        for case, future in zip(plan.cases(), futures):
            rows.append(future.result())
            print(
                f"{case.title()}: {rows[-1]['wall_s']:g} s, {rows[-1]['events_per_s'] / 1e6:.2f} "
                "million events/s",
                flush=True,
            )
    targets = check(rows)
    print("\n" + table(rows, COLUMNS))
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "scale.json", {"settings": settings, "rows": rows, "targets": targets})
    plot.save(
        out / "scale",
        lambda: figure(
            rows,
            plot.caption(
                settings,
                "servers of 100 MiB/s in virtual time; jobs on all servers, on a tenth of them "
                "and on one",
            ),
        ),
    )
    return 0
