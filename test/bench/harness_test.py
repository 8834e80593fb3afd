"""What the demo and the benchmarks stand on: programs stop, ports stay free, sums are right."""
from __future__ import annotations

import json
import pathlib
import socket
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "script")]

from bench import overhead_targets, sharing  # noqa: E402
from bench.chart import Line, Phase, line_chart, tick_step  # noqa: E402
from bench.cluster import Front  # noqa: E402
from bench.harness import PortReservation, Problem, Programs  # noqa: E402
from bench.load import Application, line_rates, line_time, quantile_us  # noqa: E402
from bench.meter import utilisation  # noqa: E402
from bench.report import size_name, table  # noqa: E402
from run_tests import Total  # noqa: E402


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
        self.assertEqual(text, "    a  b\n 1.23  -\n12346  -")

    def test_processor_time_comes_from_the_middle_of_the_measured_time(self) -> None:
        # One processor in use, but for a busy start before the measured second.
        samples = [(t / 100, {"proxy": 50.0 if t < 90 else 50.0 + (t - 90) / 100}) for t in range(201)]
        self.assertAlmostEqual(utilisation(samples, 1.0, 2.0)["proxy"], 1.0)

    def test_a_chart_is_well_formed_and_has_a_line_for_each_application(self) -> None:
        lines = [Line("a <1>", [[(1, 10.0), (2, 20.0)], [(3, 30.0), (4, 5.0)]]), Line("b", [[(1, 1.0)]])]
        root = ElementTree.fromstring(line_chart("t", "MiB/s", [Phase("one", 0, 2), Phase("two", 2, 4, [1, 2])], lines))
        self.assertEqual(len(root.findall("{*}polyline")), 3)

    def test_ticks_are_round_numbers(self) -> None:
        self.assertEqual([tick_step(top) for top in (6, 7, 400, 0.09)], [1, 2, 100, 0.02])


class JunitTest(unittest.TestCase):
    def test_a_test_that_did_not_run_is_failed_unless_it_was_skipped(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write('<testsuite><testcase name="a" status="run"/><testcase name="b" status="fail"/>'
                       '<testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/></testcase>'
                       '<testcase name="d" status="notrun"><skipped message="Unable to find executable"/></testcase>'
                       '</testsuite>')
            file.flush()
            total = Total()
            self.assertEqual(total.add_junit(pathlib.Path(file.name)), ["b", "d"])
        self.assertEqual(total.line(), "1 passed, 2 failed, 1 skipped")

    def test_without_skipped_tests_the_line_ends_after_failed(self) -> None:
        self.assertEqual(Total(passed=3).line(), "3 passed, 0 failed")


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


class BenchTest(unittest.TestCase):
    def test_targets_see_a_proxy_that_is_slower_than_haproxy(self) -> None:
        def row(path: str, rate: float) -> dict[str, object]:
            return {"op": "read", "size": "1 MiB", "outstanding": 1, "connections": 1, "path": path,
                    "mib_per_s": rate, "ops_per_s": rate, "p99_us": 10.0, "cpu_s_per_gib": 1.0}

        rows = [row("direct", 9), row("proxy-fifo", 4), row("proxy-sfq", 6), row("haproxy", 5), row("haproxy-splice", 6)]
        lines = {line["target"]: line["verdict"] for line in overhead_targets.check(rows, [], [])}
        self.assertEqual(lines["proxy-fifo, 64 KiB and more: throughput / haproxy"], "missed")
        self.assertEqual(lines["proxy-sfq, 64 KiB and more: throughput / haproxy"], "reached")
        self.assertEqual(lines["proxy-sfq, 64 KiB and more: CPU per GiB / better haproxy"], "reached")

    def test_the_ratio_of_a_visitor_counts_only_the_time_of_its_visit(self) -> None:
        def timeline(rates: list[float]) -> list[dict[str, float]]:
            return [{"t": float(t + 1), "mib_per_s": rate, "ops_per_s": rate} for t, rate in enumerate(rates)]

        result = {"applications": [
            {"name": "a", "bytes": 0, "timeline": timeline([9.0] * 5 + [6.0] * 5 + [9.0] * 5)},
            {"name": "b", "bytes": 0, "timeline": timeline([0.0] * 5 + [3.0] * 5 + [0.0] * 5)},
        ]}
        case = sharing.Case("read", 4096, 1, 2, "comes and goes")
        self.assertEqual(sharing.shared_ratio(result, case, 15.0), 2.0)

    def test_configurations_are_json_and_so_yaml(self) -> None:
        config = Front("px", "proxy", "sfq", {"a": 2}).proxy_config(1, 2, "status.json")
        self.assertEqual(json.loads(json.dumps(config))["rules"], [{"match": {"hint": {"jobid": "a"}}, "virtual_pfs": "a"}])
        self.assertEqual(Application("a", size=4096, stop=1.5).config()["stop"], "1500 ms")


if __name__ == "__main__":
    unittest.main()
