"""What benchmarks make of their measurements: rows, targets and tables."""

from __future__ import annotations

import math
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "script")]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from bench.attacks.run import COLUMNS as attack_columns  # noqa: E402
from bench.data_path import overhead, overhead_targets, policies  # noqa: E402
from bench.schedulers import (  # noqa: E402
    adaptbf_experiments,
    adaptbf_tables,
    adaptbf_targets,
    adaptbf_virtual,
    edf,
    node,
    priority,
    schedulers,
    sharing,
)
from lab.harness import MIB, Problem  # noqa: E402
from lab.load import Burst  # noqa: E402
from lab.report import LINE, table  # noqa: E402


class AdapTbfTest(unittest.TestCase):
    PAYBACK = adaptbf_experiments.PAYBACK
    PRIORITY = adaptbf_experiments.PRIORITY
    BURSTS = adaptbf_experiments.REDISTRIBUTION

    def test_a_job_has_the_bandwidth_of_all_its_applications(self) -> None:
        def entry(name: str, rates: list[float]) -> dict[str, object]:
            return {
                "name": name,
                "timeline": [{"t": t + 1.0, "mib_per_s": rate} for t, rate in enumerate(rates)],
            }

        names = [application.name for application in self.PAYBACK.applications]
        result = {
            "applications": [entry(name, [1.0, 2.0 + index]) for index, name in enumerate(names)]
        }
        series = adaptbf_experiments.bandwidths(result, self.PAYBACK)
        self.assertEqual(series["job1"], [(1.0, 2.0), (2.0, 5.0)])
        self.assertEqual(series["job4"], [(1.0, 1.0), (2.0, 8.0)])

    def test_the_mean_of_a_phase_takes_only_bins_within_it(self) -> None:
        series = [(0.5, 100.0), (1.0, 10.0), (1.5, 20.0), (2.0, 100.0)]
        self.assertEqual(adaptbf_experiments.mean_between(series, 0.5, 1.75), 15.0)
        self.assertTrue(math.isnan(adaptbf_experiments.mean_between(series, 3, 4)))

    def test_phases_begin_where_jobs_begin_and_end(self) -> None:
        ends = {"job1": 82.0, "job2": 81.0, "job3": 55.0, "job4": 41.0}
        phases = self.PRIORITY.phases(4, ends)
        self.assertEqual(
            [(phase.begin, phase.end, phase.news) for phase in phases],
            [(0, 41, ""), (41, 55, "-job4"), (55, 82, "-job3")],
        )
        self.assertEqual(
            [list(phase.jobs) for phase in phases],
            [["job1", "job2", "job3", "job4"], ["job1", "job2", "job3"], ["job1", "job2"]],
        )
        returns = self.PAYBACK.phases(10, dict.fromkeys(self.PAYBACK.jobs, 32.0))
        self.assertEqual([phase.news for phase in returns], ["", "+job1", "+job2", "+job3"])
        self.assertEqual([phase.begin for phase in returns], [0, 2, 5, 8])
        self.assertEqual({len(phase.jobs) for phase in returns}, {4})

    def test_changes_that_are_close_are_one_phase(self) -> None:
        ends = {"job1": 100.0, "job2": 97.0, "job3": 52.0, "job4": 50.0}
        phases = self.PRIORITY.phases(4, ends)
        self.assertEqual([phase.news for phase in phases], ["", "-job4, -job3"])
        self.assertEqual(list(phases[1].jobs), ["job1", "job2"])

    def test_amounts_are_scaled_as_times_are_and_hold_whole_requests(self) -> None:
        scaled = {each.name: each for each in self.PAYBACK.scaled(3)}
        writer, small = scaled["job2-writer"], scaled["job2-bursts"]
        self.assertEqual(writer.amount, round((1 << 30) / 3 / writer.size) * writer.size)
        self.assertAlmostEqual(writer.start, 50 / 3)
        self.assertIsNone(small.amount)
        self.assertAlmostEqual(small.stop or 0, writer.start)
        self.assertEqual(
            adaptbf_experiments.amount_mib(self.PAYBACK.work("job4")),
            adaptbf_experiments.WRITERS * 1024,
        )

    def test_static_limits_take_the_time_of_the_smallest_part(self) -> None:
        self.assertAlmostEqual(self.PRIORITY.expected(1, "static"), 16 * 1024 / 20)
        self.assertAlmostEqual(self.PRIORITY.expected(2, "none"), 4 * 16 * 1024 / 200 / 2)
        self.assertGreater(self.PRIORITY.longest(1), self.PRIORITY.expected(1, "static"))

    def test_a_job_that_did_not_move_its_amount_is_a_problem(self) -> None:
        applications = self.PRIORITY.scaled(64)

        def result(moved: float) -> dict[str, list[dict[str, object]]]:
            return {
                "applications": [
                    {
                        "name": each.name,
                        "bytes": moved * adaptbf_experiments.amount_mib(each) * MIB,
                    }
                    for each in applications
                ]
            }

        adaptbf_experiments.check_done(result(1.0), self.PRIORITY, 64)
        with self.assertRaisesRegex(Problem, "job1 moved 128 of 256 MiB"):
            adaptbf_experiments.check_done(result(0.5), self.PRIORITY, 64)

    def test_the_rate_of_bursts_leaves_out_pauses(self) -> None:
        (burst,) = [each for each in self.BURSTS.scaled(1) if each.name == "job2"]
        self.assertEqual((burst.start, burst.burst), (16.0, Burst(16.0, 48.0)))
        # One burst, a pause, and half of a burst.
        result = {"applications": [{"name": "job2", "bytes": 240 * MIB, "last_s": 72.0}]}
        self.assertAlmostEqual(adaptbf_experiments.active_rate(result, burst), 240 / 24)
        timeline = [
            {"t": 20.0 * (bin + 1), "mib_per_s": rate} for bin, rate in enumerate((2, 9, 0, 8))
        ]
        result["applications"][0]["timeline"] = timeline
        # Until second 30 there are the first bin and half of the second one.
        self.assertAlmostEqual(
            adaptbf_experiments.active_rate(result, burst, 30.0), (2 * 20 + 9 * 10) / 14
        )
        nothing = {"applications": [{"name": "job2", "bytes": 0, "last_s": 0.0}]}
        self.assertEqual(adaptbf_experiments.active_rate(nothing, burst), 0.0)

    def test_a_return_is_looked_at_until_the_next_one(self) -> None:
        ends = [adaptbf_experiments.return_end(job) for job in adaptbf_experiments.LENDERS]
        self.assertEqual(ends, [50.0, 80.0, 120.0])

    def test_a_scenario_in_virtual_time_has_the_applications_without_amounts(self) -> None:
        scenario = adaptbf_virtual.scenario("proxy.yaml")
        self.assertEqual(scenario["duration"], "120000 ms")
        names = [each["name"] for each in scenario["applications"]]
        self.assertEqual(names, [each.name for each in self.PAYBACK.applications])
        for each in scenario["applications"]:
            self.assertFalse({"amount", "connections"} & set(each))

    def test_gains_are_beside_no_control_and_static_limits(self) -> None:
        def facts(rate: float, tail: float) -> dict[str, float]:
            found = {"seconds": 9.0, "total_mib_per_s": 4 * rate}
            for job in self.PRIORITY.jobs:
                found |= {f"{job} mib_per_s": rate, f"{job} p99_ms": tail, f"{job} seconds": 9.0}
            return found

        rows = adaptbf_tables.gain_rows(
            self.PRIORITY,
            {"none": facts(50, 20), "static": facts(20, 80), "adaptbf": facts(60, 10)},
        )
        row = next(
            row for row in rows if (row["application"], row["control"]) == ("job1", "adaptbf")
        )
        self.assertAlmostEqual(row["percent more than none"], 20.0)
        self.assertAlmostEqual(row["percent more than static"], 200.0)
        self.assertEqual((row["p99 / none"], row["p99 / static"]), (0.5, 0.125))
        whole = rows[-1]
        self.assertEqual(whole["application"], "all jobs")
        self.assertEqual((whole["mib_per_s"], whole["p99_ms"]), (240, None))
        none = next(row for row in rows if row["control"] == "none")
        self.assertIsNone(none["percent more than none"])
        self.assertAlmostEqual(none["percent more than static"], 150.0)

    def test_the_error_of_shares_is_the_largest_relative_one(self) -> None:
        exact = {"job1": 20.0, "job2": 20.0, "job3": 60.0, "job4": 100.0}
        self.assertAlmostEqual(adaptbf_experiments.share_error(exact, self.PRIORITY), 0.0)
        self.assertAlmostEqual(
            adaptbf_experiments.share_error(exact | {"job1": 10.0, "job4": 110.0}, self.PRIORITY),
            0.5,
        )
        self.assertEqual(adaptbf_experiments.share_error({"job1": 0.0}, self.PRIORITY), math.inf)

    def test_csv_has_a_column_for_each_job(self) -> None:
        text = adaptbf_experiments.csv_text(
            {"job1": [(0.25, 1.5), (0.5, 2.0)], "job2": [(0.25, -3.0), (0.5, 0.0)]}
        )
        self.assertEqual(text, "seconds,job1,job2\n0.250,1.5,-3\n0.500,2,0\n")

    def test_a_value_at_a_time_is_the_last_one_before(self) -> None:
        series = [(1.0, 10.0), (2.0, 20.0)]
        self.assertEqual(
            [adaptbf_experiments.value_at(series, t) for t in (0.5, 1.5, 2.0)], [0.0, 10.0, 20.0]
        )

    def test_static_limits_are_the_priorities_parts_of_the_capacity(self) -> None:
        limits = adaptbf_experiments.front(self.PRIORITY, "static").shares
        self.assertEqual(
            [limit["rate"] for limit in limits.values()],
            ["20480 KiB/s", "20480 KiB/s", "61440 KiB/s", "102400 KiB/s"],
        )
        auto = adaptbf_experiments.front(self.PRIORITY, "adaptbf-auto", 0.02).scheduler["adaptbf"]
        self.assertEqual((auto["period"], auto["capacity"]), ("20000 us", "auto"))
        scaled = adaptbf_experiments.front(self.PRIORITY, "adaptbf", 0.1, 4).scheduler["adaptbf"]
        self.assertEqual((scaled["period"], scaled["token"]), ("25000 us", "16384 B"))

    def test_a_lender_is_paid_back_by_half_of_its_record(self) -> None:
        def row(owed: float, least: float, rate: float) -> str:
            return adaptbf_targets.paid_back(
                {
                    "job1 record_at_return": owed,
                    "job1 least_record_after": least,
                    "job1 mib_per_s_after": rate,
                },
                "job1",
            )["verdict"]

        self.assertEqual(
            [row(100, 50, 40), row(100, 90, 60), row(100, 51, 40), row(0, -10, 90)],
            ["reached", "missed", "missed", "missed"],
        )

    def test_a_longer_period_that_does_better_misses_the_target(self) -> None:
        def verdicts(totals: list[float], control: str = "adaptbf-strict") -> list[str]:
            by_case = {
                (control, 0.1 * (index + 1)): {
                    "total_mib_per_s": total,
                    "virtual_mib_per_s": 200.0 - index,
                }
                for index, total in enumerate(totals)
            }
            rows = adaptbf_targets.check_sweep(by_case)
            return [row["verdict"] for row in rows if ", real" in row["target"]]

        self.assertEqual(verdicts([200.0, 199.0, 180.0]), ["reached", "reached"])
        self.assertEqual(verdicts([190.0, 200.0, 180.0]), ["reached", "missed"])
        self.assertEqual(verdicts([180.0, 180.0, 181.0]), ["missed", "reached"])
        self.assertEqual(verdicts([180.0]), [])
        # Beyond the interval of bursts the paper says nothing.
        beyond = [200.0] + [190.0] * 9 + [200.0]
        self.assertEqual(verdicts(beyond), ["reached", "reached"])
        virtual = adaptbf_targets.check_sweep(
            {
                ("adaptbf-strict", period): {"total_mib_per_s": 200.0, "virtual_mib_per_s": total}
                for period, total in ((0.1, 200.0), (1.0, 170.0))
            }
        )
        self.assertEqual(
            [(", virtual" in row["target"], row["verdict"]) for row in virtual],
            [(True, "reached"), (True, "reached"), (False, "missed"), (False, "reached")],
        )
        # With idle tokens given away, the period is to change nothing.
        self.assertEqual(verdicts([200.0, 199.0, 198.0], "adaptbf"), ["reached"])
        self.assertEqual(verdicts([200.0, 180.0, 198.0], "adaptbf"), ["missed"])

    def test_all_that_the_paper_says_is_compared_for_each_control(self) -> None:
        def facts(total: float) -> dict[str, float]:
            found = {"total_mib_per_s": total, "share_error": 0.01}
            for job in self.PRIORITY.jobs:
                found |= {f"{job} mib_per_s": total, f"{job} p99_ms": 9.0}
            return found

        by_control = {"none": facts(200.0), "static": facts(100.0)}
        by_control |= dict.fromkeys(adaptbf_experiments.ADAPTIVE, facts(198.0))
        rows = adaptbf_targets.check("a", by_control)
        named = {row["target"]: row["verdict"] for row in rows}
        for control in adaptbf_experiments.ADAPTIVE:
            self.assertEqual(named[f"a, {control}: total / none"], "reached")
            self.assertEqual(named[f"a, {control}: total / static"], "reached")
            self.assertEqual(named[f"a, {control}: job4, MiB/s / none"], "missed")
        self.assertEqual(named["a, static loses: total / none"], "reached")


class BenchTest(unittest.TestCase):
    def test_a_scheduler_is_fast_enough_in_nanoseconds_or_beside_the_yardstick(self) -> None:
        def lines(own: float, yardstick: float) -> list[str]:
            rows = [
                {"policy": "sfq", "flows": 1000, "ns_per_request": own},
                {"policy": "priority_queue", "flows": 1000, "ns_per_request": yardstick},
            ]
            return [line["verdict"] for line in schedulers.check(rows)]

        self.assertEqual(
            [lines(99, 10), lines(150, 90), lines(151, 90), lines(101, 60)],
            [["reached"], ["reached"], ["missed"], ["missed"]],
        )

    def test_a_ratio_to_fifo_is_taken_within_each_round(self) -> None:
        seen = {
            "fifo": [{"ops_per_s": 100.0}, {"ops_per_s": 50.0}, {"ops_per_s": 100.0}],
            "sfq": [{"ops_per_s": 99.0}, {"ops_per_s": 49.5}, {"ops_per_s": 60.0}],
        }
        self.assertEqual(policies.ratios_to_fifo(seen, "sfq", "ops_per_s"), [0.99, 0.99, 0.6])

    def test_edf_misses_are_summed_over_runs_and_other_numbers_are_medians(self) -> None:
        run = dict.fromkeys(edf.NUMBERS, 1.0)
        row = edf.row_of(
            "edf",
            [run, run | {"deadline_misses": 2, "max_ms": 9.0}, run | {"worst_tardiness_ms": None}],
        )
        self.assertEqual(
            (row["deadline_misses"], row["max_ms"], row["late"], row["p50_ms"]),
            (4.0, 9.0, 3.0, 1.0),
        )
        self.assertIsNone(edf.row_of("fifo", [run | {"deadline_misses": None}])["deadline_misses"])

    def test_a_front_gives_its_jobs_shares_classes_and_a_scheduler(self) -> None:
        config = priority.front("strict").proxy_config(1, 2, "status.json")
        self.assertEqual(config["scheduler"]["classes"]["mode"], "strict")
        self.assertEqual([rule["class"] for rule in config["rules"]], ["interactive", "bulk"])
        promised = edf.front("edf").proxy_config(1, 2, "status.json")
        self.assertEqual(promised["virtual_pfs"]["interactive"], {"weight": 1} | edf.PROMISE)
        self.assertEqual(promised["scheduler"]["depth"]["requests"], 8)
        self.assertNotIn("class", promised["rules"][0])

    def test_targets_see_a_proxy_that_is_slower_than_haproxy(self) -> None:
        def row(path: str, rate: float) -> dict[str, object]:
            return {
                "op": "read",
                "size": "1 MiB",
                "outstanding": 1,
                "connections": 1,
                "path": path,
                "mib_per_s": rate,
                "ops_per_s": rate,
                "p99_us": 10.0,
                "cpu_s_per_gib": 1.0,
            }

        rows = [
            row("direct", 9),
            row("proxy-fifo", 4),
            row("proxy-sfq", 6),
            row("haproxy", 5),
            row("haproxy-splice", 6),
        ]
        lines = {line["target"]: line["verdict"] for line in overhead_targets.check(rows, [], [])}
        self.assertEqual(lines["proxy-fifo, 64 KiB and more: throughput / haproxy"], "missed")
        self.assertEqual(lines["proxy-sfq, 64 KiB and more: throughput / haproxy"], "reached")
        self.assertEqual(
            lines["proxy-sfq, 64 KiB and more: CPU per GiB / better haproxy"], "reached"
        )

    def test_the_ratio_of_a_visitor_counts_only_the_time_of_its_visit(self) -> None:
        def timeline(rates: list[float]) -> list[dict[str, float]]:
            return [
                {"t": float(t + 1), "mib_per_s": rate, "ops_per_s": rate}
                for t, rate in enumerate(rates)
            ]

        result = {
            "applications": [
                {"name": "a", "bytes": 0, "timeline": timeline([9.0] * 5 + [6.0] * 5 + [9.0] * 5)},
                {"name": "b", "bytes": 0, "timeline": timeline([0.0] * 5 + [3.0] * 5 + [0.0] * 5)},
            ]
        }
        case = sharing.Case("read", 4096, 1, 2, "comes and goes")
        self.assertEqual(sharing.shared_ratio(result, case, 15.0), 2.0)

    def test_every_table_of_a_benchmark_fits_into_a_line_of_a_terminal(self) -> None:
        row = dict.fromkeys(
            [
                *overhead.COLUMNS,
                *edf.COLUMNS,
                *sharing.COLUMNS,
                *policies.COLUMNS,
                *node.NUMBERS,
                *priority.NUMBERS,
            ],
            12345.6,
        )
        case = overhead.Case("write", 64 << 10, 16, 8).fields() | {"path": "haproxy-splice"}
        attack = dict.fromkeys(attack_columns, 12345.6) | {
            "attack": "header's target lies",
            "protocol": "orangefs",
        }
        texts = [
            overhead.case_table([row | case]),
            priority.load_table([row | {"classes": "strict, at most 100 ms"}]),
            table([row | {"policy": "adaptbf"}], edf.COLUMNS),
            table([row | {"case": "16 against 1"}], sharing.COLUMNS),
            table([row | {"policy": "adaptbf"}], policies.COLUMNS),
            table([row], [*node.Case._fields, *node.NUMBERS]),
            table([attack], attack_columns),
        ]
        for text in texts:
            self.assertLessEqual(max(map(len, text.splitlines())), LINE, text)


if __name__ == "__main__":
    unittest.main()
