"""The benchmarks of mounts: what fio, IOR and mdtest print is understood, and what is judged is what was measured."""
from __future__ import annotations

import dataclasses
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from bench.mounts import fio, fio_output, fuse, fuse_loads, fuse_orangefs, two_jobs  # noqa: E402
from bench.mounts import ior as bench_ior  # noqa: E402
from bench.mounts.two_jobs import Done, Outcome  # noqa: E402
from lab import mount, real_orangefs  # noqa: E402
from lab.applications import environment  # noqa: E402
from lab.harness import MIB, Problem, Programs  # noqa: E402
from lab.report import LINE, table  # noqa: E402

RECORDED = ROOT / "test/data/bench"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


class FioOutputTest(unittest.TestCase):
    def test_groups_that_follow_each_other_add_up_their_times(self) -> None:
        # 4 MiB in 64 reads within 4 ms, then 4 MiB in 64 writes within 2 ms.
        numbers = fio_output.numbers(recorded("fio-two-groups.json"))
        self.assertAlmostEqual(numbers["mib_per_s"], 8 / 0.006)
        self.assertAlmostEqual(numbers["ops_per_s"], 128 / 0.006)
        self.assertAlmostEqual(numbers["gib"], 8 / 1024)

    def test_the_latency_is_that_of_the_slower_kind_of_request(self) -> None:
        self.assertAlmostEqual(fio_output.numbers(recorded("fio-two-groups.json"))["p99_us"], 1941.504)

    def test_reads_and_writes_of_one_job_take_their_time_together(self) -> None:
        numbers = fio_output.numbers(recorded("fio-interrupted.txt"))
        self.assertAlmostEqual(numbers["ops_per_s"], (1191 + 1190) / 2.338)

    def test_notes_before_the_numbers_are_passed_over(self) -> None:
        self.assertTrue(recorded("fio-interrupted.txt").startswith("\nfio: terminating"))
        self.assertGreater(fio_output.numbers(recorded("fio-interrupted.txt"))["mib_per_s"], 0)

    def test_no_numbers_are_a_problem(self) -> None:
        for text in ["", "fio: no such file", "{", "{}"]:
            with self.subTest(text), self.assertRaises(Problem):
                fio_output.numbers(text)

    def test_a_job_that_failed_is_a_problem_with_its_name(self) -> None:
        text = recorded("fio-two-groups.json")
        self.assertEqual(text.count('"error" : 0,'), 2)
        with self.assertRaisesRegex(Problem, "failed in in, out"):
            fio_output.numbers(text.replace('"error" : 0,', '"error" : 5,'))


class TwoJobsTest(unittest.TestCase):
    def test_shares_add_up_and_are_unknown_without_rates(self) -> None:
        self.assertEqual(Outcome({}, {"4711": 60.0, "4712": 20.0}).share("4711"), 0.75)
        self.assertIsNone(Outcome({}, {}).share("4711"))
        self.assertIsNone(Outcome({}, {}).rate("4711"))

    def test_the_error_is_that_of_the_ratio(self) -> None:
        def errors(share: float | None) -> list[float]:
            return two_jobs.ratio_errors([{"job": "4711", "share": share}, {"job": "4712", "share": 0.1}])

        self.assertAlmostEqual(errors(0.75)[0], 0.0)
        self.assertAlmostEqual(errors(0.5)[0], 2 / 3)
        self.assertAlmostEqual(errors(0.8)[0], 1 / 3)
        self.assertEqual(errors(1.0), [float("inf")])
        self.assertEqual(errors(None), [])

    def test_nothing_but_the_job_differs_between_the_applications(self) -> None:
        with mock.patch.dict(os.environ, {"SLURM_JOB_ID": "1"}):
            one, other = (environment({"SLURM_JOB_ID": job}) for job in ("4711", "4712"))
        self.assertEqual({name for name in one if one[name] != other[name]}, {"SLURM_JOB_ID"})
        self.assertEqual(one["SLURM_JOB_ID"], "4711")


class FioBenchTest(unittest.TestCase):
    def command(self, case: fio.Case) -> list[str]:
        return fio.command(case, pathlib.Path("/mnt/v/4711"), pathlib.Path("/mnt/v/shared"))

    def profile(self, name: str) -> fio.Profile:
        return next(profile for profile in (*fio.PATTERNS, *fio.APPLICATIONS) if profile.name == name)

    def test_the_phases_of_an_application_wait_for_each_other(self) -> None:
        words = self.command(fio.Case(self.profile("WRF").scaled(1, 16), 16, 1))
        self.assertEqual(words.count("--stonewall"), 2)
        self.assertLess(words.index("--name=in"), words.index("--name=out"))
        self.assertNotIn("--time_based", words)
        self.assertEqual([word for word in words if word.startswith("--size=")], [f"--size={25 * MIB}", f"--size={38 * MIB}"])

    def test_a_pattern_has_no_end_of_its_own(self) -> None:
        words = self.command(fio.Case(self.profile("mixed"), 16, 1))
        self.assertIn("--time_based", words)
        self.assertIn(f"--size={fio.FILE}", words)
        self.assertIn("--directory=/mnt/v/4711", words)

    def test_requests_at_random_places_do_not_become_smaller(self) -> None:
        for name in ("small random", "mixed"):
            self.assertIn("--norandommap", self.command(fio.Case(self.profile(name), 16, 1)))

    def test_applications_that_share_files_read_them_where_they_are(self) -> None:
        self.assertIn("--directory=/mnt/v/shared", self.command(fio.Case(self.profile("mpiBLAST"), 16, 1)))

    def test_amounts_are_the_same_whole_number_for_each_process(self) -> None:
        for scale in (0.001, 0.25, 1.0, 3.0):
            for profile in fio.APPLICATIONS:
                for phase, full in zip(profile.scaled(scale, 16).phases, profile.phases):
                    self.assertEqual(phase.mib % 16, 0)
                    self.assertGreater(phase.mib, 0)
                    self.assertLessEqual(abs(phase.mib - full.mib * scale), 16)
        self.assertEqual(fio.PATTERNS[0].scaled(0.5, 16), fio.PATTERNS[0])

    def outcome(self, code: int) -> Outcome:
        text = recorded("fio-interrupted.txt")
        return Outcome({job: Done(text, code, 9.0) for job in two_jobs.WEIGHTS}, {"4711": 90.0, "4712": 30.0})

    def test_rows_have_the_share_of_each_application(self) -> None:
        rows = fio.rows_of(fio.Case(self.profile("mixed"), 16, 1), "sfq", self.outcome(fio.INTERRUPTED))
        self.assertEqual([(row["weight"], row["share"], row["wanted"], row["mib_per_s"]) for row in rows],
                         [(3, 0.75, 0.75, 90.0), (1, 0.25, 0.25, 30.0)])

    def test_only_a_pattern_may_be_interrupted(self) -> None:
        s3d = fio.Case(self.profile("S3D").scaled(1, 16), 16, 1)
        for case, code in ((s3d, fio.INTERRUPTED), (fio.Case(self.profile("mixed"), 16, 1), 1)):
            with self.subTest(case.profile.name), self.assertRaisesRegex(Problem, f"ended with {code}"):
                fio.rows_of(case, "sfq", self.outcome(code))

    def test_judged_is_sfq_where_queues_are_full(self) -> None:
        def row(profile: str, policy: str, processes: int, share: float) -> dict[str, object]:
            return {"profile": profile, "policy": policy, "processes": processes, "job": "4711", "share": share}

        rows = [row("mixed", "fifo", 16, 0.5), row("mixed", "sfq", 1, 0.6), row("mixed", "sfq", 16, 0.75),
                row("S3D", "sfq", 16, 0.7), row("WRF", "sfq", 16, 0.5)]
        self.assertEqual([(each["target"].split(":")[0], each["verdict"]) for each in fio.verdicts(rows)],
                         [("mixed", "reached"), ("S3D", "missed")])

    def test_a_quick_run_has_every_profile_and_both_numbers_of_mounts(self) -> None:
        quick = fio.cases(True, 0.25, fio.QUICK_PROCESSES, [1, 2], [])
        self.assertEqual({case.profile.name for case in quick},
                         {profile.name for profile in (*fio.PATTERNS, *fio.APPLICATIONS)})
        self.assertEqual({case.mounts for case in quick}, {1, 2})
        full = fio.cases(False, 1.0, fio.PROCESSES, [1, 2], ["mixed"])
        self.assertEqual(len(full), 2 * len(fio.PROCESSES))


class IorBenchTest(unittest.TestCase):
    def test_a_wrong_block_ends_the_benchmark_even_if_ior_ends_well(self) -> None:
        with self.assertRaisesRegex(Problem, "job 4711: IOR found 1 wrong blocks"):
            bench_ior.checked(Done(recorded("ior-wrong-block.txt"), 0, 1.0), "4711")
        with self.assertRaisesRegex(Problem, "job 4711 ended with 2"):
            bench_ior.checked(Done(recorded("ior-write.txt"), 2, 1.0), "4711")

    def test_hard_is_one_file_and_easy_a_file_for_each_process(self) -> None:
        def words(test: str, op: str) -> list[str]:
            return bench_ior.ior_command("ior", test, op, bench_ior.FULL, pathlib.Path("/mnt/v"))

        self.assertIn("-F", words("easy", "write"))
        self.assertNotIn("-F", words("hard", "write"))
        hard = words("hard", "read")
        self.assertEqual([hard[hard.index(option) + 1] for option in ("-t", "-b")], ["47008", "47008"])

    def test_what_is_written_is_kept_compared_and_compared_again_as_it_is_read(self) -> None:
        self.assertEqual(list(bench_ior.OPS), ["write", "check", "read"])
        self.assertIn("-k", bench_ior.OPS["write"])
        self.assertTrue({"-W", "-E", "-k"} <= set(bench_ior.OPS["check"]))
        self.assertTrue({"-r", "-R"} <= set(bench_ior.OPS["read"]))

    def test_rows_have_iors_rate_beside_the_share(self) -> None:
        outcome = Outcome({job: Done(recorded("ior-write.txt"), 0, 9.0) for job in two_jobs.WEIGHTS},
                          {"4711": 30.0, "4712": 10.0})
        rows = bench_ior.data_rows("hard", "write", "sfq", outcome)
        self.assertEqual([(row["share"], row["mib_per_s"], row["ior_mib_per_s"], row["wrong_blocks"]) for row in rows],
                         [(0.75, 30.0, 158.66, 0), (0.25, 10.0, 158.66, 0)])
        self.assertEqual([each["verdict"] for each in bench_ior.verdicts(rows)], ["not measured", "reached"])


class FuseBenchTest(unittest.TestCase):
    def row(self, backend: str, path: str, ops: float | None, **fields: object) -> dict[str, object]:
        return {"backend": backend, "op": "read", "size": "1 MiB", "jobs": 1, "path": path, "ops_per_s": ops,
                "cpu_s_per_gib": 1.0} | fields

    def test_each_path_is_compared_with_the_rival(self) -> None:
        rows = fuse_loads.compared([self.row("real", "orangefs", 300.0), self.row("real", "pvfs2fuse", 200.0),
                                    self.row("real", "none", None)], "pvfs2fuse")
        self.assertEqual([row["of_rival"] for row in rows], [1.5, 1.0, None])
        self.assertEqual([row["of_rival"] for row in fuse_loads.compared([self.row("real", "orangefs", 3.0)], "pvfs2fuse")],
                         [None])

    def test_each_backend_has_its_own_target(self) -> None:
        rows = [*fuse_loads.compared([self.row(fuse_orangefs.LIMITED, fuse_orangefs.OWN, 98.0),
                                      self.row(fuse_orangefs.LIMITED, fuse_orangefs.LOAD, 100.0)], fuse_orangefs.LOAD),
                *fuse_loads.compared([self.row(fuse_orangefs.UNLIMITED, fuse_orangefs.OWN, 10.0),
                                      self.row(fuse_orangefs.UNLIMITED, fuse_orangefs.LOAD, 100.0)], fuse_orangefs.LOAD),
                *fuse_loads.compared([self.row(fuse_orangefs.REAL, fuse_orangefs.OWN, 90.0, size="-", op="stat"),
                                      self.row(fuse_orangefs.REAL, fuse_orangefs.RIVAL, 100.0, size="-", op="stat")],
                                     fuse_orangefs.RIVAL)]
        self.assertEqual([each["verdict"] for each in fuse_orangefs.verdicts(rows)],
                         ["reached", "not measured", "not measured", "missed"])

    def test_costs_are_those_where_nothing_limits(self) -> None:
        rows = [self.row(fuse_orangefs.UNLIMITED, fuse_orangefs.OWN, 1.0, cpu_s_per_gib=0.9),
                self.row(fuse_orangefs.UNLIMITED, fuse_orangefs.LOAD, 1.0, cpu_s_per_gib=0.3),
                self.row(fuse_orangefs.LIMITED, fuse_orangefs.OWN, 1.0)]
        self.assertEqual(fuse_orangefs.costs(rows), [{"op": "read", "size": "1 MiB", "jobs": 1, "orangefs": 0.9,
                                                      "vpfs-load": 0.3}])

    def test_a_figure_needs_something_to_compare_with(self) -> None:
        self.assertEqual(fuse.base_of(["orangefs", "vpfs-load"]), "vpfs-load")
        self.assertEqual(fuse.base_of(["below", "posix-fifo"]), "below")
        self.assertIsNone(fuse.base_of(["orangefs"]))
        self.assertIsNone(fuse.base_of([]))

    def test_every_table_fits_into_a_line_of_a_terminal(self) -> None:
        numbers = dict.fromkeys([*fuse.COLUMNS, *fio.COLUMNS, *bench_ior.COLUMNS, *bench_ior.NAME_COLUMNS], 12345.6)
        words = {"backend": "400 MiB/s", "op": "randwrite", "size": "4 KiB", "jobs": 16, "path": "passthrough_hp",
                 "mounts": 2, "processes": 64, "policy": "fifo", "job": "4711", "weight": 3, "wanted": 0.75,
                 "share": 0.75, "profile": "large sequential write", "test": "easy"}
        for columns in (fuse.COLUMNS, fio.COLUMNS, bench_ior.COLUMNS, bench_ior.NAME_COLUMNS):
            text = table([numbers | words], columns)
            self.assertLessEqual(max(map(len, text.splitlines())), LINE, text)


class MountTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_a_program_that_does_not_mount_is_a_problem_and_is_ended(self) -> None:
        with Programs(self.folder, self.folder) as programs, self.assertRaisesRegex(Problem, "instead of mounted"):
            with mount.mounted(programs, "none", ["sh", "-c", "exit 3"], self.folder / "place"):
                self.fail("it is not mounted")

    def test_what_is_mounted_is_known_without_asking_it(self) -> None:
        self.assertTrue(mount.is_mounted(pathlib.Path("/proc")))
        self.assertFalse(mount.is_mounted(self.folder))

    def test_programs_of_others_are_looked_for_below_their_prefix_only(self) -> None:
        program = self.folder / "sbin" / "pvfs2-server"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        with mock.patch.dict(os.environ, {"VPFS_ORANGEFS_PREFIX": str(self.folder)}):
            self.assertIsNone(real_orangefs.server_program(), "it cannot be run")
            program.chmod(0o755)
            self.assertEqual(real_orangefs.server_program(), str(program))
            self.assertIsNone(real_orangefs.pvfs2fuse("tcp://127.0.0.1:1/orangefs", self.folder))
            self.assertIn(fuse_orangefs.REAL, fuse_orangefs.backends())
        with mock.patch.dict(os.environ):
            os.environ.pop("VPFS_ORANGEFS_PREFIX", None)
            self.assertIsNone(real_orangefs.server_program())
            self.assertNotIn(fuse_orangefs.REAL, fuse_orangefs.backends())

    def test_a_quick_plan_is_smaller_in_everything_but_processes(self) -> None:
        full, quick = dataclasses.asdict(bench_ior.FULL), dataclasses.asdict(bench_ior.QUICK)
        self.assertEqual([name for name in full if quick[name] >= full[name]], ["processes"])


if __name__ == "__main__":
    unittest.main()
