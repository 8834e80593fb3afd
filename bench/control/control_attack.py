"""script/bench control_attack: what attacks on a control port cost the I/O beside them.

A server with a slow device, a proxy with its control port on a UNIX socket and on TCP, and an
application whose data are verified. It runs without the attacks and with them in turn: first with
all attacks of peers that may not change anything at once, then with those of one that may.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

from bench.control.attacks import ATTACKS, WRITERS_ATTACKS
from bench.control.scene import (
    DEVICE,
    TEMPLATE,
    VICTIM,
    WARM_UP,
    ControlScene,
    State,
    attack_names,
    runs_as_root,
)
from lab.cluster import Front
from lab.harness import Programs, machine_settings, median
from lab.load import application_of
from lab.report import Json, Row, print_settings, size_name, table, write_json
from lab.rounds import Rounds
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import one_at_least, one_at_most

FULL, QUICK = Rounds(seconds=20, runs=3), Rounds(seconds=5, runs=2)
PEERS, WRITERS = "peers without rights", "a writer"
COLUMNS = [
    "attackers",
    "mib_per_s_without",
    "mib_per_s_with",
    "ratio",
    "wrong_blocks",
    "failed",
    "control_cpu_s_per_s",
    "answer_ms_p50",
    "answer_ms_max",
    "unanswered",
]
AFTER_COLUMNS = ["attackers", "when", "own_mib", "open_files", "log_lines", "audit_lines"]
RATIO, ANSWER_MS = 0.99, 1000.0
LINES_PER_MINUTE = 200  # of the log
FRONT = Front(
    "px",
    "proxy",
    "sfq",
    {VICTIM.name: 1},
    templates={TEMPLATE: {"hint": {"jobid": "*"}}},
    proxy={"status_interval": "1 h"},
)


@dataclasses.dataclass(frozen=True)
class Seen:
    """The results of all rounds."""

    attackers: str
    rounds: Sequence[Row]
    before: State
    after: State
    log_lines: int  # written during the attacks
    audit_lines: int
    seconds: float  # under attack
    attacks: Mapping[str, Mapping[str, int]]  # what they did

    def ratio(self) -> float:
        return median([float(str(row["ratio"])) for row in self.rounds])

    def worst(self, field: str) -> float:
        return max(float(str(row[field])) for row in self.rounds)


def facts_of(result: Json) -> dict[str, float]:
    victim = application_of(result, VICTIM.name)
    return {
        "mib_per_s": victim["mib_per_s"],
        "wrong_blocks": victim["verify_failures"],
        "failed": victim["errors"],
    }


def measure(scene: ControlScene, attackers: str, names: Sequence[str], rounds: Rounds) -> Seen:
    rows: list[Row] = []
    did: dict[str, dict[str, int]] = {name: {} for name in names}
    scene.odd_job()
    # The first run fills the caches of the proxy's allocator.
    scene.load([VICTIM], min(1.0, rounds.seconds))
    before, log_lines, audit_lines = scene.state(), scene.log_lines(), scene.audit_lines()
    for index in range(rounds.runs):
        first = facts_of(scene.load([VICTIM], rounds.seconds)) if index % 2 == 0 else None
        probe, cpu = scene.probe(), scene.control_cpu()
        with scene.attacked(names) as counts:
            probe.start()
            during = facts_of(scene.load([VICTIM], rounds.seconds))
            probe.stop()
            cpu = scene.control_cpu() - cpu
        if attackers == WRITERS:
            scene.stop_rules()
        for name, count in counts.items():
            for what, number in count.items():
                did[name][what] = did[name].get(what, 0) + number
        without = first or facts_of(scene.load([VICTIM], rounds.seconds))
        answers = probe.facts()
        rows.append(
            {
                "attackers": attackers,
                "mib_per_s_without": without["mib_per_s"],
                "mib_per_s_with": during["mib_per_s"],
                "ratio": during["mib_per_s"] / without["mib_per_s"],
                "wrong_blocks": without["wrong_blocks"] + during["wrong_blocks"],
                "failed": without["failed"] + during["failed"],
                "control_cpu_s_per_s": cpu / (rounds.seconds + WARM_UP),
                "unanswered": answers["failed"],
                **{
                    field: answers[field]
                    for field in ("asked", "answer_ms_p50", "answer_ms_max", "failures")
                },
            }
        )
    return Seen(
        attackers,
        rows,
        before,
        scene.settled(before),
        scene.log_lines() - log_lines,
        scene.audit_lines() - audit_lines,
        rounds.runs * rounds.seconds,
        did,
    )


def check(seen: Seen) -> list[Row]:
    name = seen.attackers
    # Each change that a writer makes is a line of the log, and is meant to be one.
    wordy = seen.log_lines - (seen.audit_lines if name == WRITERS else 0)
    targets = [
        one_at_least(f"{name}: throughput with the attacks / without", RATIO, seen.ratio()),
        one_at_most(
            f"{name}: wrong blocks and failed requests",
            0,
            seen.worst("wrong_blocks") + seen.worst("failed"),
        ),
        one_at_most(
            f"{name}: the longest time until a good client was answered",
            ANSWER_MS,
            seen.worst("answer_ms_max"),
            " ms",
        ),
        one_at_most(f"{name}: good clients that got no answer", 0, seen.worst("unanswered")),
        one_at_most(
            f"{name}: its open files after the attacks",
            seen.before.open_files,
            seen.after.open_files,
        ),
        one_at_most(
            f"{name}: lines in its log each minute of attacks",
            LINES_PER_MINUTE,
            wordy / max(1.0, seen.seconds / 60),
        ),
    ]
    if name == PEERS:  # the virtual PFSes of a writer's rules stay until they are retired
        targets.append(
            one_at_most(
                f"{name}: the proxy's memory after the attacks",
                seen.before.memory_limit(),
                seen.after.own_mib,
                " MiB",
            )
        )
    return targets


def after_rows(seen: Seen) -> list[Row]:
    return [
        {"attackers": seen.attackers, "when": "before", **dataclasses.asdict(seen.before)},
        {
            "attackers": seen.attackers,
            "when": "after",
            **dataclasses.asdict(seen.after),
            "log_lines": seen.log_lines,
            "audit_lines": seen.audit_lines,
        },
    ]


def print_seen(seen: Seen) -> None:
    print("\n" + table(seen.rounds, COLUMNS))
    for row in seen.rounds:
        for failure in row["failures"]:
            print(f"a good client got no answer: {failure}")
    print("\n" + table(after_rows(seen), AFTER_COLUMNS) + "\n")
    for name, count in seen.attacks.items():
        print(f"{name}: {', '.join(f'{what} {number}' for what, number in count.items())}")


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench control_attack")
    FULL.add_options(parser, QUICK)
    parser.add_argument(
        "--only",
        action="append",
        metavar="NAME",
        help="attacks whose names contain this text; may be repeated. They are: "
        + ", ".join([*ATTACKS, *WRITERS_ATTACKS]),
    )
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    rounds = (QUICK if quick else FULL).asked(options)
    names = attack_names(options.only)
    settings = machine_settings() | {
        "quick": quick,
        "runs": rounds.runs,
        "seconds": rounds.seconds,
        "device": DEVICE,
        "victim": f"{VICTIM.outstanding} in flight of {size_name(VICTIM.size)}, random, "
        f"{VICTIM.read_percent} % reads, verified",
        "attacks": names,
        "attackers": "of each kind all at once; scheduled when no other program needs a processor "
        "(SCHED_IDLE), as they represent other machines; on the UNIX socket "
        + (
            "as an unprivileged user that may read" if runs_as_root() else "as the proxy's own user"
        ),
        "good client": "connects every 250 ms, by UNIX socket and TLS in turn, and asks for the "
        "statistics",
        "statistic": "ratio: median of interleaved runs; otherwise the worst run",
    }
    print_settings(settings)
    groups = {
        PEERS: [name for name in names if name in ATTACKS],
        WRITERS: [name for name in names if name in WRITERS_ATTACKS],
    }
    all_seen: list[Seen] = []
    for attackers, of_them in groups.items():
        if not of_them:
            continue
        with Programs(binaries, out / "control_attack") as programs:
            all_seen.append(
                measure(ControlScene(programs, FRONT, DEVICE), attackers, of_them, rounds)
            )
        print_seen(all_seen[-1])
    targets = [row for seen in all_seen for row in check(seen)]
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(
        out / "control_attack.json",
        {
            "settings": settings,
            "rows": [row for seen in all_seen for row in seen.rounds],
            "state": [row for seen in all_seen for row in after_rows(seen)],
            "attacks": {name: count for seen in all_seen for name, count in seen.attacks.items()},
            "targets": targets,
        },
    )
    return 0
