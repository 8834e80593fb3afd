"""Debian's Slurm on this machine, for tests: a controller and its nodes, with scripts of conf/slurm."""
from __future__ import annotations

import dataclasses
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Sequence

from lab.harness import Programs

ROOT = pathlib.Path(__file__).resolve().parents[3]
SKIPPED = 77
NEEDED = ["/usr/sbin/munged", "/usr/sbin/slurmctld", "/usr/sbin/slurmd", "/usr/bin/sbatch", "/usr/bin/squeue",
          "/usr/bin/openssl"]
SLURM_USER = "slurm"  # of Debian's package
HOST = socket.gethostname().split(".")[0]
USER = pwd.getpwnam("nobody")
AS_USER = (f"--uid={USER.pw_uid}", f"--gid={USER.pw_gid}")  # of the command that submits
PATIENCE = 20.0


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


def wait_until(ready: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    deadline = time.monotonic() + patience
    while not ready():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {patience:g} s: {what}")
        time.sleep(0.1)


@dataclasses.dataclass(frozen=True)
class Hooks:
    """`prolog` is where slurm.conf names it: PrologSlurmctld, or Prolog of the node."""

    settings: str  # lines that the scripts get at their top
    prolog: str = "PrologSlurmctld"
    plugstack: str = ""  # text of plugstack.conf; {work} is the folder of the test
    nodes: Sequence[str] = (HOST,)  # names that this host can look up


class Slurm:
    """A controller of the user slurm and nodes of its own, with the prolog and epilog of conf/slurm."""

    def __init__(self, programs: Programs, hooks: Hooks) -> None:
        self._programs, self._work, self._hooks = programs, programs.work, hooks
        self._work.chmod(0o755)
        (self._work / "state").mkdir()
        shutil.chown(self._work / "state", SLURM_USER)
        for node in hooks.nodes:
            (self._work / f"spool-{node}").mkdir()
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
                    f"VPFSCTL={self._work}/vpfsctl VPFS_JOB_WORDS=weight=2 VPFS_PLUGSTACK={self._work}/plugstack.conf\n"
                    f"{hooks.settings}\n")
            script = (ROOT / "conf/slurm" / name).read_text()
            if script.count("\nset -u\n") != 1:
                raise AssertionError(f"conf/slurm/{name} has no line `set -u`")
            self._write(name, script.replace("\nset -u\n", f"\n{head}"), 0o755)
        config = self._write("slurm.conf", self._config())
        self._write("plugstack.conf", hooks.plugstack.format(work=self._work))
        self._write("cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        self.environment = dict(os.environ, SLURM_CONF=str(config))
        os.environ["SLURM_CONF"] = str(config)  # of the programs that follow
        munge = self._file("munge")
        programs.start("munged", "/usr/sbin/munged", "--foreground", "--force", f"--key-file={self._file('key')}",
                       f"--socket={munge}.socket", f"--pid-file={munge}.pid", f"--log-file={munge}.log",
                       f"--seed-file={munge}.seed")
        wait_until(lambda: pathlib.Path(f"{munge}.socket").exists(), "munged")
        programs.start("slurmctld", "/usr/sbin/slurmctld", "-D", "-f", str(config))
        for node in hooks.nodes:
            programs.start(f"slurmd-{node}", "/usr/sbin/slurmd", "-D", "-N", node, "-f", str(config))
        wait_until(lambda: self.ask("sinfo", "--noheader", "--Node", "--format=%T", check=False).split() == ["idle"] * len(hooks.nodes),
                   "the nodes of Slurm")

    def _file(self, name: str) -> str:
        return str(self._work / name)

    def _write(self, name: str, text: str, mode: int = 0o644) -> pathlib.Path:
        file = self._work / name
        file.write_text(text)
        file.chmod(mode)
        return file

    def _config(self) -> str:
        names = {"StateSaveLocation": "state", "SlurmdSpoolDir": "spool-%n", "SlurmctldPidFile": "slurmctld.pid",
                 "SlurmdPidFile": "slurmd-%n.pid", "SlurmctldLogFile": "slurmctld-own.log", "SlurmdLogFile": "slurmd-own-%n.log",
                 "PlugStackConfig": "plugstack.conf", self._hooks.prolog: "prolog", "EpilogSlurmctld": "epilog"}
        settings = {"ClusterName": "vpfs", "SlurmctldHost": f"{HOST}(127.0.0.1)", "SlurmUser": SLURM_USER,
                    "AuthType": "auth/munge", "AuthInfo": f"socket={self._file('munge')}.socket", "CredType": "cred/munge",
                    "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none", "SwitchType": "switch/none",
                    "MpiDefault": "none", "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_CPU",
                    "JobAcctGatherType": "jobacct_gather/none", "AccountingStorageType": "accounting_storage/none",
                    "ReturnToService": "2", "SchedulerType": "sched/backfill", "SchedulerParameters": "bf_interval=1",
                    "KillWait": "1"}
        settings |= {key: self._file(name) for key, name in names.items()}
        settings["SlurmctldPort"] = str(self._programs.reserve_port())
        if self._hooks.prolog == "Prolog":
            settings["PrologFlags"] = "Alloc"
        lines = [f"{key}={value}" for key, value in settings.items()]
        lines += [f"NodeName={node} NodeHostname={HOST} NodeAddr=127.0.0.1 Port={self._programs.reserve_port()} CPUs=2 State=UNKNOWN"
                  for node in self._hooks.nodes]
        lines.append("PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
        return "\n".join(lines) + "\n"

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, check=False, capture_output=True, text=True, env=self.environment | environment,
                              timeout=PATIENCE)

    def ask(self, *command: str, check: bool = True, **environment: str) -> str:
        done = self.run(*command, **environment)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def submit(self, script: str, *options: str, **environment: str) -> str:
        """Returns the job's id."""
        return self.ask("sbatch", "--parsable", *AS_USER, "--chdir=/", "--output=/dev/null", *options, f"--wrap={script}",
                        **environment).strip()

    def state(self, job: str) -> str:
        return self.ask("squeue", "--noheader", f"--jobs={job}", "--format=%T", check=False).strip()

    def end_jobs(self) -> None:
        """Programs of jobs outlive slurmd."""
        self.ask("scancel", "--partition=all", check=False)
        wait_until(lambda: not self.ask("squeue", "--noheader", check=False).strip(), "no job is left")

    def syslog(self) -> str:
        return (self._work / "syslog").read_text()
