#!/usr/bin/env python3
"""The simulator says what two applications get through real proxies and servers: simulator_test.py PROGRAMS.

`script/bench simulator` compares more cases, for longer, and with the release build.
"""
from __future__ import annotations

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from lab.harness import Problem, Programs  # noqa: E402
from bench.simulator.simulator import CASES, Plan, run_case, simulate  # noqa: E402

PLAN = Plan(seconds=3.0, runs=1)
RATE_ERROR, WAIT_ERROR = 10.0, 30.0  # percent: the run is short, and the programs are not optimized
TRIES = 2  # another program may take the processors for a moment


class Simulator(unittest.TestCase):
    programs = pathlib.Path()

    def agrees(self, name: str) -> None:
        case = next(case for case in CASES if case.name == name)
        for _ in range(TRIES):
            with tempfile.TemporaryDirectory() as work:
                rows = run_case(self.programs, pathlib.Path(work), case, PLAN)
            self.assertEqual(len(rows), len(case.applications))
            wrong = [row for row in rows if abs(row["rate_error_percent"]) > RATE_ERROR
                     or abs(row["wait_error_percent"]) > WAIT_ERROR]
            if not wrong:
                return
        self.fail(f"{wrong}")

    def test_shares_by_weight(self) -> None:
        self.agrees("sfq, two")

    def test_rates(self) -> None:
        self.agrees("tbf, two")

    def test_a_configuration_that_the_proxy_refuses_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as work, Programs(self.programs, pathlib.Path(work)) as programs:
            with self.assertRaisesRegex(Problem, "missing.yaml"):
                simulate(programs, CASES[0], programs.work / "missing.yaml", 1.0)


if __name__ == "__main__":
    Simulator.programs = pathlib.Path(sys.argv.pop()).resolve()
    unittest.main()
