"""The demo's fourth act: two jobs on one mounted directory, told apart by nothing but their batch system's variable.

The directory below stands for a parallel file system of 100 MiB/s: it is a mount too, with a rate. fio runs as each of
the jobs, and the mount in front gives one of them three times what the other gets.
"""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator

from bench.harness import Problem, Program, Programs

DEVICE_MIB_PER_S = 100
MNT_DETACH = 2
WEIGHTS = {"4711": 3, "4712": 1}
THREADS = 8
SETTLES = 1.0
TOLERANCE_PERCENT = 3.0
DEVICE = f"""
mount: {{drain: 0s}}
scheduler: {{policy: tbf, cost: {{per_request: 0}}}}
virtual_pfs: {{default: {{rate: {DEVICE_MIB_PER_S} MiB/s, burst: 4 MiB}}}}
"""
SHARES = """
mount: {{status_file: {status}, drain: 0s}}
scheduler: {{policy: sfq, depth: {{requests: 4, bytes: 8 MiB}}, cost: {{per_request: 0}}}}
virtual_pfs: {{"4711": {{weight: 3}}, "4712": {{weight: 1}}, default: {{weight: 1}}}}
rules:
  - match: {{jobid: "4711"}}
    virtual_pfs: "4711"
  - match: {{jobid: "4712"}}
    virtual_pfs: "4712"
"""


@dataclasses.dataclass(frozen=True)
class Act:
    rates: dict[str, float]  # MiB/s of each job
    wanted: float = WEIGHTS["4711"] / WEIGHTS["4712"]

    def ratio(self) -> float:
        return self.rates["4711"] / self.rates["4712"] if self.rates["4712"] > 0 else float("inf")

    def error_percent(self) -> float:
        return abs(self.ratio() / self.wanted - 1) * 100


def why_not() -> str:
    """Why this machine cannot show it; empty if it can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "there is no /dev/fuse that may be used"
    for program in ["fusermount3", "fio"]:
        if not shutil.which(program):
            return f"{program} is not installed"
    return why_mounting_is_refused()


def why_mounting_is_refused() -> str:
    """A container may have /dev/fuse and still refuse. For users fusermount3 decides, when the act begins."""
    if os.geteuid() != 0:
        return ""
    libc = ctypes.CDLL(None, use_errno=True)
    with tempfile.TemporaryDirectory() as place, open("/dev/fuse", "rb+", buffering=0) as device:
        options = f"fd={device.fileno()},rootmode=40000,user_id=0,group_id=0"
        if libc.mount(b"probe", place.encode(), b"fuse", 0, options.encode()) != 0:
            return f"nothing can be mounted here: {os.strerror(ctypes.get_errno())}"
        libc.umount2(place.encode(), MNT_DETACH)
    return ""


@contextlib.contextmanager
def mounted(programs: Programs, name: str, config: str, below: pathlib.Path) -> Iterator[tuple[Program, pathlib.Path]]:
    place = programs.work / name
    place.mkdir()
    (programs.work / f"{name}.yaml").write_text(config)
    program = programs.start(f"mount-{name}", "vpfs-mount", f"posix:{below}", str(place), "-f", "-o",
                             f"config={programs.work / name}.yaml")
    program.wait_for_line("ready at")
    try:
        yield program, place
    finally:
        program.stop()


def bytes_of(status: pathlib.Path, mount: Program) -> dict[str, int]:
    """What each job has moved by now, as a fresh status says."""
    status.unlink(missing_ok=True)
    mount.signal(signal.SIGUSR1)
    mount.wait_until(status.exists, "writing its status")
    return {each["name"]: each["done_bytes"] for each in json.loads(status.read_text())["virtual_pfs"]}


@contextlib.contextmanager
def loads(place: pathlib.Path, log: pathlib.Path) -> Iterator[None]:
    """fio as each of the jobs."""
    running = []
    try:
        for job in WEIGHTS:
            command = ["fio", f"--name={job}", f"--directory={place}", "--rw=write", "--bs=256k", "--size=64m",
                       f"--numjobs={THREADS}", "--direct=1", "--ioengine=psync", "--time_based", "--runtime=600",
                       "--thread", "--fallocate=none"]
            with (log / f"fio-{job}.log").open("wb") as out:
                running.append(subprocess.Popen(command, stdout=out, stderr=out, env=os.environ | {"SLURM_JOB_ID": job}))
        yield
    finally:
        for each in running:
            each.kill()
        for each in running:
            each.wait()


def perform(programs: Programs, seconds: int, say: Callable[[str], None]) -> Act:
    below = programs.work / "below"
    below.mkdir()
    status = programs.work / "mount-status.json"
    with contextlib.ExitStack() as stack:
        _, device = stack.enter_context(mounted(programs, "device", DEVICE, below))
        mount, place = stack.enter_context(mounted(programs, "shared", SHARES.format(status=status), device))
        stack.enter_context(loads(place, programs.work))
        deadline = time.monotonic() + 20
        while min((bytes_of(status, mount).get(job, 0) for job in WEIGHTS)) == 0:
            if time.monotonic() > deadline:
                raise Problem(f"fio does not write; its logs are in {programs.work}")
            time.sleep(0.05)
        time.sleep(SETTLES)
        began, before = time.monotonic(), bytes_of(status, mount)
        first, last, at = before, before, began
        for _ in range(seconds):
            time.sleep(max(0.0, at + 1 - time.monotonic()))
            now, moved = time.monotonic(), bytes_of(status, mount)
            shown = {job: (moved[job] - last[job]) / (now - at) / 2**20 for job in WEIGHTS}
            say("  ".join(f"job {job} {rate:6.1f} MiB/s" for job, rate in shown.items()))
            last, at = moved, now
        return Act({job: (last[job] - first[job]) / (at - began) / 2**20 for job in WEIGHTS})
