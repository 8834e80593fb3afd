"""What scripts count and compare."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "script"), str(ROOT / "test")]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

import check_python  # noqa: E402

from acts import live_rules  # noqa: E402
from lab.harness import Problem  # noqa: E402
from run_tests import matching  # noqa: E402
from test_counts import BY_CLOCK, Count, Failure  # noqa: E402


class CountTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.total = Count()

    def add(self, cases: str, **reports: str) -> list[tuple[str, str]]:
        """Adds what ctest says of `cases`, whose programs left `reports`."""
        ctest = self.folder / "ctest.xml"
        ctest.write_text(f"<testsuite>{cases}</testsuite>")
        for name, tests in reports.items():
            text = f"<testsuites><testsuite>{tests}</testsuite></testsuites>"
            (self.folder / f"{name}.xml").write_text(text)
        failures = self.total.add_ctest(ctest, self.folder, ("a", "b", *reports))
        return [(failure.name, failure.output) for failure in failures]

    def test_a_test_that_did_not_run_is_failed_unless_it_was_skipped(self) -> None:
        failures = self.add(
            '<testcase name="v" status="run" time="2.5"/>'
            '<testcase name="w" status="fail"><system-out>1 != 2\n</system-out></testcase>'
            '<testcase name="x" status="notrun">'
            '<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'
            '<testcase name="y" status="notrun">'
            '<skipped message="Unable to find executable"/></testcase>'
            '<testcase name="a" status="notrun">'
            '<skipped message="Unable to find executable"/></testcase>'
        )
        self.assertEqual(failures, [("w", "1 != 2"), ("y", ""), ("a", "")])
        self.assertEqual(self.total.line(), "1 passed, 3 failed, 1 skipped")
        self.assertEqual(self.total.seconds["v"], 2.5)

    def test_each_test_of_a_program_counts(self) -> None:
        failures = self.add(
            '<testcase name="a" status="fail" time="2"><system-out>long</system-out></testcase>'
            '<testcase name="b" status="run" time="0.1"/>',
            a='<testcase classname="A" name="Good" result="completed" time="0.5"/>'
            '<testcase classname="A" name="Bad" result="completed" time="1">'
            "<failure>1 != 2</failure><failure>3 != 4</failure></testcase>"
            '<testcase classname="A" name="Not" result="skipped"><skipped/></testcase>'
            '<testcase classname="A" name="DISABLED_Old" result="suppressed"/>',
            b="",
        )
        self.assertEqual(failures, [("A.Bad", "1 != 2\n3 != 4")])
        self.assertEqual(self.total.line(), "1 passed, 1 failed, 2 skipped")
        self.assertEqual(self.total.seconds["a"], 2)
        self.assertEqual(self.total.seconds["A.Good"], 0.5)

    def test_a_program_that_fails_after_its_tests_has_failed(self) -> None:
        good = '<testcase classname="A" name="Good" result="completed" time="0.5"/>'
        bad = '<testcase classname="A" name="Bad" time="1"><failure>1 != 2</failure></testcase>'
        leak = "LeakSanitizer: detected memory leaks"
        failures = self.add(
            '<testcase name="a" status="fail"><system-out>it ended with 3</system-out></testcase>'
            f'<testcase name="b" status="fail"><system-out>{leak}</system-out></testcase>',
            a=good,
            b=bad,
        )
        self.assertEqual(failures, [("a", "it ended with 3"), ("A.Bad", "1 != 2"), ("b", leak)])
        self.assertEqual(self.total.line(), "1 passed, 3 failed")

    def test_a_program_without_a_report_has_failed_however_it_ended(self) -> None:
        (_, said), (_, cut) = self.add(
            '<testcase name="a" status="run"><system-out>ended early</system-out></testcase>'
            '<testcase name="b" status="run"/>',
            b="<testcase",
        )
        self.assertEqual(said, "ended early\nThe program left no report.")
        self.assertRegex(cut, "The report cannot be read: ")
        self.assertEqual(self.total.line(), "0 passed, 2 failed")

    def test_a_report_may_have_any_bytes(self) -> None:
        (self.folder / "a.xml").write_bytes(
            b'<testsuites><testcase classname="A" name="Bad"><failure>\xff != 2</failure>'
            b"</testcase></testsuites>"
        )
        failures = self.add('<testcase name="a" status="fail"/>')
        self.assertEqual(failures, [("A.Bad", "\ufffd != 2")])

    def test_only_a_test_that_ended_and_failed_by_the_clock_alone_is_tried_again(self) -> None:
        clock = f"a_test.cc:7: Failure\nExpected: (took) < (5), actual: 6\n {BY_CLOCK}\n"
        data = "a_test.cc:9: Failure\nExpected equality of these values:\n"
        begin, end = "[ RUN      ] A.B\n", "[  FAILED  ] A.B\n 1 FAILED TEST\n"

        def may_again(output: str) -> bool:
            return Failure("A.B", output).is_by_clock()

        self.assertTrue(may_again(begin + clock + end))
        self.assertTrue(may_again(begin + clock + clock + end))
        self.assertFalse(may_again(begin + clock + data + end), "a byte was wrong")
        self.assertFalse(may_again(begin + clock), "it crashed, or was killed")
        self.assertFalse(may_again(clock + end), "the beginning of its output is lost")
        self.assertFalse(may_again(begin + end))

    def test_without_skipped_tests_the_line_ends_after_failed(self) -> None:
        self.assertEqual(Count(passed=3).line(), "3 passed, 0 failed")


class MatchingTest(unittest.TestCase):
    def test_just_the_named_tests_are_matched(self) -> None:
        names = ["A.B", "Mount/Large.Whole/Embedded  # GetParam() = 4-byte object <00-00>"]
        expression = re.compile(matching(names))
        for name in names:
            self.assertTrue(expression.search(name), name)
        for other in ("AxB", "A.Bc", "cA.B", names[1][:-1], f"{names[0]}|"):
            self.assertFalse(expression.search(other), other)


class PythonChecksTest(unittest.TestCase):
    WANTED = {"ruff": "1.2.3", "mypy": "4.5"}

    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(mock.patch.dict(os.environ, {"PATH": str(self.folder)}))

    def install(self, tool: str, version: str) -> None:
        file = self.folder / tool
        file.write_text(f"#!/bin/sh\necho '{tool} {version}'\n")
        file.chmod(0o755)

    def test_the_checks_run_only_with_the_tools_in_their_versions(self) -> None:
        self.assertRegex(
            str(check_python.why_not(self.WANTED)), "^ruff is not installed.*ruff==1.2.3 mypy==4.5"
        )
        self.install("ruff", "1.2.4")
        self.install("mypy", "4.5 (compiled: yes)")
        self.assertRegex(str(check_python.why_not(self.WANTED)), "^ruff is 1.2.4, not 1.2.3")
        self.install("ruff", "1.2.3")
        self.assertIsNone(check_python.why_not(self.WANTED))

    def test_the_project_pins_both_tools(self) -> None:
        with contextlib.chdir(ROOT):
            self.assertEqual(list(check_python.pins()), ["ruff", "mypy"])


class LiveRulesTest(unittest.TestCase):
    def test_rates_are_of_the_intervals_between_two_times(self) -> None:
        timeline = [{"t": 0.5 * (index + 1), "mib_per_s": float(index)} for index in range(8)]
        self.assertEqual(live_rules.mean_rate(timeline, 0.9, 2.6), 3.0)
        with self.assertRaisesRegex(Problem, "nothing was measured"):
            live_rules.mean_rate(timeline, 1.2, 1.8)

    def test_a_step_is_compared_by_its_ratio_or_its_limit(self) -> None:
        rates = {"a": 100.0, "b": 310.0}
        shared = live_rules.Measured(live_rules.Step("1:3", shares={"a": 1, "b": 3}), 0, 4, rates)
        limited = live_rules.Measured(live_rules.Step("limit", limit=("b", 300.0)), 0, 4, rates)
        self.assertAlmostEqual(shared.error_percent(), 100 * (1 - 300 / 310))
        self.assertAlmostEqual(limited.error_percent(), 100 / 30)
        self.assertEqual(shared.step.wanted(400), {"a": 100, "b": 300})
        self.assertEqual(limited.step.wanted(400), {"b": 300.0})


if __name__ == "__main__":
    unittest.main()
