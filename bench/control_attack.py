"""script/bench control_attack: what attacks on a control port cost the I/O beside them.

A server with a slow device, a proxy with its control port on a UNIX socket and on TCP, and an application whose data are
verified. It runs without the attacks and with all of them in turn.
"""
from __future__ import annotations

import argparse
import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

from bench.cluster import Front
from bench.control.attacks import ATTACKS
from bench.control.scene import DEVICE, TEMPLATE, VICTIM, WARM_UP, ControlScene, State, attack_names, runs_as_root
from bench.harness import Programs, machine_settings, median
from bench.load import application_of
from bench.report import Row, print_settings, size_name, table, write_json
from bench.rounds import Rounds
from bench.targets import COLUMNS as TARGET_COLUMNS
from bench.targets import one_at_least, one_at_most

FULL, QUICK = Rounds(seconds=20, runs=3), Rounds(seconds=5, runs=2)
COLUMNS = ["mib_per_s_without", "mib_per_s_with", "ratio", "wrong_blocks", "failed", "control_cpu_s_per_s", "answer_ms_p50",
           "answer_ms_max", "unanswered"]
AFTER_COLUMNS = ["", "rss_mib", "open_files", "log_lines", "audit_lines"]
RATIO, ANSWER_MS = 0.99, 1000.0
LINES_PER_MINUTE = 200  # of the log
FRONT = Front("px", "proxy", "sfq", {VICTIM.name: 1}, templates={TEMPLATE: {"hint": {"jobid": "*"}}},
              proxy={"status_interval": "1 h"})


@dataclasses.dataclass(frozen=True)
class Seen:
    """The results of all rounds."""

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


def facts_of(result: dict) -> dict[str, float]:
    victim = application_of(result, VICTIM.name)
    return {"mib_per_s": victim["mib_per_s"], "wrong_blocks": victim["verify_failures"], "failed": victim["errors"]}


def measure(scene: ControlScene, names: Sequence[str], rounds: Rounds) -> Seen:
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
        for name, count in counts.items():
            for what, number in count.items():
                did[name][what] = did[name].get(what, 0) + number
        without = first or facts_of(scene.load([VICTIM], rounds.seconds))
        answers = probe.facts()
        rows.append({"mib_per_s_without": without["mib_per_s"], "mib_per_s_with": during["mib_per_s"],
                     "ratio": during["mib_per_s"] / without["mib_per_s"],
                     "wrong_blocks": without["wrong_blocks"] + during["wrong_blocks"],
                     "failed": without["failed"] + during["failed"],
                     "control_cpu_s_per_s": cpu / (rounds.seconds + WARM_UP), "unanswered": answers["failed"],
                     **{field: answers[field] for field in ("asked", "answer_ms_p50", "answer_ms_max", "failures")}})
    return Seen(rows, before, scene.settled(before), scene.log_lines() - log_lines, scene.audit_lines() - audit_lines,
                rounds.runs * rounds.seconds, did)


def check(seen: Seen) -> list[Row]:
    per_minute = seen.log_lines / max(1.0, seen.seconds / 60)
    return [
        one_at_least("throughput with the attacks / without", RATIO, seen.ratio()),
        one_at_most("wrong blocks and failed requests", 0, seen.worst("wrong_blocks") + seen.worst("failed")),
        one_at_most("the longest time until a good client was answered", ANSWER_MS, seen.worst("answer_ms_max"), " ms"),
        one_at_most("good clients that got no answer", 0, seen.worst("unanswered")),
        one_at_most("the proxy's memory after the attacks", seen.before.rss_limit(), seen.after.rss_mib, " MiB"),
        one_at_most("its open files after the attacks", seen.before.open_files, seen.after.open_files),
        one_at_most("lines in its log each minute of attacks", LINES_PER_MINUTE, per_minute),
    ]


def after_rows(seen: Seen) -> list[Row]:
    return [{"": "before the attacks", **dataclasses.asdict(seen.before)},
            {"": "after them", **dataclasses.asdict(seen.after), "log_lines": seen.log_lines, "audit_lines": seen.audit_lines}]


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench control_attack")
    FULL.add_options(parser, QUICK)
    parser.add_argument("--only", action="append", metavar="NAME",
                        help=f"attacks whose names contain this text; may be repeated. They are: {', '.join(ATTACKS)}")
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    rounds = (QUICK if quick else FULL).asked(options)
    names = attack_names(options.only)
    settings = machine_settings() | {
        "quick": quick, "runs": rounds.runs, "seconds": rounds.seconds, "device": DEVICE,
        "victim": f"{VICTIM.outstanding} in flight of {size_name(VICTIM.size)}, random, {VICTIM.read_percent} % reads, verified",
        "attacks": names, "attackers": "all at once; scheduled when nobody else needs a processor (SCHED_IDLE), as they stand "
                                       "for other machines; on the UNIX socket "
                                       + ("as nobody, who may read" if runs_as_root() else "as the proxy's own user"),
        "good client": "connects every 250 ms, by UNIX socket and TLS in turn, and asks for the statistics",
        "statistic": "ratio: median of interleaved runs; otherwise the worst run",
    }
    print_settings(settings)
    with Programs(binaries, out / "control_attack") as programs:
        seen = measure(ControlScene(programs, FRONT, DEVICE), names, rounds)
    targets = check(seen)
    print("\n" + table(seen.rounds, COLUMNS))
    for row in seen.rounds:
        for failure in row["failures"]:
            print(f"a good client got no answer: {failure}")
    print("\n" + table(after_rows(seen), AFTER_COLUMNS))
    print("\n" + "\n".join(f"{name}: {', '.join(f'{what} {number}' for what, number in count.items())}"
                           for name, count in seen.attacks.items()))
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(out / "control_attack.json", {"settings": settings, "rows": seen.rounds, "state": after_rows(seen),
                                             "attacks": seen.attacks, "targets": targets})
    return 0
