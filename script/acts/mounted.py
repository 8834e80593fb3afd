"""The demo's fourth act: two jobs on one mounted directory, known by their job ids.

The directory below represents a parallel file system of 100 MiB/s: it is a mount too, with a rate.
fio runs as each of the jobs, and the mount in front gives one of them three times what the other
gets.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

from lab.harness import Problem, Program, Programs
from lab.mount import directory_mounted

DEVICE_MIB_PER_S = 100
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
    timeline: dict[str, list[tuple[float, float]]]  # the same of each second, by its middle
    wanted: float = WEIGHTS["4711"] / WEIGHTS["4712"]

    def ratio(self) -> float:
        return self.rates["4711"] / self.rates["4712"] if self.rates["4712"] > 0 else float("inf")

    def error_percent(self) -> float:
        return abs(self.ratio() / self.wanted - 1) * 100


def bytes_of(status: pathlib.Path, mount: Program) -> dict[str, int]:
    """What each job has moved by now, as a fresh status says."""
    status.unlink(missing_ok=True)
    mount.signal(signal.SIGUSR1)
    mount.wait_until(status.exists, "writing its status")
    return {
        each["name"]: each["done_bytes"] for each in json.loads(status.read_text())["virtual_pfs"]
    }


@contextlib.contextmanager
def loads(place: pathlib.Path, log: pathlib.Path) -> Iterator[None]:
    """fio as each of the jobs."""
    running = []
    try:
        for job in WEIGHTS:
            command = [
                "fio",
                f"--name={job}",
                f"--directory={place}",
                "--rw=write",
                "--bs=256k",
                "--size=64m",
                f"--numjobs={THREADS}",
                "--direct=1",
                "--ioengine=psync",
                "--time_based",
                "--runtime=600",
                "--thread",
                "--fallocate=none",
            ]
            with (log / f"fio-{job}.log").open("wb") as out:
                running.append(
                    subprocess.Popen(
                        command, stdout=out, stderr=out, env=os.environ | {"SLURM_JOB_ID": job}
                    )
                )
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
        _, device = stack.enter_context(directory_mounted(programs, "device", DEVICE, below))
        mount, place = stack.enter_context(
            directory_mounted(programs, "shared", SHARES.format(status=status), device)
        )
        stack.enter_context(loads(place, programs.work))
        deadline = time.monotonic() + 20
        while min(bytes_of(status, mount).get(job, 0) for job in WEIGHTS) == 0:
            if time.monotonic() > deadline:
                raise Problem(f"fio does not write; its logs are in {programs.work}")
            time.sleep(0.05)
        time.sleep(SETTLES)
        began, before = time.monotonic(), bytes_of(status, mount)
        first, last, at = before, before, began
        timeline: dict[str, list[tuple[float, float]]] = {job: [] for job in WEIGHTS}
        for _ in range(seconds):
            time.sleep(max(0.0, at + 1 - time.monotonic()))
            now, moved = time.monotonic(), bytes_of(status, mount)
            shown = {job: (moved[job] - last[job]) / (now - at) / 2**20 for job in WEIGHTS}
            say("  ".join(f"job {job} {rate:6.1f} MiB/s" for job, rate in shown.items()))
            for job, rate in shown.items():
                timeline[job].append(((at + now) / 2 - began, rate))
            last, at = moved, now
        rates = {job: (last[job] - first[job]) / (at - began) / 2**20 for job in WEIGHTS}
        return Act(rates, timeline)
