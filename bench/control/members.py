"""script/bench members: coordinators that serve stages together, beside one with aggregators.

Virtual stages dial the members and find their own. Cycles are those of `script/bench control`:
psfa, one after the other, every allocation changes. Then a member is killed and started again, and
so is the one that leads; the time is until all stages have answered a cycle of a later term.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import re
import signal
import statistics
import time
from collections.abc import Sequence

from bench.control.control_cycles_site import (
    CAPACITY,
    DEADLINE,
    LEASE,
    LOG,
    PER_JOB,
    Case,
    Site,
    latencies,
    read_log,
    settled,
)
from lab.harness import Problem, Program, Programs, machine_settings, median
from lab.numbers import one_or_more
from lab.report import Json, Row, print_settings, table, write_json
from lab.rounds import Rounds
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import one_at_most

WARM_UP = 1.0
LEAST_CYCLES = 20
FULL, QUICK = Rounds(seconds=4, runs=3), Rounds(seconds=1, runs=1)
STAGES, MEMBERS = 10_000, (1, 2, 4)
QUICK_STAGES = 50
PATIENCE = 60.0
SETTLE = 2.0  # standbys watch the one that leads
STORE_LEASE = "5 s"
LED_AGAIN_MS, MEMBER_LOST_MS = 3000.0, 2000.0
COLUMNS = [
    "kind",
    "processes",
    "stages",
    "mean_ms",
    "p50_ms",
    "p99_ms",
    "leader_cpu_ms",
    "other_cpu_ms",
    "critical_path_ms",
    "stages_tx_bytes",
    "stages_rx_bytes",
    "cycles",
]
AGAIN = ["processes", "stages", "event", "times", "p50_ms", "worst_ms"]
KINDS = ("members", "aggregators")
READY = re.compile(r"ready, policy \w+, term (\d+)")


@dataclasses.dataclass(frozen=True)
class Use:
    at: float
    processes: tuple[float, ...]  # seconds of processor time
    stages: Json


class Members:
    """Coordinators with `members: auto` and the virtual stages that find their own."""

    def __init__(self, programs: Programs, count: int, stages: int) -> None:
        self._programs, self._count = programs, count
        for old in [*programs.work.glob("*.sock*"), *programs.work.glob("shared/*")]:
            old.unlink()
        self._shared = programs.work / "shared"
        self._shared.mkdir(exist_ok=True)
        self._starts = 0
        self._running: list[Program | None] = [self._start(index) for index in range(count)]
        self.stages_count = stages
        self._stages = programs.start(
            "stages",
            "vpfs-bench-virtual-stages",
            "--roam",
            "--stages",
            str(stages),
            "--per-job",
            str(PER_JOB),
            "--connect-parallel",
            str(stages),
            "--address",
            *(self._socket(index, "stages") for index in range(count)),
        )
        self._stages.wait_until(lambda: bool(self.lines("ready")), "ready", PATIENCE + stages / 50)
        self._await_members()

    def _socket(self, index: int, what: str) -> str:
        return str(self._programs.work / f"{what}{index}.sock")

    def _start(self, index: int) -> Program:
        self._starts += 1
        config = {
            "name": "bench",
            "policy": "psfa",
            "period": 0,
            "deadline": DEADLINE,
            "lease": LEASE,
            "log_level": "info",
            "capacity": dict(CAPACITY),
            "store": {"directory": str(self._shared), "lease": STORE_LEASE},
            "members": "auto",
            "control": {"socket": self._socket(index, "control")},
            "stages": {"listen": {"socket": self._socket(index, "stages")}},
        }
        (self._programs.work / f"member{index}.json").write_text(json.dumps(config, indent=1))
        program = self._programs.start(
            f"member{index}-{self._starts}",
            "vpfs-coordinator",
            "--config",
            f"member{index}.json",
            "--cycle-log",
            f"{index}-{LOG}",
        )
        program.wait_for_line("ready")
        return program

    def lines(self, event: str) -> list[Json]:
        written = self._stages.log.read_text().splitlines()
        found = [json.loads(line) for line in written if line.startswith("{")]
        return [line for line in found if line["event"] == event]

    def leader(self) -> int:
        """The one that leads with the latest term."""
        terms = {}
        for index, program in enumerate(self._running):
            found = READY.findall(program.log.read_text()) if program is not None else []
            if found:
                terms[index] = int(found[-1])
        if not terms:
            raise Problem("no coordinator leads")
        return max(terms, key=lambda index: terms[index])

    def _await_members(self) -> None:
        """Until a view has all that run, and each stage is led with it."""
        wanted = sum(program is not None for program in self._running)
        view = re.compile(rf"view (\d+): {wanted} member")

        def all_are_led() -> bool:
            program = self._running[self.leader()]
            assert program is not None
            epochs = view.findall(program.log.read_text())
            led = self.lines("led")
            return bool(epochs) and bool(led) and int(led[-1]["term"]) >= int(epochs[-1])

        self._stages.wait_until(all_are_led, "led by all members", PATIENCE)

    def use(self) -> Use:
        before = len(self.lines("now"))
        self._stages.signal(signal.SIGUSR1)
        self._stages.wait_until(lambda: len(self.lines("now")) > before, "answering")
        running = [program for program in self._running if program is not None]
        return Use(
            time.monotonic(),
            tuple(program.exact_cpu_seconds() for program in running),
            self.lines("now")[-1],
        )

    def measure(self, seconds: float) -> Row:
        time.sleep(WARM_UP)
        leader = self.leader()
        log = self._programs.work / f"{leader}-{LOG}"
        before, skip = self.use(), len(log.read_text().splitlines())
        while True:
            time.sleep(0.25)
            after = self.use()
            cycles = (after.stages["enforces"] - before.stages["enforces"]) / self.stages_count
            if after.at - before.at >= seconds and cycles >= LEAST_CYCLES:
                break
            if after.at - before.at > PATIENCE:
                raise Problem("there are too few cycles")
        each = [
            1000 * (late - early) / cycles for early, late in zip(before.processes, after.processes)
        ]
        others = [cost for index, cost in enumerate(each) if index != leader]
        text = log.read_text().splitlines()
        measured = settled(read_log("\n".join([text[0], *text[skip:]])), 0.0)
        stages = after.stages
        return {
            "leader_cpu_ms": each[leader],
            "other_cpu_ms": statistics.fmean(others) if others else None,
            "critical_path_ms": max(each),
            "stages_tx_bytes": self.stages_count * stages["report_bytes"],
            "stages_rx_bytes": self.stages_count * stages["enforce_bytes"],
            **{
                name: value
                for name, value in latencies(measured).items()
                if name in ("cycles", "mean_ms", "p50_ms", "p99_ms")
            },
        }

    def _until_led(self, what: str, began: float, before: int) -> float:
        """Milliseconds until all stages are led with a term above `before`."""
        self._stages.wait_until(
            lambda: any(line["term"] > before for line in self.lines("led")), what, PATIENCE
        )
        first = next(line for line in self.lines("led") if line["term"] > before)
        return float(first["at_ms"]) - 1000 * began

    def disturb(self, leads: bool) -> dict[str, float]:
        """Kills a member, or the one that leads, and starts it again."""
        time.sleep(SETTLE)
        leader = self.leader()
        index = leader if leads else (leader + 1) % self._count
        program = self._running[index]
        assert program is not None
        name = "the one that leads" if leads else "a member"
        term = int(self.lines("led")[-1]["term"])
        began = time.monotonic()
        program.signal(signal.SIGKILL)
        self._running[index] = None
        found = {f"{name} is killed": self._until_led("led again", began, term)}
        program.stop()
        self._await_members()
        term = int(self.lines("led")[-1]["term"])
        self._running[index] = self._start(index)
        found["one comes back"] = self._until_led("led again", time.monotonic(), term)
        self._await_members()
        return found


@dataclasses.dataclass(frozen=True)
class Place:
    binaries: pathlib.Path
    work: pathlib.Path
    stages: int


def measure(place: Place, kind: str, count: int, seconds: float) -> Row:
    """A run without disturbances."""
    with Programs(place.binaries, place.work) as programs:
        if kind == "members":
            return Members(programs, count, place.stages).measure(seconds)
        site = Site(programs, Case(place.stages, count, "fused", "unix"), list(CAPACITY))
        found = site.measure(WARM_UP, seconds, LEAST_CYCLES)
        return found | {
            "leader_cpu_ms": found["coordinator_cpu_ms"],
            "other_cpu_ms": found["aggregator_cpu_ms"],
        }


def disturb(place: Place, count: int, times: int) -> dict[str, list[float]]:
    """Milliseconds until all stages are led again, by what has happened."""
    took: dict[str, list[float]] = {}
    with Programs(place.binaries, place.work) as programs:
        site = Members(programs, count, place.stages)
        for which in range(2 * times):
            for event, each in site.disturb(leads=which % 2 == 1).items():
                took.setdefault(event, []).append(each)
    return took


def summary(kind: str, processes: int, stages: int, runs: Sequence[Row]) -> Row:
    names = COLUMNS[3:]
    return {
        "kind": kind,
        "processes": processes,
        "stages": stages,
        **{
            name: median([float(str(run[name])) for run in runs])
            for name in names
            if all(run.get(name) is not None for run in runs)
        },
    }


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench members")
    FULL.add_options(parser, QUICK)
    parser.add_argument("--members", type=one_or_more, nargs="+", default=list(MEMBERS))
    parser.add_argument("--stages", type=one_or_more, help=f"(default: {STAGES})")
    parser.add_argument("--times", type=one_or_more, default=5, help="so often each one is killed")
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    rounds = (QUICK if quick else FULL).asked(options)
    stages = options.stages or (QUICK_STAGES if quick else STAGES)
    times = 1 if quick else options.times
    settings = machine_settings() | {
        "quick": quick,
        "runs": rounds.runs,
        "seconds": rounds.seconds,
        "policy": f"psfa over {', '.join(CAPACITY)}; {PER_JOB} stages to a job; period 0",
        "lease, deadline": f"{LEASE}, {DEADLINE}",
        "store": f"a directory; its lease {STORE_LEASE}",
        "transport": "UNIX sockets; all processes on this machine",
        "members": "processes: all members, of which one leads and serves a part too",
        "aggregators": "processes: the aggregators; the coordinator above them is one more",
        "critical_path_ms": "members: CPU of the process that used most; aggregators: of the "
        "coordinator and the slowest of them",
        "led again": "until each stage has answered a cycle of a later term",
    }
    print_settings(settings)
    place = Place(binaries, out / "members", stages)
    runs: dict[tuple[str, int], list[Row]] = {}
    for index in range(rounds.runs):
        for count in options.members:
            for kind in KINDS:
                row = measure(place, kind, count, rounds.seconds)
                runs.setdefault((kind, count), []).append(row)
                print(f"run {index + 1}: {count} {kind}: p50 {row['p50_ms']:.2f} ms", flush=True)
    rows = [summary(kind, count, stages, each) for (kind, count), each in runs.items()]
    events = [
        {
            "processes": count,
            "stages": stages,
            "event": event,
            "times": len(each),
            "p50_ms": median(each),
            "worst_ms": max(each),
        }
        for count in options.members
        if count > 1
        for event, each in disturb(place, count, times).items()
    ]
    targets = [
        one_at_most(
            f"{row['processes']} members: {row['event']}, worst",
            LED_AGAIN_MS if row["event"] == "one comes back" else MEMBER_LOST_MS,
            float(str(row["worst_ms"])),
            " ms",
        )
        for row in events
    ]
    print("\n" + table(rows, COLUMNS) + "\n\n" + table(events, AGAIN))
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(
        out / "members.json",
        {"settings": settings, "rows": rows, "again": events, "targets": targets},
    )
    return 0
