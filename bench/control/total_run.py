"""One run of `script/bench total`: local sharing, then a coordinator with each period."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from collections.abc import Mapping, Sequence

from lab.coordinator import Coordinator, Settings
from lab.harness import MIB, Programs
from lab.load import application_of
from lab.report import Json, Row
from lab.scripted_load import Script, run_with_script
from lab.total.optimum import Services
from lab.total.series import Timeline, settled_after
from lab.total.setups import LONGEST_DELAY, PATH, Case

SETTLED = 0.05  # the ratio is within this part of the feasible one
WINDOW_REQUESTS = 40  # of the slower application, so that one request is half of SETTLED
WINDOW_PERIODS = 4
STEPS_OF_WINDOW = 10


@dataclasses.dataclass(frozen=True)
class Times:
    """Lengths in seconds.

    Local sharing comes first. Each period follows, and the end of it counts. Between periods there
    is local sharing again.
    """

    local: float
    each: float
    counted: float
    between: float = 1.6  # more than a lease, so that each period begins with local sharing
    unsettled: float = 0.5  # at the beginning of local sharing

    def length(self, periods: int) -> float:
        return self.local + periods * (self.each + self.between)


@dataclasses.dataclass(frozen=True)
class Phase:
    """A coordinator's time: when its cycles began, and when it was stopped."""

    period: float
    begin: float
    end: float


@dataclasses.dataclass(frozen=True)
class Outcome:
    case: Case
    times: Times
    result: Json
    phases: Sequence[Phase]

    def timeline(self) -> Timeline:
        return Timeline(self.result, self.case.setup.uses)

    def rows(self) -> list[Row]:
        timeline, case = self.timeline(), self.case
        local = timeline.rates(self.times.unsettled, self.times.local)
        rows: list[Row] = [self._row("local", None, local, local)]
        for phase in self.phases:
            rates = timeline.rates(phase.end - self.times.counted, phase.end)
            settled = settled_after(self.ratios(phase), case.ratio(case.feasible()), SETTLED)
            periods = None if settled is None else math.ceil((settled - phase.begin) / phase.period)
            rows.append(
                {**self._row("total", phase.period, rates, local), "settle_periods": periods}
            )
        return rows

    def ratios(self, phase: Phase) -> Sequence[tuple[float, float]]:
        window = window_of(self.case, self.case.feasible(), phase.period)
        return self.timeline().ratios(
            self.case.setup.pair, phase.begin, phase.end, window, window / STEPS_OF_WINDOW
        )

    def _row(
        self,
        policy: str,
        period: float | None,
        rates: Mapping[str, float],
        local: Mapping[str, float],
    ) -> Row:
        case, feasible = self.case, self.case.feasible()
        total = sum(rates.values())
        return case.fields() | {
            "period_ms": None if period is None else round(period * 1000),
            "policy": policy,
            "ratio": case.ratio(rates),
            "feasible_ratio": case.ratio(feasible),
            "total_vs_local": total / sum(local.values()),
            "total_vs_feasible": total * MIB / (case.bandwidth * float(sum(feasible.values()))),
            "settle_periods": None,
        }

    def waits(self) -> list[Row]:
        """The longest time that a request of each application took in the run, and its bound.

        A queue of so many requests on one server moves by one in LONGEST_DELAY at least, and what
        is under way at the server comes before.
        """
        rows: list[Row] = []
        for name in self.case.setup.uses:
            longest = application_of(self.result, name)["latency_us"]["max"] / 1e6
            rows.append(
                self.case.fields()
                | {
                    "application": name,
                    "longest_wait_s": longest,
                    "bound_s": (self.case.in_flight(name) + 1) * LONGEST_DELAY,
                }
            )
        return rows


def window_of(case: Case, services: Services, period: float) -> float:
    """The length of the window of a ratio.

    It has WINDOW_REQUESTS of the slower application, and WINDOW_PERIODS at least.
    """
    slower = min(float(services[name]) for name in case.setup.pair)
    return max(
        WINDOW_PERIODS * period, round(WINDOW_REQUESTS * case.size / (slower * case.bandwidth), 2)
    )


def measure(
    binaries: pathlib.Path, work: pathlib.Path, case: Case, periods: Sequence[float], times: Times
) -> Outcome:
    phases: list[Phase] = []
    with Programs(binaries, work) as programs:
        cluster = case.cluster(programs)
        coordinator = Coordinator(programs, case.setup.servers)

        def act(script: Script) -> None:
            for index, period in enumerate(periods):
                script.wait_until(times.local + index * (times.each + times.between))
                begin = script.time_of(coordinator.start(Settings(period=period)))
                script.wait_until(times.local + index * (times.each + times.between) + times.each)
                phases.append(Phase(period, begin, script.now()))
                coordinator.stop()

        result = run_with_script(
            programs, cluster.address(PATH), case.applications(), times.length(len(periods)), act
        )
    return Outcome(case, times, result, phases)
