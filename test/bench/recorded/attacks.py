"""Recorded measurements of bench/attacks."""

from __future__ import annotations

from unittest import mock

from bench.attacks import mounts as attacks_on_mounts
from bench.attacks import shared_node
from bench.attacks.attack import Attack, Outcome
from bench.attacks.scene import Victim
from recorded.samples import Option, Recorded, field, sample


def outcome_of_attack(attack: Attack, *_: object) -> Outcome:
    victim = Victim(50.0, 50.0, sample(attack.name, low=50, high=90), 45.0, 0.2, 0, 0)
    facts = mock.MagicMock(**{"keys.return_value": [], "__getitem__.side_effect": sample})
    protocol = getattr(attack, "protocol", shared_node.PROTOCOL)
    return Outcome(victim.row(attack.name, protocol, 0, 9.0), victim, facts)


ATTACKS = Recorded(
    {
        "bench.attacks.attack.Attack.run": outcome_of_attack,
        "bench.attacks.shared_node.SharedNode.run": outcome_of_attack,
        "bench.attacks.mounts.MountAttack.run": outcome_of_attack,
    },
    {
        "--only": Option(
            lambda row, value: value in row["attack"],
            ["fsync", "flood", attacks_on_mounts.ATTACKS[3].name],
        ),
        "--protocol": Option(field("protocol")),
    },
    [["--only", "held", "--protocol", "mount"]],
    frozenset({"--proxy"}),
)
