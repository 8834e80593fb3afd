"""The demo's first act: two applications on one file system, directly and then through proxies.

The steps of the second act are here too: it has the same applications.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence

from acts import live_rules
from acts.live_rules import Step
from lab.cluster import Front
from lab.file_systems import DIRECT
from lab.harness import MIB
from lab.load import Application, line_rates, line_time

SERVERS = 2
DEVICE_MIB_PER_S = 200  # of each server, and far below what two processors can move
DEVICE = {"bandwidth": f"{DEVICE_MIB_PER_S} MiB/s", "per_request": "50 us", "parallelism": 1}
WEIGHTS = {"simulation": 2, "analysis": 1}
TARGET = WEIGHTS["simulation"] / WEIGHTS["analysis"]
TOLERANCE_PERCENT = 2.0
# The analysis is greedy: it has four times the processes and requests in flight.
APPLICATIONS = [
    Application("simulation", size=MIB, processes=2, outstanding=16),
    Application("analysis", size=MIB, processes=8, outstanding=16),
]
# In the second act fewer are in flight: a change of weights does not reach those that wait already.
LIVE_APPLICATIONS = [
    dataclasses.replace(app, outstanding=min(16, 64 // app.processes)) for app in APPLICATIONS
]
PROXIES = Front(
    "px", "proxy", "sfq", WEIGHTS, control=live_rules.CONTROL, depth_requests=8, depth_bytes="4 MiB"
)
LIVE_WEIGHTS = {"simulation": 1, "analysis": 3}
LIMIT_MIB_PER_S = 50  # of the analysis, at each server
LEAST_STEP = 4
PHASES = {DIRECT: "without vpfs", "px": f"with vpfs, {WEIGHTS['simulation']}:{WEIGHTS['analysis']}"}
WARM_UP = 1.0


def steps(seconds: int) -> list[Step]:
    """The second act. Each step takes that long."""
    weights = [f"rule change {name} weight={weight}" for name, weight in LIVE_WEIGHTS.items()]
    limit = f"rule start quiet 'jobid=analysis' rate={LIMIT_MIB_PER_S}MiB/s for={seconds + 1}s"
    ratio_text = "{simulation}:{analysis}".format(**LIVE_WEIGHTS)
    return [
        Step("2:1", shares=WEIGHTS),
        Step(
            ratio_text, weights, LIVE_WEIGHTS, before="The analysis is urgent today: other weights."
        ),
        Step(
            f"analysis at most {SERVERS * LIMIT_MIB_PER_S}",
            [limit],
            limit=("analysis", SERVERS * LIMIT_MIB_PER_S),
            before=f"It is too much. {LIMIT_MIB_PER_S} MiB/s at each server, and only for "
            f"{seconds + 1} s.",
        ),
        Step(
            f"{ratio_text} again",
            shares=LIVE_WEIGHTS,
            before="The rule has ended by itself.",
            watched_by="rule list",
            settles=2.6,
        ),
    ]


def ratio(rates: dict[str, float]) -> float:
    return rates["simulation"] / rates["analysis"] if rates["analysis"] > 0 else float("inf")


class LiveLines:
    """Prints each of vpfs-load's seconds as one line."""

    def __init__(
        self,
        title: str,
        applications: Sequence[Application] = tuple(APPLICATIONS),
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._title, self._applications, self._names = title, applications, names or {}

    def __call__(self, line: str) -> None:
        rates, second = line_rates(line, self._applications), line_time(line)
        if not rates or second is None or second % 1:
            return
        text = "   ".join(
            f"{self._names.get(name, name)} {rate:6.1f} MiB/s" for name, rate in rates.items()
        )
        first, other = list(rates.values())
        found = first / other if other > 0 else float("inf")
        print(
            f"{second:3.0f} s  {self._title:17}  {text}   ratio {found:5.2f}{self._bar(rates)}",
            flush=True,
        )

    @staticmethod
    def _bar(rates: dict[str, float]) -> str:
        if not sys.stdout.isatty():
            return ""
        mine = round(24 * next(iter(rates.values())) / max(1e-9, sum(rates.values())))
        return "   " + "█" * mine + "░" * (24 - mine)
