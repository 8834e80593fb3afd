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
    adaptbf_targets,
    edf,
    node,
    priority,
    schedulers,
    sharing,
)
from lab.report import LINE, table  # noqa: E402


class AdapTbfTest(unittest.TestCase):
    PAYBACK = adaptbf_experiments.PAYBACK
    PRIORITY = adaptbf_experiments.PRIORITY

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

    def test_phases_are_scaled_and_cover_the_run(self) -> None:
        phases = self.PRIORITY.phases(4)
        self.assertEqual(phases, [(0, 10), (10, 20), (20, 25), (25, 30)])
        self.assertEqual(phases[-1][1], self.PRIORITY.length(4))

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
        self.assertEqual((auto["period"], auto["capacity"]), ("20 ms", "auto"))

    def test_a_lender_is_paid_back_by_its_record_or_by_bandwidth(self) -> None:
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
            [row(100, 50, 40), row(100, 90, 60), row(100, 90, 40), row(0, -10, 90)],
            ["reached", "reached", "missed", "missed"],
        )

    def test_a_longer_period_that_does_better_misses_the_target(self) -> None:
        def verdicts(totals: list[float]) -> list[str]:
            by_period = {
                0.1 * (index + 1): {"total_mib_per_s": total} for index, total in enumerate(totals)
            }
            return [row["verdict"] for row in adaptbf_targets.check_sweep(by_period)]

        self.assertEqual(verdicts([200.0, 199.0, 180.0]), ["reached", "reached"])
        self.assertEqual(verdicts([190.0, 200.0, 180.0]), ["missed", "reached"])
        self.assertEqual(verdicts([180.0, 180.0, 181.0]), ["reached", "missed"])


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
