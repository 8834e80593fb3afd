#!/usr/bin/env python3
"""conf/slurm with Debian's Slurm on this machine: a proxy knows each job for as long as it runs.

    slurm_test.py DIRECTORY_OF_PROGRAMS

Skips where Slurm is not installed, or without root: slurmd starts jobs as other users.
"""
from __future__ import annotations

import json
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Mapping

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from lab.cluster import Cluster, Front  # noqa: E402
from lab.harness import Programs  # noqa: E402

SKIPPED = 77
NEEDED = ["/usr/sbin/munged", "/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/bin/sbatch", "/usr/bin/squeue",
          "/usr/bin/openssl"]
SLURM_USER = "slurm"  # of Debian's package
HOST = socket.gethostname().split(".")[0]
USER = pwd.getpwnam("nobody")
PATIENCE = 20.0
PROGRAMS: list[pathlib.Path] = []


def why_not() -> str | None:
    missing = [name for name in NEEDED if not pathlib.Path(name).exists()]
    if missing:
        return f"Slurm is not installed here: no {', '.join(missing)}"
    if os.geteuid() != 0:
        return "needs root"
    try:
        pwd.getpwnam(SLURM_USER)
    except KeyError:
        return f"there is no user {SLURM_USER}"
    try:
        socket.gethostbyname(HOST)
    except OSError:
        return f"this host cannot look up its own name {HOST}"
    return None


def wait_until(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {PATIENCE:g} s: {what}")
        time.sleep(0.1)


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


class Slurm:
    """A controller of the user slurm and one node of its own, with the prolog and epilog of conf/slurm."""

    def __init__(self, programs: Programs, settings: str) -> None:
        self._programs, self._work = programs, programs.work
        self._work.chmod(0o755)
        for name in ("state", "spool"):
            (self._work / name).mkdir()
            shutil.chown(self._work / name, SLURM_USER)
        (self._work / "key").write_bytes(os.urandom(1024))
        (self._work / "key").chmod(0o400)
        # Its user may not be able to enter the folder of the programs.
        shutil.copy(programs.binaries / "vpfsctl", self._work / "vpfsctl")
        (self._work / "bin").mkdir()
        (self._work / "syslog").touch()
        (self._work / "syslog").chmod(0o666)
        self._write("bin/logger", f"#!/bin/sh\necho \"$@\" >> {self._work}/syslog\n", 0o755)
        for name in ("prolog", "epilog"):
            # Slurm gives these programs none of its own environment.
            head = (f"set -u\nexport PATH={self._work}/bin:/usr/bin:/bin SLURM_CONF={self._work}/slurm.conf\n"
                    f"VPFSCTL={self._work}/vpfsctl VPFS_JOB_WORDS=weight=2\n{settings}\n")
            script = (ROOT / "conf/slurm" / name).read_text()
            if script.count("\nset -u\n") != 1:
                raise AssertionError(f"conf/slurm/{name} has no line `set -u`")
            self._write(name, script.replace("\nset -u\n", f"\n{head}"), 0o755)
        config = self._write("slurm.conf", self._config())
        self._write("cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self.environment = dict(os.environ, SLURM_CONF=str(config))
        os.environ["SLURM_CONF"] = str(config)  # of the programs that follow
        munge = self._file("munge")
        programs.start("munged", "/usr/sbin/munged", "--foreground", "--force", f"--key-file={self._file('key')}",
                       f"--socket={munge}.socket", f"--pid-file={munge}.pid", f"--log-file={munge}.log",
                       f"--seed-file={munge}.seed")
        wait_until(lambda: pathlib.Path(f"{munge}.socket").exists(), "munged")
        programs.start("slurmctld", "/usr/sbin/slurmctld", "-D", "-f", str(config))
        programs.start("slurmd", "/usr/sbin/slurmd", "-D", "-N", HOST, "-f", str(config))
        wait_until(lambda: "idle" in self.ask("sinfo", "--noheader", "--format=%T", check=False), "a node of Slurm")

    def _file(self, name: str) -> str:
        return str(self._work / name)

    def _write(self, name: str, text: str, mode: int = 0o644) -> pathlib.Path:
        file = self._work / name
        file.write_text(text)
        file.chmod(mode)
        return file

    def _config(self) -> str:
        names = {"StateSaveLocation": "state", "SlurmdSpoolDir": "spool", "SlurmctldPidFile": "slurmctld.pid",
                 "SlurmdPidFile": "slurmd.pid", "SlurmctldLogFile": "slurmctld-own.log", "SlurmdLogFile": "slurmd-own.log",
                 "PrologSlurmctld": "prolog", "EpilogSlurmctld": "epilog"}
        ports = {name: self._programs.reserve_port() for name in ("SlurmctldPort", "SlurmdPort")}
        settings = {"ClusterName": "vpfs", "SlurmctldHost": f"{HOST}(127.0.0.1)", "SlurmUser": SLURM_USER,
                    "AuthType": "auth/munge", "AuthInfo": f"socket={self._file('munge')}.socket", "CredType": "cred/munge",
                    "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none", "SwitchType": "switch/none",
                    "MpiDefault": "none", "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_CPU",
                    "JobAcctGatherType": "jobacct_gather/none", "AccountingStorageType": "accounting_storage/none",
                    "ReturnToService": "2", "SchedulerType": "sched/backfill", "KillWait": "1"}
        settings |= {key: self._file(name) for key, name in names.items()} | {key: str(port) for key, port in ports.items()}
        lines = [f"{key}={value}" for key, value in settings.items()]
        lines += [f"NodeName={HOST} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN",
                  f"PartitionName=all Nodes={HOST} Default=YES MaxTime=INFINITE State=UP"]
        return "\n".join(lines) + "\n"

    def ask(self, *command: str, check: bool = True) -> str:
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=self.environment, timeout=PATIENCE)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, script: str, *options: str) -> str:
        """Returns the job's id."""
        return self.ask("sbatch", "--parsable", f"--uid={USER.pw_uid}", f"--gid={USER.pw_gid}", "--chdir=/", "--output=/dev/null",
                        *options, f"--wrap={script}").strip()

    def state(self, job: str) -> str:
        return self.ask("squeue", "--noheader", f"--jobs={job}", "--format=%T", check=False).strip()

    def end_jobs(self) -> None:
        """Programs of jobs outlive slurmd."""
        self.ask("scancel", "--partition=all", check=False)
        wait_until(lambda: not self.ask("squeue", "--noheader", check=False).strip(), "no job is left")

    def syslog(self) -> str:
        return (self._work / "syslog").read_text()


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
        cls.slurm = Slurm(cls.programs, settings_of_page(tls, work / "proxies"))
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

    def test_a_requeued_job_keeps_its_identity(self) -> None:
        job = self.slurm.submit("sleep 60", "--requeue", "--account=physics")
        wait_until(lambda: self.slurm.state(job) == "RUNNING", f"job {job} runs")
        before = self.job(job)
        self.slurm.ask("scontrol", "requeue", job)
        wait_until(lambda: self.job(job) is None and self.slurm.state(job) == "PENDING", f"job {job} waits again")
        self.slurm.ask("scontrol", "update", f"JobId={job}", "StartTime=now")
        wait_until(lambda: self.slurm.state(job) == "RUNNING", f"job {job} runs again")
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
