"""The rates of applications while all of them moved data."""

from __future__ import annotations

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from lab.harness import MIB  # noqa: E402
from lab.shared_time import Sample, rates_between  # noqa: E402


class SharedTimeTest(unittest.TestCase):
    def samples(
        self, begins: dict[str, float], ends: dict[str, float], rates: dict[str, float]
    ) -> list[Sample]:
        """What counters say each tenth of a second, until a while after the last has ended."""

        def moved(job: str, at: float) -> float:
            return max(0.0, min(at, ends[job]) - begins[job]) * rates[job] * MIB

        return [
            (at / 10, {job: moved(job, at / 10) for job in rates})
            for at in range(int(max(ends.values()) * 10) + 20)
        ]

    def test_only_the_time_counts_in_which_both_move_data(self) -> None:
        rates = {"4711": 150.0, "4712": 50.0}
        measured = rates_between(
            self.samples({"4711": 3, "4712": 0}, {"4711": 8, "4712": 20}, rates)
        )
        self.assertEqual({job: round(rate, 6) for job, rate in measured.items()}, rates)

    def test_the_end_of_a_program_after_its_last_byte_does_not_count(self) -> None:
        samples = self.samples(
            {"4711": 0, "4712": 0}, {"4711": 5, "4712": 5}, {"4711": 150.0, "4712": 50.0}
        )
        samples += [(at, samples[-1][1]) for at in (8.0, 9.0, 30.0)]
        self.assertAlmostEqual(rates_between(samples)["4711"], 150.0)

    def test_without_a_time_of_both_there_is_no_rate(self) -> None:
        rates = {"4711": 150.0, "4712": 50.0}
        for ends in ({"4711": 1, "4712": 9}, {"4711": 4.4, "4712": 9}):
            with self.subTest(ends):
                self.assertEqual(
                    rates_between(self.samples({"4711": 0, "4712": 4}, ends, rates)), {}
                )
        self.assertEqual(rates_between([(0.0, {"4711": 0, "4712": 0})]), {})
        self.assertEqual(rates_between([]), {})


if __name__ == "__main__":
    unittest.main()
