"""Changes while a coordinator runs.

Applications come and go, weights change, periods jitter, and it is away for a while.
"""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
import random
import subprocess
from collections.abc import Sequence

from bench.control.total_run import SETTLED, STEPS_OF_WINDOW, window_of
from lab.coordinator import SOCKET, Coordinator, Settings
from lab.harness import Problem, Programs
from lab.load import Application
from lab.report import Row
from lab.scripted_load import WARM_UP, Script, run_with_script
from lab.targets import at_most
from lab.total.optimum import Services
from lab.total.series import Ratios, Timeline, apart, deviation, settled_after, swings
from lab.total.setups import PATH, SETUPS, Case, Setup

BACK_WITHIN = 10  # periods
MOST_DEVIATION = 0.05
MOST_SWINGS = 1  # one overshoot does not count as oscillation
COLUMNS = [
    "scenario",
    "period_ms",
    "phase",
    "ratio",
    "feasible_ratio",
    "settle_periods",
    "deviation_percent",
    "swings",
]
CASE = Case(SETUPS["2 of 4"], True, "write", 1 << 20, 1)
# The one that comes and goes uses all servers.
WITH_THIRD = dataclasses.replace(
    CASE, setup=Setup("2 of 4 and a third", {**CASE.setup.uses, "c": (0, 1, 2, 3)}, CASE.setup.pair)
)
DOUBLED = dataclasses.replace(CASE, weight=2)
AWAY = 5.0
LEASE = 1.0
SEED = 20
MOST_JITTER = 5  # periods


@dataclasses.dataclass(frozen=True)
class Phase:
    """Between two events. `wanted`: the services that the ratio is compared with."""

    name: str
    begin: float
    end: float
    case: Case
    wanted: Services


@dataclasses.dataclass(frozen=True)
class Track:
    """A scenario that was run."""

    scenario: str
    period: float
    timeline: Timeline
    phases: Sequence[Phase]

    def ratios(self, phase: Phase) -> Ratios:
        window = self.window(phase)
        return self.timeline.ratios(
            phase.case.setup.pair, phase.begin, phase.end, window, window / STEPS_OF_WINDOW
        )

    def window(self, phase: Phase) -> float:
        return window_of(phase.case, phase.wanted, self.period)

    def rows(self) -> list[Row]:
        return [self._row(phase) for phase in self.phases]

    def _row(self, phase: Phase) -> Row:
        ratios, wanted = self.ratios(phase), phase.case.ratio(phase.wanted)
        settled = settled_after(ratios, wanted, SETTLED)
        later = [
            (begin, ratio) for begin, ratio in ratios if settled is not None and begin >= settled
        ]
        rates = self.timeline.rates(phase.begin if settled is None else settled, phase.end)
        return {
            "scenario": self.scenario,
            "period_ms": round(self.period * 1000),
            "phase": phase.name,
            "ratio": phase.case.ratio(rates),
            "feasible_ratio": wanted,
            "settle_periods": None
            if settled is None
            else math.ceil((settled - phase.begin) / self.period),
            "deviation_percent": 100 * deviation(apart(later, self.window(phase)), wanted)
            if later
            else None,
            "swings": swings(ratios, wanted, SETTLED),
        }


class Scene:
    """What a scenario can do. Times count from the end of the warm-up."""

    def __init__(
        self, programs: Programs, coordinator: Coordinator, script: Script, period: float
    ) -> None:
        self._programs, self._coordinator, self._script = programs, coordinator, script
        self.period = period
        self.marks: dict[str, float] = {}

    def at(self, when: float) -> None:
        self._script.wait_until(when)

    def mark(self, name: str) -> None:
        self.marks[name] = self._script.now()

    def begin(self) -> None:
        self.marks["begin"] = self._script.time_of(
            self._coordinator.start(Settings(period=self.period, lease=LEASE))
        )

    def pause(self) -> None:
        self._coordinator.pause()

    def resume(self) -> None:
        self._coordinator.resume()

    def end(self) -> None:
        self._coordinator.stop()

    def change_weight(self, name: str, weight: int) -> None:
        """As an administrator does, at all proxies at once."""
        sockets = " ".join(f"./{SOCKET.format(index=index)}" for index in range(CASE.setup.servers))
        done = subprocess.run(
            [str(self._programs.binaries / "vpfsctl"), "rule", "change", name, f"weight={weight}"],
            check=False,
            capture_output=True,
            text=True,
            cwd=self._programs.work,
            timeout=20,
            env=dict(os.environ, VPFS_PROXY=sockets),
        )
        if done.returncode != 0:
            raise Problem(
                f"vpfsctl rule change ended with {done.returncode}: {done.stdout}{done.stderr}"
            )


def step_of(period: float) -> float:
    """The length of a phase: enough to settle, and to see that it stays."""
    return max(4.0, 20 * period + 2.0)


LOCAL = 1.0  # at the beginning of each scenario, without a coordinator


class Changes:
    name = "changes"
    title = "An application comes and goes, a weight doubles and halves"

    def length(self, period: float) -> float:
        return LOCAL + 5 * step_of(period)

    def applications(self, period: float) -> Sequence[Application]:
        begin = WARM_UP + LOCAL + step_of(period)
        return [
            *CASE.applications(),
            WITH_THIRD.application("c", start=begin, stop=begin + step_of(period)),
        ]

    def act(self, scene: Scene) -> None:
        step = step_of(scene.period)
        scene.at(LOCAL)
        scene.begin()
        scene.at(LOCAL + 3 * step)
        scene.change_weight("a", 2)
        scene.mark("doubled")
        scene.at(LOCAL + 4 * step)
        scene.change_weight("a", 1)
        scene.mark("halved")
        scene.at(LOCAL + 5 * step)
        scene.end()

    def phases(self, scene: Scene) -> Sequence[Phase]:
        step, marks, feasible = step_of(scene.period), scene.marks, CASE.feasible()
        times = [
            marks["begin"],
            LOCAL + step,
            LOCAL + 2 * step,
            marks["doubled"],
            marks["halved"],
            LOCAL + 5 * step,
        ]
        return [
            Phase("coordinator starts", times[0], times[1], CASE, feasible),
            Phase("c comes", times[1], times[2], WITH_THIRD, WITH_THIRD.feasible()),
            Phase("c has gone", times[2], times[3], CASE, feasible),
            Phase("a has weight 2", times[3], times[4], DOUBLED, DOUBLED.feasible()),
            Phase("a has weight 1", times[4], times[5], CASE, feasible),
        ]


class Jitter:
    name = "jitter"
    title = f"The coordinator is stopped for up to {MOST_JITTER} periods, again and again"

    def length(self, period: float) -> float:
        return LOCAL + 2 * step_of(period)

    def applications(self, period: float) -> Sequence[Application]:
        return CASE.applications()

    def act(self, scene: Scene) -> None:
        chance = random.Random(SEED)
        scene.at(LOCAL)
        scene.begin()
        now = LOCAL + step_of(scene.period)
        scene.at(now)
        scene.mark("jitter")
        while now < self.length(scene.period) - 2 * MOST_JITTER * scene.period:
            for change in (scene.pause, scene.resume):
                change()
                now += chance.uniform(0.0, MOST_JITTER * scene.period)
                scene.at(now)
        scene.mark("end")
        scene.end()

    def phases(self, scene: Scene) -> Sequence[Phase]:
        marks, feasible = scene.marks, CASE.feasible()
        return [
            Phase("even periods", marks["begin"], marks["jitter"], CASE, feasible),
            Phase("jitter", marks["jitter"], marks["end"], CASE, feasible),
        ]


class Away:
    name = "away"
    title = f"The coordinator is away for {AWAY:.0f} s"

    def length(self, period: float) -> float:
        return LOCAL + 2 * step_of(period) + AWAY

    def applications(self, period: float) -> Sequence[Application]:
        return CASE.applications()

    def act(self, scene: Scene) -> None:
        step = step_of(scene.period)
        scene.at(LOCAL)
        scene.begin()
        scene.at(LOCAL + step)
        scene.mark("away")
        scene.pause()
        scene.at(LOCAL + step + AWAY)
        scene.mark("back")
        scene.resume()
        scene.at(self.length(scene.period))
        scene.end()

    def phases(self, scene: Scene) -> Sequence[Phase]:
        marks, feasible = scene.marks, CASE.feasible()
        return [
            Phase("coordinator starts", marks["begin"], marks["away"], CASE, feasible),
            Phase(
                "away, its lease has ended",
                marks["away"] + LEASE,
                marks["back"],
                CASE,
                CASE.local(),
            ),
            Phase("back", marks["back"], self.length(scene.period), CASE, feasible),
        ]


SCENARIOS = {scenario.name: scenario for scenario in (Changes(), Jitter(), Away())}


def run_scenario(binaries: pathlib.Path, work: pathlib.Path, name: str, period: float) -> Track:
    scenario = SCENARIOS[name]
    scenes: list[Scene] = []
    with Programs(binaries, work) as programs:
        cluster = WITH_THIRD.cluster(programs)
        coordinator = Coordinator(programs, CASE.setup.servers)

        def act(script: Script) -> None:
            scenes.append(Scene(programs, coordinator, script, period))
            scenario.act(scenes[0])

        result = run_with_script(
            programs,
            cluster.address(PATH),
            scenario.applications(period),
            scenario.length(period) + 0.2,
            act,
        )
    return Track(name, period, Timeline(result, CASE.setup.uses), scenario.phases(scenes[0]))


def check(rows: Sequence[Row]) -> list[Row]:
    """The rows without those of local sharing: a coordinator that is away reaches no proxy."""
    late = [row["settle_periods"] for row in rows]
    back = [math.inf if periods is None else float(periods) for periods in late]
    swung = [float(row["swings"]) for row in rows]
    spread = [
        math.inf if row["deviation_percent"] is None else float(row["deviation_percent"])
        for row in rows
    ]
    return [
        at_most(
            f"steps: periods until the ratio stays within {SETTLED:.0%} of the feasible one",
            BACK_WITHIN,
            back,
        ),
        at_most(
            f"steps: changes from one side of the {SETTLED:.0%} to the other after an event",
            MOST_SWINGS,
            swung,
        ),
        at_most(
            "steps: standard deviation of the ratio once it has settled, in percent",
            100 * MOST_DEVIATION,
            spread,
        ),
    ]
