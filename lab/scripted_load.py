"""Runs vpfs-load, and a function beside it that does things at times of the run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from lab.harness import Problem, Programs
from lab.load import Application, check_errors, run_begins, run_load
from lab.report import Json

WARM_UP = 0.7
INTERVAL = 0.01  # of the load's timeline


class Script:
    """Calls one function while vpfs-load runs, in a thread of its own.

    It gets the time since the end of the warm-up.
    """

    def __init__(self, act: Callable[[Script], None]) -> None:
        self._act = act
        self._origin = 0.0
        self._stopped = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def on_line(self, line: str) -> None:
        if run_begins(line):
            self._origin = time.monotonic() + WARM_UP
            self._thread.start()

    def time_of(self, moment: float) -> float:
        """The time of the run of a time of the clock (monotonic)."""
        return moment - self._origin

    def now(self) -> float:
        return self.time_of(time.monotonic())

    def wait_until(self, when: float) -> None:
        if self._stopped.wait(max(0.0, when - self.now())):
            raise Problem("the load ended before the script")

    def _run(self) -> None:
        try:
            self._act(self)
        except BaseException as failure:
            self._failure = failure

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure


def run_with_script(
    programs: Programs,
    address: str,
    applications: Sequence[Application],
    length: float,
    act: Callable[[Script], None],
    on_line: Callable[[str], None] | None = None,
    interval: float = INTERVAL,
) -> Json:
    script = Script(act)

    def hear(line: str) -> None:
        script.on_line(line)
        if on_line is not None:
            on_line(line)

    try:
        result = run_load(
            programs, "load", address, applications, length, WARM_UP, hear, interval=interval
        )
    finally:
        script.stop()
    script.check()
    check_errors(result)
    return result
