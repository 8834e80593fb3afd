"""An attack, and what must hold during it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from bench.attacks.attacker import Attacker
from bench.attacks.scene import DEVICE, PREPARATION, Scene, Setting, Victim, attack_victim
from lab.harness import Programs
from lab.report import Row
from lab.targets import one_at_least, one_at_most

Facts = Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The results of one attack. `facts` are numbers that only this attack has."""

    row: Row
    victim: Victim
    facts: Facts


Target = Callable[[str, Outcome], Row]  # makes the row of this name from an outcome


def victim_mean(share: float) -> Target:
    return lambda name, seen: one_at_least(
        f"{name}: the victim's mean / its half", share, seen.victim.mean / seen.victim.entitled
    )


def victim_every_second(share: float) -> Target:
    return lambda name, seen: one_at_least(
        f"{name}: the victim's worst second / its half",
        share,
        seen.victim.worst_second / seen.victim.entitled,
    )


def victim_loses(seconds: float) -> Target:
    return lambda name, seen: one_at_most(
        f"{name}: costs the victim, each minute",
        seconds,
        seen.facts["seconds_lost_per_minute"],
        " s",
    )


def resident(mib: float, of: str = "the proxy") -> Target:
    return lambda name, seen: one_at_most(
        f"{name}: {of}'s memory", mib, float(str(seen.row["rss_mib"])), " MiB"
    )


def fact(of: str, what: str, limit: float, unit: str = "") -> Target:
    return lambda name, seen: one_at_most(f"{name}: {what}", limit, seen.facts[of], unit)


def always(name: str, seen: Outcome) -> list[Row]:
    """What must hold after every attack."""
    leaked = float(str(seen.row["leaked_slots"]))
    return [
        one_at_most(
            f"{name}: leaked slots, wrong blocks and failed requests",
            0,
            leaked + seen.victim.wrong_blocks + seen.victim.failed,
        )
    ]


def nothing_else(_: Scene) -> Facts:
    return {}


@dataclasses.dataclass(frozen=True)
class Attack:
    """One attack on a victim of equal weight.

    `begin` returns when the attack is under way; the Attacker ends it. `after` looks at the proxy
    once the attacker and the victim are gone. For `grace` seconds the attack may have an effect.
    """

    name: str
    protocol: str
    begin: Callable[[Scene, Attacker], None]
    targets: tuple[Target, ...]
    setting: Setting = dataclasses.field(default_factory=Setting)
    device: Mapping[str, object] = dataclasses.field(default_factory=lambda: DEVICE)
    grace: float = 0.0
    seconds: float = 20.0  # measured time of the attack
    quick_seconds: float = 6.0
    preparation: float = PREPARATION  # the most that begin() needs
    after: Callable[[Scene], Facts] = nothing_else

    def run(self, programs: Programs, program: str, seconds: float) -> Outcome:
        scene = Scene(programs, self.protocol, self.setting.front(program), self.device)
        attacker = Attacker(scene.port)
        victim = attack_victim(
            scene,
            attacker,
            lambda: self.begin(scene, attacker),
            seconds,
            self.grace,
            self.preparation,
        )
        leaked = scene.leaked_slots()
        facts = {
            "seconds_lost_per_minute": victim.seconds_lost / max(1.0, (seconds + self.grace) / 60),
            "failed_requests": victim.failed,
            "status_mib": scene.status().mib,
            **self.after(scene),
        }
        return Outcome(
            victim.row(self.name, self.protocol, leaked, scene.proxy.peak_rss_mib()), victim, facts
        )

    def judge(self, seen: Outcome) -> list[Row]:
        name = f"{self.name} ({self.protocol})"
        return [target(name, seen) for target in self.targets] + always(name, seen)
