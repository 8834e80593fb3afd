"""System calls of an operation: what is read of strace's summary, and what is made of two of them."""
from __future__ import annotations

import pathlib
import sys
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from bench.data_path import overhead, system_calls  # noqa: E402
from lab.harness import Problem  # noqa: E402
from lab.report import table  # noqa: E402

# As strace 6.1 writes it; 5.x leaves the microseconds of the total out.
SUMMARY = """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 38.05    0.263393        2073       127           epoll_pwait2
 30.48    0.210981        1081       195        97 futex
  5.59    0.038711          15      2440           sendmsg
  2.77    0.019186           7      2469         3 recvmsg
------ ----------- ----------- --------- --------- ----------------
100.00    0.692271          69      5231       100 total
"""
OLD_TOTAL = "100.00    0.692271                  5231       100 total"


class SystemCallsTest(unittest.TestCase):
    def test_the_calls_and_errors_of_a_summary_are_read_and_the_total_is_not_a_call(self) -> None:
        for text in (SUMMARY, SUMMARY.rpartition("100.00")[0] + OLD_TOTAL):
            found = system_calls.parse_summary(text)
            self.assertEqual(
                found.calls, {"epoll_pwait2": 127, "futex": 195, "sendmsg": 2440, "recvmsg": 2469})
            self.assertEqual((found.total(), found.errors), (5231, 100))

    def test_a_summary_without_calls_is_a_problem(self) -> None:
        for text in ("", "strace: attach: ptrace(PTRACE_SEIZE, 7): Operation not permitted\n"):
            with self.assertRaisesRegex(Problem, "no system call"):
                system_calls.parse_summary(text)

    def test_what_both_loads_take_is_not_of_an_operation(self) -> None:
        few = system_calls.Count({"openat": 20, "sendmsg": 210}, 4, 100)
        many = system_calls.Count({"openat": 20, "sendmsg": 1210, "futex": 10}, 9, 600)
        each = many.of_an_operation(few)
        self.assertEqual(each.calls, {"openat": 0, "sendmsg": 2, "futex": 0.02})
        self.assertEqual((each.operations, each.errors, each.most()), (500, 0.01, "sendmsg 2.0"))
        with self.assertRaisesRegex(Problem, "too busy"):
            few.of_an_operation(many)

    def test_without_strace_the_column_says_so(self) -> None:
        with mock.patch("shutil.which", return_value=None):
            rows = system_calls.rows(mock.Mock(), overhead.FRONTS, "orangefs")
        self.assertEqual(len(rows), len(system_calls.CASES) * len(overhead.FRONTS))
        self.assertEqual({row["system_calls"] for row in rows}, {system_calls.ABSENT})
        self.assertIn("not installed", table(rows, system_calls.COLUMNS))

    def test_where_strace_may_not_trace_the_column_says_so(self) -> None:
        cluster = mock.Mock(running={"proxy-sfq": [mock.Mock(pid=1)]})
        programs = mock.MagicMock()
        programs.start.return_value.wait_for_line.side_effect = Problem("strace ended")
        row = system_calls.row_of(programs, cluster, "proxy-sfq", ("read", 4096))
        self.assertEqual(row["system_calls"], system_calls.REFUSED)


if __name__ == "__main__":
    unittest.main()
