"""The arithmetic of `script/bench total` and `control_impact`: optima, settling, swings, idle time."""
from __future__ import annotations

import itertools
import math
import pathlib
import random
import sys
import unittest
from fractions import Fraction

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from bench.control import control_impact, control_impact_jobs, total, total_steps  # noqa: E402
from lab.coordinator import Settings  # noqa: E402
from lab.total.linear import AtMost, Infeasible, Unbounded, at_least, maximum  # noqa: E402
from lab.total.optimum import User, feasible, local  # noqa: E402
from bench.control.total_run import Outcome, Phase, Times, window_of  # noqa: E402
from lab.total.series import Timeline, apart, deviation, settled_after, swings  # noqa: E402
from lab.total.setups import LONGEST_DELAY, SETUPS, Case, all_cases  # noqa: E402

F = Fraction


class LinearTest(unittest.TestCase):
    def test_the_maximum_is_at_a_corner(self) -> None:
        self.assertEqual(maximum({"x": 3, "y": 2}, [AtMost({"x": 1, "y": 1}, 4), AtMost({"x": 1, "y": 3}, 6), AtMost({"x": 1}, 3)]),
                         11)

    def test_lower_bounds_are_kept(self) -> None:
        self.assertEqual(maximum({"x": -1}, [at_least({"x": 1}, F(5, 3)), AtMost({"x": 1}, 9)]), F(-5, 3))
        with self.assertRaises(Infeasible):
            maximum({"x": 1}, [at_least({"x": 1}, 2), AtMost({"x": 1}, 1)])

    def test_without_a_bound_there_is_no_maximum(self) -> None:
        with self.assertRaises(Unbounded):
            maximum({"x": 1}, [AtMost({"x": -1}, 1)])

    def test_degenerate_corners_end(self) -> None:
        # Beale's example, in which other rules cycle.
        rows = [AtMost({"a": F(1, 4), "b": -60, "c": F(-1, 25), "d": 9}, 0), AtMost({"a": F(1, 2), "b": -90, "c": F(-1, 50), "d": 3}, 0),
                AtMost({"c": 1}, 1)]
        self.assertEqual(maximum({"a": F(3, 4), "b": -150, "c": F(1, 50), "d": -6}, rows), F(1, 20))


class OptimumTest(unittest.TestCase):
    def users(self, setup: str, striped: bool, weight: int = 1) -> list[User]:
        return Case(SETUPS[setup], striped, "write", 1 << 20, weight).users()

    def check(self, setup: str, striped: bool, weight: int, fair: dict, alone: dict) -> None:
        users = self.users(setup, striped, weight)
        self.assertEqual(feasible(users), fair)
        self.assertEqual(local(users), alone)

    def test_two_servers_of_four_striped(self) -> None:
        self.check("2 of 4", True, 1, {"a": F(4, 3), "b": F(4, 3)}, {"a": 1, "b": 2})
        self.assertEqual(sum(feasible(self.users("2 of 4", True)).values()), F(8, 3))
        self.assertEqual(sum(local(self.users("2 of 4", True)).values()), 3)
        self.check("2 of 4", True, 2, {"a": F(8, 5), "b": F(4, 5)}, {"a": F(4, 3), "b": F(4, 3)})

    def test_two_servers_of_four_unstriped(self) -> None:
        self.check("2 of 4", False, 1, {"a": 2, "b": 2}, {"a": 1, "b": 3})
        # Twice as much for a is not feasible.
        self.check("2 of 4", False, 2, {"a": 2, "b": 2}, {"a": F(4, 3), "b": F(8, 3)})

    def test_with_one_of_two_striped(self) -> None:
        users = [User("a", (0, 1), False), User("b", (0, 1, 2, 3), True)]
        self.assertEqual(feasible(users), {"a": F(4, 3), "b": F(4, 3)})
        users = [User("a", (0, 1), True), User("b", (0, 1, 2, 3), False)]
        self.assertEqual(feasible(users), {"a": 2, "b": 2})

    def test_on_the_same_servers_both_are_the_same(self) -> None:
        for setup, striped, weight in itertools.product(("same 2", "same 4"), (True, False), (1, 2)):
            users = self.users(setup, striped, weight)
            self.assertEqual(feasible(users), local(users))
            servers = len(users[0].servers)
            self.assertEqual(feasible(users), {"a": F(servers * weight, weight + 1), "b": F(servers, weight + 1)})

    def test_half_overlapping(self) -> None:
        self.check("half", True, 2, {"a": F(4, 3), "b": F(2, 3)}, {"a": F(4, 3), "b": F(2, 3)})
        self.check("half", False, 1, {"a": F(3, 2), "b": F(3, 2)}, {"a": F(3, 2), "b": F(3, 2)})
        self.check("half", False, 2, {"a": 2, "b": 1}, {"a": F(5, 3), "b": F(4, 3)})

    def test_disjoint_halves_beside_a_third(self) -> None:
        each = F(4, 3)
        self.check("disjoint", True, 1, {"a": each, "b": each, "c": each}, {"a": 1, "b": 1, "c": 2})
        # b may have what c cannot use.
        self.check("disjoint", True, 2, {"a": F(8, 5), "b": F(8, 5), "c": F(4, 5)}, {"a": each, "b": each, "c": each})
        self.check("disjoint", False, 1, {"a": each, "b": each, "c": each}, {"a": 1, "b": 1, "c": 2})
        self.check("disjoint", False, 2, {"a": 2, "b": 1, "c": 1}, {"a": each, "b": 1, "c": F(5, 3)})

    def test_a_bounded_wait_is_a_floor(self) -> None:
        users = self.users("2 of 4", False)
        part = {"a": F(1, 40), "b": F(1, 40)}
        self.assertEqual(feasible(users, part), {"a": F(78, 40), "b": F(82, 40)})
        # No floor is more than the share by weight: then it is local sharing.
        self.assertEqual(feasible(users, {"a": F(3), "b": F(3)}), local(users))
        striped = self.users("2 of 4", True)
        self.assertEqual(feasible(striped, part), feasible(striped))
        self.assertEqual(feasible(striped, {"b": F(2, 5)}), {"a": F(6, 5), "b": F(8, 5)})

    def test_no_job_could_have_more_without_one_that_has_less_for_its_weight(self) -> None:
        chance = random.Random(7)
        for _ in range(20):
            users = [User(name, tuple(sorted(chance.sample(range(4), chance.randint(1, 4)))), chance.random() < 0.5,
                          chance.randint(1, 3)) for name in "abc"]
            fair = feasible(users)
            alone = local(users)
            for user in users:
                self.assertGreaterEqual(fair[user.name], 0)
                self.assertLessEqual(fair[user.name], len(user.servers))
            # The least for its weight is no smaller than under local sharing.
            self.assertGreaterEqual(min(fair[user.name] / user.weight for user in users),
                                    min(alone[user.name] / user.weight for user in users))


def result_of(rates: dict[str, list[float]], interval: float = 0.1) -> dict:
    return {"applications": [
        {"name": name, "latency_us": {"max": 2e6},
         "timeline": [{"t": (index + 1) * interval, "mib_per_s": rate} for index, rate in enumerate(values)]}
        for name, values in rates.items()]}


class SeriesTest(unittest.TestCase):
    def test_rates_are_means_of_whole_intervals(self) -> None:
        timeline = Timeline(result_of({"a": [1, 2, 3, 4], "b": [4, 4, 4, 4]}), "ab")
        self.assertAlmostEqual(timeline.rates(0.1, 0.4)["a"], 3)
        self.assertAlmostEqual(timeline.rates(0.15, 0.35)["a"], 3)
        self.assertTrue(math.isnan(timeline.rates(0.11, 0.19)["a"]))

    def test_windows_are_between_the_times(self) -> None:
        timeline = Timeline(result_of({"a": [1] * 10 + [2] * 10, "b": [1] * 20}), "ab")
        ratios = timeline.ratios(("a", "b"), 0.5, 2.0, 0.5, 0.25)
        self.assertEqual([round(begin, 2) for begin, _ in ratios], [0.5, 0.75, 1.0, 1.25, 1.5])
        self.assertAlmostEqual(ratios[0][1], 1)
        self.assertAlmostEqual(ratios[-1][1], 2)

    def test_settled_is_the_first_window_after_which_none_is_off(self) -> None:
        ratios = [(0, 2.0), (1, 1.04), (2, 1.3), (3, 0.97), (4, 1.02)]
        self.assertEqual(settled_after(ratios, 1.0, 0.05), 3)
        self.assertIsNone(settled_after([*ratios, (5, 1.06)], 1.0, 0.05))
        self.assertEqual(settled_after(ratios[3:], 1.0, 0.05), 3)

    def test_a_swing_goes_from_one_side_to_the_other(self) -> None:
        def count(*values: float) -> int:
            return swings(list(enumerate(values)), 1.0, 0.05)

        self.assertEqual(count(0.5, 0.8, 1.0, 1.02, 0.99), 0)
        self.assertEqual(count(0.5, 1.0, 0.9, 1.0), 0)
        self.assertEqual(count(0.5, 1.0, 1.2, 1.0), 1)
        self.assertEqual(count(0.5, 1.2, 0.8, 1.2), 3)

    def test_the_deviation_is_relative_to_what_is_wanted(self) -> None:
        self.assertAlmostEqual(deviation([(0, 1.0), (1, 3.0)], 4.0), 0.25)
        self.assertTrue(math.isnan(deviation([], 1.0)))
        self.assertEqual([begin for begin, _ in apart([(0, 1.0), (0.5, 1.0), (1.0, 1.0), (2.1, 1.0)], 1.0)], [0, 1.0, 2.1])


class TotalTest(unittest.TestCase):
    CASE = Case(SETUPS["2 of 4"], True, "write", 1 << 20, 1)

    def outcome(self) -> Outcome:
        # Local for 2 s, then the coordinator, which needs 0.5 s.
        a = [40.0] * 25 + [53.35] * 35
        b = [80.0] * 25 + [53.35] * 35
        return Outcome(self.CASE, Times(local=2.0, each=4.0, counted=2.0, unsettled=0.5), result_of({"a": a, "b": b}),
                       [Phase(0.05, 2.0, 6.0)])

    def test_rows_have_exactly_their_columns(self) -> None:
        for row in self.outcome().rows():
            self.assertEqual(list(row), total.COLUMNS)

    def test_rows_compare_with_local_sharing_and_with_the_optimum(self) -> None:
        local_row, row = self.outcome().rows()
        self.assertAlmostEqual(local_row["ratio"], 0.5)
        self.assertEqual(local_row["policy"], "local")
        self.assertAlmostEqual(local_row["total_vs_feasible"], 120 / (40 * 8 / 3), places=3)
        self.assertAlmostEqual(row["ratio"], 1.0)
        self.assertAlmostEqual(row["feasible_ratio"], 1.0)
        self.assertAlmostEqual(row["total_vs_feasible"], 1.0, places=3)
        self.assertAlmostEqual(row["total_vs_local"], 106.7 / 120, places=3)
        self.assertTrue(8 <= row["settle_periods"] <= 10, row["settle_periods"])

    def test_targets_name_each_period(self) -> None:
        outcome = self.outcome()
        targets = total.check_rows(outcome.rows(), outcome.waits())
        self.assertEqual([target["verdict"] for target in targets], ["reached"] * 4)
        self.assertIn("50 ms", targets[0]["target"])
        bad = [dict(row) | {"ratio": 1.021} for row in outcome.rows()]
        self.assertEqual(total.check_rows(bad, outcome.waits())[0]["verdict"], "missed")
        unsettled = [dict(row) | {"settle_periods": None} for row in outcome.rows()]
        self.assertEqual(total.check_rows(unsettled, [])[2]["verdict"], "missed")

    def test_waits_have_the_bound_of_their_queue(self) -> None:
        self.assertEqual({row["bound_s"] for row in self.outcome().waits()}, {25 * LONGEST_DELAY})

    def test_an_io_of_a_striped_application_touches_all_its_servers(self) -> None:
        for case in all_cases():
            for name, servers in case.setup.uses.items():
                self.assertGreaterEqual(case.size, len(servers) * 16 * 1024)
                application = case.application(name)
                self.assertEqual((application.processes, application.datafiles), (1, 0) if case.striped else (len(servers), 1))
        self.assertEqual(len(all_cases()), 80)
        self.assertEqual(len({case.title() for case in all_cases()}), 80)

    def test_a_window_has_enough_requests_and_periods(self) -> None:
        services = self.CASE.feasible()
        self.assertAlmostEqual(window_of(self.CASE, services, 0.01), 0.75)
        self.assertAlmostEqual(window_of(self.CASE, services, 0.5), 2.0)

    def test_steps_are_judged_by_settling_and_swings(self) -> None:
        row = {"settle_periods": 9, "swings": 1, "deviation_percent": 1.0}
        self.assertEqual({target["verdict"] for target in total_steps.check([row])}, {"reached"})
        for bad in ({"settle_periods": None}, {"swings": 2}, {"deviation_percent": None}):
            self.assertIn("missed", {target["verdict"] for target in total_steps.check([row | bad])})


class ImpactTest(unittest.TestCase):
    def run_of(self, ends: list[float]) -> control_impact.Run:
        applications = [{"name": job.name, "last_s": end, "bytes": job.amount} for job, end in zip(control_impact.JOBS, ends)]
        return control_impact.Run({"applications": applications}, 1.0)

    def test_idle_is_what_devices_did_not_do_while_a_job_had_work(self) -> None:
        work = sum(job.amount for job in control_impact.JOBS) / (160 << 20)
        facts = self.run_of([7.0, 10.0, 12.0, 14.0 + 20.0]).facts()
        # From 0 to 12 s, and from 14 to 34 s.
        self.assertAlmostEqual(facts["idle_percent"], 100 * (1 - work / 32))
        self.assertAlmostEqual(facts["makespan_s"], 34)
        self.assertAlmostEqual(facts["worst_slowdown"], 20 / control_impact.JOBS[3].alone(1.0))

    def test_times_that_overlap_count_once(self) -> None:
        self.assertEqual(control_impact_jobs.union([(5, 6), (0, 2), (1, 3), (3, 4)]), [(0, 4), (5, 6)])

    def test_static_limits_are_a_part_of_each_server(self) -> None:
        settings = control_impact.coordinator_settings("static")
        self.assertEqual({job["limit"] for job in settings.jobs}, {"10240 KiB/s"})
        self.assertIsNone(control_impact.coordinator_settings("none"))

    def test_the_coordinator_dials_every_proxy(self) -> None:
        config = Settings(period=0.2).config(3, "j")
        self.assertEqual([stage["address"] for stage in config["stages"]["dial"]], ["./s0.sock", "./s1.sock", "./s2.sock"])
        self.assertEqual((config["policy"], config["period"]), ("total", "200 ms"))


if __name__ == "__main__":
    unittest.main()
