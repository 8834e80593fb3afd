"""Cycles with aggregators: where roles run, how their parts are put together, and virtual time."""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from bench.control import aggregators, aggregators_compose as compose, control_cycles_pins as pins  # noqa: E402
from bench.control.aggregators_model import (  # noqa: E402
    Costs, Effort, Network, Sizes, cycle_seconds, even, gather, line, parts, slowest_of)
from bench.control.control_cycles_site import Cycle  # noqa: E402
from lab.harness import Problem, Program  # noqa: E402

INSTANT = Network(0.0, float("inf"))
EMPTY = Sizes(0, 0)


class PinsTest(unittest.TestCase):
    def test_each_role_has_a_processor_while_there_are_enough(self) -> None:
        placed = pins.one_each(2, [0, 1, 2, 5])
        self.assertEqual((set(placed.coordinator), set(placed.stages)), ({0}, {1}))
        self.assertEqual([set(each) for each in placed.aggregators], [{2}, {5}])
        self.assertFalse(pins.shares(placed))

    def test_aggregators_share_where_there_are_fewer_and_it_is_told(self) -> None:
        placed = pins.one_each(3, [0, 1, 2])
        self.assertEqual([set(each) for each in placed.aggregators], [{2}, {2}, {2}])
        self.assertTrue(pins.shares(placed))
        self.assertEqual(placed.describe(), "CPU 0: coordinator; CPU 1: stages; CPU 2: 3 aggregators")
        self.assertEqual(pins.one_each(20, [3, 7]).describe(), "CPU 3: coordinator; CPU 7: stages, 20 aggregators")
        self.assertFalse(pins.shares(pins.one_each(0, [0, 1])))

    def test_the_measured_role_shares_with_no_other(self) -> None:
        for cpus in ([0, 1], [0, 1, 2], [4, 5, 6, 7]):
            placed = pins.coordinator_alone(3, cpus)
            self.assertTrue(placed.coordinator.isdisjoint(placed.stages.union(*placed.aggregators)))
            chain = pins.aggregator_alone(cpus)
            (own,) = chain.aggregators
            self.assertTrue(own.isdisjoint(chain.stages | chain.coordinator))
            self.assertEqual(chain.coordinator.isdisjoint(chain.stages), len(cpus) > 2)

    def test_one_processor_is_too_few(self) -> None:
        for place in (lambda: pins.one_each(1, [0]), lambda: pins.coordinator_alone(1, [0]), lambda: pins.aggregator_alone([])):
            with self.assertRaisesRegex(Problem, "two at least"):
                place()

    def test_a_program_runs_where_it_is_pinned(self) -> None:
        cpu = pins.own_cpus()[-1]
        program = Program(["sleep", "60"], pathlib.Path(os.devnull), ROOT)
        try:
            program.pin({cpu})
            self.assertEqual(os.sched_getaffinity(program.pid), {cpu})
            self.assertGreaterEqual(program.preemptions(), 0)
            with self.assertRaises(OSError):
                program.pin({100_000})
        finally:
            program.stop()


class ModelTest(unittest.TestCase):
    def test_a_busy_parent_needs_its_time_for_each_child(self) -> None:
        effort = Effort(1.0, 2.0, 3.0)
        self.assertEqual(gather(10.0, effort, [lambda at: at] * 4, EMPTY, INSTANT), 10 + 1 + 4 * (2 + 3))

    def test_a_parent_waits_for_the_slowest_child_alone(self) -> None:
        effort = Effort(0.0, 1.0, 1.0)
        children = [lambda at: at + 100, lambda at: at, lambda at: at]
        # It is sent the first message, so its answer is there at 101, and takes one more.
        self.assertEqual(gather(0.0, effort, children, EMPTY, INSTANT), 102)

    def test_delay_counts_once_each_way_and_bytes_pass_one_link(self) -> None:
        children = [lambda at: at] * 3
        slow = Network(5.0, 10.0)  # 2 s for 20 bytes, 4 s for 40
        found = gather(0.0, Effort(0.0, 0.0, 0.0), children, Sizes(20, 40), slow)
        # Messages have left at 2, 4 and 6. The first answer comes at 12; three of them pass by 24.
        self.assertEqual(found, 24)

    def costs(self, rounds: int = 1) -> Costs:
        busy = even(0.0, 4e-6)
        return Costs(rounds, 0.3e-3, busy, busy, even(20e-6, 50e-6), 10e-6, Sizes(60, 80), Sizes(1, 1.5))

    def test_more_aggregators_are_faster_until_the_coordinator_has_too_many(self) -> None:
        network = Network(50e-6, 12.5e9)
        times = {count: cycle_seconds(self.costs(), 10_000, count, network) for count in (0, 4, 5, 10, 20, 160)}
        self.assertGreater(times[0], times[4])
        self.assertEqual(sorted([4, 5, 10, 20], key=times.__getitem__), [20, 10, 5, 4])
        self.assertGreater(times[160], times[20])

    def test_one_aggregator_is_slower_than_none(self) -> None:
        network = Network(50e-6, 12.5e9)
        for rounds in (1, 2):
            flat, below = (cycle_seconds(self.costs(rounds), 2500, count, network) for count in (0, 1))
            # The two messages between coordinator and aggregator, and their delay, in each round.
            self.assertAlmostEqual(below - flat, rounds * (20e-6 + 50e-6 + 2 * 50e-6), delta=rounds * 2e-6)

    def test_all_stages_are_below_some_aggregator(self) -> None:
        for stages, count in ((10_000, 3), (7, 7), (5, 2), (10_000, 20)):
            found = parts(stages, count)
            self.assertEqual((sum(found), len(found)), (stages, count))
            self.assertLessEqual(max(found) - min(found), 1)

    def test_the_slowest_of_several_is_the_mean_of_the_largest_drawn(self) -> None:
        self.assertEqual(slowest_of([5.0], 20), 5.0)
        self.assertAlmostEqual(slowest_of([1.0, 2.0, 3.0], 1), 2.0)
        # Two draws of {1, 2} are both 1 in a quarter of the cases.
        self.assertAlmostEqual(slowest_of([2.0, 1.0], 2), 1.75)
        self.assertAlmostEqual(slowest_of([1.0] * 99 + [9.0], 1000), 9.0, places=2)

    def test_a_line_is_what_made_its_points_and_never_below_zero(self) -> None:
        once, each = line([(4, 14.0), (5, 16.0), (20, 46.0)])
        self.assertAlmostEqual(once, 6.0)
        self.assertAlmostEqual(each, 2.0)
        self.assertEqual(line([(4, 8.0)]), (0.0, 2.0))
        for noise in ([(4, 9.0), (8, 8.0)], [(4, 1.0), (8, 9.0)]):
            once, each = line(noise)
            self.assertEqual(once, 0.0)
            self.assertGreater(each, 0.0)


class ComposeTest(unittest.TestCase):
    def run_of(self, cpu: float, compute: float, cycles: list[tuple[float, float]], **facts: float) -> compose.Measured:
        found = [Cycle(1, 0, collect + compute + enforce, collect, compute, enforce) for collect, enforce in cycles]
        return compose.Measured({"coordinator_cpu_ms": cpu, "compute_ms": compute, **facts}, found)

    def test_a_cycle_is_the_slowest_of_each_phase_and_the_coordinators_own_time(self) -> None:
        chain = [self.run_of(1.0, 0.25, [(1.0, 4.0), (2.0, 5.0)])]
        alone = [self.run_of(3.0, 0.5, [(9.0, 9.0)])]
        found = compose.composed(compose.Below(2, 50, [], alone, chain))
        self.assertAlmostEqual(found["slowest_collect_ms"], 1.75)
        self.assertAlmostEqual(found["slowest_enforce_ms"], 4.75)
        self.assertAlmostEqual(found["compute_ms"], 0.5)
        self.assertAlmostEqual(found["others_cpu_ms"], 2.5 - 0.75)
        self.assertAlmostEqual(found["composed_ms"], 1.75 + 4.75 + 0.5 + 1.75)

    def rows(self, chains: dict[int, float], flat: float, same_scale: float) -> list[dict]:
        first = {"cycle": "fused", "aggregators": 0, "chain_ms": None, "composed_ms": flat, "same_scale_ms": same_scale}
        return [first] + [
            {"cycle": "fused", "aggregators": count, "below_each": 2500, "chain_ms": time, "shared_ms": 50.0, "composed_ms": time,
             "virtual_ms": time}
            for count, time in chains.items()
        ]

    def test_what_the_study_observed_is_judged(self) -> None:
        def verdicts(*of: object) -> list[str]:
            return [found["verdict"] for found in compose.check(self.rows(*of))]

        # shared, composed, virtual, one level more, best against flat
        self.assertEqual(verdicts({4: 12.0, 20: 4.0}, 40.0, 10.0), ["missed", "reached", "reached", "reached", "reached"])
        self.assertEqual(verdicts({4: 12.0, 20: 13.0}, 11.0, 13.0), ["missed"] * 5)
        self.assertEqual(verdicts({4: 12.0}, 40.0, 10.0)[:3], ["not measured"] * 3)

    def test_wrong_numbers_are_told(self) -> None:
        def plans(*arguments: str) -> list[aggregators.Plan]:
            return aggregators.plans(False, aggregators.option_parser().parse_args(arguments))

        for arguments, text in ((["--aggregators", "0"], "--aggregators 0"), (["--aggregators", "1000"], "1 to 200"), (["--stages", "5", "--aggregators", "6"], "6")):
            with self.assertRaisesRegex(Problem, text):
                plans(*arguments)
        self.assertEqual([plan.same_scale() for plan in plans("--aggregators", "20", "4", "4")], [2500, 2500])

    def test_the_command_says_so_in_one_line(self) -> None:
        done = subprocess.run([sys.executable, ROOT / "script/run_bench.py", "aggregators", "--anyway", "--bin", "/nowhere"],
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)


if __name__ == "__main__":
    unittest.main()
