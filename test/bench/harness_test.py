"""What the demo and the benchmarks stand on: programs stop, ports stay free, sums are right."""
from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import socket
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "script")]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from bench.schedulers import adaptbf_experiments, adaptbf_targets, edf, priority  # noqa: E402
from bench.data_path import overhead_targets, policies  # noqa: E402
from lab import rounds  # noqa: E402
from acts import live_rules  # noqa: E402
from bench.schedulers import node, schedulers, sharing  # noqa: E402
from bench.data_path import overhead  # noqa: E402
from bench.attacks.run import COLUMNS as attack_columns  # noqa: E402
from lab.cluster import Front  # noqa: E402
from lab.file_systems import FILE_SYSTEMS, file_system_at, uid_of  # noqa: E402
from lab.harness import PortReservation, Problem, Programs  # noqa: E402
from lab.load import Application, Burst, late_requests, line_rates, line_time, quantile_us  # noqa: E402
from lab.meter import utilisation  # noqa: E402
from lab.report import LINE, heading, size_name, table  # noqa: E402
from lab.status import read_status, virtual_pfs_of  # noqa: E402
from lab.targets import COLUMNS as TARGET_COLUMNS  # noqa: E402
from lab.targets import verdict  # noqa: E402
from run_tests import Count  # noqa: E402


class ProgramsTest(unittest.TestCase):
    def setUp(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.programs = Programs(pathlib.Path("/nonexistent"), pathlib.Path(self._folder.name))

    def test_leaving_the_context_ends_what_was_started(self) -> None:
        with self.programs:
            program = self.programs.start("cat", "tail", "-f", "/dev/null")
            self.assertTrue(program.running())
        self.assertFalse(program.running())

    def test_an_error_inside_the_context_ends_what_was_started(self) -> None:
        with self.assertRaises(ValueError), self.programs:
            program = self.programs.start("tail", "tail", "-f", "/dev/null")
            raise ValueError
        self.assertFalse(program.running())

    def test_a_program_that_cannot_start_is_a_problem_with_its_name(self) -> None:
        with self.programs, self.assertRaisesRegex(Problem, "/no/such/program"):
            self.programs.start("none", "/no/such/program")

    def test_a_program_that_ends_early_is_a_problem_with_its_last_words(self) -> None:
        with self.programs, self.assertRaisesRegex(Problem, "ended with 3(.|\n)*no luck"):
            self.programs.start("sh", "sh", "-c", "echo no luck; exit 3").wait_for_line("ready")

    def test_a_reserved_port_goes_to_a_server_that_reuses_addresses_and_to_no_other(self) -> None:
        reservation = PortReservation()
        self.addCleanup(reservation.close)
        with socket.socket() as other, self.assertRaises(OSError):
            other.bind(("127.0.0.1", reservation.port))
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("127.0.0.1", reservation.port))
            server.listen()


class ReportTest(unittest.TestCase):
    def test_sizes_have_the_largest_unit_that_is_whole(self) -> None:
        self.assertEqual([size_name(n) for n in (4096, 1 << 20, 1536, 512)], ["4 KiB", "1 MiB", "1536 B", "512 B"])

    def test_columns_are_aligned_and_what_is_missing_is_a_dash(self) -> None:
        text = table([{"a": 1.234, "b": None}, {"a": 12345.6}], ["a", "b"])
        self.assertEqual(text, "    a  b\n-----  -\n 1.23  -\n12346  -")

    def test_text_is_left_aligned_and_numbers_in_text_stay_as_they_are(self) -> None:
        text = table([{"what": "1.50", "n": 1}, {"what": "yes", "n": 20}], ["what", "n"])
        self.assertEqual(text.splitlines()[2:], ["1.50   1", "yes   20"])

    def test_headings_are_words_with_units_and_take_no_more_room_than_the_cells(self) -> None:
        self.assertEqual([heading(column) for column in ("client_cpu_s_per_gib", "victim_min_1s_mib_per_s", "rss_mib", "p99_ms",
                                                         "reads_per_s", "error_percent", "total MiB/s")],
                         ["client CPU s/GiB", "victim min 1s MiB/s", "RSS MiB", "p99 ms", "reads/s", "error %", "total MiB/s"])
        self.assertEqual(table([{"total_mib_per_s": 400.0}], ["total_mib_per_s"]).splitlines()[:2], ["total", "MiB/s"])

    def test_a_table_with_long_text_fits_into_a_line_of_a_terminal(self) -> None:
        rows = [verdict("proxy-fifo, 64 KiB and more: throughput / haproxy-splice " * 2, ">= 1.00",
                        "worst 0.97, 13 of 24 rows below", False)]
        lines = table(rows, TARGET_COLUMNS).splitlines()
        self.assertLessEqual(max(map(len, lines)), LINE)
        self.assertIn("haproxy-splice", " ".join(lines))

    def test_every_table_of_a_benchmark_fits_into_a_line_of_a_terminal(self) -> None:
        row = {column: 12345.6 for column in [*overhead.COLUMNS, *edf.COLUMNS, *sharing.COLUMNS, *policies.COLUMNS,
                                              *node.NUMBERS, *priority.NUMBERS]}
        case = overhead.Case("write", 64 << 10, 16, 8).fields() | {"path": "haproxy-splice"}
        attack = dict.fromkeys(attack_columns, 12345.6) | {"attack": "header's target lies", "protocol": "orangefs"}
        texts = [overhead.case_table([row | case]), priority.load_table([row | {"classes": "strict, at most 100 ms"}]),
                 table([row | {"policy": "adaptbf"}], edf.COLUMNS), table([row | {"case": "16 against 1"}], sharing.COLUMNS),
                 table([row | {"policy": "adaptbf"}], policies.COLUMNS), table([row], [*node.Case._fields, *node.NUMBERS]),
                 table([attack], attack_columns)]
        for text in texts:
            self.assertLessEqual(max(map(len, text.splitlines())), LINE, text)

    def test_processor_time_comes_from_the_middle_of_the_measured_time(self) -> None:
        # One processor in use, but for a busy start before the measured second.
        samples = [(t / 100, {"proxy": 50.0 if t < 90 else 50.0 + (t - 90) / 100}) for t in range(201)]
        self.assertAlmostEqual(utilisation(samples, 1.0, 2.0)["proxy"], 1.0)


class JunitTest(unittest.TestCase):
    def test_a_test_that_did_not_run_is_failed_unless_it_was_skipped(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write('<testsuite><testcase name="a" status="run"/><testcase name="b" status="fail"/>'
                       '<testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'
                       '<testcase name="d" status="notrun"><skipped message="Unable to find executable"/></testcase>'
                       '</testsuite>')
            file.flush()
            total = Count()
            self.assertEqual(total.add_junit(pathlib.Path(file.name)), ["b", "d"])
        self.assertEqual(total.line(), "1 passed, 2 failed, 1 skipped")

    def test_without_skipped_tests_the_line_ends_after_failed(self) -> None:
        self.assertEqual(Count(passed=3).line(), "3 passed, 0 failed")


class LoadTest(unittest.TestCase):
    LINE = "  12.0 s  simulation 82.1 MiB/s 82 op/s  analysis 318.0 MiB/s 318 op/s (2 errors)  total 400.1 MiB/s 400 op/s"

    def test_a_live_line_tells_the_second_and_the_rate_of_each_application(self) -> None:
        applications = [Application("simulation", 1), Application("analysis", 1)]
        self.assertEqual(line_time(self.LINE), 12.0)
        self.assertEqual(line_rates(self.LINE, applications), {"simulation": 82.1, "analysis": 318.0})
        self.assertEqual(line_rates("total 1.0 MiB/s", applications), {})

    def test_quantiles_are_of_the_requests_of_all_applications(self) -> None:
        result = {"applications": [{"latency_us": {"histogram": [[10.0, 98], [500.0, 1]]}},
                                   {"latency_us": {"histogram": [[20.0, 1]]}}]}
        self.assertEqual([quantile_us(result, q) for q in (0.5, 0.99, 1.0)], [10.0, 20.0, 500.0])

    def test_scaling_divides_every_time_of_an_application(self) -> None:
        scaled = Application("a", 1, start=20, stop=50, jobid="j", burst=Burst(8, 24)).scaled(4)
        self.assertEqual((scaled.start, scaled.stop, scaled.burst), (5, 12.5, Burst(2, 6)))
        self.assertEqual((scaled.job, scaled.config()["burst"]), ("j", {"length": "2000 ms", "interval": "6000 ms"}))
        self.assertIsNone(Application("a", 1, start=20).scaled(4).stop)

    def test_only_the_time_in_bursts_between_start_and_stop_is_active(self) -> None:
        always = Application("a", 1, start=2, stop=8)
        self.assertEqual([always.active_seconds(*window) for window in ((0, 10), (3, 5), (8, 9), (0, 1))], [6, 2, 0, 0])
        bursty = Application("b", 1, start=1, burst=Burst(1, 4))
        self.assertEqual([bursty.active_seconds(*window) for window in ((0, 9), (0, 9.5), (1.5, 6), (3, 5))], [2, 2.5, 1.5, 0])

    def test_a_request_is_late_when_its_bucket_reaches_beyond_the_limit(self) -> None:
        entry = {"latency_us": {"histogram": [[19000.0, 90], [20000.0, 7], [20971.5, 2], [30000.0, 1]]}}
        self.assertEqual(late_requests(entry, 20000.0), (3, 100))


class StatusTest(unittest.TestCase):
    def test_a_virtual_pfs_is_found_by_its_name(self) -> None:
        status = {"virtual_pfs": [{"name": "default"}, {"name": "a", "record": -3}]}
        self.assertEqual(virtual_pfs_of(status, "a")["record"], -3)
        with self.assertRaisesRegex(Problem, "knows no virtual PFS b"):
            virtual_pfs_of(status, "b")

    def test_a_status_that_is_not_there_is_a_problem(self) -> None:
        with self.assertRaisesRegex(Problem, "not the status of a proxy"):
            read_status(pathlib.Path("/nonexistent"))


class AdapTbfTest(unittest.TestCase):
    PAYBACK = adaptbf_experiments.PAYBACK
    PRIORITY = adaptbf_experiments.PRIORITY

    def test_a_job_has_the_bandwidth_of_all_its_applications(self) -> None:
        def entry(name: str, rates: list[float]) -> dict[str, object]:
            return {"name": name, "timeline": [{"t": t + 1.0, "mib_per_s": rate} for t, rate in enumerate(rates)]}

        names = [application.name for application in self.PAYBACK.applications]
        result = {"applications": [entry(name, [1.0, 2.0 + index]) for index, name in enumerate(names)]}
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
        self.assertAlmostEqual(adaptbf_experiments.share_error(exact | {"job1": 10.0, "job4": 110.0}, self.PRIORITY), 0.5)
        self.assertEqual(adaptbf_experiments.share_error({"job1": 0.0}, self.PRIORITY), math.inf)

    def test_csv_has_a_column_for_each_job(self) -> None:
        text = adaptbf_experiments.csv_text({"job1": [(0.25, 1.5), (0.5, 2.0)], "job2": [(0.25, -3.0), (0.5, 0.0)]})
        self.assertEqual(text, "seconds,job1,job2\n0.250,1.5,-3\n0.500,2,0\n")

    def test_a_value_at_a_time_is_the_last_one_before(self) -> None:
        series = [(1.0, 10.0), (2.0, 20.0)]
        self.assertEqual([adaptbf_experiments.value_at(series, t) for t in (0.5, 1.5, 2.0)], [0.0, 10.0, 20.0])

    def test_static_limits_are_the_priorities_parts_of_the_capacity(self) -> None:
        limits = adaptbf_experiments.front(self.PRIORITY, "static").shares
        self.assertEqual([limit["rate"] for limit in limits.values()],
                         ["20480 KiB/s", "20480 KiB/s", "61440 KiB/s", "102400 KiB/s"])
        auto = adaptbf_experiments.front(self.PRIORITY, "adaptbf-auto", 0.02).scheduler["adaptbf"]
        self.assertEqual((auto["period"], auto["capacity"]), ("20 ms", "auto"))

    def test_a_lender_is_paid_back_by_its_record_or_by_bandwidth(self) -> None:
        def row(owed: float, least: float, rate: float) -> str:
            return adaptbf_targets.paid_back({"job1 record_at_return": owed, "job1 least_record_after": least,
                                              "job1 mib_per_s_after": rate}, "job1")["verdict"]

        self.assertEqual([row(100, 50, 40), row(100, 90, 60), row(100, 90, 40), row(0, -10, 90)],
                         ["reached", "reached", "missed", "missed"])

    def test_a_longer_period_that_does_better_misses_the_target(self) -> None:
        def verdicts(totals: list[float]) -> list[str]:
            by_period = {0.1 * (index + 1): {"total_mib_per_s": total} for index, total in enumerate(totals)}
            return [row["verdict"] for row in adaptbf_targets.check_sweep(by_period)]

        self.assertEqual(verdicts([200.0, 199.0, 180.0]), ["reached", "reached"])
        self.assertEqual(verdicts([190.0, 200.0, 180.0]), ["missed", "reached"])
        self.assertEqual(verdicts([180.0, 180.0, 181.0]), ["reached", "missed"])


class BenchTest(unittest.TestCase):
    def test_a_scheduler_is_fast_enough_in_nanoseconds_or_beside_the_yardstick(self) -> None:
        def lines(own: float, yardstick: float) -> list[str]:
            rows = [{"policy": "sfq", "flows": 1000, "ns_per_request": own},
                    {"policy": "priority_queue", "flows": 1000, "ns_per_request": yardstick}]
            return [line["verdict"] for line in schedulers.check(rows)]

        self.assertEqual([lines(99, 10), lines(150, 90), lines(151, 90), lines(101, 60)],
                         [["reached"], ["reached"], ["missed"], ["missed"]])

    def test_a_ratio_to_fifo_is_taken_within_each_round(self) -> None:
        seen = {"fifo": [{"ops_per_s": 100.0}, {"ops_per_s": 50.0}, {"ops_per_s": 100.0}],
                "sfq": [{"ops_per_s": 99.0}, {"ops_per_s": 49.5}, {"ops_per_s": 60.0}]}
        self.assertEqual(policies.ratios_to_fifo(seen, "sfq", "ops_per_s"), [0.99, 0.99, 0.6])

    def test_edf_misses_are_summed_over_runs_and_other_numbers_are_medians(self) -> None:
        run = dict.fromkeys(edf.NUMBERS, 1.0)
        row = edf.row_of("edf", [run, run | {"deadline_misses": 2, "max_ms": 9.0}, run | {"worst_tardiness_ms": None}])
        self.assertEqual((row["deadline_misses"], row["max_ms"], row["late"], row["p50_ms"]), (4.0, 9.0, 3.0, 1.0))
        self.assertIsNone(edf.row_of("fifo", [run | {"deadline_misses": None}])["deadline_misses"])

    def test_rounds_take_the_cases_in_turn_and_give_medians(self) -> None:
        order: list[str] = []

        def once(case: str) -> dict[str, float | None]:
            order.append(case)
            return {"n": float(len(order)), "late": None if len(order) < 5 else 7.0}

        rows = rounds.Rounds(seconds=1, runs=3).rows(["a", "b"], once, lambda case: {"case": case}, ["n", "late", "never"])
        self.assertEqual(order, ["a", "b"] * 3)
        self.assertEqual(rows, [{"case": "a", "n": 3.0, "late": 7.0, "never": None},
                                {"case": "b", "n": 4.0, "late": 7.0, "never": None}])

    def test_a_starved_class_has_no_latency(self) -> None:
        run: dict[str, float | None] = dict.fromkeys(priority.NUMBERS, 2.0)
        starved = run | {"bulk p50_ms": None}
        self.assertIsNone(rounds.medians([starved, starved], priority.NUMBERS)["bulk p50_ms"])
        self.assertEqual(rounds.medians([starved, run], priority.NUMBERS)["bulk p50_ms"], 2.0)

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
            return {"op": "read", "size": "1 MiB", "outstanding": 1, "connections": 1, "path": path,
                    "mib_per_s": rate, "ops_per_s": rate, "p99_us": 10.0, "cpu_s_per_gib": 1.0}

        rows = [row("direct", 9), row("proxy-fifo", 4), row("proxy-sfq", 6), row("haproxy", 5), row("haproxy-splice", 6)]
        lines = {line["target"]: line["verdict"] for line in overhead_targets.check(rows, [], [])}
        self.assertEqual(lines["proxy-fifo, 64 KiB and more: throughput / haproxy"], "missed")
        self.assertEqual(lines["proxy-sfq, 64 KiB and more: throughput / haproxy"], "reached")
        self.assertEqual(lines["proxy-sfq, 64 KiB and more: CPU per GiB / better haproxy"], "reached")

    def test_beegfs_knows_jobs_by_their_uids_and_gives_each_request_a_connection(self) -> None:
        front = dataclasses.replace(Front("px", "proxy", "sfq", {"a": 2}), protocol="beegfs")
        config = front.proxy_config(1, 2, "status.json")
        self.assertEqual(config["proxy"]["protocol"], "beegfs")
        self.assertEqual(config["rules"], [{"match": {"uid": uid_of("a")}, "virtual_pfs": "a"}])
        beegfs = file_system_at("beegfs://127.0.0.1:1/101")
        fields = Application("a", size=4096, outstanding=24).config(beegfs)
        self.assertEqual((fields["uid"], fields["connections"]), (uid_of("a"), 24))
        shared = Application("b", size=4096, outstanding=24, node="n", connections=4).config(beegfs)
        self.assertEqual((shared["node"], shared["connections"]), ("n", 4))
        self.assertNotEqual(uid_of("a"), uid_of("b"))
        self.assertEqual(FILE_SYSTEMS["beegfs"].address("px", 7), "beegfs://127.0.0.1:7/101")

    def test_the_ratio_of_a_visitor_counts_only_the_time_of_its_visit(self) -> None:
        def timeline(rates: list[float]) -> list[dict[str, float]]:
            return [{"t": float(t + 1), "mib_per_s": rate, "ops_per_s": rate} for t, rate in enumerate(rates)]

        result = {"applications": [
            {"name": "a", "bytes": 0, "timeline": timeline([9.0] * 5 + [6.0] * 5 + [9.0] * 5)},
            {"name": "b", "bytes": 0, "timeline": timeline([0.0] * 5 + [3.0] * 5 + [0.0] * 5)},
        ]}
        case = sharing.Case("read", 4096, 1, 2, "comes and goes")
        self.assertEqual(sharing.shared_ratio(result, case, 15.0), 2.0)

    def test_each_proxy_of_a_front_has_a_control_port_of_its_own(self) -> None:
        front = Front("px", "proxy", control={"socket": "storage{index}.sock", "http_virtual_pfs": 7})
        self.assertEqual(front.proxy_config(1, 2, "status.json", 3)["control"],
                         {"socket": "storage3.sock", "http_virtual_pfs": 7})

    def test_rates_are_of_the_intervals_between_two_times(self) -> None:
        timeline = [{"t": 0.5 * (index + 1), "mib_per_s": float(index)} for index in range(8)]
        self.assertEqual(live_rules.mean_rate(timeline, 0.9, 2.6), 3.0)
        with self.assertRaisesRegex(Problem, "nothing was measured"):
            live_rules.mean_rate(timeline, 1.2, 1.8)

    def test_a_step_is_compared_by_its_ratio_or_its_limit(self) -> None:
        rates = {"a": 100.0, "b": 310.0}
        shared = live_rules.Measured(live_rules.Step("1:3", shares={"a": 1, "b": 3}), 0, 4, rates)
        limited = live_rules.Measured(live_rules.Step("limit", limit=("b", 300.0)), 0, 4, rates)
        self.assertAlmostEqual(shared.error_percent(), 100 * (1 - 300 / 310))
        self.assertAlmostEqual(limited.error_percent(), 100 / 30)
        self.assertEqual(shared.step.wanted(400), {"a": 100, "b": 300})
        self.assertEqual(limited.step.wanted(400), {"b": 300.0})

    def test_configurations_are_json_and_so_yaml(self) -> None:
        config = Front("px", "proxy", "sfq", {"a": 2}).proxy_config(1, 2, "status.json")
        self.assertEqual(json.loads(json.dumps(config))["rules"], [{"match": {"hint": {"jobid": "a"}}, "virtual_pfs": "a"}])
        self.assertEqual(Application("a", size=4096, stop=1.5).config()["stop"], "1500 ms")


if __name__ == "__main__":
    unittest.main()
