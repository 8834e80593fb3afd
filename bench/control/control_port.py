"""script/bench control_port: what the control cycles of a coordinator cost a proxy.

Every period a coordinator sends new allocations for all virtual PFSes of a proxy, and takes the
report of all that have changed: that is all of them. Beside it small reads are measured: with
cycles, without, and beside programs that use as much of the processors as cycles do but never talk
to the proxy. Their difference to the cycles is what the proxy's locks and memory add.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.control.limited_jobs import LimitedJobs
from bench.control.scene import SOCKET, THREAD
from lab import plot
from lab.cluster import Cluster, Front
from lab.harness import Problem, Programs, machine_settings
from lab.load import Application, check_errors, quantile_us, run_load
from lab.report import Json, Row, print_settings, table, write_json
from lab.rounds import Rounds, medians
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import one_at_least, one_at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

READS = Application("a", size=4 << 10, outstanding=16, read_percent=100, file_size=32 << 20)
TEMPLATE = "job-{jobid}"
OPERATIONS = 1  # each second, of every other job
WARM_UP = 0.5
LEASE_MS = 1000
LEAST_PRIORITY = 19
FULL, QUICK = Rounds(seconds=4, runs=9), Rounds(seconds=2, runs=3)
CPU_MS, P99_RATIO, REPORTED = 10.0, 1.05, 0.99
COLUMNS = [
    "virtual_pfs",
    "period_ms",
    "cpu_ms_per_s",
    "p99_us_without",
    "p99_us_with",
    "p99_us_burnt",
    "p99_ratio",
    "burnt_ratio",
    "reported_mean",
    "cycle_us_p50",
    "cycle_us_p99",
]
NUMBERS = [
    *COLUMNS[2:],
    "p50_us_without",
    "p50_us_with",
    "p50_us_burnt",
    "allocations_mean",
    "cycles",
]


@dataclasses.dataclass(frozen=True)
class Case:
    jobs: int
    period_ms: int

    def fields(self) -> Row:
        return {"virtual_pfs": self.jobs, "period_ms": self.period_ms}


TARGET = Case(1000, 50)
CASES = (Case(100, 50), TARGET, Case(1000, 1000))
FRONT = Front(
    "px",
    "proxy",
    "sfq",
    {READS.name: 1},
    templates={TEMPLATE: {"hint": {"jobid": "*"}}},
    shares={TEMPLATE: {"operations": OPERATIONS}},
    proxy={"status_interval": "1 h"},
    limits={"held_bytes": "16 MiB"},
    control={"socket": SOCKET},
    depth_requests=64,
    depth_bytes="64 MiB",
)


class Scene:
    """A proxy with so many virtual PFSes, whose jobs run until the programs are stopped."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._cluster = Cluster(programs, 1, [FRONT])
        self._proxy = self._cluster.start(FRONT.name)[0]
        self.port = self._cluster.ports(FRONT.name)[0]
        self._runs = 0

    def reads(self, seconds: float) -> Json:
        self._runs += 1
        result = run_load(
            self._programs,
            f"load{self._runs}",
            self._cluster.address(FRONT.name),
            [READS],
            seconds,
            WARM_UP,
        )
        check_errors(result)
        return result

    def with_cycles(self, case: Case, seconds: float) -> tuple[Json, Mapping[str, float]]:
        """The result of the reads, and the coordinator's numbers."""
        coordinator = self._programs.start(
            f"coordinator{self._runs}",
            "vpfs-bench-control",
            "--socket",
            SOCKET,
            "--period",
            str(case.period_ms),
            "--lease",
            str(max(LEASE_MS, 4 * case.period_ms)),
            "--flows",
            str(case.jobs),
        )
        # Elsewhere it has a machine of its own. Here it takes what the reads leave of this one.
        os.setpriority(os.PRIO_PROCESS, coordinator.pid, LEAST_PRIORITY)
        coordinator.wait_for_line("ready")
        before, own_before = self._proxy.thread_cpu_seconds(THREAD), coordinator.cpu_seconds()
        result = self.reads(seconds)
        used, own = (
            self._proxy.thread_cpu_seconds(THREAD) - before,
            coordinator.cpu_seconds() - own_before,
        )
        coordinator.stop()
        if coordinator.exit_code() != 0:
            raise Problem(f"the coordinator failed:\n{coordinator.last_lines()}")
        facts = json.loads(coordinator.last_lines(1))
        if facts["applied"] != facts["cycles"]:
            raise Problem(f"only {facts['applied']} of {facts['cycles']} cycles were applied")
        # Files are written and removed too while cycles go on; so time is counted in cycles.
        each = {
            "stage_us": 1e6 * used / facts["cycles"],
            "coordinator_us": 1e6 * own / facts["cycles"],
        }
        return result, facts | each | {"cpu_ms_per_s": each["stage_us"] / case.period_ms}

    def beside_others(self, case: Case, seconds: float, facts: Mapping[str, float]) -> Json:
        """The result of the reads while others use the processors as much as a cycle did."""
        others = [
            self._programs.start(
                f"{side}{self._runs}",
                "vpfs-bench-control",
                "--period",
                str(case.period_ms),
                "--burn-us",
                str(max(1, round(facts[f"{side}_us"]))),
            )
            for side in ("stage", "coordinator")
        ]
        os.setpriority(os.PRIO_PROCESS, others[1].pid, LEAST_PRIORITY)
        for other in others:
            other.wait_for_line("ready")
        result = self.reads(seconds)
        for other in others:
            other.stop()
        return result


def once(scene: Scene, case: Case, seconds: float, first_with: bool) -> Mapping[str, float]:
    """All runs, one behind the other."""
    without = scene.reads(seconds) if not first_with else None
    during, facts = scene.with_cycles(case, seconds)
    burnt = scene.beside_others(case, seconds, facts)
    without = without or scene.reads(seconds)
    quantiles = {
        f"{name}_{which}": quantile_us(result, q)
        for name, q in (("p50_us", 0.5), ("p99_us", 0.99))
        for which, result in (("without", without), ("with", during), ("burnt", burnt))
    }
    return {
        **facts,
        **quantiles,
        "p99_ratio": quantiles["p99_us_with"] / quantiles["p99_us_without"],
        "burnt_ratio": quantiles["p99_us_burnt"] / quantiles["p99_us_without"],
    }


def measure(binaries: pathlib.Path, work: pathlib.Path, case: Case, rounds: Rounds) -> Row:
    with Programs(binaries, work) as programs:
        scene = Scene(programs)
        with LimitedJobs(scene.port, case.jobs) as jobs:
            runs = [
                once(scene, case, rounds.seconds, index % 2 == 1) for index in range(rounds.runs)
            ]
            if jobs.answered < case.jobs:
                raise Problem(
                    f"only {jobs.answered} requests of {case.jobs} limited jobs were answered"
                )
    return {**case.fields(), **medians(runs, NUMBERS)}


def check(rows: Sequence[Row]) -> list[Row]:
    row = next(
        row
        for row in rows
        if row["virtual_pfs"] == TARGET.jobs and row["period_ms"] == TARGET.period_ms
    )
    name = f"{TARGET.jobs:,} virtual PFSes every {TARGET.period_ms} ms"
    return [
        one_at_least(
            f"{name}: virtual PFSes in a report / all",
            REPORTED,
            float(str(row["reported_mean"])) / TARGET.jobs,
        ),
        one_at_most(
            f"{name}: CPU of the control thread", CPU_MS, float(str(row["cpu_ms_per_s"])), " ms/s"
        ),
        one_at_most(
            f"{name}: p99 of 4 KiB reads, with cycles / without",
            P99_RATIO,
            float(str(row["p99_ratio"])),
        ),
    ]


def figure(rows: Sequence[Row], caption: str) -> Figure:
    sheet = plot.Sheet("What control cycles cost a proxy", caption, columns=2, heights=[2.8])
    left, right = sheet.panels
    names = [f"{row['virtual_pfs']:,} / {row['period_ms']} ms" for row in rows]
    looks = {
        name: plot.look(index)
        for index, name in enumerate(("control thread", "without cycles", "with cycles", "burnt"))
    }
    plot.bars(
        left, names, {"control thread": [float(str(row["cpu_ms_per_s"])) for row in rows]}, looks
    )
    plot.target(left, CPU_MS, colour=looks["control thread"].colour, text="at most")
    plot.label(
        left, "virtual PFSes / period", "processor time (ms/s)", "Time of the control thread"
    )
    plot.bars(
        right,
        names,
        {
            "without cycles": [float(str(row["p99_us_without"])) for row in rows],
            "with cycles": [float(str(row["p99_us_with"])) for row in rows],
            "burnt": [float(str(row["p99_us_burnt"])) for row in rows],
        },
        looks,
    )
    plot.label(right, "virtual PFSes / period", "p99 latency (µs)", "Reads of 4 KiB beside it")
    return sheet.finish()


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench control_port")
    FULL.add_options(parser, QUICK)
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    rounds = (QUICK if quick else FULL).asked(options)
    settings = machine_settings() | {
        "quick": quick,
        "runs": rounds.runs,
        "seconds": rounds.seconds,
        "warm_up": WARM_UP,
        "statistic": "medians of interleaved runs; p99_ratio: within a round",
        "reads": "4 KiB, one connection with 16 in flight, sequential, a file of 32 MiB in the "
        "server's memory",
        "virtual PFSes": f"one each job, limited to {OPERATIONS} operation/s with one request "
        "under way, so that each is held and each report has all of them; with cycles and without",
        "cycles": "all virtual PFSes get another rate and number of operations each time, above "
        f"what they do; lease {LEASE_MS} ms or four periods; UNIX socket",
        "coordinator": "of the least priority: elsewhere it has a machine of its own",
        "burnt": "two programs use as much of the processors as the two sides of a cycle, and "
        "talk to no other program",
        "cpu_ms_per_s": f"of the proxy's thread {THREAD} alone",
    }
    print_settings(settings)
    rows = []
    for case in (TARGET,) if quick else CASES:
        rows.append(measure(binaries, out / "control_port", case, rounds))
        print("\n" + table(rows[-1:], COLUMNS), flush=True)
    targets = check(rows)
    print("\n" + table(rows, COLUMNS) + "\n\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "control_port.json", {"settings": settings, "rows": rows, "targets": targets})
    plot.save(
        out / "control_port",
        lambda: figure(
            rows,
            plot.caption(
                settings,
                f"jobs of {OPERATIONS} operation/s",
                f"medians of {rounds.runs} interleaved runs of {rounds.seconds:g} s",
            ),
        ),
    )
    return 0
