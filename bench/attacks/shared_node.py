"""Slow applications and a fast one share one BeeGFS node, which has few connections.

No application breaks a rule: every slow one has waiting requests, and each of these occupies a
connection.
"""

from __future__ import annotations

import dataclasses

from bench.attacks.attack import Outcome, always
from bench.attacks.scene import (
    INTERVAL,
    Bins,
    Scene,
    Setting,
    Victim,
    mean_of,
    seconds_lost,
    timeline,
    worst_second,
)
from bench.schedulers.node import DEVICE, QUICK_ONE, RATE, WARM_UP
from lab.harness import Programs
from lab.load import Application, application_of, run_load
from lab.report import Json, Row
from lab.targets import one_at_least

PROTOCOL = "beegfs"
NODE = "n1"
ALONE_WARM_UP = 1.0
KEPT = 0.6  # of its rate when it is alone
SLOW_PROCESSES = 16  # of each slow application
OPS_PER_MIB = 256  # of 4 KiB


@dataclasses.dataclass(frozen=True)
class SharedNode:
    """Slow readers or writers on a node with this many connections."""

    slow: int
    connections: int
    writers: bool = False

    @property
    def name(self) -> str:
        kind = "writers" if self.writers else "readers"
        return f"{self.slow} slow {kind}, {self.connections} connections"

    protocol = PROTOCOL
    seconds = 20.0
    quick_seconds = 6.0

    def applications(self, with_slow: bool) -> list[Application]:
        fast = Application(
            QUICK_ONE,
            4 << 10,
            read_percent=100,
            pattern="random",
            file_size=1 << 20,
            node=NODE,
            connections=self.connections,
        )
        # The files are small, since writing and verifying them at this rate takes long.
        slow = [
            Application(
                name,
                64 << 10,
                processes=SLOW_PROCESSES,
                read_percent=0 if self.writers else 100,
                pattern="random",
                file_size=128 << 10,
                node=NODE,
                connections=self.connections,
            )
            for name in self._slow_names()
        ]
        return [fast, *slow] if with_slow else [fast]

    def _slow_names(self) -> list[str]:
        return [f"slow{index}" for index in range(self.slow)]

    def run(self, programs: Programs, program: str, seconds: float) -> Outcome:
        front = Setting().front(program, (QUICK_ONE, *self._slow_names()))
        shares = {name: {"rate": RATE, "burst": "64 KiB"} for name in self._slow_names()}
        scene = Scene(programs, PROTOCOL, dataclasses.replace(front, shares=shares), DEVICE)
        alone, _ = self._measure(scene, False, seconds)
        bins, result = self._measure(scene, True, seconds)
        had = mean_of(alone)
        victim = Victim(
            entitled=had,
            before=had,
            mean=mean_of(bins),
            worst_second=worst_second(bins),
            seconds_lost=seconds_lost(bins, had),
            wrong_blocks=sum(one["verify_failures"] for one in result["applications"]),
            # The end of the run cuts off requests of slow applications.
            failed=application_of(result, QUICK_ONE)["errors"],
        )
        row = victim.row(self.name, PROTOCOL, scene.leaked_slots(), scene.proxy.peak_rss_mib())
        sent_back = scene.status().excess_requests
        facts = {
            "alone_ops_per_s": had * OPS_PER_MIB,
            "beside_ops_per_s": victim.mean * OPS_PER_MIB,
        }
        return Outcome(row, victim, facts | {"sent_back": sent_back})

    def _measure(self, scene: Scene, with_slow: bool, seconds: float) -> tuple[Bins, Json]:
        result = run_load(
            scene.programs,
            "load",
            scene.address,
            self.applications(with_slow),
            seconds,
            WARM_UP if with_slow else ALONE_WARM_UP,
            interval=INTERVAL,
            verify=True,
            may_fail=True,
        )
        return timeline(result, QUICK_ONE, 0.0), result

    def judge(self, seen: Outcome) -> list[Row]:
        name = f"{self.name} ({PROTOCOL})"
        return [
            one_at_least(
                f"{name}: the fast one / alone", KEPT, seen.victim.mean / seen.victim.entitled
            ),
            *always(name, seen),
        ]


ATTACKS = [
    SharedNode(slow, connections, writers)
    for writers in (False, True)
    for slow in (2, 4, 8)
    for connections in (12, 64)
]
