"""The jobs of control_impact as fio and IOR: their commands, how they end, and what is judged."""
from __future__ import annotations

import pathlib
import stat
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from bench.control import control_impact, control_impact_mount as mount  # noqa: E402
from bench.control.control_impact_jobs import JOBS, union  # noqa: E402
from lab.harness import MIB, Problem  # noqa: E402


class CommandTest(unittest.TestCase):
    def test_processes_have_as_many_writes_in_flight_and_write_the_amount(self) -> None:
        for load in mount.LOADS:
            for job in JOBS:
                for scale in (1.0, 0.5):
                    count, each = mount.processes(load, job), mount.mib_of_each(load, job, scale)
                    self.assertLessEqual(count, mount.MOST_PROCESSES[load])
                    self.assertLessEqual(count, job.processes * job.outstanding)
                    self.assertAlmostEqual(count * each * MIB / (job.amount * scale), 1.0, delta=0.07)

    def test_fio_writes_past_the_page_cache_in_the_jobs_directory(self) -> None:
        words = mount.command("fio", JOBS[1], 1.0, pathlib.Path("/m/job2"))
        for word in ("--direct=1", "--rw=write", "--bs=1048576", "--numjobs=64", f"--size={15 * MIB}", "--directory=/m/job2"):
            self.assertIn(word, words)

    def test_ior_writes_a_file_for_each_process_by_the_mpirun_beside_it(self) -> None:
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name in ("ior", "mdtest", "mpirun"):
            program = folder / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text("#!/bin/sh\necho Open MPI\n")
            program.chmod(0o755)
        with mock.patch.dict("os.environ", {"VPFS_IOR_PREFIX": str(folder)}):
            self.assertEqual(mount.why_not("ior"), "")
            words = mount.command("ior", JOBS[0], 1.0, pathlib.Path("/m/job1"))
        self.assertEqual(words[0], str(folder.resolve() / "bin/mpirun"))
        program = words.index(str(folder / "bin/ior"))
        self.assertEqual(words[program - 2:program], ["-n", "16"])
        self.assertIn("SLURM_JOB_ID=job1", words[:program])
        self.assertEqual(words[program + 1:][-6:], ["-t", str(MIB), "-b", "60m", "-o", "/m/job1/data"])

    def test_without_ior_it_is_skipped_with_a_line_and_alone_it_is_a_problem(self) -> None:
        with mock.patch.dict("os.environ", {"VPFS_IOR_PREFIX": "/nowhere"}):
            self.assertIn("VPFS_IOR_PREFIX", mount.why_not("ior"))
            self.assertEqual(mount.why_not("fio"), "")
            with mock.patch.multiple(control_impact, require_mounts=mock.DEFAULT, require_programs=mock.DEFAULT), \
                    mock.patch("builtins.print") as printed:
                self.assertEqual(control_impact.loads_here(ROOT, ["fio", "ior"]), ["fio"])
                self.assertTrue(printed.call_args.args[0].startswith("skipped: ior: there is no IOR"))
                with self.assertRaisesRegex(Problem, "none of the loads"):
                    control_impact.loads_here(ROOT, ["ior"])


class RunTest(unittest.TestCase):
    """Jobs whose program is a script, without a mount."""

    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        programs = mock.Mock(work=self.folder)
        self.place = self.folder / "mount"
        self.place.mkdir()
        with mock.patch.object(mount.Jobs, "_moved", self.moved):
            self.jobs = mount.Jobs(programs, mock.Mock(), "px", self.place, "fio")

    def moved(self) -> dict[str, float]:
        return {job.name: sum(file.stat().st_size for file in (self.place / job.name).iterdir()) for job in JOBS}

    def run_script(self, text: str) -> mount.MountRun:
        script = self.folder / "job"
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        with mock.patch.object(mount, "command", lambda _, job, __, place: [str(script), job.name, str(place)]), \
                mock.patch.object(self.jobs, "_moved", self.moved), mock.patch.object(mount, "WARM_UP", 0.0):
            return self.jobs.run(0.02)

    def test_each_job_begins_at_its_time_and_ends_with_its_program(self) -> None:
        run = self.run_script('test "$SLURM_JOB_ID" = "$1" && sleep 0.2 && head -c 1048576 /dev/zero > "$2/x"')
        for job in JOBS:
            self.assertGreaterEqual(run.seconds(job), 0.2)
            self.assertEqual(run.moved(job), MIB)
            self.assertAlmostEqual(
                sum((end - begin) * rate for (begin, _), (end, rate) in zip([(0.0, 0.0), *run.series()[job.name]],
                                                                           run.series()[job.name])), 1.0, delta=0.3)
        self.assertGreater(run.facts()["mib_per_s"], 0)

    def test_a_program_that_fails_is_told_with_its_output(self) -> None:
        with self.assertRaisesRegex(Problem, "fio of job1 ended with 3:\nno space"):
            self.run_script('test "$1" != job1 || { echo no space; exit 3; }; sleep 0.01')

    def test_no_program_is_left_when_one_has_failed(self) -> None:
        with self.assertRaises(Problem):
            self.run_script('test "$1" != job2 || exit 3; echo $$ > "$2/pid"; exec sleep 60')
        left = int((self.place / "job1/pid").read_text())
        self.assertFalse(pathlib.Path(f"/proc/{left}").exists())


    def test_rates_are_those_of_some_time_and_all_bytes_are_counted(self) -> None:
        samples = [(0.01 * turn, {"job1": float(turn)}) for turn in range(100)]
        found = mount.thinned(samples)
        self.assertEqual((found[0], found[-1]), (samples[0], samples[-1]))
        self.assertGreaterEqual(min(later[0] - earlier[0] for earlier, later in zip(found, found[1:-1])), mount.BIN)
        self.assertEqual(mount.thinned(samples[:1]), samples[:1])


class VerdictTest(unittest.TestCase):
    def test_control_that_costs_throughput_or_slows_a_job_is_told(self) -> None:
        def facts(rate: float, worst: float, mean: float) -> dict[str, float]:
            return {"mib_per_s": rate, "worst_slowdown": worst, "mean_slowdown": mean}

        none, static = facts(100, 4, 2), facts(60, 5, 3)
        good = control_impact.check("fio", {"none": none, "static": static, "psfa": facts(98, 3, 2)})
        self.assertEqual([line["verdict"] for line in good], ["reached"] * 3)
        bad = control_impact.check("fio", {"none": none, "static": static, "total": facts(90, 5, 4)})
        self.assertEqual([line["verdict"] for line in bad], ["missed"] * 3)
        self.assertEqual(control_impact.check("fio", {"none": none}), [])

    def test_times_that_overlap_count_once(self) -> None:
        self.assertEqual(union([(3, 4), (0, 1), (0.5, 2)]), [(0, 2), (3, 4)])


if __name__ == "__main__":
    unittest.main()
