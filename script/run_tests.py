#!/usr/bin/env python3
"""Builds vpfs with several presets and runs its tests; prints what each part took and one total.

  script/test           dev: checks, what sanitizers change, script/chaos, programs with those
                        of the release before, and tests by the clock; asan: tests within a process,
                        and those that start programs; tsan: the same for folders with threads.
                        asan, tsan and the release before are built beside what comes before them
  script/test --quick   dev build, unit tests only
  script/test --full    also programs without a sanitizer, GCC with its unit tests, clang-tidy over
                        every source, ruff and mypy, and packages in a system made for them

The last line is 'N passed, N failed', with ', N skipped' if tests were skipped. A failed build
counts as one failure. So does a part whose tests leave files in their temporary directory. Up to
three tests in which nothing failed but what the clock measured are tried once more at the end, when
nothing else is being built, and are named. Complete output is in build/logs/.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent import futures

from test_counts import Count, Failure

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
LOGS = BUILD / "logs"

# Test directories with threads. The tsan part builds and runs only these.
THREADED = [
    "test/net",
    "test/control/wire",
    "test/control/metrics",
    "test/control/host",
    "test/control/handover",
    "test/proxy",
    "test/client",
    "test/dataserver",
    "test/fuse",
]
TEST_LINES_SHOWN = 60
FAILURES_SHOWN = 5
LONGEST_SHOWN = 10
SECOND_TRIES = 3  # more tests than this do not fail because of what runs beside them
CHAOS_MINUTES = 5
CHAOS_PATIENCE = 900.0  # seconds
# Builds that run beside something take the time that it leaves.
IDLE = ("chrt", "--idle", "0")
PACKAGE_TOOLS = ("dh", "lintian", "mmdebstrap")
SKIPPED = 77  # the exit code of a check that cannot run here


@dataclasses.dataclass
class Tests:
    """One call of ctest in the tree of a preset."""

    name: str
    labels: str = ""  # regular expression of ctest labels; empty: all
    without: str = ""  # labels to leave out
    folder: str = ""  # below the build directory
    alone: bool = False  # one test at a time
    twice: bool = False  # a few that fail are tried again when nothing is built beside them
    only: Sequence[str] = ()  # names of tests; empty: all
    programs: str = ""  # the preset whose programs are started; empty: its own


@dataclasses.dataclass
class Part:
    """A preset: what to build in it and which tests to run."""

    preset: str
    tests: list[Tests]
    targets: list[str] = dataclasses.field(default_factory=list)  # empty: all


# programs_test has nothing of its own to sanitize. The one of the dev build starts the sanitized
# programs.
def programs_of(preset: str) -> Tests:
    return Tests(f"{preset}-programs", labels="programs", programs=preset)


QUICK = Part(
    "dev",
    [Tests("unit", labels="^(unit|bare|script)$")],
    targets=["programs", "tests_within_a_process"],
)
# Tests within a process are compiled once, for ASan and UBSan, which find more. Tests that start
# programs run with those of each sanitizer. "bare" ones measure what a sanitizer changes, or
# compute for long.
DEV = Part(
    "dev",
    [Tests("dev", labels="script|bare")],
    targets=["programs", "programs_test", "bare_tests", "bare_programs_test", "timing_test"],
)
UPGRADE = Tests("dev-upgrade", labels="upgrade")
# They wait for most of their time, and so does script/chaos.
TIMING = Tests("dev-timing", labels="timing", alone=True, twice=True)
ASAN = Part("asan", [Tests("asan"), programs_of("asan")])
TSAN = Part(
    "tsan",
    [Tests("tsan-" + folder[5:].replace("/", "-"), folder=folder) for folder in THREADED]
    + [programs_of("tsan")],
    targets=[f"{folder}/all" for folder in THREADED] + ["programs"],
)
PLAIN_PROGRAMS = Part("dev", [Tests("dev-programs", labels="^programs")])
FULL = [PLAIN_PROGRAMS, Part("gcc", [Tests("gcc", labels="unit")]), Part("tidy", [])]


@dataclasses.dataclass
class Took:
    """What a part took, and its result."""

    name: str
    seconds: float
    processor_seconds: float  # user and system time of all programs
    result: str

    def line(self) -> str:
        return (
            f"        {self.name:28} {minutes(self.seconds)} {minutes(self.processor_seconds)}  "
            f"{self.result}"
        ).rstrip()


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60:3d}:{int(seconds) % 60:02d}"


def matching(names: Sequence[str]) -> str:
    """The regular expression, as CMake reads it, of just these names of tests."""
    special = set("^$.[]-*+?|()\\")
    escaped = ("".join("\\" * (c in special) + c for c in name) for name in names)
    return f"^({'|'.join(escaped)})$"


class Stopwatch:
    """The time of a part, and the processor time of the commands that it has run."""

    def __init__(self) -> None:
        self._began, self._used = time.monotonic(), 0.0

    def finish(self, process: subprocess.Popen[bytes], patience: float | None = None) -> int | None:
        """The exit code; None: it is too late, and the process runs on."""
        end = None if patience is None else time.monotonic() + patience
        while end is None or time.monotonic() < end:
            pid, status, used = os.wait4(process.pid, 0 if end is None else os.WNOHANG)
            if pid != 0:
                process.returncode = os.waitstatus_to_exitcode(status)
                self._used += used.ru_utime + used.ru_stime
                return process.returncode
            time.sleep(0.1)
        return None

    def took(self, name: str, result: str) -> Took:
        return Took(name, time.monotonic() - self._began, self._used, result)


class Runner:
    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.total = Count()
        self.start = time.monotonic()
        self.took: list[Took] = []
        self.longest: list[tuple[float, str]] = []  # tests with their seconds
        self.failures: list[Failure] = []
        self.second_tries: list[str] = []  # tests by the clock
        # A filter of GoogleTest's would leave tests out.
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("GTEST_", "TESTBRIDGE_"))
        }
        # Every report of a sanitizer is a failure with a stack trace.
        self.environment = inherited | {
            "ASAN_OPTIONS": ":".join(
                ("detect_stack_use_after_return=1", "strict_string_checks=1", "halt_on_error=1")
            ),
            "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
            "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
            "CTEST_OUTPUT_ON_FAILURE": "1",
        }

    def heading(self, text: str) -> None:
        seconds = int(time.monotonic() - self.start)
        print(f"[{seconds // 60:2d}:{seconds % 60:02d}] {text}", flush=True)

    def run(
        self, watch: Stopwatch, log: str, command: list[str], more: dict[str, str] | None = None
    ) -> bool:
        """Runs a command with its output in build/logs/LOG.log; on failure, shows the end of it."""
        process, file = self.launch(log, command, more)
        code = watch.finish(process)
        if code != 0:
            lines = file.read_text(errors="replace").splitlines()
            print("\n".join(lines[-TEST_LINES_SHOWN:]))
            print(
                f"        {command[0]} exited with {code}; complete output: "
                f"{file.relative_to(ROOT)}",
                flush=True,
            )
        return code == 0

    def launch(
        self, log: str, command: Sequence[str], more: dict[str, str] | None = None
    ) -> tuple[subprocess.Popen[bytes], pathlib.Path]:
        """A command, and the file of its output: build/logs/LOG.log."""
        file = LOGS / f"{log}.log"
        with file.open("wb") as out:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self.environment | (more or {}),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        return process, file

    def chaos(self) -> None:
        """Uses the programs of dev."""
        self.heading(f"chaos, {CHAOS_MINUTES} minutes")
        watch = Stopwatch()
        command = [sys.executable, "-B", "script/run_chaos.py", f"--minutes={CHAOS_MINUTES}"]
        chaos, file = self.launch("chaos", command)
        code = watch.finish(chaos, CHAOS_PATIENCE)
        if code is None:
            chaos.terminate()
            watch.finish(chaos)
        output = file.read_text(errors="replace")
        count = Count(
            passed=int(code == 0),
            failed=int(code not in (0, SKIPPED)),
            skipped=int(code == SKIPPED),
        )
        if code == SKIPPED:
            print(f"        chaos: {output.strip()}")
        elif code != 0:
            self.failures.append(Failure("chaos", output))
            print(f"        FAILED chaos; complete output: {file.relative_to(ROOT)}")
        self.took.append(watch.took("chaos", count.line()))
        self.total.add(count)

    def build(self, part: Part, before: Sequence[str] = ()) -> bool:
        preset = part.preset
        self.heading(f"{preset}: build")
        watch = Stopwatch()
        targets = ["--target", *part.targets] if part.targets else []
        configure = ["cmake", "--preset", preset]
        good = self.run(watch, f"{preset}-configure", configure) and self.run(
            watch,
            f"{preset}-build",
            [*before, "cmake", "--build", f"build/{preset}", "-j", str(self.jobs), *targets],
        )
        self.took.append(watch.took(f"{preset}: build", "" if good else "FAILED"))
        return good

    def build_previous(self) -> None:
        """The release before. If that fails, the tests of upgrades say so."""
        self.heading("previous: build")
        watch = Stopwatch()
        command = [*IDLE, sys.executable, "-B", "test/upgrade/build_previous.py"]
        process, _ = self.launch("previous-build", [*command, "-j", str(self.jobs)])
        watch.finish(process)
        self.took.append(watch.took("previous: build", ""))

    def test(self, preset: str, tests: Tests) -> None:
        self.heading(f"{preset}: tests {tests.name}")
        watch = Stopwatch()
        tree = BUILD / ("dev" if tests.programs else preset)
        directory = tree / tests.folder
        junit = LOGS / f"{tests.name}.xml"
        junit.unlink(missing_ok=True)
        reports = tree / "reports"
        shutil.rmtree(reports, ignore_errors=True)  # a program that crashes writes none
        scratch = BUILD / "tmp" / tests.name
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        good = self.run(watch, f"{tests.name}-tests", *self.ctest(tests, directory, junit, scratch))
        count = Count()
        failures = []
        if junit.exists():
            reported = (tree / "reported_tests.txt").read_text().split()
            failures = count.add_ctest(junit, reports, reported)
        if not good and not count.failed:
            count.failed += 1
            print(f"        FAILED {tests.name}: ctest failed in {directory}, and names no test")
        if missing := len(tests.only) - len(count.seconds) if tests.only else 0:
            count.failed += 1
            print(f"        FAILED {tests.name}: {missing} of {len(tests.only)} tests were not run")
        if tests.twice and len(failures) <= SECOND_TRIES:
            self.second_tries = [each.name for each in failures if each.is_by_clock()]
            for name in self.second_tries:
                print(f"        {tests.name}: {name} failed beside builds; it is tried again alone")
            count.failed -= len(self.second_tries)
            failures = [each for each in failures if not each.is_by_clock()]
        for failure in failures:
            name = f"{tests.name}: {failure.name}"
            print(f"        FAILED {name}")
            self.failures.append(Failure(name, failure.output))
        if left := sorted(path.name for path in scratch.iterdir()):
            count.failed += 1
            print(
                f"        FAILED {tests.name}: files left in the temporary directory: "
                f"{', '.join(left[:10])}"
            )
        self.took.append(watch.took(f"{preset}: tests {tests.name}", count.line()))
        for name, seconds in count.seconds.items():
            self.longest.append((seconds, f"{tests.name}: {name}"))
        self.total.add(count)

    def ctest(
        self, tests: Tests, directory: pathlib.Path, junit: pathlib.Path, scratch: pathlib.Path
    ) -> tuple[list[str], dict[str, str]]:
        """The command, and what it needs of the environment."""
        more = {"TMPDIR": str(scratch)}
        if tests.programs:
            more["VPFS_PROGRAMS"] = str(BUILD / tests.programs / "bin")
        command = [
            "ctest",
            "--test-dir",
            str(directory),
            "-j",
            # Tests that start programs wait for a fifth of their time.
            "1" if tests.alone else str(self.jobs + 1),
            "--timeout",
            "300",
            "--no-tests=ignore",
            "--test-output-truncation",
            "head",
            "--output-junit",
            str(junit),
        ]
        command += ["-L", tests.labels] if tests.labels else []
        command += ["-LE", tests.without] if tests.without else []
        command += ["-R", matching(tests.only)] if tests.only else []
        return command, more

    def try_again(self, preset: str, tests: Tests) -> None:
        """Tests by the clock that failed. All others have ended."""
        if not self.second_tries:
            return
        again = f"{tests.name}-again"
        only = self.second_tries
        self.test(preset, dataclasses.replace(tests, name=again, twice=False, only=only))

    def part(self, part: Part) -> None:
        self.tests(part, self.build(part))

    def tests(self, part: Part, built: bool) -> None:
        self.total.failed += not built
        for tests in part.tests if built else ():
            self.test(part.preset, tests)

    def normal(self) -> None:
        """These builds take the time that tests leave, until it is their turn."""
        there = self.build(DEV)
        builder = futures.ThreadPoolExecutor(max_workers=1)
        try:
            builder.submit(self.build_previous)
            builds = [(part, builder.submit(self.build, part, IDLE)) for part in (ASAN, TSAN)]
            self.tests(DEV, there)
            if there:
                self.chaos()
                self.test(DEV.preset, UPGRADE)
                self.test(DEV.preset, TIMING)
            for part, build in builds:
                self.tests(part, build.result())
            self.try_again(DEV.preset, TIMING)
        finally:
            builder.shutdown(cancel_futures=True)

    def check(self, name: str, log: str, command: list[str]) -> None:
        """A command that says by its exit code whether all is well, or that it cannot run here."""
        self.heading(name)
        watch = Stopwatch()
        process, file = self.launch(log, command)
        code = watch.finish(process)
        count = Count(
            passed=int(code == 0),
            failed=int(code not in (0, SKIPPED)),
            skipped=int(code == SKIPPED),
        )
        if code != 0:
            lines = file.read_text(errors="replace").splitlines()
            print("\n".join(f"        {line}" for line in lines[-TEST_LINES_SHOWN:]))
        self.took.append(watch.took(name, count.line()))
        self.total.add(count)

    def check_python(self) -> None:
        """ruff and mypy, where they are installed in the versions of pyproject.toml."""
        self.check(
            "python: ruff and mypy",
            "python-checks",
            [sys.executable, "-B", "test/check_python.py"],
        )

    def check_packages(self) -> None:
        """Packages are made, installed elsewhere, upgraded, and taken away."""
        missing = [tool for tool in PACKAGE_TOOLS if shutil.which(tool) is None]
        if missing:
            print(f"        packages: {', '.join(missing)} is not installed")
            self.total.skipped += 1
            return
        self.check("packages", "packages", ["script/package", "--deb", "--check", "--test"])

    def summary(self) -> None:
        """Failures come last: what keeps only the end of a long output keeps them."""
        self.heading("done; the longest tests, and of each part its time and processor time:")
        for seconds, name in sorted(self.longest, reverse=True)[:LONGEST_SHOWN]:
            print(f"        {name:60} {minutes(seconds)}")
        for part in self.took:
            print(part.line())
        for name in self.second_tries:
            print(f"        failed beside builds, and was tried again alone: {name}")
        for failure in self.failures[:FAILURES_SHOWN]:
            print(f"\nThe end of the output of {failure.name}")
            lines = failure.output.splitlines()[-TEST_LINES_SHOWN:]
            print("\n".join(f"        {line}" for line in lines))
        print(self.total.line())


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="script/test", description="Builds vpfs and runs its tests."
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="dev build and unit tests only")
    size.add_argument(
        "--full", action="store_true", help="also GCC, clang-tidy, ruff, mypy, packages"
    )
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 2)
    options = parser.parse_args()

    LOGS.mkdir(parents=True, exist_ok=True)
    runner = Runner(options.jobs)
    if options.quick:
        runner.part(QUICK)
    else:
        runner.normal()
    if options.full:
        for part in FULL:
            runner.part(part)
        runner.check_python()
        runner.check_packages()
    runner.summary()
    return 1 if runner.total.failed or not runner.total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
