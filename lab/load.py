"""One run of vpfs-load: its configuration, its live lines, its result."""

from __future__ import annotations

import dataclasses
import json
import re
import time
from collections.abc import Callable, Sequence

from lab.file_systems import FILE_SYSTEMS, FileSystem, file_system_at
from lab.harness import Problem, Program, Programs
from lab.report import Json, size_name


@dataclasses.dataclass(frozen=True)
class Burst:
    """Active for `length` seconds at the beginning of every `interval`."""

    length: float
    interval: float


@dataclasses.dataclass(frozen=True)
class Application:
    """The fields of one application in conf/load.yaml."""

    name: str
    size: int
    outstanding: int = 1
    processes: int = 1
    read_percent: int = 0
    pattern: str = "sequential"
    file_size: int = 64 << 20
    think: float = 0.0  # seconds from an answer to the next request in its place
    start: float = 0.0
    stop: float | None = None
    jobid: str | None = None  # default: the name; several applications may be one job
    burst: Burst | None = None
    # Names of the servers that its files are on, and on how many of them each file is. Default: the
    # file system's choice.
    servers: Sequence[str] = ()
    datafiles: int = 0
    amount: int | None = None  # bytes of each process, which then ends
    # BeeGFS: the node that its processes share with other applications, and the number of
    # connections. Default: one connection for each request that a process has in flight.
    node: str | None = None
    connections: int | None = None

    @property
    def job(self) -> str:
        return self.name if self.jobid is None else self.jobid

    def scaled(self, factor: float) -> Application:
        """The same application, with all times divided by `factor`."""
        return dataclasses.replace(
            self,
            start=self.start / factor,
            stop=None if self.stop is None else self.stop / factor,
            burst=None
            if self.burst is None
            else Burst(self.burst.length / factor, self.burst.interval / factor),
        )

    def active_seconds(self, begin: float, end: float) -> float:
        """For how many seconds between `begin` and `end` of the run it may begin requests."""
        begin, end = max(begin, self.start), end if self.stop is None else min(end, self.stop)
        if self.burst is None or begin >= end:
            return max(0.0, end - begin)
        return self._burst_seconds(end, self.burst) - self._burst_seconds(begin, self.burst)

    def _burst_seconds(self, until: float, burst: Burst) -> float:
        whole, rest = divmod(until - self.start, burst.interval)
        return whole * burst.length + min(rest, burst.length)

    def config(self, file_system: FileSystem = FILE_SYSTEMS["orangefs"]) -> dict[str, object]:
        fields: dict[str, object] = {
            "name": self.name,
            "jobid": self.job,
            "processes": self.processes,
            "outstanding": self.outstanding,
            "size": size_name(self.size),
            "read_percent": self.read_percent,
            "pattern": self.pattern,
            "file_size": size_name(max(self.file_size, self.size)),
            "start": seconds(self.start),
        } | file_system.application_fields(self.job, self.outstanding)
        if self.think:
            fields["think"] = f"{round(self.think * 1e6)} us"
        if self.servers:
            fields["servers"] = list(self.servers)
        if self.datafiles:
            fields["datafiles"] = self.datafiles
        if self.amount is not None:
            fields["amount"] = size_name(self.amount)
        if self.node is not None:
            fields["node"] = self.node
        if self.connections is not None:
            fields["connections"] = self.connections
        if self.stop is not None:
            fields["stop"] = seconds(self.stop)
        if self.burst is not None:
            fields["burst"] = {
                "length": seconds(self.burst.length),
                "interval": seconds(self.burst.interval),
            }
        return fields


def seconds(value: float) -> str:
    """A duration for a configuration of vpfs, in whole milliseconds."""
    return f"{round(value * 1000)} ms"


def run_load(
    programs: Programs,
    name: str,
    address: str,
    applications: Sequence[Application],
    duration: float,
    warm_up: float,
    on_line: Callable[[str], None] = lambda _: None,
    on_start: Callable[[Program], None] = lambda _: None,
    interval: float = 1.0,
    verify: bool = False,
    may_fail: bool = False,
    until_done: bool = False,
) -> Json:
    """Runs vpfs-load to its end and returns its JSON. `on_line` gets each line as it appears.

    With `until_done`, the run ends when all applications have, after `duration` at the latest.
    With `may_fail`, the caller handles failed requests and wrong blocks.
    """
    config = {
        "file_system": address,
        "directory": "/load",
        "duration": seconds(duration),
        "warm_up": seconds(warm_up),
        "interval": seconds(interval),
        "verify": verify,
        "applications": [
            application.config(file_system_at(address)) for application in applications
        ],
        **({"until_done": True} if until_done else {}),
    }
    file = programs.work / f"{name}.yaml"
    file.write_text(json.dumps(config, indent=1) + "\n")
    result = programs.work / f"{name}.json"
    result.unlink(missing_ok=True)
    load = programs.start(name, "vpfs-load", "--config", str(file), "--json", str(result))
    on_start(load)
    follow(load, on_line)
    if load.exit_code() not in ((0, 1) if may_fail else (0,)) or not result.exists():
        raise Problem(f"vpfs-load ended with {load.exit_code()}:\n{load.last_lines()}")
    return json.loads(result.read_text())


def follow(load: Program, on_line: Callable[[str], None]) -> None:
    """Passes on each complete line of a program's output until the program ends."""
    with load.log.open("r", errors="replace") as output:
        line = ""
        while True:
            ended = not load.running()
            part = output.readline()
            line += part
            if line.endswith("\n"):
                on_line(line.rstrip("\n"))
                line = ""
            elif not part:
                if ended:
                    return
                time.sleep(0.005)


LIVE_LINE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?) s  ")


def run_begins(line: str) -> bool:
    """Whether this line of vpfs-load says that the run begins. The warm-up comes first."""
    return "the run begins" in line


def line_time(line: str) -> float | None:
    """The second of a live line of vpfs-load, counted from the end of the warm-up."""
    match = LIVE_LINE.match(line)
    return float(match[1]) if match else None


def line_rates(line: str, applications: Sequence[Application]) -> dict[str, float]:
    """MiB/s by application in a live line; empty if the line does not have all of them."""
    rates = {}
    for application in applications:
        if match := re.search(rf"  {re.escape(application.name)} ([0-9.]+) MiB/s", line):
            rates[application.name] = float(match[1])
    return rates if len(rates) == len(applications) else {}


def quantile_us(result: Json, q: float) -> float:
    """The q-quantile of the latencies of all applications together, from their histograms."""
    buckets = sorted(
        tuple(bucket)
        for entry in result["applications"]
        for bucket in entry["latency_us"]["histogram"]
    )
    left = q * sum(count for _, count in buckets)
    for upper, count in buckets:
        left -= count
        if left <= 0:
            return upper
    return float("nan")


def late_requests(entry: Json, limit_us: float) -> tuple[int, int]:
    """The number of an application's requests above a latency, and of all.

    A bucket that reaches beyond it counts.
    """
    histogram = entry["latency_us"]["histogram"]
    return sum(count for upper, count in histogram if upper > limit_us), sum(
        count for _, count in histogram
    )


def check_errors(result: Json) -> None:
    for entry in result["applications"]:
        if entry["errors"]:
            raise Problem(f"{entry['errors']} requests of {entry['name']} failed")


def application_of(result: Json, name: str) -> Json:
    return next(entry for entry in result["applications"] if entry["name"] == name)
