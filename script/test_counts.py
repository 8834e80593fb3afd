"""What tests came to, as the XML reports of ctest and GoogleTest say: counts, times, failures."""

from __future__ import annotations

import dataclasses
import pathlib
import xml.etree.ElementTree as ElementTree


@dataclasses.dataclass
class Failure:
    name: str
    output: str


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

    def add_ctest(self, file: pathlib.Path, reports: pathlib.Path) -> list[Failure]:
        """Adds the results that ctest wrote to `file`, and returns those that failed.

        A test that left reports/NAME.xml is a GoogleTest program. Each of its TESTs counts.
        """
        failures = []
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            report = reports / f"{case.get('name')}.xml"
            inside = self._add_report(report) if report.exists() else []
            failures += inside
            # A program can fail after its last TEST, as by what it leaks.
            if not report.exists() or (_failed(case) and not inside):
                failures += self._add_case(case)
        return failures

    def _add_case(self, case: ElementTree.Element) -> list[Failure]:
        name = case.get("name", "?")
        self.seconds[name] = float(case.get("time", "0"))
        if _failed(case):
            self.failed += 1
            return [Failure(name, case.findtext("system-out", "").strip())]
        if case.get("status") == "run":
            self.passed += 1
        else:
            self.skipped += 1
        return []

    def _add_report(self, report: pathlib.Path) -> list[Failure]:
        failures = []
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            name = f"{case.get('classname')}.{case.get('name')}"
            found = [each.text or "" for each in case.iter("failure")]
            self.seconds[name] = float(case.get("time", "0"))
            if found:
                self.failed += 1
                failures.append(Failure(name, "\n".join(found)))
            elif case.get("result") == "completed":
                self.passed += 1
            else:
                self.skipped += 1
        return failures


def _failed(case: ElementTree.Element) -> bool:
    """A test whose program is missing failed too. ctest says of it and of skipped ones "notrun"."""
    note = case.find("skipped")
    skipped = note is not None and note.get("message", "").startswith("SKIP_")
    return case.get("status") not in ("run", "disabled") and not skipped
