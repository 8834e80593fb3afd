#!/usr/bin/env python3
"""conf/slurm with Debian's Slurm on this machine: a proxy knows each job for as long as it runs.

    slurm_test.py DIRECTORY_OF_PROGRAMS

Skips where Slurm is not installed, or without root: slurmd starts jobs as other users.
"""
from __future__ import annotations

import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Mapping

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT), str(pathlib.Path(__file__).resolve().parent)]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from lab.cluster import Cluster, Front  # noqa: E402
from lab.harness import Programs  # noqa: E402
from slurm_site import (  # noqa: E402
    HOST,
    PATIENCE,
    SKIPPED,
    SLURM_USER,
    USER,
    Hooks,
    Slurm,
    wait_until,
    why_not,
)

PROGRAMS: list[pathlib.Path] = []


def settings_of_page(tls: pathlib.Path, proxies: pathlib.Path) -> str:
    """What the page says to put at the top of both scripts."""
    page = (ROOT / "docs/admin/slurm.md").read_text().splitlines()
    lines = [line.strip() for line in page if line.startswith(("    tls=", "    VPFS_TARGETS="))]
    if len(lines) != 2:
        raise AssertionError(f"docs/admin/slurm.md has {lines} in place of tls= and VPFS_TARGETS=")
    return "\n".join(lines).replace("/etc/vpfs/tls", str(tls)).replace("--all", f"--proxies {proxies}")


def make_certificates(tls: pathlib.Path) -> None:
    """As the page says it, and those of the proxy."""
    subprocess.run([ROOT / "script/certificates", tls, "stor0=localhost", "slurm"], check=True, capture_output=True)
    shutil.chown(tls / "slurm.key", SLURM_USER)


class SlurmTest(unittest.TestCase):
    programs: Programs
    slurm: Slurm
    cluster: Cluster
    folder: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.mkdtemp(prefix="vpfs")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.programs = Programs(PROGRAMS[0], pathlib.Path(cls.folder))
        cls.enterClassContext(cls.programs)
        work = pathlib.Path(cls.folder)
        tls = work / "tls"
        make_certificates(tls)
        port = cls.programs.reserve_port()
        (work / "proxies").write_text(f"localhost:{port}   stor0\n")
        front = Front("px", "proxy", shares={"job-{jobid}": {}}, templates={"job-{jobid}": {"hint": {"jobid": "*"}}},
                      control={"socket": "px.sock", "name": "storage", "tcp": f"127.0.0.1:{port}", "ca": str(tls / "ca.pem"),
                               "certificate": str(tls / "stor0.pem"), "key": str(tls / "stor0.key"), "writers": ["cert:slurm"]})
        cls.cluster = Cluster(cls.programs, 1, [front])
        cls.cluster.start("px")
        cls.slurm = Slurm(cls.programs, Hooks(settings_of_page(tls, work / "proxies")))
        cls.addClassCleanup(cls.slurm.end_jobs)

    def ctl(self, *words: str) -> Mapping[str, object]:
        done = subprocess.run([self.programs.binaries / "vpfsctl", "--proxy", f"{self.folder}/px.sock", "--json", *words],
                              check=False, capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["proxies"][0]["data"]

    def job(self, job: str) -> Mapping[str, object] | None:
        return next((each for each in self.ctl("job", "list").get("jobs", []) if each["jobid"] == job), None)

    def test_a_job_is_registered_while_it_runs(self) -> None:
        job = self.slurm.submit("sleep 2", "--account=physics", "--time=5")
        wait_until(lambda: self.slurm.state(job) == "RUNNING", f"job {job} runs")
        seen = self.job(job)
        self.assertIsNotNone(seen, self.slurm.syslog())
        self.assertEqual((seen["uids"], seen["gids"], seen["account"], seen["nodes"]),
                         ([USER.pw_uid], [USER.pw_gid], "physics", 1))
        self.assertEqual(seen["clients"], [socket.gethostbyname(HOST)])
        # Its time limit, in seconds since the epoch.
        self.assertAlmostEqual(int(seen["until_at"]), time.time() + 300, delta=30)
        rules = {rule["name"]: rule for rule in self.ctl("rule", "list")["rules"]}
        self.assertEqual(rules[f"job:{job}"]["words"], ["weight=2"])
        wait_until(lambda: self.job(job) is None, f"job {job} is registered no longer")

    def runs_now(self, job: str) -> bool:
        """A requeued job waits for minutes, and its end may come after the order to start."""
        if self.slurm.state(job) == "RUNNING":
            return True
        self.slurm.ask("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)
        return False

    def test_a_requeued_job_keeps_its_identity(self) -> None:
        # Slurm may take long to free the node of a job that is taken back while it starts.
        with tempfile.TemporaryDirectory() as folder:
            begun = pathlib.Path(folder) / "begun"
            pathlib.Path(folder).chmod(0o777)
            job = self.slurm.submit(f"touch {begun}; sleep 60", "--requeue", "--account=physics")
            wait_until(begun.exists, f"job {job} runs")
        before = self.job(job)
        self.slurm.ask("scontrol", "requeue", job)
        wait_until(lambda: self.job(job) is None and self.slurm.state(job) == "PENDING", f"job {job} waits again")
        # Its node takes a start in the second of the end for one that was revoked, and the job fails.
        may_start = time.monotonic() + 2
        wait_until(lambda: time.monotonic() > may_start and self.runs_now(job), f"job {job} runs again", patience=60)
        after = self.job(job)
        self.assertIsNotNone(after, self.slurm.syslog())
        changing = ("since_at", "until_at")
        self.assertEqual({key: value for key, value in before.items() if key not in changing},
                         {key: value for key, value in after.items() if key not in changing})
        self.slurm.ask("scancel", job)
        wait_until(lambda: self.job(job) is None, f"job {job} is registered no longer")

    def test_the_tasks_of_an_array_are_jobs_of_their_own(self) -> None:
        first = self.slurm.submit("sleep 2", "--array=1-2")
        wait_until(lambda: len(self.ctl("job", "list").get("jobs", [])) == 2, "two jobs are registered")
        jobs = self.ctl("job", "list")["jobs"]
        self.assertEqual(len({each["jobid"] for each in jobs}), 2)
        self.assertIn(first, {each["jobid"] for each in jobs})
        self.assertEqual({each.get("account", "") for each in jobs}, {""})
        wait_until(lambda: not self.ctl("job", "list").get("jobs"), "no job is registered")

    def test_a_job_starts_although_no_proxy_answers(self) -> None:
        self.cluster.stop("px")
        self.addCleanup(self.cluster.start, "px")
        job = self.slurm.submit("sleep 1")
        wait_until(lambda: self.slurm.state(job) == "RUNNING", f"job {job} runs")
        wait_until(lambda: self.slurm.state(job) in ("", "COMPLETED"), f"job {job} ends")
        self.assertRegex(self.slurm.syslog(), f"-t vpfs-slurm -p daemon.warning -- job {job}: vpfsctl job start: .*stor0: warning: "
                         "unreachable")

    def test_a_job_starts_although_vpfsctl_fails_and_the_log_says_why(self) -> None:
        key = pathlib.Path(self.folder) / "tls/slurm.key"
        key.chmod(0o000)
        self.addCleanup(key.chmod, 0o600)
        job = self.slurm.submit("sleep 1")
        wait_until(lambda: self.slurm.state(job) == "RUNNING", f"job {job} runs")
        self.assertRegex(self.slurm.syslog(), f"job {job}: vpfsctl job start: vpfsctl: .*slurm.key.*Permission denied")
        wait_until(lambda: self.slurm.state(job) in ("", "COMPLETED"), f"job {job} ends")


if __name__ == "__main__":
    PROGRAMS.append(pathlib.Path(sys.argv.pop(1)))
    if reason := why_not():
        print(reason)
        sys.exit(SKIPPED)
    unittest.main()
