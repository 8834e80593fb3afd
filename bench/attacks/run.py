"""script/bench attacks: what a misbehaving client costs a victim of equal weight.

Each attack has its own server and proxy. The victim runs alone first (it is entitled to half of
what it gets then), then with an honest competitor, then with the attacker.
"""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.attacks import costs, floods, identities, mounts, shared_node, stalls
from bench.attacks.attack import Attack
from bench.attacks.mounts import MountAttack
from bench.attacks.scene import ATTACKER, DEPTH, DEVICE, VICTIM, application
from bench.attacks.shared_node import SharedNode
from bench.schedulers.node import DEVICE as NODE_DEVICE
from lab import plot
from lab.harness import Problem, Programs, machine_settings
from lab.report import Row, print_settings, size_name, table, write_json
from lab.targets import COLUMNS as TARGET_COLUMNS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

AnyAttack = Attack | SharedNode | MountAttack
ATTACKS: list[AnyAttack] = [
    *stalls.ATTACKS,
    *costs.ATTACKS,
    *floods.ATTACKS,
    *identities.ATTACKS,
    *shared_node.ATTACKS,
    *mounts.ATTACKS,
]
# With --quick, one case of readers and one of writers represent all cases of shared nodes.
QUICK_NODES = (SharedNode(2, 12), SharedNode(4, 64, writers=True))
COLUMNS = [
    "attack",
    "protocol",
    "entitled_mib_per_s",
    "victim_before_mib_per_s",
    "victim_mean_mib_per_s",
    "victim_min_1s_mib_per_s",
    "leaked_slots",
    "wrong_blocks",
    "rss_mib",
]


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench attacks")
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="attacks whose names contain this text; may be repeated. They are: "
        + "; ".join(dict.fromkeys(attack.name for attack in ATTACKS)),
    )
    parser.add_argument(
        "--protocol",
        choices=["orangefs", "beegfs", "mount"],
        action="append",
        dest="protocols",
        help="only attacks on this protocol, or on users of a mount (default: all)",
    )
    parser.add_argument(
        "--proxy", type=pathlib.Path, help="path of another vpfs-proxy to measure instead"
    )
    return parser


def chosen(quick: bool, only: list[str] | None, protocols: list[str] | None) -> list[AnyAttack]:
    found = [
        attack
        for attack in ATTACKS
        if (not only or any(name in attack.name for name in only))
        and (not protocols or attack.protocol in protocols)
        and (only or not quick or not isinstance(attack, SharedNode) or attack in QUICK_NODES)
    ]
    if not found:
        raise Problem("no attack has such a name (--help lists them)")
    return found


def settings_of(attacks: list[AnyAttack], quick: bool, proxy: str) -> dict[str, object]:
    victim = application(VICTIM)
    return machine_settings() | {
        "quick": quick,
        "proxy": proxy,
        "policy": f"sfq, depth {DEPTH}, equal weights",
        "device": DEVICE,
        "victim": f"{victim.outstanding} in flight of {size_name(victim.size)}, random, "
        f"{victim.read_percent} % reads, verified",
        "entitled": "half of what the server gives to the victim alone, or to the victim and an "
        "honest competitor",
        "before": "with an honest competitor like the victim",
        "during": f"with the {ATTACKER}, after its grace; the worst second may begin at any time",
        "leaked_slots": "outstanding, queued and I/Os in memory once all clients are gone",
        "mounts": "before: alone; entitled: half of that, or beside fsync half of what it has on "
        "the directory below beside the same attacker",
        "shared nodes": "fast: 1 reader of 4 KiB; entitled and before: what it has alone; device "
        f"{NODE_DEVICE}",
        "attacks": [
            {"attack": attack.name, "protocol": attack.protocol, "seconds": length(attack, quick)}
            | (
                {"grace": attack.grace, "setting": setting_of(attack)}
                if isinstance(attack, Attack)
                else {}
            )
            for attack in attacks
        ],
    }


def setting_of(attack: Attack) -> dict[str, object]:
    setting = attack.setting
    given = {
        "scheduler": dict(setting.scheduler),
        "limits": dict(setting.limits),
        "depth.bytes": setting.depth_bytes,
        "templates": {name: dict(match) for name, match in setting.templates.items()},
    }
    return {name: value for name, value in given.items() if value}


def figure(rows: Sequence[Row], caption: str) -> Figure:
    names = [f"{row['attack']} ({row['protocol']})" for row in rows]
    sheet = plot.Sheet(
        "What a victim has beside a client that misbehaves",
        caption,
        heights=[0.5 + 0.21 * len(rows)],
    )
    (panel,) = sheet.panels
    fields = {
        "beside an honest client": "victim_before_mib_per_s",
        "mean during the attack": "victim_mean_mib_per_s",
        "worst second of it": "victim_min_1s_mib_per_s",
    }
    plot.dots(
        panel,
        names,
        {
            name: [100 * float(row[field]) / float(row["entitled_mib_per_s"]) for row in rows]
            for name, field in fields.items()
        },
    )
    plot.limit(panel, 100, "entitled to")
    panel.set_xlim(0, max(110, panel.get_xlim()[1]))
    panel.grid(axis="x")
    plot.label(panel, "bandwidth, of what it is entitled to (%)")
    return sheet.finish()


def length(attack: AnyAttack, quick: bool) -> float:
    return attack.quick_seconds if quick else attack.seconds


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    attacks = chosen(quick, options.only, options.protocols)
    program = str(options.proxy.resolve()) if options.proxy else "vpfs-proxy"
    if options.proxy and not options.proxy.exists():
        raise Problem(f"{options.proxy} does not exist")
    settings = settings_of(attacks, quick, program)
    print_settings({name: value for name, value in settings.items() if name != "attacks"})
    rows: list[Row] = []
    facts: list[Row] = []
    targets: list[Row] = []
    for attack in attacks:
        with Programs(binaries, out / "attacks") as programs:
            seen = attack.run(programs, program, length(attack, quick))
        rows.append(seen.row)
        facts.append({"attack": attack.name, "protocol": attack.protocol, **seen.facts})
        verdicts = attack.judge(seen)
        targets += verdicts
        print(
            "\n" + table([seen.row], COLUMNS) + "\n\n" + table(verdicts, TARGET_COLUMNS), flush=True
        )
        # Results so far are kept even if the next attack fails.
        write_json(
            out / "attacks.json",
            {"settings": settings, "rows": rows, "facts": facts, "targets": targets},
        )
    plot.save(
        out / "attacks",
        lambda: figure(
            rows,
            plot.caption(
                settings,
                f"victim: {settings['victim']}",
                f"policy {settings['policy']}",
                f"one server of {DEVICE['bandwidth']}, {DEVICE['per_request']} each request",
            ),
        ),
    )
    print("\n" + table(rows, COLUMNS) + "\n\n" + table(targets, TARGET_COLUMNS))
    return 0
