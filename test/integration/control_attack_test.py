#!/usr/bin/env python3
"""Attacks on a control port for some seconds: the I/O beside them goes on, and nothing of them stays.

    control_attack_test.py DIRECTORY_OF_PROGRAMS
"""
from __future__ import annotations

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from bench.control.attacks import ATTACKS  # noqa: E402
from bench.control.scene import DEVICE, ControlScene  # noqa: E402
from bench.control.control_attack import FRONT, PEERS, Seen, measure  # noqa: E402
from lab.harness import Programs  # noqa: E402
from lab.rounds import Rounds  # noqa: E402

# A short run on a machine that others use: the best of some counts. The attackers take processor time from the load,
# too: on a busy machine of two cores 0.5 to 1.0 were seen. I/O that an attack stalls is far below.
# script/bench control_attack has the bound of record.
LEAST_RATIO = 0.6
MOST_RUNS = 5
SECONDS = 2.0
MOST_LOG_LINES = 100
PROGRAMS: list[pathlib.Path] = []


class ControlAttackTest(unittest.TestCase):
    seen: Seen
    ratios: list[float] = []

    @classmethod
    def setUpClass(cls) -> None:
        with tempfile.TemporaryDirectory() as folder, Programs(PROGRAMS[0], pathlib.Path(folder)) as programs:
            scene = ControlScene(programs, FRONT, DEVICE)
            while max(cls.ratios, default=0) < LEAST_RATIO and len(cls.ratios) < MOST_RUNS:
                cls.seen = measure(scene, PEERS, list(ATTACKS), Rounds(SECONDS, runs=1))
                cls.ratios.append(cls.seen.ratio())

    def test_every_attack_took_place(self) -> None:
        self.assertEqual(set(self.seen.attacks), set(ATTACKS))
        for name, count in self.seen.attacks.items():
            self.assertGreater(count.get("connections", 0), 0, name)

    def test_no_byte_is_wrong_and_no_request_fails(self) -> None:
        self.assertEqual((self.seen.worst("wrong_blocks"), self.seen.worst("failed")), (0, 0))

    def test_the_io_goes_on(self) -> None:
        self.assertGreaterEqual(max(self.ratios), LEAST_RATIO, f"of {self.ratios}")

    def test_good_clients_are_answered_meanwhile(self) -> None:
        failures = [failure for row in self.seen.rounds for failure in row["failures"]]
        self.assertEqual(failures, [])
        self.assertGreater(self.seen.worst("asked"), 4)
        self.assertLessEqual(self.seen.worst("answer_ms_max"), 1000)

    def test_no_peer_without_a_good_certificate_is_let_in(self) -> None:
        strangers = self.seen.attacks["strangers"]
        self.assertEqual(strangers.get("let_in", 0), 0)
        self.assertGreater(strangers["refused"], 0)

    def test_memory_and_descriptors_are_back(self) -> None:
        self.assertFalse(self.seen.after.worse_than(self.seen.before), f"{self.seen.before} before, {self.seen.after} after")

    def test_the_log_stays_short(self) -> None:
        self.assertLess(self.seen.log_lines, MOST_LOG_LINES)


if __name__ == "__main__":
    PROGRAMS.append(pathlib.Path(sys.argv.pop(1)))
    unittest.main()
