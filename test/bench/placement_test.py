"""The cases and the findings of `script/bench placement`."""
from __future__ import annotations

import dataclasses
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from bench.simulator import placement  # noqa: E402
from bench.simulator.placement_cases import SAN, TASKS, Case, Settings, cases_of, priority_of, profile, workload  # noqa: E402
from bench.simulator.placement_findings import findings, order_of_magnitude, some, up_to  # noqa: E402

Row = dict[str, object]


def row(case: Case, time: float, wait: float = 0.0) -> Row:
    return case.fields() | {"wait_s": wait, "run_s": time, "total_s": wait + time}


def verdicts(figure: int, rows: list[Row]) -> dict[str, bool]:
    return {finding["finding"]: finding["holds"] for finding in findings(figure, rows)}


class WordsTest(unittest.TestCase):
    def test_some_is_within_a_quarter(self) -> None:
        self.assertTrue(some(0.44, 0.54))
        self.assertFalse(some(0.44, 0.6))
        self.assertFalse(some(0.44, 0.3))

    def test_up_to_is_something_but_no_more(self) -> None:
        self.assertTrue(up_to(0.1, 0.1))
        self.assertTrue(up_to(0.1, 0.03))
        self.assertFalse(up_to(0.1, 0.11))
        self.assertFalse(up_to(0.1, 0.0))

    def test_five_times_is_not_an_order_of_magnitude(self) -> None:
        self.assertTrue(order_of_magnitude(9.5))
        self.assertFalse(order_of_magnitude(5))


class FindingsTest(unittest.TestCase):
    def check(self, figure: int, rows: list[Row], text: str, holds: bool) -> None:
        found = verdicts(figure, rows)
        self.assertIn(text, found)
        self.assertEqual(found[text], holds, text)

    def figure_6(self, times: dict[tuple[str, str, int, int, int], float]) -> list[Row]:
        """By strategy, access, devices, memory hits and remote accesses; others take 100 s."""
        return [row(case, times.get((case.strategy, case.access, case.stg, case.memory, case.remote), 100.0))
                for case in cases_of(6, True)]

    def test_each_finding_has_its_own_verdict(self) -> None:
        rows = self.figure_6({("stg", "disperse", 64, 0, 0): 10.0, ("stg", "affinity", 64, 0, 0): 10.0,
                              ("stg", "affinity", 16, 0, 50): 85.0})
        found = verdicts(6, rows)
        self.assertEqual({text for text, holds in found.items() if holds}, {
            "perfect locality brings up to an order of magnitude", "affinity brings up to 20 % for STG-4 to STG-32",
            "affinity brings nothing for STG-1", "affinity brings nothing for SAN", "affinity brings nothing for CACHE",
            "affinity brings nothing for STG-64 with at most 20 % remote"})

    def test_memory_hits_that_bring_more_than_a_tenth_do_not_hold(self) -> None:
        text = "memory hits bring up to 10 % below STG-64"
        self.check(6, self.figure_6({("stg", "disperse", 16, 100, 50): 91.0}), text, True)
        self.check(6, self.figure_6({("stg", "disperse", 16, 100, 50): 86.0}), text, False)

    def test_affinity_with_central_servers_is_a_finding_of_its_own(self) -> None:
        rows = self.figure_6({("san", "affinity", 0, 50, 100): 85.0})
        self.check(6, rows, "affinity brings nothing for SAN", False)
        self.check(6, rows, "affinity brings nothing for CACHE", True)

    def test_affinity_with_all_devices_may_help_only_where_much_is_remote(self) -> None:
        rows = self.figure_6({("stg", "affinity", 64, 0, 50): 80.0})
        self.check(6, rows, "affinity brings nothing for STG-64 with at most 20 % remote", True)
        self.check(6, rows, "affinity brings something for STG-64 above 20 % remote", True)
        rows = self.figure_6({("stg", "affinity", 64, 0, 20): 80.0})
        self.check(6, rows, "affinity brings nothing for STG-64 with at most 20 % remote", False)

    def figure_7(self, times: dict[tuple[str, int, int], float]) -> list[Row]:
        return [row(case, times.get((case.priority, case.stg, case.remote), 100.0)) for case in cases_of(7, False)]

    def test_priority_is_judged_for_each_number_of_devices(self) -> None:
        rows = self.figure_7({("FP", 16, 50): 85.0, ("FP", 64, 0): 97.0, ("BA 5-95", 4, 20): 94.0})
        self.check(7, rows, "FP brings more than 10 % with STG-16", True)
        self.check(7, rows, "FP brings more than 10 % with STG-32", False)
        self.check(7, rows, "FP brings nothing with STG-64 and 0 % remote", False)
        self.check(7, rows, "BA changes little", False)

    def figure_8(self, times: dict[tuple[str, str], float]) -> list[Row]:
        return [row(case, times.get((case.strategy, case.access), 144.0 if case.strategy != "cache" else 100.0))
                for case in cases_of(8, True)]

    def test_local_rows_count_when_cache_is_to_be_best(self) -> None:
        self.check(8, self.figure_8({}), "cache is best", True)
        self.check(8, self.figure_8({("internal", "local"): 90.0}), "cache is best", False)

    def test_internal_and_external_are_judged_apart(self) -> None:
        rows = self.figure_8({("external", "disperse"): 300.0})
        self.check(8, rows, "internal is some 44 % slower in the dragonfly", True)
        self.check(8, rows, "external is some 44 % slower in the dragonfly", False)

    def figure_9(self, times: dict[int, float], local: float) -> list[Row]:
        return [row(case, times[case.san] if case.strategy == "san" else local) for case in cases_of(9, False)]

    def test_where_the_curve_of_central_servers_flattens(self) -> None:
        text = "it flattens at 8 to 16 servers"
        times = {1: 1000.0, 2: 600.0, 4: 300.0, 8: 150.0, 16: 104.0, 32: 102.0, 64: 101.0, 128: 100.0}
        self.check(9, self.figure_9(times, 90.0), text, True)
        self.check(9, self.figure_9(times | {16: 125.0}, 90.0), text, False)
        self.check(9, self.figure_9(times | {4: 105.0}, 90.0), text, False)
        self.check(9, self.figure_9(times, 90.0), "one SAN server is an order of magnitude worse than many", True)
        self.check(9, self.figure_9(times | {1: 500.0}, 90.0), "one SAN server is an order of magnitude worse than many", False)
        self.check(9, self.figure_9(times, 90.0), "SAN-128 never reaches local data with one server", True)
        self.check(9, self.figure_9(times, 110.0), "SAN-128 never reaches local data with one server", False)

    def test_waiting_counts_with_many_applications(self) -> None:
        times = {"NP": (50.0, 50.0), "FP": (33.0, 50.0), "BA 50-50": (40.0, 50.0)}
        rows = [row(case, *reversed(times.get(case.priority, (50.0, 50.0)))) for case in cases_of(10, True)]
        self.check(10, rows, "FP is up to 17 % faster than NP", True)
        self.check(10, rows, "of BA, 50-50 is best", True)

    def test_a_difference_of_a_percent_makes_nothing_best(self) -> None:
        rows = [row(case, {"BA 50-50": 99.0}.get(case.priority, 100.0)) for case in cases_of(10, True)]
        self.check(10, rows, "of BA, 50-50 is best", False)


class CasesTest(unittest.TestCase):
    def test_every_case_has_what_it_is_compared_with(self) -> None:
        for figure in placement.FIGURES:
            for quick in (False, True):
                cases = cases_of(figure, quick)
                self.assertEqual(len(set(cases)), len(cases))
                for case in cases:
                    self.assertIn(placement.base_of(figure, case), cases)

    def test_the_quick_cases_are_among_the_others(self) -> None:
        for figure in placement.FIGURES:
            self.assertLessEqual(set(cases_of(figure, True)), set(cases_of(figure, False)))

    def test_priorities_are_names_or_parts(self) -> None:
        self.assertEqual(priority_of("FP"), "FP")
        self.assertEqual(priority_of("BA 95-5"), [95, 5])

    def test_a_workload_depends_on_nothing_but_the_settings_and_the_seed(self) -> None:
        settings = Settings()
        configs = [case.config(settings, 3) for case in cases_of(8, True)]
        for config in configs:
            self.assertEqual(config["jobs"], configs[0]["jobs"])
        self.assertNotEqual(workload(settings, 3), workload(settings, 4))

    def test_a_workload_can_be(self) -> None:
        for seed in range(1, 20):
            for job in workload(Settings(), seed):
                self.assertLessEqual(job["compute"] + job["read"] + job["write"], 1000)
                self.assertTrue(0 < job["io_tasks"] <= job["tasks"] <= 128)

    def test_the_cache_has_a_device_at_each_task(self) -> None:
        self.assertEqual(Case("torus", "cache").config(Settings(), 1)["stg"], TASKS)
        self.assertEqual(Case("torus", "san").config(Settings(), 1)["stg"], 0)
        self.assertEqual(Case("torus", "stg", stg=4).config(Settings(), 1)["san"], SAN)

    def test_settings_change_all_applications(self) -> None:
        settings = dataclasses.replace(Settings(), mixed=True, own_steps=True, least_io_percent=1, rates="equal-share")
        for each in (profile(settings, 0, 0), workload(settings, 1)[0]):
            self.assertEqual((each["sizes"], each["lockstep"], each["least_io_percent"]), ("mixed", False, 1))
        self.assertEqual(Case("torus", "stg").config(settings, 1)["rates"], "equal-share")


if __name__ == "__main__":
    unittest.main()
