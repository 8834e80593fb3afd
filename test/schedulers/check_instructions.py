#!/usr/bin/env python3
"""Fails when a scheduling policy takes more instructions for a request than were recorded.

Instructions are counted by valgrind, so the result is the same on a busy machine. vpfs-count-schedulers has the
requests. instructions.json has what was recorded, with the compiler and the processor that it holds for.
"""
import argparse
import json
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

RECORDED = pathlib.Path(__file__).with_name("instructions.json")
FLOWS = 1000
REQUESTS = 20_000
MOST_GROWTH = 0.05
COUNTED = "counted_requests"  # the function of vpfs-count-schedulers that is counted
SKIPPED = 77


def skip(why: str) -> None:
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def total_of(dump: pathlib.Path) -> int:
    found = re.search(r"^totals: (\d+)$", dump.read_text(), re.MULTILINE)
    if found is None:
        sys.exit(f"{dump.name}: callgrind wrote no line `totals: N`")
    return int(found.group(1))


def count(program: pathlib.Path) -> dict:
    """The instructions of each policy for one request, and what they depend on."""
    with tempfile.TemporaryDirectory() as folder:
        dumps = pathlib.Path(folder) / "callgrind"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={dumps}", f"--zero-before={COUNTED}",
                   f"--dump-after={COUNTED}", str(program), "--flows", str(FLOWS), "--requests", str(REQUESTS)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"{' '.join(command)}\nfailed with {run.returncode}:\n{run.stderr}")
        compiler, *policies = run.stdout.splitlines()
        totals = [total_of(dumps.with_name(f"{dumps.name}.{part}")) for part in range(1, len(policies) + 1)]
    return {
        "compiler": compiler,
        "processor": platform.machine(),
        "flows": FLOWS,
        "requests": REQUESTS,
        "instructions_per_request": {policy: round(total / REQUESTS) for policy, total in zip(policies, totals)},
    }


def compare(counted: dict, recorded: dict) -> list[str]:
    """Prints a line for each policy; returns what is wrong."""
    problems = []
    before = recorded["instructions_per_request"]
    for policy, now in counted["instructions_per_request"].items():
        if policy not in before:
            problems.append(f"{policy} is not recorded")
            continue
        growth = now / before[policy] - 1
        print(f"{policy:>16} {now:>6} instructions per request, {before[policy]:>6} recorded, {growth:+.1%}")
        if growth > MOST_GROWTH:
            problems.append(f"{policy}: {now} instructions per request, at most {MOST_GROWTH:.0%} more than "
                            f"{before[policy]} are expected")
    problems += [f"{policy} is recorded, but was not counted" for policy in before
                 if policy not in counted["instructions_per_request"]]
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("programs", type=pathlib.Path, help="the folder with vpfs-count-schedulers: build/dev/bin")
    parser.add_argument("--record", action="store_true", help=f"write {RECORDED.name} instead of comparing with it")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        skip("valgrind is not installed")
    counted = count(options.programs / "vpfs-count-schedulers")
    if options.record:
        RECORDED.write_text(json.dumps(counted, indent=2) + "\n")
        return 0
    recorded = json.loads(RECORDED.read_text())
    for field in ("compiler", "processor"):
        if counted[field] != recorded[field]:
            skip(f"the {field} is {counted[field]}; instructions are recorded for {recorded[field]}")
    problems = compare(counted, recorded)
    if problems:
        print("\n".join(problems))
        print("If this is meant, record it: python3 test/schedulers/check_instructions.py build/dev/bin --record")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
