"""Points of lines in figures, from what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Points = Sequence[tuple[float, float]]


def bins(points: Points) -> Points:
    """Moves each point from the end of its bin to the middle, where the mean of a bin belongs."""
    ends = [t for t, _ in points]
    return [
        ((before + end) / 2, value) for before, end, (_, value) in zip([0.0, *ends], ends, points)
    ]


def beside(series: Mapping[str, Sequence[float | None]]) -> dict[str, Points]:
    """The points of each series in each category, offset so that series do not cover each other."""
    step = min(0.16, 0.5 / max(1, len(series) - 1))
    return {
        name: [
            (place + (index - (len(series) - 1) / 2) * step, value)
            for place, value in enumerate(values)
            if value is not None
        ]
        for index, (name, values) in enumerate(series.items())
    }


def tail(histogram: Sequence[tuple[float, float]]) -> Points:
    """The percentage of requests that took longer than each latency.

    The last point is the longest request.
    """
    total = left = sum(count for _, count in histogram)
    points = [(min(upper for upper, _ in histogram), 100.0)] if histogram else []
    for upper, count in sorted(histogram):
        before, left = left, left - count
        points.append((upper, 100 * (left or before) / total))
    return points
