"""Ratios of two applications over time: when they have settled, and whether they swing."""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Iterable, Sequence

from lab.load import application_of
from lab.report import Json

Ratios = Sequence[tuple[float, float]]  # the beginning of each window, and the ratio in it
SLACK = 1e-6  # of a second


class Timeline:
    """What each application moved over time, from the timelines of vpfs-load's result."""

    def __init__(self, result: Json, names: Iterable[str]) -> None:
        self._ends = [0.0]
        self._sums: dict[str, list[float]] = {}
        for name in names:
            sums, ends = [0.0], [0.0]
            for point in application_of(result, name)["timeline"]:
                sums.append(sums[-1] + point["mib_per_s"] * (point["t"] - ends[-1]))
                ends.append(point["t"])
            self._sums[name] = sums
            self._ends = ends

    @property
    def end(self) -> float:
        return self._ends[-1]

    def rates(self, begin: float, end: float) -> dict[str, float]:
        """MiB/s in the whole intervals between the two times."""
        first = bisect.bisect_left(self._ends, begin - SLACK)
        last = bisect.bisect_right(self._ends, end + SLACK) - 1
        if last <= first:
            return dict.fromkeys(self._sums, math.nan)
        length = self._ends[last] - self._ends[first]
        return {name: (sums[last] - sums[first]) / length for name, sums in self._sums.items()}

    def ratios(
        self, pair: tuple[str, str], begin: float, end: float, window: float, step: float
    ) -> Ratios:
        """The ratios in windows between the two times. A window begins every `step`."""
        found = []
        for index in range(max(0, math.floor((end - begin - window) / step + SLACK) + 1)):
            start = begin + index * step
            rates = self.rates(start, start + window)
            first, second = (rates[name] for name in pair)
            found.append((start, first / second if second > 0 else math.inf))
        return found


def is_within(ratio: float, wanted: float, tolerance: float) -> bool:
    return abs(ratio / wanted - 1) <= tolerance


def settled_after(ratios: Ratios, wanted: float, tolerance: float) -> float | None:
    """The beginning of the first window from which on all are within the tolerance.

    None: not even the last one is.
    """
    settled = None
    for begin, ratio in reversed(ratios):
        if not is_within(ratio, wanted, tolerance):
            break
        settled = begin
    return settled


def swings(ratios: Ratios, wanted: float, tolerance: float) -> int:
    """How often the ratio passes through the allowed band and leaves it on the other side.

    A ratio that enters the band and leaves it on the same side has not swung.
    """
    count, side = 0, 0
    for _, ratio in ratios:
        if is_within(ratio, wanted, tolerance):
            continue
        now = 1 if ratio > wanted else -1
        if side != 0 and now != side:
            count += 1
        side = now
    return count


def deviation(ratios: Ratios, wanted: float) -> float:
    """The standard deviation of the ratios around their mean, as a part of what is wanted."""
    return statistics.pstdev(ratio for _, ratio in ratios) / wanted if ratios else math.nan


def apart(ratios: Ratios, window: float) -> Ratios:
    """The windows that do not overlap."""
    found: list[tuple[float, float]] = []
    for begin, ratio in ratios:
        if not found or begin >= found[-1][0] + window - SLACK:
            found.append((begin, ratio))
    return found
