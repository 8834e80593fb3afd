"""Recorded measurements of script/bench vpfs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from unittest import mock

from bench.schedulers import vpfs_real
from bench.schedulers.vpfs_cases import SETUPS, Case
from recorded.samples import Option, Recorded, field, sample


def rates_of(_: object, case: Case, __: float) -> Mapping[str, float]:
    return {
        name: sample(case, name, low=20.0, high=80.0) / (1 if name == "b" else 1 / case.weight)
        for name in case.applications
    }


@contextlib.contextmanager
def opened(*_: object) -> Iterator[object]:
    """Servers on which halves cannot be measured."""
    site = mock.Mock()
    halves = list(SETUPS)[-1]
    site.why_not.side_effect = lambda case: "not here" if case.setup == halves else ""
    site.measure.side_effect = lambda case, length: rates_of(site, case, length)
    yield site


VPFS = Recorded(
    {
        "bench.schedulers.vpfs_double.Site.measure": rates_of,
        "bench.schedulers.vpfs_real.opened": opened,
        "bench.schedulers.vpfs_real.installed": lambda: list(vpfs_real.CLIENTS),
    },
    {"--parts": Option(field("part")), "--servers": Option(field("servers"))},
    rows=lambda content: [
        {"servers": servers, **row}
        for servers, found in content["found"].items()
        for row in found["rows"]
    ],
)
