#!/usr/bin/env python3
"""Runs the set of record, and writes the tables of documents from it.

Each entry's benchmark runs several times (rounds). bench/records/NAME.json gets medians and the
spread of the rounds. A run that has ended is not repeated for the same commit and settings.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lab import interpreter

interpreter.with_packages()

from lab.files import write_whole
from lab.harness import Problem, busy_share, machine_settings, run_main
from lab.record.benchmarks import MOST_MINUTES, SET, Entry
from lab.record.passages import rewritten, table_text
from lab.record.record import FOLDER, Record, RecordError, load, merged
from lab.report import table

NOT_MEASURED = ["docs", "bench/records", "test", "*.md"]  # a change there changes no number
DONE = "done.json"
BUSY_FILE = "busy.txt"  # what other programs used of the processors when the run began, 0 to 1
STOP_PATIENCE = 20.0
QUICK_ROUNDS = 2
OWN_LINE = re.compile(r"run_bench\.py: ")


def git(*words: str) -> str:
    others = [".", *(f":!{path}" for path in NOT_MEASURED)]
    command = ["git", *words, "--", *others]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise Problem(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


def measured_commit(needs_clean: bool) -> str:
    """The newest commit that changes what is measured."""
    if needs_clean and (changed := git("status", "--porcelain", "--untracked-files=no")):
        raise Problem(f"commit first, as a record names the commit that it is of:\n{changed}")
    return git("log", "-1", "--format=%H")


@dataclasses.dataclass(frozen=True)
class Plan:
    binaries: pathlib.Path
    work: pathlib.Path  # the runs
    records: pathlib.Path
    commit: str
    programs: str  # a digest of all
    quick: bool
    anyway: bool

    def rounds(self, entry: Entry) -> int:
        return min(entry.rounds, QUICK_ROUNDS) if self.quick else entry.rounds

    def place(self, entry: Entry, turn: int, part: int) -> pathlib.Path:
        return self.work / entry.name / f"round{turn + 1}-part{part + 1}"


def facts_of(plan: Plan, entry: Entry, part: int) -> dict[str, Any]:
    """A run with the same facts is not repeated."""
    return {
        "commit": plan.commit,
        "programs": plan.programs,
        "command": entry.command(part, plan.quick),
    }


def is_done(place: pathlib.Path, facts: Mapping[str, Any]) -> bool:
    try:
        return bool(json.loads((place / DONE).read_text()) == facts)
    except (OSError, ValueError):  # none, or its write was interrupted
        return False


def run_once(plan: Plan, entry: Entry, turn: int, part: int) -> None:
    place = plan.place(entry, turn, part)
    facts = facts_of(plan, entry, part)
    words = " ".join(facts["command"])
    title = f"{entry.name}, round {turn + 1} of {plan.rounds(entry)}: {words}"
    if is_done(place, facts):
        print(f"{title}: is there", flush=True)
        return
    (place / DONE).unlink(missing_ok=True)
    place.mkdir(parents=True, exist_ok=True)
    print(title, flush=True)
    (place / BUSY_FILE).write_text(f"{busy_share():.2f}\n")
    command = [sys.executable, str(ROOT / "script/run_bench.py"), *facts["command"]]
    command += ["--bin", str(plan.binaries), "--out", str(place)]
    command += ["--anyway"] if plan.anyway else []
    with (place / "output.txt").open("w") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
        code = wait(process, title)
    if code != 0:
        raise Problem(f"{title} ended with {code}: {reason(place / 'output.txt')}")
    write_whole(place / DONE, json.dumps(facts) + "\n")


def reason(output: pathlib.Path) -> str:
    """What a benchmark says of its failure."""
    lines = output.read_text(errors="replace").strip().splitlines()
    own = [index for index, line in enumerate(lines) if OWN_LINE.match(line)]
    return "\n".join(lines[own[-1] if own else -1 :])


def wait(process: subprocess.Popen[bytes], title: str) -> int:
    """Ends the benchmark, and with it its programs, when this ends or it takes too long."""
    try:
        return process.wait(MOST_MINUTES * 60)
    except subprocess.TimeoutExpired as error:
        raise Problem(f"{title} took more than {MOST_MINUTES} minutes") from error
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def content_of(place: pathlib.Path) -> dict[str, Any]:
    found = [file for file in place.glob("*.json") if file.name != DONE]
    if len(found) != 1:
        raise Problem(f"{place}: {len(found)} results, 1 expected")
    content: dict[str, Any] = json.loads(found[0].read_text())
    return content


def joined(contents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The parts of a round as one content: lists, and lists within objects, are put together."""
    made: dict[str, Any] = {}
    for content in contents:
        for key, value in content.items():
            if isinstance(value, list):
                made[key] = [*made.get(key, []), *value]
            elif isinstance(value, dict) and key != "settings":
                made[key] = joined([made.get(key, {}), value])
            else:
                made.setdefault(key, value)
    return made


def record_of(plan: Plan, entry: Entry) -> Record:
    """What is in the record once all rounds are there."""
    parts = range(len(entry.parts))
    contents = [
        joined([content_of(plan.place(entry, turn, part)) for part in parts])
        for turn in range(plan.rounds(entry))
    ]
    machine = machine_settings()
    settings = contents[0].get("settings", {})
    return Record(
        record=entry.name,
        commit=plan.commit,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        runs=plan.rounds(entry),
        machine=f"{machine['processors']} processors ({machine['processor']}), "
        f"Linux {machine['kernel']}",
        busy=max(
            float((plan.place(entry, turn, part) / BUSY_FILE).read_text())
            for turn in range(plan.rounds(entry))
            for part in parts
        ),
        commands=[f"script/bench {' '.join(entry.command(part, plan.quick))}" for part in parts],
        settings={
            name: value
            for name, value in settings.items()
            if name not in machine and isinstance(value, (str, int, float))
        },
        tables={
            name: merged([summary(content) for content in contents])
            for name, summary in entry.tables.items()
        },
        quick=plan.quick,
    )


def measure(plan: Plan, entry: Entry) -> None:
    for turn in range(plan.rounds(entry)):
        for part in range(len(entry.parts)):
            run_once(plan, entry, turn, part)
    record = record_of(plan, entry)
    file = record.write(plan.records)
    for name in record.tables:
        print(f"\n{entry.name} {name}\n" + table_text(record, name))
    print(f"\n{file}", flush=True)


def is_measured(plan: Plan, entry: Entry) -> bool:
    """False: it could not be measured, and standard error says why."""
    try:
        measure(plan, entry)
    except (Problem, RecordError) as problem:
        print(f"left out: {problem}", file=sys.stderr, flush=True)
        return False
    except Exception:  # a fault of a summary; the others have hours of their own
        print(f"left out: {entry.name}", file=sys.stderr)
        traceback.print_exc()
        return False
    return True


def write_tables(root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """Fills the passages of all documents. Returns the pages that have changed."""
    changed = []
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        before = page.read_text()
        if (after := rewritten(before, root / FOLDER)) != before:
            page.write_text(after)
            changed.append(page)
    return changed


def show_changed() -> None:
    try:
        for page in write_tables():
            print(f"{page.relative_to(ROOT)} has the tables of its records", flush=True)
    except RecordError as error:
        raise Problem(str(error)) from error


def state_of(entry: Entry) -> str:
    record = load(entry.name, ROOT / FOLDER)
    if record is None:
        return "no record"
    return f"{'older: ' if record.older else ''}{record.date}, {record.commit[:8]}"


def print_set() -> None:
    rows = [
        {
            "name": entry.name,
            "minutes": round(entry.minutes * entry.rounds),
            "record": state_of(entry),
            "runs": "; ".join(" ".join(entry.command(part)) for part in range(len(entry.parts))),
        }
        for entry in SET
    ]
    print(table(rows, ["name", "minutes", "record", "runs"]))


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="script/bench record",
        description="Runs the set of record. What has ended is not run again for the same commit "
        "and settings, so start it again after an interruption.",
    )
    names = [entry.name for entry in SET]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--list", action="store_true", help="show the set and its records")
    parser.add_argument(
        "--tables", action="store_true", help="only write the documents' tables from the records"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="try it: two quick rounds, whose records go to the --out folder and to no document",
    )
    parser.add_argument("--bin", type=pathlib.Path, help="where the programs are; not built then")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench-out")
    parser.add_argument("--anyway", action="store_true", help="measure even on a busy machine")
    return parser


def digest_of(binaries: pathlib.Path) -> str:
    """Changes with any of the programs: others at the same commit are measured anew."""
    digest = hashlib.sha256()
    for file in sorted(binaries.glob("*")):
        if os.access(file, os.X_OK) and file.is_file():
            with file.open("rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()


def plan_of(options: argparse.Namespace) -> Plan:
    if options.bin is None:
        for name in ("bootstrap", "build_release"):
            subprocess.run([str(ROOT / "script" / name)], check=True)
    work = options.out.resolve() / ("record-quick" if options.quick else "record")
    binaries = (options.bin or ROOT / "build/release/bin").resolve()
    return Plan(
        binaries,
        work,
        work / "records" if options.quick else ROOT / FOLDER,
        measured_commit(not options.quick),
        digest_of(binaries),
        options.quick,
        options.anyway,
    )


def main() -> int:
    options = option_parser().parse_args()
    os.chdir(ROOT)
    if options.list:
        print_set()
        return 0
    if options.tables:
        show_changed()
        return 0
    plan = plan_of(options)
    problems: list[str] = []
    for entry in SET:
        if not options.only or entry.name in options.only:
            if not is_measured(plan, entry):
                problems.append(entry.name)
            if not plan.quick:
                show_changed()  # after each record, as the next one may be interrupted
    if problems:
        print(f"not recorded: {', '.join(problems)}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    run_main(main)
