"""What benchmarks and the demo build on: programs stop, ports stay free, sums are right."""

from __future__ import annotations

import dataclasses
import json
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

from lab import rounds  # noqa: E402
from lab.cluster import Front  # noqa: E402
from lab.file_systems import FILE_SYSTEMS, file_system_at, uid_of  # noqa: E402
from lab.harness import PortReservation, Problem, Programs  # noqa: E402
from lab.load import Application, Burst, late_requests, line_rates, line_time, quantile_us  # noqa: E402
from lab.meter import utilisation  # noqa: E402
from lab.report import LINE, heading, size_name, table  # noqa: E402
from lab.status import read_status, virtual_pfs_of  # noqa: E402
from lab.targets import COLUMNS as TARGET_COLUMNS  # noqa: E402
from lab.targets import verdict  # noqa: E402


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
        self.assertEqual(
            [size_name(n) for n in (4096, 1 << 20, 1536, 512)],
            ["4 KiB", "1 MiB", "1536 B", "512 B"],
        )

    def test_columns_are_aligned_and_what_is_missing_is_a_dash(self) -> None:
        text = table([{"a": 1.234, "b": None}, {"a": 12345.6}], ["a", "b"])
        self.assertEqual(text, "    a  b\n-----  -\n 1.23  -\n12346  -")

    def test_text_is_left_aligned_and_numbers_in_text_stay_as_they_are(self) -> None:
        text = table([{"what": "1.50", "n": 1}, {"what": "yes", "n": 20}], ["what", "n"])
        self.assertEqual(text.splitlines()[2:], ["1.50   1", "yes   20"])

    def test_headings_are_words_with_units_and_take_no_more_room_than_the_cells(self) -> None:
        self.assertEqual(
            [
                heading(column)
                for column in (
                    "client_cpu_s_per_gib",
                    "victim_min_1s_mib_per_s",
                    "rss_mib",
                    "p99_ms",
                    "reads_per_s",
                    "error_percent",
                    "total MiB/s",
                )
            ],
            [
                "client CPU s/GiB",
                "victim min 1s MiB/s",
                "RSS MiB",
                "p99 ms",
                "reads/s",
                "error %",
                "total MiB/s",
            ],
        )
        self.assertEqual(
            table([{"total_mib_per_s": 400.0}], ["total_mib_per_s"]).splitlines()[:2],
            ["total", "MiB/s"],
        )

    def test_a_table_with_long_text_fits_into_a_line_of_a_terminal(self) -> None:
        rows = [
            verdict(
                "proxy-fifo, 64 KiB and more: throughput / haproxy-splice " * 2,
                ">= 1.00",
                "worst 0.97, 13 of 24 rows below",
                False,
            )
        ]
        lines = table(rows, TARGET_COLUMNS).splitlines()
        self.assertLessEqual(max(map(len, lines)), LINE)
        self.assertIn("haproxy-splice", " ".join(lines))

    def test_processor_time_comes_from_the_middle_of_the_measured_time(self) -> None:
        # One processor is in use, after a busy start before the measured second.
        samples = [
            (t / 100, {"proxy": 50.0 if t < 90 else 50.0 + (t - 90) / 100}) for t in range(201)
        ]
        self.assertAlmostEqual(utilisation(samples, 1.0, 2.0)["proxy"], 1.0)


class LoadTest(unittest.TestCase):
    LINE = (
        "  12.0 s  simulation 82.1 MiB/s 82 op/s  analysis 318.0 MiB/s 318 op/s (2 errors)  "
        "total 400.1 MiB/s 400 op/s"
    )

    def test_a_live_line_tells_the_second_and_the_rate_of_each_application(self) -> None:
        applications = [Application("simulation", 1), Application("analysis", 1)]
        self.assertEqual(line_time(self.LINE), 12.0)
        self.assertEqual(
            line_rates(self.LINE, applications), {"simulation": 82.1, "analysis": 318.0}
        )
        self.assertEqual(line_rates("total 1.0 MiB/s", applications), {})

    def test_quantiles_are_of_the_requests_of_all_applications(self) -> None:
        result = {
            "applications": [
                {"latency_us": {"histogram": [[10.0, 98], [500.0, 1]]}},
                {"latency_us": {"histogram": [[20.0, 1]]}},
            ]
        }
        self.assertEqual([quantile_us(result, q) for q in (0.5, 0.99, 1.0)], [10.0, 20.0, 500.0])

    def test_scaling_divides_every_time_of_an_application(self) -> None:
        scaled = Application("a", 1, start=20, stop=50, jobid="j", burst=Burst(8, 24)).scaled(4)
        self.assertEqual((scaled.start, scaled.stop, scaled.burst), (5, 12.5, Burst(2, 6)))
        self.assertEqual(
            (scaled.job, scaled.config()["burst"]),
            ("j", {"length": "2000 ms", "interval": "6000 ms"}),
        )
        self.assertIsNone(Application("a", 1, start=20).scaled(4).stop)

    def test_only_the_time_in_bursts_between_start_and_stop_is_active(self) -> None:
        always = Application("a", 1, start=2, stop=8)
        self.assertEqual(
            [always.active_seconds(*window) for window in ((0, 10), (3, 5), (8, 9), (0, 1))],
            [6, 2, 0, 0],
        )
        bursty = Application("b", 1, start=1, burst=Burst(1, 4))
        self.assertEqual(
            [bursty.active_seconds(*window) for window in ((0, 9), (0, 9.5), (1.5, 6), (3, 5))],
            [2, 2.5, 1.5, 0],
        )

    def test_a_request_is_late_when_its_bucket_reaches_beyond_the_limit(self) -> None:
        entry = {
            "latency_us": {"histogram": [[19000.0, 90], [20000.0, 7], [20971.5, 2], [30000.0, 1]]}
        }
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


class CaseTest(unittest.TestCase):
    def test_rounds_take_the_cases_in_turn_and_give_medians(self) -> None:
        order: list[str] = []

        def once(case: str) -> dict[str, float | None]:
            order.append(case)
            return {"n": float(len(order)), "late": None if len(order) < 5 else 7.0}

        rows = rounds.Rounds(seconds=1, runs=3).rows(
            ["a", "b"], once, lambda case: {"case": case}, ["n", "late", "never"]
        )
        self.assertEqual(order, ["a", "b"] * 3)
        self.assertEqual(
            rows,
            [
                {"case": "a", "n": 3.0, "late": 7.0, "never": None},
                {"case": "b", "n": 4.0, "late": 7.0, "never": None},
            ],
        )

    def test_a_starved_class_has_no_latency(self) -> None:
        numbers = ["bulk p50_ms", "total_mib_per_s"]
        run: dict[str, float | None] = dict.fromkeys(numbers, 2.0)
        starved = run | {"bulk p50_ms": None}
        self.assertIsNone(rounds.medians([starved, starved], numbers)["bulk p50_ms"])
        self.assertEqual(rounds.medians([starved, run], numbers)["bulk p50_ms"], 2.0)

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

    def test_each_proxy_of_a_front_has_a_control_port_of_its_own(self) -> None:
        front = Front(
            "px", "proxy", control={"socket": "storage{index}.sock", "http_virtual_pfs": 7}
        )
        self.assertEqual(
            front.proxy_config(1, 2, "status.json", 3)["control"],
            {"socket": "storage3.sock", "http_virtual_pfs": 7},
        )

    def test_configurations_are_json_and_so_yaml(self) -> None:
        config = Front("px", "proxy", "sfq", {"a": 2}).proxy_config(1, 2, "status.json")
        self.assertEqual(
            json.loads(json.dumps(config))["rules"],
            [{"match": {"hint": {"jobid": "a"}}, "virtual_pfs": "a"}],
        )
        self.assertEqual(Application("a", size=4096, stop=1.5).config()["stop"], "1500 ms")


if __name__ == "__main__":
    unittest.main()
