"""The demo's third act: an application on two of four servers, and one striped over all.

Each server alone gives the narrow one half of its two servers. The wide one moves at the pace of
the slowest, so the other two servers have nothing to do for half of their time. Then a coordinator
starts, and both get the same in total; then it is killed, and I/O goes on.
"""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Callable, Sequence

from lab.cluster import Cluster
from lab.coordinator import Coordinator, Settings
from lab.harness import Programs
from lab.load import Application, application_of
from lab.report import Json
from lab.scripted_load import Script, run_with_script
from lab.total.series import Timeline
from lab.total.setups import PATH, SETUPS, Case

CASE = Case(SETUPS["2 of 4"], striped=True, op="write", size=1 << 20, weight=1)
NAMES = {"a": "narrow", "b": "wide"}
LEASE = 1.0
INTERVAL = 0.25  # of the load's lines
SETTLES = 1.0  # after the coordinator's start, and after the end of its lease
TOLERANCE_PERCENT = 3.0


@dataclasses.dataclass(frozen=True)
class Part:
    """What held between two events."""

    title: str
    begin: float
    end: float
    rates: dict[str, float]  # MiB/s, without the time until it had settled
    wanted: float  # the ratio of narrow to wide

    def ratio(self) -> float:
        return self.rates["a"] / self.rates["b"] if self.rates["b"] > 0 else float("inf")

    def error_percent(self) -> float:
        return abs(self.ratio() / self.wanted - 1) * 100


@dataclasses.dataclass(frozen=True)
class Act:
    parts: Sequence[Part]
    result: Json  # of vpfs-load

    def error_percent(self) -> float:
        return max(part.error_percent() for part in self.parts)

    def went_on(self) -> bool:
        """Whether both did I/O in each interval of the two seconds after the kill."""
        death = self.parts[-1].begin
        points = [
            point
            for name in NAMES
            for point in application_of(self.result, name)["timeline"]
            if death <= point["t"] <= death + 2
        ]
        return bool(points) and all(point["mib_per_s"] > 0 for point in points)


def perform(
    programs: Programs, say: Callable[[str], None], on_line: Callable[[str], None], seconds: float
) -> Act:
    """Each of the three parts takes so many seconds, the last one the lease more."""
    cluster: Cluster = CASE.cluster(programs)
    coordinator = Coordinator(programs, CASE.setup.servers)
    times: dict[str, float] = {}

    def act(script: Script) -> None:
        script.wait_until(seconds)
        say("A coordinator starts. It needs to know nothing but where the proxies are.")
        times["start"] = script.time_of(coordinator.start(Settings(lease=LEASE)))
        script.wait_until(2 * seconds)
        say(
            f"It is killed with -9. The proxies keep what it told them for {LEASE:g} s, then "
            "share alone."
        )
        coordinator.program.signal(signal.SIGKILL)
        times["death"] = script.now()

    length = 3 * seconds + LEASE
    result = run_with_script(
        programs, cluster.address(PATH), CASE.applications(), length, act, on_line, INTERVAL
    )
    timeline = Timeline(result, CASE.setup.uses)
    alone, together = CASE.ratio(CASE.local()), CASE.ratio(CASE.feasible())

    def part(title: str, begin: float, end: float, counted_from: float, wanted: float) -> Part:
        return Part(title, begin, end, timeline.rates(counted_from, end), wanted)

    start, death = times["start"], times["death"]
    return Act(
        [
            part("each server alone", 0, start, SETTLES / 2, alone),
            part("with a coordinator", start, death, start + SETTLES, together),
            part("it was killed", death, length, death + LEASE + SETTLES, alone),
        ],
        result,
    )


def applications() -> list[Application]:
    return CASE.applications()
