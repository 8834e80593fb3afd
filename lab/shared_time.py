"""What applications got while all of them ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SETTLES = 0.5  # seconds after all have begun that do not count
TAIL = 0.3  # seconds before the first has moved its last byte that do not count

Sample = tuple[float, Mapping[str, float]]  # when, and the bytes of each job by then


def rates_between(samples: Sequence[Sample]) -> dict[str, float]:
    """MiB/s of each job while all moved data.

    The time begins a little after all had begun, and ends when one of them was about to move its
    last byte. Programs take their time to begin and to end, which counts for no share.
    """
    begun = next((at for at, moved in samples if moved and all(moved.values())), None)
    if begun is None:
        return {}
    last = samples[-1][1]
    ended = min(next(at for at, moved in samples if moved[job] == last[job]) for job in last)
    inside = [sample for sample in samples if begun + SETTLES <= sample[0] <= ended - TAIL]
    if len(inside) < 2:
        return {}
    (begin, before), (end, after) = inside[0], inside[-1]
    return {job: (after[job] - before[job]) / (end - begin) / 2**20 for job in after}
