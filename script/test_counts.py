"""What tests came to, as the XML reports of ctest and GoogleTest say: counts, times, failures."""

from __future__ import annotations

import dataclasses
import pathlib
import xml.etree.ElementTree as ElementTree
from collections.abc import Container

SANITIZER = "Sanitizer: "  # is in the reports of all of them
BY_CLOCK = "(judged by the clock)"  # as test/support/clock/by_clock.h


@dataclasses.dataclass
class Failure:
    name: str
    output: str

    def is_by_clock(self) -> bool:
        """Whether the one TEST of `output` came to its end, and all that failed in it is what the
        wall clock measured."""
        whole = "[ RUN      ]" in self.output and " 1 FAILED TEST" in self.output
        failures = self.output.count(": Failure\n")
        return whole and 0 < failures == self.output.count(BY_CLOCK)


@dataclasses.dataclass
class Count:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)  # by the name of a test

    def line(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"

    def add(self, other: Count) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def add_ctest(
        self, file: pathlib.Path, reports: pathlib.Path, reported: Container[str]
    ) -> list[Failure]:
        """Adds the results that ctest wrote to `file`, and returns those that failed.

        Those of `reported` are GoogleTest programs, each with a report in `reports`, and each of
        their TESTs counts. Without a report a program did not come to its end.
        """
        failures = []
        for case in _cases(file):
            name = case.get("name", "?")
            self.seconds[name] = float(case.get("time", "0"))
            if name in reported and case.get("status") != "notrun":
                failures += self._add_program(case, reports / f"{name}.xml")
            elif _failed(case):
                failures += self._add_failure(name, _output(case))
            elif case.get("status") == "run":
                self.passed += 1
            else:
                self.skipped += 1
        return failures

    def _add_failure(self, name: str, output: str) -> list[Failure]:
        self.failed += 1
        return [Failure(name, output)]

    def _add_program(self, case: ElementTree.Element, report: pathlib.Path) -> list[Failure]:
        name = case.get("name", "?")
        if not report.exists():
            return self._add_failure(name, f"{_output(case)}\nThe program left no report.")
        try:
            failures = self._add_report(report)
        except ElementTree.ParseError as error:
            return self._add_failure(name, f"{_output(case)}\nThe report cannot be read: {error}")
        # A program can fail after its last TEST, for example because of a leak.
        if _failed(case) and (not failures or SANITIZER in _output(case)):
            failures += self._add_failure(name, _output(case))
        return failures

    def _add_report(self, report: pathlib.Path) -> list[Failure]:
        failures = []
        for case in _cases(report):
            name = f"{case.get('classname')}.{case.get('name')}"
            found = [each.text or "" for each in case.iter("failure")]
            self.seconds[name] = float(case.get("time", "0"))
            if found:
                failures += self._add_failure(name, "\n".join(found))
            elif case.get("result") == "completed":
                self.passed += 1
            else:
                self.skipped += 1
        return failures


def _cases(file: pathlib.Path) -> list[ElementTree.Element]:
    """What programs print need not be UTF-8."""
    text = file.read_bytes().decode("utf-8", errors="replace")
    return list(ElementTree.fromstring(text.encode("utf-8")).iter("testcase"))


def _output(case: ElementTree.Element) -> str:
    return case.findtext("system-out", "").strip()


def _failed(case: ElementTree.Element) -> bool:
    """A test whose program is missing failed too. ctest says of it and of skipped ones "notrun"."""
    note = case.find("skipped")
    skipped = note is not None and note.get("message", "").startswith("SKIP_")
    return case.get("status") not in ("run", "disabled") and not skipped
