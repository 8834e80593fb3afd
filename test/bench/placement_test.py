"""The cases and the findings of `script/bench placement`."""
from __future__ import annotations

import dataclasses
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from bench.simulator import placement  # noqa: E402
from bench.simulator.placement_cases import MODES, SAN, TASKS, Case, Settings, cases_of, priority_of, profile, workload  # noqa: E402
from bench.simulator.placement_findings import FINDINGS, findings  # noqa: E402
from bench.simulator.placement_rows import at_least, some, up_to, verdict  # noqa: E402
from lab.harness import Problem  # noqa: E402

Row = dict[str, object]
MAX_MIN = MODES["max-min"]


def row(case: Case, time: float, wait: float = 0.0) -> Row:
    return case.fields() | {"mode": "max-min", "wait_s": wait, "run_s": time, "total_s": wait + time}


def verdicts(figure: int, rows: list[Row]) -> dict[str, str]:
    return {finding["finding"]: finding["holds"] for finding in findings(figure, "max-min", rows)}


class WordsTest(unittest.TestCase):
    def test_some_is_nearly_so_within_a_quarter(self) -> None:
        for value, wanted in ((0.44, "yes"), (0.47, "nearly"), (0.54, "nearly"), (0.6, "no"), (0.41, "nearly"),
                              (0.34, "nearly"), (0.3, "no")):
            self.assertEqual(verdict(value, some(0.44), True), wanted, value)

    def test_up_to_is_something_but_no_more(self) -> None:
        for value, wanted in ((0.1, "yes"), (0.03, "yes"), (0.12, "nearly"), (0.14, "no"), (0.0, "no"), (-0.1, "no")):
            self.assertEqual(verdict(value, up_to(0.1), True), wanted, value)

    def test_five_times_is_not_an_order_of_magnitude(self) -> None:
        for value, wanted in ((9.5, "yes"), (8, "nearly"), (5, "no")):
            self.assertEqual(verdict(value, at_least(9.5), True), wanted, value)

    def test_a_comparison_is_not_nearly_so(self) -> None:
        self.assertEqual(verdict(0.9, at_least(1), False), "no")


class FindingsTest(unittest.TestCase):
    def check(self, figure: int, rows: list[Row], text: str, holds: str) -> None:
        found = verdicts(figure, rows)
        self.assertIn(text, found)
        self.assertEqual(found[text], holds, text)

    def test_each_finding_says_which_figure_it_is_about(self) -> None:
        for figure, judges in FINDINGS.items():
            for text, judge in judges.items():
                self.assertRegex(judge.__doc__ or "", rf"\b{figure}[a-d]?\b", text)

    def figure_6(self, times: dict[tuple[str, str, int, int, int], float]) -> list[Row]:
        """By strategy, access, devices, memory hits and remote accesses; others take 100 s."""
        return [row(case, times.get((case.strategy, case.access, case.stg, case.memory, case.remote), 100.0))
                for case in cases_of(6, True)]

    def test_memory_hits_are_judged_where_half_is_remote(self) -> None:
        text = "memory hits bring up to 10 % below STG-64"
        for time, holds in ((91.0, "yes"), (88.0, "nearly"), (80.0, "no")):
            self.check(6, self.figure_6({("stg", "disperse", 16, 100, 50): time}), text, holds)
        self.check(6, self.figure_6({("stg", "disperse", 64, 100, 50): 91.0}), text, "no")
        self.check(6, self.figure_6({("stg", "disperse", 64, 100, 50): 91.0}),
                   "memory hits bring up to 10 % with STG-64", "yes")

    def test_locality_compares_the_cache_with_one_device(self) -> None:
        text = "perfect locality brings up to an order of magnitude"
        self.check(6, self.figure_6({("stg", "disperse", 1, 50, 100): 1000.0}), text, "yes")
        self.check(6, self.figure_6({("stg", "disperse", 1, 0, 50): 1000.0}), text, "no")
        self.check(6, self.figure_6({("stg", "disperse", 64, 50, 0): 10.0}), text, "no")

    def test_affinity_with_central_servers_is_a_finding_of_its_own(self) -> None:
        rows = self.figure_6({("san", "affinity", 0, 50, 100): 85.0})
        self.check(6, rows, "affinity brings nothing for SAN", "no")
        self.check(6, rows, "affinity brings nothing for CACHE", "yes")

    def test_affinity_with_all_devices_may_help_only_where_much_is_remote(self) -> None:
        few, much = ("affinity brings nothing for STG-64 to 20 % remote", "affinity brings something for STG-64 above that")
        rows = self.figure_6({("stg", "affinity", 64, 50, 50): 80.0})
        self.check(6, rows, few, "yes")
        self.check(6, rows, much, "yes")
        rows = self.figure_6({("stg", "affinity", 64, 50, 20): 80.0})
        self.check(6, rows, few, "no")
        self.check(6, rows, much, "no")

    def test_more_devices_must_be_better_in_each_step(self) -> None:
        text = "STG-1 is worst, more devices are better, CACHE is best"
        self.check(6, self.figure_6({}), text, "yes")
        self.check(6, self.figure_6({("stg", "disperse", 8, 50, 100): 104.0}), text, "no")

    def figure_7(self, times: dict[tuple[str, int, int], float]) -> list[Row]:
        return [row(case, times.get((case.priority, case.stg, case.remote), 100.0)) for case in cases_of(7, False)]

    def test_priority_is_judged_for_each_number_of_devices(self) -> None:
        rows = self.figure_7({("FP", 16, 50): 85.0, ("FP", 32, 100): 92.0, ("FP", 64, 0): 97.0,
                              ("BA 85-15", 4, 50): 94.0, ("BA 85-15", 64, 50): 99.0})
        self.check(7, rows, "FP brings more than 10 % with STG-16", "yes")
        self.check(7, rows, "FP brings more than 10 % with STG-32", "nearly")
        self.check(7, rows, "FP brings nothing with STG-64 and 0 % remote", "no")
        self.check(7, rows, "BA 85-15 is not far from NP", "no")
        self.check(7, rows, "more for communication helps slightly", "yes")

    def figure_8(self, times: dict[tuple[str, str], float]) -> list[Row]:
        return [row(case, times.get((case.strategy, case.access), 144.0 if case.strategy != "cache" else 100.0))
                for case in cases_of(8, True)]

    def test_internal_and_external_are_judged_apart(self) -> None:
        rows = self.figure_8({("external", "disperse"): 300.0})
        self.check(8, rows, "Internal is some 44 % slower", "yes")
        self.check(8, rows, "External is some 44 % slower", "no")
        self.check(8, rows, "disperse or affinity matters little", "no")
        self.check(8, rows, "Cache is best", "yes")
        self.check(8, self.figure_8({("internal", "affinity"): 90.0}), "Cache is best", "no")

    def test_other_allocators_do_not_count(self) -> None:
        rows = self.figure_8({})
        for each in rows:
            if each["nodes"] != "sequential" or each["backfills"]:
                each["total_s"] = 1.0
        self.check(8, rows, "Cache is best", "yes")

    def figure_9(self, times: dict[int, float], local: float) -> list[Row]:
        return [row(case, times[case.san] if case.strategy == "san" else local) for case in cases_of(9, False)]

    def test_central_servers(self) -> None:
        times = {1: 1000.0, 2: 600.0, 4: 300.0, 8: 150.0, 16: 104.0, 32: 102.0, 64: 101.0, 128: 100.0}
        rows = self.figure_9(times, 90.0)
        for text in FINDINGS[9]:
            self.check(9, rows, text, "yes")
        better = "SAN gets better to 16 servers, then more slowly"
        self.check(9, self.figure_9(times | {16: 300.0}, 90.0), better, "no")
        self.check(9, self.figure_9(times | {1: 500.0}, 90.0), "one SAN server is an order of magnitude worse", "no")
        self.check(9, self.figure_9(times, 110.0), "SAN-128 never reaches Cache with one server", "no")

    def test_flatness_is_that_of_local_data(self) -> None:
        rows = self.figure_9(dict.fromkeys((1, 2, 4, 8, 16, 32, 64, 128), 100.0), 90.0)
        for each in rows:
            if each["strategy"] == "cache" and each["san"] in (8, 16):
                each["total_s"] = 120.0
        self.check(9, rows, "Cache is flat from 8 to 16 servers on", "no")
        self.check(9, rows, "I-A is flat from 8 to 16 servers on", "yes")

    def test_waiting_counts_with_many_applications(self) -> None:
        times = {"NP": (50.0, 50.0), "FP": (33.0, 50.0), "BA 50-50": (40.0, 50.0)}
        rows = [row(case, *reversed(times.get(case.priority, (50.0, 50.0)))) for case in cases_of(10, True)]
        self.check(10, rows, "FP is up to 17 % faster than NP", "yes")
        self.check(10, rows, "of BA, 50-50 is best", "yes")

    def test_the_mean_keeps_ratios(self) -> None:
        self.assertAlmostEqual(placement.mean_of([2.0, 8.0]) / placement.mean_of([1.0, 4.0]), 2.0)


class CasesTest(unittest.TestCase):
    def test_every_case_has_what_it_is_compared_with(self) -> None:
        for figure in placement.FIGURES:
            for quick in (False, True):
                cases = cases_of(figure, quick)
                self.assertEqual(len(set(cases)), len(cases))
                for case in cases:
                    if case.strategy != "san" or figure != 9:
                        self.assertIn(placement.base_of(figure, case), cases)

    def test_the_quick_cases_are_among_the_others(self) -> None:
        for figure in placement.FIGURES:
            self.assertLessEqual(set(cases_of(figure, True)), set(cases_of(figure, False)))

    def test_priorities_are_names_or_parts(self) -> None:
        self.assertEqual(priority_of("FP"), "FP")
        self.assertEqual(priority_of("BA 95-5"), [95, 5])

    def test_a_workload_depends_on_nothing_but_the_settings_the_seed_and_the_nodes(self) -> None:
        settings = Settings()
        configs = [case.config(settings, mode, 3) for case in cases_of(8, True) if case.network == "dragonfly"
                   for mode in MODES.values()]
        for config in configs:
            self.assertEqual(config["jobs"], configs[0]["jobs"])
        self.assertNotEqual(workload(settings, 3, 600), workload(settings, 4, 600))

    def test_a_workload_can_be(self) -> None:
        for seed in range(1, 20):
            for job in workload(Settings(), seed, 512):
                for key in ("readers", "writers", "devices"):
                    self.assertTrue(1 <= job[key] <= job["tasks"] <= 512)
                for weights in job["next"]:
                    self.assertEqual(sum(weights) / weights[-1], 100)

    def test_the_cache_has_a_device_at_each_task(self) -> None:
        self.assertEqual(Case("torus", "cache").config(Settings(), MAX_MIN, 1)["stg"], TASKS["torus"])
        self.assertEqual(Case("torus", "san").config(Settings(), MAX_MIN, 1)["stg"], 0)
        self.assertEqual(Case("torus", "stg", stg=4).config(Settings(), MAX_MIN, 1)["san"], SAN)

    def test_the_largest_curve_has_a_device_for_each_of_72_tasks_unless_told(self) -> None:
        case = Case("dragonfly", "stg", stg=64)
        self.assertEqual(case.config(Settings(), MAX_MIN, 1)["stg"], 72)
        self.assertEqual(case.config(Settings(full_stg=False), MAX_MIN, 1)["stg"], 64)

    def test_modes_are_rules(self) -> None:
        case = Case("torus", "stg", stg=4)
        for name, wanted in (("max-min", (False, True, True, "node", 1)), ("study", (True, True, True, "whole", 0)),
                             ("study-2", (True, False, True, "whole", 0)), ("study-3", (True, False, False, "whole", 0))):
            config = case.config(Settings(), MODES[name], 1)
            rules = config["rules"]
            self.assertEqual((rules["trace_order"], rules["messages_rise"], rules["hits_rise"], rules["locality"],
                              config["replicas"]), wanted)

    def test_a_choice_of_the_user_is_one_in_each_mode(self) -> None:
        settings = dataclasses.replace(Settings(), locality="share", trace_order=False, replicas=2)
        for mode in MODES.values():
            config = Case("torus", "stg", stg=4).config(settings, mode, 1)
            self.assertEqual((config["rules"]["locality"], config["rules"]["trace_order"], config["replicas"]),
                             ("share", False, 2))

    def test_a_matrix_of_transitions_is_that_of_the_one_application(self) -> None:
        matrix = ((1, 2, 3, 4, 5), (1, 0, 0, 0, 0), (0, 1, 0, 0, 0), (0, 0, 0, 0, 1))
        settings = Settings(transitions=matrix)
        self.assertEqual(profile(settings, Case("torus", "stg"), 1)["next"], [list(each) for each in matrix])

    def test_a_file_of_transitions_that_cannot_be_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "matrix.json")
            for text in ("", "[]", "3", "[[1,2,3,4,5]]", "[[0,0,0,0,0],[1,1,1,1,1],[1,1,1,1,1],[1,1,1,1,1]]",
                         "[[1,1,1,1,-1],[1,1,1,1,1],[1,1,1,1,1],[1,1,1,1,1]]",
                         "[[1,1,1,1,1.5],[1,1,1,1,1],[1,1,1,1,1],[1,1,1,1,1]]"):
                path.write_text(text)
                with self.assertRaises(Problem):
                    placement.read_transitions(path)
            with self.assertRaises(Problem):
                placement.read_transitions(path.with_name("missing"))
            path.write_text("[[1,1,1,1,1],[1,1,1,1,1],[1,1,1,1,1],[0,0,0,0,1]]")
            self.assertEqual(placement.read_transitions(path)[3], (0, 0, 0, 0, 1))


if __name__ == "__main__":
    unittest.main()
