"""What is looked at all the time, from the outside: limits in force, and whose cycles they are of.

Limits of two stages may be added only where both were in force at one instant. So stages are asked
in rounds, and each cycle has a number. A stage that names the same cycle in two rounds, and says in
both that its lease is in force, had these limits in force all the time between its two answers: a
lease only begins with a cycle. All of these times share the instant between the end of the first
round and the beginning of the second, so the sum of these limits was in force then. Stages whose
cycle changed count as nothing. The sum is thus never above what was in force. Rounds come in pairs,
one right after the other, so that few cycles fall between them; but a pair of any two rounds that
follow each other counts.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Mapping

from lab.chaos.wire import Epoch, Reading, StageConnection, read_all

PAUSE = 0.08  # between two pairs of rounds
QUIET = 2.0  # without a sum that is too large: the next one is told again
PATIENCE = 0.25  # for the answers of one round


@dataclasses.dataclass(frozen=True)
class Round:
    readings: Mapping[str, Reading]
    begun_at: float
    ended_at: float


def in_force_between(one: Round, other: Round) -> dict[str, int]:
    """By stage, the sum of limits that was in force from the end of one round to the next one."""
    sums = {}
    for name, before in one.readings.items():
        after = other.readings.get(name)
        if (
            after is not None
            and before.led
            and after.led
            and before.incarnation == after.incarnation
            and before.epoch == after.epoch
            and before.limits == after.limits
        ):
            sums[name] = before.total
    return sums


@dataclasses.dataclass
class Progress:
    """The last epoch of each process of a stage."""

    last: dict[str, tuple[int, Epoch]] = dataclasses.field(default_factory=dict)

    def note(self, name: str, reading: Reading) -> str:
        """Why this reading cannot be; empty: it can."""
        incarnation, epoch = self.last.get(name, (0, Epoch()))
        self.last[name] = reading.incarnation, reading.epoch
        if incarnation == reading.incarnation and reading.epoch < epoch:
            return f"{name} applied {reading.epoch.text()} after {epoch.text()}"
        return ""


class Watch(threading.Thread):
    def __init__(
        self, sockets: Mapping[str, str], capacity: int, violated: Callable[[str], None]
    ) -> None:
        super().__init__(daemon=True)
        self._stages = {name: StageConnection(path) for name, path in sockets.items()}
        self._capacity, self._violated = capacity, violated
        self._progress = Progress()
        self._done = threading.Event()
        self._before: Round | None = None
        self._above_at = 0.0
        self.latest: Round | None = None
        self.failure: BaseException | None = None
        self.rounds = self.with_limits = self.whole = 0
        self.most = 0
        self.terms: set[int] = set()

    def run(self) -> None:
        try:
            while not self._done.is_set():
                self._look()
                self._look()
                self._done.wait(PAUSE)
        except Exception as error:
            self.failure = error
        finally:
            for connection in self._stages.values():
                connection.close()

    def stop(self) -> None:
        self._done.set()
        self.join()

    def _look(self) -> None:
        latest = Round(*read_all(self._stages, PATIENCE))
        self.rounds += 1
        for name, reading in latest.readings.items():
            if problem := self._progress.note(name, reading):
                self._violated(problem)
        if self._before is not None:
            self._add_up(self._before, latest)
        self._before = self.latest = latest

    def _add_up(self, before: Round, latest: Round) -> None:
        sums = in_force_between(before, latest)
        total = sum(sums.values())
        self.most = max(self.most, total)
        self.with_limits += total > 0
        self.whole += len(sums) == len(self._stages)
        if total <= self._capacity:
            return
        if latest.begun_at - self._above_at > QUIET:  # once for each time
            parts = ", ".join(
                f"{name} {amount} ({before.readings[name].epoch.text()})"
                for name, amount in sorted(sums.items())
            )
            self._violated(f"limits in force add up to {total}, above {self._capacity}: {parts}")
        self._above_at = latest.begun_at

    def not_led(self) -> list[str]:
        """Stages that have not said in the last round that a coordinator leads them."""
        latest = self.latest
        if latest is None:
            return list(self._stages)
        return [
            name
            for name in self._stages
            if name not in latest.readings or not latest.readings[name].led
        ]

    def without_limits(self) -> list[str]:
        latest = self.latest
        if latest is None:
            return list(self._stages)
        return [
            name
            for name in self._stages
            if name not in latest.readings or latest.readings[name].total == 0
        ]


def wait_for(
    holds: Callable[[], bool], patience: float, allowance: Callable[[float, float], float]
) -> float | None:
    """Seconds until it held; None: not in time. The machine's own stall extends the time."""
    begun = time.monotonic()
    while not holds():
        now = time.monotonic()
        if now > begun + patience + allowance(begun, now):
            return None
        time.sleep(0.02)
    return time.monotonic() - begun
