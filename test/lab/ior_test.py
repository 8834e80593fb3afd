"""What IOR and mdtest print is understood."""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from lab import ior  # noqa: E402
from lab.harness import Problem  # noqa: E402


def recorded(name: str) -> str:
    return (ROOT / "test/data/bench" / name).read_text()


class IorTest(unittest.TestCase):
    def test_the_rate_is_the_mean_of_the_summary(self) -> None:
        self.assertEqual(ior.mean_mib_per_s(recorded("ior-write.txt"), "write"), 158.66)
        self.assertEqual(ior.mean_mib_per_s(recorded("ior-wrong-block.txt"), "read"), 5710.92)

    def test_the_summary_is_in_iors_own_words(self) -> None:
        heading, line = ior.summary_lines(recorded("ior-write.txt"))
        self.assertTrue(heading.startswith("Operation   Max(MiB)"))
        self.assertTrue(line.startswith("write         158.66"))
        self.assertEqual(ior.shown(heading).split()[-1], "Mean(s)")
        self.assertEqual(ior.shown(line).split()[-1], "0.01130")

    def test_what_was_not_measured_is_a_problem(self) -> None:
        with self.assertRaisesRegex(Problem, "has no read"):
            ior.mean_mib_per_s(recorded("ior-write.txt"), "read")
        with self.assertRaisesRegex(Problem, "no summary"):
            ior.summary_lines("ERROR: open64 failed")

    def test_wrong_blocks_are_counted(self) -> None:
        self.assertEqual(ior.wrong_blocks(recorded("ior-write.txt")), 0)
        self.assertEqual(ior.wrong_blocks(recorded("ior-wrong-block.txt")), 1)
        self.assertEqual(
            ior.wrong_blocks(
                "WARNING: Incorrect data on write (40 errors found).\n"
                "WARNING: Incorrect data on read (2 errors found)."
            ),
            42,
        )

    def test_mdtest_has_a_rate_for_each_operation(self) -> None:
        rates = ior.mdtest_rates(recorded("mdtest.txt"))
        self.assertEqual(
            list(rates),
            [
                "File creation",
                "File stat",
                "File read",
                "File removal",
                "Tree creation",
                "Tree removal",
            ],
        )
        self.assertEqual(rates["File removal"], 296417.244)
        with self.assertRaises(Problem):
            ior.mdtest_rates(recorded("ior-write.txt"))

    def test_without_ior_it_says_how_to_name_its_place(self) -> None:
        with tempfile.TemporaryDirectory() as nothing, mock.patch.dict(os.environ):
            os.environ.pop(ior.PREFIX, None)
            for prefix in ({}, {ior.PREFIX: nothing}):
                with (
                    mock.patch.dict(os.environ, prefix),
                    self.assertRaisesRegex(Problem, f"{ior.PREFIX}=DIR"),
                ):
                    ior.require()


if __name__ == "__main__":
    unittest.main()
