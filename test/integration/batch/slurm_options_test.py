#!/usr/bin/env python3
"""The plugin of Slurm with Debian's Slurm on this machine: what users ask for at submission reaches the stages.

    slurm_options_test.py DIRECTORY_OF_PROGRAMS

Skips where Slurm is not installed, where the plugin is not built, or without root.
"""
from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Mapping, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(pathlib.Path(__file__).resolve().parent)]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from lab import coordinator  # noqa: E402
from lab.cluster import Cluster, Front  # noqa: E402
from lab.harness import Programs  # noqa: E402
from slurm_site import HOST, PATIENCE, SKIPPED, SLURM_USER, USER, Hooks, Slurm, wait_until, why_not  # noqa: E402

PROGRAMS: list[pathlib.Path] = []
PLUGIN = "spank_vpfs.so"
BOUNDS = "weight=1..8 rate=..500MiB/s deadline=5ms.."
# Within a job nothing may be another user's.
AS_USER = ("setpriv", f"--reuid={USER.pw_uid}", f"--regid={USER.pw_gid}", "--clear-groups")
HOLD = "sleep 60"
SOCKET = "site.sock"
NODES = (HOST, "localhost")


class Site:
    """A coordinator over one proxy."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs
        self._runs = 0
        config = coordinator.Settings().config(1, "coordinator.journal") | {
            "control": {"socket": SOCKET, "mode": "0666", "writers": [SLURM_USER]}}  # the epilog runs as that user
        (programs.work / "coordinator.yaml").write_text(json.dumps(config))
        self.start()

    def start(self) -> None:
        self._runs += 1
        self._program = self._programs.start(f"coordinator{self._runs}", "vpfs-coordinator", "--config",
                                             str(self._programs.work / "coordinator.yaml"))
        self._program.wait_for_line("ready")

    def stop(self) -> None:
        self._program.stop()


class SlurmOptionsTest(unittest.TestCase):
    programs: Programs
    slurm: Slurm
    site: Site
    work: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.mkdtemp(prefix="vpfs")
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.work = pathlib.Path(folder)
        cls.programs = Programs(PROGRAMS[0], cls.work)
        cls.enterClassContext(cls.programs)
        front = Front("px", "proxy", shares={"job-{jobid}": {}}, templates={"job-{jobid}": {"hint": {"jobid": "*"}}},
                      control=coordinator.CONTROL)
        Cluster(cls.programs, 1, [front]).start("px")
        cls.site = Site(cls.programs)
        shutil.copy(PROGRAMS[0].parent / "lib" / PLUGIN, cls.work / PLUGIN)
        # It writes down for which job it is called.
        counted = cls.work / "counted-vpfsctl"
        counted.write_text(f'#!/bin/sh\n[ "$4" = stop ] || echo "$5" >> {cls.work}/calls\nexec {cls.work}/vpfsctl "$@"\n')
        counted.chmod(0o755)
        targets = f"VPFSCTL={counted} VPFS_TARGETS='--coordinator {cls.work}/{SOCKET}'"
        cls.slurm = Slurm(cls.programs, Hooks(targets, "Prolog", cls.plugstack(BOUNDS), NODES))
        cls.addClassCleanup(cls.slurm.end_jobs)

    @staticmethod
    def plugstack(bounds: str) -> str:
        return f"# bounds of vpfs\noptional {{work}}/{PLUGIN} {bounds}  # and no more\n"

    def rules(self) -> Mapping[str, Sequence[str]]:
        """The words of each rule at the proxy, by name."""
        done = subprocess.run([self.programs.binaries / "vpfsctl", "--proxy", f"{self.work}/s0.sock", "--json", "rule", "list"],
                              check=False, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        rules = json.loads(done.stdout)["proxies"][0]["data"]["rules"]
        return {rule["name"]: rule.get("words", []) for rule in rules}

    def words_of(self, job: str) -> Sequence[str]:
        wait_until(lambda: f"job:{job}" in self.rules(), f"a rule of job {job}\n{self.slurm.syslog()}")
        return self.rules()[f"job:{job}"]

    def end(self, job: str) -> None:
        self.slurm.ask("scancel", job)
        wait_until(lambda: f"job:{job}" not in self.rules(), f"job {job} has no rule")

    def submit(self, *options: str, **environment: str) -> str:
        return self.slurm.submit(HOLD, *options, **environment)

    def refusal(self, command: str, *options: str, **environment: str) -> str:
        more = ("--wrap=true",) if command == "sbatch" else ("true",)
        done = self.slurm.run(*AS_USER, command, "--chdir=/", *options, *more, **environment)
        self.assertNotEqual(done.returncode, 0, f"{options}: {done.stdout}")
        return done.stderr

    def other_configuration(self, bounds: str) -> str:
        """A slurm.conf of the user's own, with bounds of the user's own."""
        own = self.work / "own-plugstack.conf"
        own.write_text(self.plugstack(bounds).format(work=self.work))
        config = self.work / "own-slurm.conf"
        config.write_text((self.work / "slurm.conf").read_text().replace(f"{self.work}/plugstack.conf", str(own)))
        return str(config)

    def test_a_job_has_at_the_stages_what_was_asked_for(self) -> None:
        job = self.submit("--vpfs-weight=4", "--vpfs-rate=50MiB/s")
        self.assertEqual(self.words_of(job), ["weight=4", "rate=50MiB/s"])
        self.end(job)

    def test_a_job_without_options_has_the_words_of_the_site(self) -> None:
        job = self.submit()
        self.assertEqual(self.words_of(job), ["weight=2"])
        self.end(job)

    def test_the_last_of_two_options_counts(self) -> None:
        job = self.submit("--vpfs-weight=4", "--vpfs-weight=3")
        self.assertEqual(self.words_of(job), ["weight=3"])
        self.end(job)

    def test_what_is_out_of_bounds_is_refused_at_submission(self) -> None:
        for option, expected in (("--vpfs-weight=9", '"9" is out of bounds: expected a whole number from 1 to 8'),
                                 ("--vpfs-weight=", "it is empty: expected a whole number"),
                                 ("--vpfs-weight=-1", '"-1" is not a whole number'),
                                 ("--vpfs-weight=4\n5", r'"4\n5" is not a whole number'),
                                 ("--vpfs-weight=$(reboot)", '"$(reboot)" is not a whole number'),
                                 ("--vpfs-rate=1GiB/s", "expected a rate of at most 500MiB/s"),
                                 ("--vpfs-rate=50", 'needs a unit, such as "50 MiB/s"'),
                                 ("--vpfs-deadline=1ms", "expected a time of at least 5ms")):
            self.assertIn(f"sbatch: error: {option.split('=')[0]}: ", self.refusal("sbatch", option))
            self.assertIn(expected, self.refusal("sbatch", option))
        for command in ("srun", "salloc"):
            self.assertIn(f"{command}: error: --vpfs-weight: ", self.refusal(command, "--vpfs-weight=9"))

    def test_bounds_hold_for_a_user_who_has_made_others(self) -> None:
        config = self.other_configuration("weight=..")
        job = self.submit("--vpfs-weight=1000", SLURM_CONF=config)
        self.assertEqual(self.words_of(job), ["weight=2"])
        self.assertRegex(self.slurm.syslog(), f"job {job}: vpfsctl job start: vpfsctl: warning: --wish weight=1000: .*out of bounds")
        self.end(job)

    def test_mistyped_bounds_refuse_the_options_and_no_job_without_them(self) -> None:
        config = self.other_configuration("weight=1-8")
        self.assertIn("mistyped, so it cannot be used: weight: \"1-8\" is not a range",
                      self.refusal("sbatch", "--vpfs-weight=4", SLURM_CONF=config))
        job = self.submit(SLURM_CONF=config)
        self.assertEqual(self.words_of(job), ["weight=2"])
        self.end(job)

    def test_a_step_within_a_job_changes_nothing_and_runs(self) -> None:
        output = self.work / "steps"
        output.touch()
        output.chmod(0o666)
        steps = f"srun true && srun --vpfs-weight=7 true && srun --vpfs-weight=70 true; echo code $?; {HOLD}"
        job = self.slurm.submit(steps, "--vpfs-weight=5", f"--output={output}")
        wait_until(lambda: "code" in output.read_text(), "the steps of the job")
        self.assertEqual(output.read_text().count("--vpfs-weight: counts for a whole job"), 2, output.read_text())
        self.assertIn("code 0", output.read_text())
        self.assertEqual(self.words_of(job), ["weight=5"])
        self.end(job)

    def test_each_task_of_an_array_has_what_was_asked_for(self) -> None:
        self.submit("--array=1-2", "--vpfs-weight=6")
        wait_until(lambda: len(self.mine()) == 2, "two rules")
        self.assertEqual(self.mine(), [["weight=6"], ["weight=6"]])
        self.slurm.end_jobs()
        wait_until(lambda: not self.mine(), "no rule is left")

    def mine(self) -> list[Sequence[str]]:
        """The words of the rules of jobs, in the order of their ids."""
        jobs = [each for each in self.rules().items() if each[0].startswith("job:")]
        return [words for _, words in sorted(jobs, key=lambda each: int(each[0].removeprefix("job:")))]

    def test_only_the_first_node_of_a_job_speaks_and_for_all(self) -> None:
        before = (self.work / "calls").read_text() if (self.work / "calls").exists() else ""
        job = self.submit("--nodes=2", "--vpfs-weight=3")
        self.assertEqual(self.words_of(job), ["weight=3"])
        wait_until(lambda: self.slurm.state(job) == "RUNNING", f"job {job} runs")
        self.assertEqual((self.work / "calls").read_text().removeprefix(before), f"{job}\n")
        self.end(job)

    def test_parts_of_a_heterogeneous_job_have_options_of_their_own(self) -> None:
        part = ("--nodes=1", "--ntasks=1")
        for first, second, words in ((("--vpfs-weight=5",), ("--vpfs-weight=7",), [["weight=5"], ["weight=7"]]),
                                     ((), ("--vpfs-weight=7",), [["weight=2"], ["weight=7"]]),
                                     (("--vpfs-weight=5",), (), [["weight=5"], ["weight=5"]])):
            self.submit(*part, *first, ":", *part, *second)
            wait_until(lambda: len(self.mine()) == 2, "both parts run")
            self.assertEqual(self.mine(), words)
            self.slurm.end_jobs()
            wait_until(lambda: not self.mine(), "no rule is left")

    def test_a_job_runs_although_nothing_of_vpfs_answers(self) -> None:
        self.site.stop()
        self.addCleanup(self.site.start)
        job = self.slurm.submit("sleep 1", "--vpfs-weight=4")
        wait_until(lambda: self.slurm.state(job) == "RUNNING", f"job {job} runs")
        wait_until(lambda: self.slurm.state(job) in ("", "COMPLETED"), f"job {job} ends")
        self.assertRegex(self.slurm.syslog(), f"job {job}: vpfsctl job start: .*unreachable")

    def test_a_job_runs_although_vpfsctl_is_missing(self) -> None:
        program = self.work / "vpfsctl"
        program.rename(self.work / "gone")
        self.addCleanup((self.work / "gone").rename, program)
        job = self.slurm.submit("sleep 1", "--vpfs-weight=4")
        wait_until(lambda: self.slurm.state(job) == "RUNNING", f"job {job} runs")
        wait_until(lambda: self.slurm.state(job) in ("", "COMPLETED"), f"job {job} ends")
        self.assertRegex(self.slurm.syslog(), f"job {job}: vpfsctl job start: .*not found")


if __name__ == "__main__":
    PROGRAMS.append(pathlib.Path(sys.argv.pop(1)))
    if reason := why_not():
        print(reason)
        sys.exit(SKIPPED)
    if not (PROGRAMS[0].parent / "lib" / PLUGIN).exists():
        print(f"the plugin is not built here: no {PLUGIN}")
        sys.exit(SKIPPED)
    unittest.main()
