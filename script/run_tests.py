#!/usr/bin/env python3
"""Builds vpfs in several ways and runs its tests in each; prints one total.

  script/test           dev and asan: everything; tsan: what has threads; the dev programs' demo
  script/test --quick   dev build, unit tests only
  script/test --full    also GCC with its unit tests, and clang-tidy over every source

The last line is 'N passed, N failed', with ', N skipped' when tests were skipped. A build that fails
counts as one failure. Complete output is in build/logs/.
"""
from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "logs"

# Directories of tests where threads meet; under tsan only these are built and run.
THREADED = ["test/net", "test/proxy", "test/client", "test/dataserver", "test/integration"]
PROGRAMS = ["vpfs-server", "vpfs-proxy", "vpfs-load"]
TEST_LINES_SHOWN = 60


@dataclasses.dataclass
class Step:
    """One preset: what to build and which tests to run in it."""

    preset: str
    targets: list[str] = dataclasses.field(default_factory=list)  # none: all
    labels: str = ""  # regular expression of ctest labels; none: all
    folders: list[str] = dataclasses.field(default_factory=lambda: [""])  # below the build directory
    run_tests: bool = True


QUICK = [Step("dev", labels="unit")]
NORMAL = [
    Step("dev"),
    Step("asan"),
    Step("tsan", targets=[f"{folder}/all" for folder in THREADED] + PROGRAMS, folders=THREADED),
]
FULL = NORMAL + [Step("gcc", labels="unit"), Step("tidy", run_tests=False)]


@dataclasses.dataclass
class Total:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def line(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"

    def add_junit(self, file: pathlib.Path) -> list[str]:
        """Adds ctest's results; returns the names of the tests that failed."""
        failed = []
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            note = case.find("skipped")
            reason = note.get("message", "") if note is not None else ""
            if case.get("status") == "run":
                self.passed += 1
            elif case.get("status") == "disabled" or reason.startswith("SKIP_"):
                self.skipped += 1
            else:  # also a test whose program is not there: ctest calls that "notrun"
                self.failed += 1
                failed.append(case.get("name", "?"))
        return failed


class Runner:
    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.total = Total()
        self.start = time.monotonic()
        # Sanitizers: every report is a failure, and says where.
        self.environment = os.environ | {
            "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1:halt_on_error=1",
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
            "CTEST_OUTPUT_ON_FAILURE": "1",
        }

    def heading(self, text: str) -> None:
        seconds = int(time.monotonic() - self.start)
        print(f"[{seconds // 60:2d}:{seconds % 60:02d}] {text}", flush=True)

    def run(self, log: str, *command: str) -> bool:
        """Runs a command with its output in build/logs/LOG.log; shows the end of it on failure."""
        file = LOGS / f"{log}.log"
        with file.open("wb") as out:
            code = subprocess.run(
                command, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            ).returncode
        if code != 0:
            lines = file.read_text(errors="replace").splitlines()
            print("\n".join(lines[-TEST_LINES_SHOWN:]))
            print(f"        {command[0]} ended with {code}; all of it: {file.relative_to(ROOT)}", flush=True)
        return code == 0

    def build(self, step: Step) -> bool:
        self.heading(f"{step.preset}: build")
        preset = step.preset
        good = self.run(f"{preset}-configure", "cmake", "--preset", preset)
        targets = ["--target", *step.targets] if step.targets else []
        build = ["cmake", "--build", f"build/{preset}", "-j", str(self.jobs), *targets]
        if good and self.run(f"{preset}-build", *build):
            return True
        self.total.failed += 1
        return False

    def test(self, step: Step) -> None:
        for folder in step.folders:
            name = f"{step.preset}-{folder.replace('/', '-') or 'tests'}"
            junit = LOGS / f"{name}.xml"
            junit.unlink(missing_ok=True)
            self.heading(f"{step.preset}: tests {folder}".rstrip())
            labels = ["-L", step.labels] if step.labels else []
            directory = f"build/{step.preset}/{folder}"
            self.run(name, "ctest", "--test-dir", directory, "-j", str(self.jobs), "--timeout", "300",
                     "--no-tests=ignore", "--output-junit", str(junit), *labels)
            if not junit.exists():
                self.total.failed += 1
                print(f"        ctest left no results in {directory}")
                continue
            for failed in self.total.add_junit(junit):
                print(f"        FAILED {step.preset}: {failed}")

    def step(self, step: Step) -> None:
        if self.build(step) and step.run_tests:
            self.test(step)


def main() -> int:
    parser = argparse.ArgumentParser(prog="script/test", description="Builds vpfs and runs its tests.")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="dev build and unit tests only")
    size.add_argument("--full", action="store_true", help="also GCC and clang-tidy")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 2)
    options = parser.parse_args()

    LOGS.mkdir(parents=True, exist_ok=True)
    runner = Runner(options.jobs)
    for step in QUICK if options.quick else FULL if options.full else NORMAL:
        runner.step(step)
    runner.heading("done")
    print(runner.total.line())
    return 1 if runner.total.failed or not runner.total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
