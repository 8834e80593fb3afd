"""The processor time of programs while vpfs-load measures."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from lab.harness import Problem, Program
from lab.load import run_begins

INTERVAL = 0.02
# Left out at the beginning and the end of the measured time. The arrival of live lines shows the
# clock of vpfs-load only to a few milliseconds.
MARGIN = 0.03
Sample = tuple[float, dict[str, float]]


class CpuMeter:
    """Samples the processor time of programs until stopped.

    Processor time per second of the measured time, divided by the throughput, is the cost of a
    byte. Work before and after (warm-up, writing and removing files) does not count.
    """

    def __init__(self, programs: Mapping[str, list[Program]]) -> None:
        self._programs = dict(programs)
        self._samples: list[Sample] = []
        self._origin: float | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self, load: Program) -> None:
        self._programs["client"] = [load]
        self._thread.start()

    def saw_line(self, line: str) -> None:
        """Gets each line of vpfs-load as it appears. One of them says that the run begins."""
        if self._origin is None and run_begins(line):
            self._origin = time.monotonic()

    def _run(self) -> None:
        while not self._done.wait(INTERVAL):
            try:
                used = {
                    name: sum(one.cpu_seconds() for one in group)
                    for name, group in self._programs.items()
                }
            except (OSError, IndexError):
                return  # a program has ended
            self._samples.append((time.monotonic(), used))

    def stop(self, begin: float, end: float) -> dict[str, float]:
        """The processors that each program used from `begin` to `end` of the run."""
        self._done.set()
        self._thread.join()
        if self._origin is None:
            raise Problem("vpfs-load did not say when its run began")
        return utilisation(
            self._samples, self._origin + begin + MARGIN, self._origin + end - MARGIN
        )


def utilisation(samples: Sequence[Sample], begin: float, end: float) -> dict[str, float]:
    inside = [sample for sample in samples if begin <= sample[0] <= end]
    if len(inside) < 2:
        return {}
    (first, before), (last, after) = inside[0], inside[-1]
    return {name: (after[name] - before[name]) / (last - first) for name in after}
