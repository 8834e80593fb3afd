"""script/bench insight: what it costs to ask about the past, and to keep it.

`why` is asked about a job of a whole site, through the coordinator and of all proxies. Small reads
are measured beside questions that come ten times a second, and beside a recording. Programs that
ask use the processors too, so the reads are also measured beside the same questions to a proxy that
they do not pass. What the history and the recorder cost each request is measured by `stage`.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from bench.insight import site
from lab import plot
from lab.cluster import Cluster
from lab.harness import Problem, Program, Programs, machine_settings
from lab.load import Application, check_errors, quantile_us, run_load
from lab.numbers import one_or_more
from lab.report import Row, print_settings, table, write_json
from lab.rounds import Facts, Rounds, medians
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import one_at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

READS = Application("a", size=4 << 10, outstanding=16, read_percent=100, file_size=32 << 20)
JOBS = 1000
ASKED_EACH = 0.1  # seconds
WARM_UP = 0.5
LEAST_PRIORITY = 19
FULL, QUICK = Rounds(seconds=4, runs=9), Rounds(seconds=1.5, runs=3)
SITE, QUICK_SITE = site.Size(100, 1000), site.Size(10, 1000)
SITE_MS, P99_RATIO = 1000.0, 1.05
ALONE, ASKED, ELSEWHERE, RECORDED = "alone", "asked", "asked elsewhere", "recorded"
SITE_COLUMNS = ["proxies", "virtual_pfs", "asked", "ms_p50", "ms_max", "own_mib_before", "own_mib"]
NUMBERS = [
    "ops_per_s",
    "p50_us",
    "p99_us",
    "p99_of_alone",
    "p99_of_elsewhere",
    "cpu_us_per_request",
    "questions",
]
SITE_BARS = {"median": "ms_p50", "longest": "ms_max"}
READ_BARS = {"p50": "p50_us", "p99": "p99_us"}


class Questions(AbstractContextManager["Questions"]):
    """Asks a proxy again and again until the context is left."""

    def __init__(self, binaries: pathlib.Path, work: pathlib.Path, endpoint: str) -> None:
        self._command = [str(binaries / "vpfsctl"), "--proxy", endpoint, "why", f"job-{site.ASKED}"]
        self._work = work
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._problem = ""
        self.answered = 0

    def __enter__(self) -> Questions:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        if self._problem:
            raise Problem(f"{' '.join(self._command)}: {self._problem}")

    def _run(self) -> None:
        # An administrator asks from a machine of its own. Here vpfsctl takes what the reads leave.
        def last_of_all() -> None:
            os.nice(LEAST_PRIORITY)

        next_at = time.monotonic() + ASKED_EACH
        while not self._done.wait(next_at - time.monotonic()) and not self._problem:
            next_at = max(next_at + ASKED_EACH, time.monotonic())
            done = subprocess.run(
                self._command,
                check=False,
                cwd=self._work,
                capture_output=True,
                text=True,
                preexec_fn=last_of_all,
            )
            if done.returncode != 0:
                self._problem = done.stderr or f"exit code {done.returncode}"
            self.answered += 1


class Scene:
    """Two proxies with equal pasts, and reads through the first one."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        fronts = [site.front_of(0), site.front_of(1)]
        self._cluster = Cluster(programs, 1, fronts)
        self._proxies: list[Program] = [self._cluster.start(front.name)[0] for front in fronts]
        time.sleep(site.IDLE_SECONDS)  # the history begins with the first second
        for front in fronts:
            burst = site.Burst(self._cluster.ports(front.name)[0], JOBS)
            burst.send()
            burst.close()
        time.sleep(site.IDLE_SECONDS)
        self._runs = 0

    def _asking(self, index: int) -> Questions:
        return Questions(self._programs.binaries, self._programs.work, f"./s{index}.sock")

    def _record(self, what: str) -> None:
        site.run_ctl(self._programs, "--proxy", "./s0.sock", "record", what)

    def once(self, beside: str, seconds: float) -> dict[str, float]:
        self._runs += 1
        if beside == RECORDED:
            self._record("start")
        asking = {ASKED: 0, ELSEWHERE: 1}
        context = self._asking(asking[beside]) if beside in asking else nullcontext()
        before = self._proxies[0].exact_cpu_seconds()
        with context as questions:
            result = run_load(
                self._programs,
                f"load{self._runs}",
                self._cluster.address("s0"),
                [READS],
                seconds,
                WARM_UP,
            )
        used = self._proxies[0].exact_cpu_seconds() - before
        check_errors(result)
        if beside == RECORDED:
            self._record("stop")
        requests = result["total_ops_per_s"] * (seconds + WARM_UP)
        return {
            "ops_per_s": result["total_ops_per_s"],
            "p50_us": quantile_us(result, 0.5),
            "p99_us": quantile_us(result, 0.99),
            "cpu_us_per_request": 1e6 * used / requests,
            "questions": questions.answered if questions else 0,
        }


def measure_reads(binaries: pathlib.Path, work: pathlib.Path, rounds: Rounds) -> list[Row]:
    seen: dict[str, list[Facts]] = {name: [] for name in (ALONE, ASKED, ELSEWHERE, RECORDED)}
    with Programs(binaries, work) as programs:
        scene = Scene(programs)
        for index in range(rounds.runs):
            # Every other round goes backwards, so that a case does not always follow the same one.
            names = list(seen) if index % 2 == 0 else list(reversed(seen))
            these = {name: scene.once(name, rounds.seconds) for name in names}
            for name, facts in these.items():
                facts["p99_of_alone"] = facts["p99_us"] / these[ALONE]["p99_us"]
                facts["p99_of_elsewhere"] = facts["p99_us"] / these[ELSEWHERE]["p99_us"]
                seen[name].append(facts)
    return [{"beside": name, **medians(runs, NUMBERS)} for name, runs in seen.items()]


def reads_beside(rows: Sequence[Row], beside: str) -> Row:
    return next(row for row in rows if row["beside"] == beside)


def check(sites: Sequence[Row], reads: Sequence[Row]) -> list[Row]:
    asked = reads_beside(reads, ASKED)
    name = f"`why` of {sites[0]['proxies']} proxies with {sites[0]['virtual_pfs']:,} virtual PFSes"
    p99 = f"p99 of 4 KiB reads beside `why` {1 / ASKED_EACH:.0f} times a second"
    return [
        *(
            one_at_most(f"{name}, asked of the {row['asked']}", SITE_MS, row["ms_p50"], " ms")
            for row in sites
        ),
        one_at_most(f"{p99} / without", P99_RATIO, asked["p99_of_alone"]),
        one_at_most(f"{p99} / with `why` of another", P99_RATIO, asked["p99_of_elsewhere"]),
    ]


def figure(sites: Sequence[Row], reads: Sequence[Row], caption: str) -> Figure:
    sheet = plot.Sheet("What questions about the past cost", caption, columns=2, heights=[2.8])
    left, right = sheet.panels
    looks = {
        name: plot.look(index) for index, name in enumerate(("median", "longest", "p50", "p99"))
    }
    plot.bars(
        left,
        [str(row["asked"]) for row in sites],
        {name: [row[field] for row in sites] for name, field in SITE_BARS.items()},
        looks,
    )
    plot.target(left, SITE_MS, colour=looks["median"].colour, text="at most")
    plot.label(left, "asked of", "time of an answer (ms)", f"{sites[0]['proxies']} proxies")
    plot.bars(
        right,
        [str(row["beside"]) for row in reads],
        {name: [row[field] for row in reads] for name, field in READ_BARS.items()},
        looks,
    )
    plot.label(right, "beside it", "latency (µs)", "Reads of 4 KiB")
    return sheet.finish()


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench insight")
    FULL.add_options(parser, QUICK)
    parser.add_argument("--proxies", type=one_or_more, help=f"of the site (default {SITE.proxies})")
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    rounds = (QUICK if quick else FULL).asked(options)
    size = QUICK_SITE if quick else SITE
    if options.proxies:
        size = site.Size(options.proxies, size.virtual_pfs)
    settings = machine_settings() | {
        "quick": quick,
        "runs": rounds.runs,
        "seconds": rounds.seconds,
        "warm_up": WARM_UP,
        "statistic": "medians of interleaved runs; ratios within a round",
        "site": "proxies before one server, and a coordinator, all on this machine; each job has "
        "sent three requests to each proxy, two seconds apart; UNIX sockets; the time is that of "
        "`vpfsctl why job-7 --since 10m`, its start included",
        "own_mib": "memory of a proxy that no file backs, median; before: with no request yet",
        "reads": "4 KiB, one connection with 16 in flight, sequential, a file of 32 MiB in the "
        f"server's memory; the proxy has had {JOBS:,} virtual PFSes",
        ASKED: f"`vpfsctl why job-7` of this proxy, {1 / ASKED_EACH:.0f} times a second, of the "
        "least priority",
        ELSEWHERE: "the same of another proxy with the same past, which no read passes",
        RECORDED: "while vpfsctl record keeps all requests",
    }
    print_settings(settings)
    reads = measure_reads(binaries, out / "insight", rounds)
    print("\n" + table(reads, ["beside", *NUMBERS]), flush=True)
    sites = site.measure(binaries, out / "insight-site", size, rounds.runs)
    print("\n" + table(sites, SITE_COLUMNS))
    targets = check(sites, reads)
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(
        out / "insight.json",
        {"settings": settings, "rows": sites, "reads": reads, "targets": targets},
    )
    plot.save(
        out / "insight",
        lambda: figure(
            sites,
            reads,
            plot.caption(
                settings,
                f"{size.virtual_pfs:,} virtual PFSes in each proxy",
                f"medians of {rounds.runs} interleaved runs of {rounds.seconds:g} s",
            ),
        ),
    )
    return 0
