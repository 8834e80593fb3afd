"""A site without I/O: a coordinator, maybe aggregators below it, and virtual stages."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import json
import math
import pathlib
import shutil
import signal
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence

from bench.control.control_cycles_pins import Pins
from bench.control.control_cycles_tap import Tap
from lab.harness import ROOT, Problem, ProcessorTimes, Program, Programs, processor_times
from lab.report import Json

PER_JOB = 50
CAPACITY = {"bytes": "1 TiB/s", "operations": 200_000_000, "metadata_operations": 50_000_000}
LEASE, DEADLINE = "60 s", "30 s"  # no stage is late, however slow the machine
COORDINATOR, STAGE = "coordinator", "stage"  # names of certificates
CERTIFICATE_FILES = {
    "certificate": f"certificates/{COORDINATOR}.pem",
    "key": f"certificates/{COORDINATOR}.key",
    "ca": "certificates/ca.pem",
}
LOG = "cycles.csv"
ROUND_TRIPS = {"fused": 1, "four": 2}
TIMES = ("total_us", "collect_us", "compute_us", "enforce_us")
HANDSHAKES = 256  # of TLS under way; a coordinator waits only so long for Hello
POLL = 0.25
MOST_SECONDS = 60.0  # of a run whose cycles take long, unless more were asked for
SLOWEST = 0.01  # of the cycles: what is left without them shows whether a few are the reason


@dataclasses.dataclass(frozen=True)
class Case:
    stages: int
    aggregators: int
    cycle: str  # fused, four
    transport: str  # unix, tcp, mtls

    def fields(self) -> dict[str, object]:
        return dataclasses.asdict(self)

    def name(self) -> str:
        below = f", {self.aggregators} aggregators" if self.aggregators else ""
        return f"{self.stages:,} stages{below}, {self.cycle}, {self.transport}"


@dataclasses.dataclass(frozen=True)
class Cycle:
    """A line of the coordinator's log; milliseconds."""

    stages: int
    late: int
    total: float
    collect: float
    compute: float
    enforce: float


def read_log(text: str) -> list[Cycle]:
    rows = csv.DictReader(text.splitlines())
    return [
        Cycle(int(row["stages"]), int(row["late"]), *(float(row[name]) / 1000 for name in TIMES))
        for row in rows
    ]


def settled(cycles: Sequence[Cycle], warm_up: float) -> list[Cycle]:
    """Those with all stages, without the first `warm_up` seconds of them."""
    most = max((cycle.stages for cycle in cycles), default=0)
    found, passed = [], 0.0
    for cycle in cycles:
        if cycle.stages < most:
            continue
        if passed >= 1000 * warm_up:
            found.append(cycle)
        passed += cycle.total
    return found


def quantile(values: Sequence[float], q: float) -> float:
    """The smallest value that at least this part of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


def deviation(values: Sequence[float]) -> float:
    """The standard deviation, in percent of the mean."""
    return 100 * statistics.pstdev(values) / statistics.fmean(values)


def without_slowest(values: Sequence[float]) -> list[float]:
    return sorted(values)[: max(1, math.floor(len(values) * (1 - SLOWEST)))]


def latencies(cycles: Sequence[Cycle]) -> dict[str, float]:
    if not cycles:
        raise Problem("the coordinator's log has no cycle with all stages after the warm-up")
    totals = [cycle.total for cycle in cycles]
    return {
        "cycles": len(cycles),
        "mean_ms": statistics.fmean(totals),
        "std_ms": statistics.pstdev(totals),
        "deviation_percent": deviation(totals),
        "deviation_of_most_percent": deviation(without_slowest(totals)),
        "p50_ms": quantile(totals, 0.5),
        "p99_ms": quantile(totals, 0.99),
        "late": sum(cycle.late for cycle in cycles),
        **{
            f"{phase}_ms": statistics.fmean(getattr(cycle, phase) for cycle in cycles)
            for phase in ("collect", "compute", "enforce")
        },
    }


@dataclasses.dataclass(frozen=True)
class Use:
    """What the programs had used at some time."""

    at: float
    coordinator: float  # seconds of processor time
    aggregators: tuple[float, ...]
    stages: Mapping[str, float]  # what vpfs-bench-virtual-stages prints
    preemptions: int = 0  # of the coordinator
    machine: ProcessorTimes | None = None

    def own(self) -> float:
        """Seconds of processor time of all programs of the site."""
        return self.coordinator + sum(self.aggregators) + self.stages["cpu_ms"] / 1000


def disturbances(before: Use, after: Use, cycles: float) -> dict[str, float]:
    """What kept the processors from the site: other programs, and the host of the machine."""
    if before.machine is None or after.machine is None:
        return {}
    busy, idle, stolen = dataclasses.astuple(after.machine.since(before.machine))
    everything = busy + idle + stolen
    if everything <= 0:
        return {}
    others = max(0.0, busy - (after.own() - before.own()))
    return {
        "others_percent": 100 * others / everything,
        "stolen_percent": 100 * stolen / everything,
        "preempted_per_cycle": (after.preemptions - before.preemptions) / cycles,
    }


def message_sizes(case: Case, stages: Mapping[str, float]) -> list[float]:
    """Means of one stage in a cycle, in the order in which they are sent."""
    names = ["enforce", "report"] if case.cycle == "fused" else ["ask", "report", "enforce", "ack"]
    return [stages[f"{name}_bytes"] for name in names]


def stage_traffic(case: Case, stages: Mapping[str, float]) -> tuple[float, float]:
    """Bytes of a cycle that all stages are sent, and that they send."""
    sizes = message_sizes(case, stages)
    return case.stages * sum(sizes[::2]), case.stages * sum(sizes[1::2])


def traffic(case: Case, tap: Tap, stages: Mapping[str, float]) -> dict[str, float]:
    """Bytes of a cycle on both sides of aggregators. `tap` saw the links to the coordinator."""
    messages = ROUND_TRIPS[case.cycle] * case.aggregators
    down, up = tap.down.mean() * messages, tap.up.mean() * messages
    below_down, below_up = stage_traffic(case, stages)
    return {
        "coordinator_tx_bytes": down,
        "coordinator_rx_bytes": up,
        "aggregator_tx_bytes": (below_down + up) / case.aggregators,
        "aggregator_rx_bytes": (below_up + down) / case.aggregators,
    }


def costs(case: Case, before: Use, after: Use) -> dict[str, float | None]:
    """What each role used in a cycle. For aggregators this is the mean of one."""
    cycles = (after.stages["enforces"] - before.stages["enforces"]) / case.stages
    if cycles <= 0:
        raise Problem("no cycle has ended in the measured time")
    each = {
        name: after.stages[name] - before.stages[name]
        for name in ("cpu_ms", "allocations", "repeated")
    }
    down, up = stage_traffic(case, after.stages)
    own = 1000 * (after.coordinator - before.coordinator) / cycles
    below = [
        1000 * (late - early) / cycles for early, late in zip(before.aggregators, after.aggregators)
    ]
    found: dict[str, float | None] = {
        "coordinator_cpu_ms": own,
        "aggregator_cpu_ms": statistics.fmean(below) if below else None,
        "stages_cpu_ms": each["cpu_ms"] / cycles,
        "critical_path_ms": own + max(below, default=0.0),
        "stages_tx_bytes": up,
        "stages_rx_bytes": down,
        "changed": 1 - each["repeated"] / each["allocations"] if each["allocations"] else 0.0,
        "cycles_per_s": cycles / (after.at - before.at),
    }
    if not below:
        found |= {"coordinator_tx_bytes": down, "coordinator_rx_bytes": up}
    return found | disturbances(before, after, cycles)


def make_certificates(directory: pathlib.Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    done = subprocess.run(
        [
            str(ROOT / "script/certificates"),
            str(directory),
            f"{COORDINATOR}=localhost,127.0.0.1",
            STAGE,
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise Problem(f"script/certificates failed:\n{done.stderr}")


class Site:
    """Coordinator, aggregators and stages of a case, until the programs are stopped.

    `tap` sees what aggregators say. With `pins`, roles run on the processors that they name.
    """

    def __init__(
        self,
        programs: Programs,
        case: Case,
        resources: Sequence[str],
        tap: bool = False,
        pins: Pins | None = None,
    ) -> None:
        self._programs = programs
        self._case = case
        self._capacity = {name: CAPACITY[name] for name in resources}
        for old in [*programs.work.glob("*.journal*"), *programs.work.glob("*.sock")]:
            old.unlink()
        if case.transport != "unix":
            make_certificates(programs.work / "certificates")
        top, self.coordinator = self._start("site", None)
        # Few messages pass between coordinators. Plain TCP is for virtual stages alone.
        parent = top if case.transport == "mtls" else "./site.sock"
        self.cycles: list[Cycle] = []  # that measure() has seen
        self.tap: Tap | None = None
        if tap:
            self.tap = Tap(programs.work / "tap.sock", programs.work / parent)
            parent = "./tap.sock"
        found = [self._start(f"aggregator{index}", parent) for index in range(case.aggregators)]
        self.aggregators = [program for _, program in found]
        addresses = [address for address, _ in found] or [top]
        tls = (
            [
                "--ca",
                "certificates/ca.pem",
                "--certificate",
                f"certificates/{STAGE}.pem",
                "--key",
                f"certificates/{STAGE}.key",
            ]
            if case.transport == "mtls"
            else []
        )
        at_once = HANDSHAKES if case.transport == "mtls" else case.stages
        self.stages = programs.start(
            "stages",
            "vpfs-bench-virtual-stages",
            "--stages",
            str(case.stages),
            "--per-job",
            str(PER_JOB),
            "--connect-parallel",
            str(at_once),
            *tls,
            "--address",
            *addresses,
        )
        if pins:
            self._pin(pins)
        self.stages.wait_until(lambda: bool(self._lines("ready")), "ready", 30 + case.stages / 50)
        self.admitted_ms = self._lines("ready")[0]["admitted_ms"]

    def _pin(self, pins: Pins) -> None:
        self.coordinator.pin(pins.coordinator)
        self.stages.pin(pins.stages)
        for program, cpus in zip(self.aggregators, pins.aggregators, strict=True):
            program.pin(cpus)

    def _start(self, name: str, parent: str | None) -> tuple[str, Program]:
        """Where stages dial it, and the program."""
        case = self._case
        address = (
            f"./{name}.sock"
            if case.transport == "unix"
            else f"127.0.0.1:{self._programs.reserve_port()}"
        )
        listen: dict[str, object] = {} if case.transport == "mtls" else {"socket": f"{name}.sock"}
        if case.transport != "unix":
            listen["tcp"] = address
        files = dict(CERTIFICATE_FILES) if case.transport != "unix" else {}
        if files:  # without TLS they are not used, but an address needs them
            listen |= files | {"writers": [f"cert:{STAGE}", f"cert:{COORDINATOR}"]}
        config = {
            "name": name,
            "policy": "psfa",
            "period": 0,
            "deadline": DEADLINE,
            "lease": LEASE,
            "cycle": case.cycle,
            "journal": f"{name}.journal",
            "log_level": "warn",
            "capacity": self._capacity,
            "stages": {"listen": listen},
        } | ({"parent": {"address": parent} | files} if parent else {})
        (self._programs.work / f"{name}.json").write_text(json.dumps(config, indent=1))
        log = [] if parent else ["--cycle-log", LOG]
        plain = ["--plain-tcp-for-measurements"] if case.transport == "tcp" else []
        program = self._programs.start(
            name, "vpfs-coordinator", "--config", f"{name}.json", *log, *plain
        )
        program.wait_for_line("ready")
        return address, program

    def _lines(self, event: str) -> list[Json]:
        found = []
        for line in self.stages.log.read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
        return [line for line in found if line["event"] == event]

    def use(self) -> Use:
        before = len(self._lines("now"))
        self.stages.signal(signal.SIGUSR1)
        self.stages.wait_until(lambda: len(self._lines("now")) > before, "answering")
        return Use(
            time.monotonic(),
            self.coordinator.exact_cpu_seconds(),
            tuple(program.exact_cpu_seconds() for program in self.aggregators),
            self._lines("now")[-1],
            self.coordinator.preemptions(),
            processor_times(),
        )

    def measure(self, warm_up: float, seconds: float, least: int) -> dict[str, float | None]:
        """All numbers of a run; it ends the coordinator."""
        time.sleep(warm_up)
        before = self.use()
        after = self._after(before, seconds, least)
        found = costs(self._case, before, after)
        found["coordinator_rss_mib"] = self.coordinator.peak_rss_mib()
        found["aggregator_rss_mib"] = max(
            (one.peak_rss_mib() for one in self.aggregators), default=None
        )
        found["stages_rss_mib"] = after.stages["rss_mib"]
        found["admitted_ms"] = self.admitted_ms
        self.coordinator.stop()
        if self.coordinator.exit_code() != 0:
            raise Problem(f"the coordinator failed:\n{self.coordinator.last_lines()}")
        self.cycles = settled(read_log((self._programs.work / LOG).read_text()), warm_up)
        return found | latencies(self.cycles)

    def _after(self, before: Use, seconds: float, least: int) -> Use:
        """When so much time and so many cycles have passed, or very much time."""
        # To ask stages takes time of theirs, so they are not asked before.
        time.sleep(max(0.0, before.at + seconds - time.monotonic()))
        while True:
            after = self.use()
            cycles = (after.stages["enforces"] - before.stages["enforces"]) / self._case.stages
            passed = after.at - before.at
            if passed >= seconds and (cycles >= least or passed > MOST_SECONDS):
                return after
            time.sleep(POLL)

    def sizes(self) -> list[int]:
        return [max(1, round(size)) for size in message_sizes(self._case, self._lines("now")[-1])]

    def observe_traffic(self, seconds: float, least: int) -> dict[str, float]:
        """What passes aggregators in a cycle."""
        assert self.tap is not None
        self.tap.clear()
        after = self._after(self.use(), seconds, least)
        return traffic(self._case, self.tap, after.stages)
