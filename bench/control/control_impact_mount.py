"""The jobs of script/bench control_impact as programs of others on a mounted OrangeFS: fio and IOR.

Each job has a directory, and SLURM_JOB_ID tells it apart. Its time is that from its start until its
program has ended. What jobs had moved by then, and over time, is what the proxies count.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import pathlib
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence

from bench.control.control_impact_jobs import JOBS, WARM_UP, Job, Outcome
from lab import ior
from lab.applications import started
from lab.cluster import Cluster
from lab.harness import MIB, Problem, Programs
from lab.mount import mounted, vpfs_mount
from lab.mpi import mpi_command
from lab.points import Points
from lab.status import INTERVAL, moved_bytes

LOADS = ("fio", "ior")
PATIENCE = 300.0
# A process of fio is a thread, one of IOR a process that MPI starts.
MOST_PROCESSES = {"fio": 64, "ior": 16}
BIN = 3 * INTERVAL  # seconds of a rate
PROXY = {"status_interval": f"{round(INTERVAL * 1000)} ms"}
Sample = tuple[float, Mapping[str, float]]  # when, and the bytes of each job by then


@dataclasses.dataclass(frozen=True)
class MountRun(Outcome):
    ends: Mapping[str, float]
    samples: Sequence[Sample]
    scale: float

    def end(self, job: Job) -> float:
        return self.ends[job.name]

    def moved(self, job: Job) -> float:
        return self.samples[-1][1][job.name]

    def series(self) -> dict[str, Points]:
        return {job.name: rates(self.samples, job.name) for job in JOBS}


def rates(samples: Sequence[Sample], job: str) -> Points:
    """MiB/s between samples, each at the end of its time."""
    return [
        (end, (after[job] - before[job]) / (end - begin) / MIB)
        for (begin, before), (end, after) in itertools.pairwise(samples)
        if end > begin
    ]


def processes(load: str, job: Job) -> int:
    """As many as vpfs-load has requests in flight: each process has one."""
    return min(MOST_PROCESSES[load], job.processes * job.outstanding)


def mib_of_each(load: str, job: Job, scale: float) -> int:
    return max(1, round(job.amount * scale / MIB / processes(load, job)))


def command(load: str, job: Job, scale: float, directory: pathlib.Path) -> list[str]:
    """Writes in requests of the job's size, a file for each process, past the page cache."""
    count, each = processes(load, job), mib_of_each(load, job, scale)
    if load == "fio":
        return [
            "fio",
            "--output-format=json",
            "--name=data",
            "--rw=write",
            f"--bs={job.size}",
            f"--size={each * MIB}",
            f"--numjobs={count}",
            "--group_reporting",
            "--direct=1",
            "--ioengine=psync",
            "--fallocate=none",
            "--thread",
            f"--directory={directory}",
        ]
    program, _ = ior.require()
    return [
        *mpi_command(program, count, {"SLURM_JOB_ID": job.name}),
        program,
        *("-a", "POSIX", "--posix.odirect", "-w", "-k", "-F"),
        *("-t", str(job.size), "-b", f"{each}m", "-o", str(directory / "data")),
    ]


def why_not(load: str) -> str:
    """Why this machine cannot run it; empty: it can."""
    if load == "ior":
        try:
            ior.require()
        except Problem as problem:
            return str(problem)
    return ""


class Jobs:
    """The programs of all jobs: each begins at its time."""

    def __init__(
        self, programs: Programs, cluster: Cluster, front: str, place: pathlib.Path, load: str
    ) -> None:
        self._programs, self._cluster, self._front = programs, cluster, front
        self._place, self._load = place, load
        for job in JOBS:
            (place / job.name).mkdir()

    def run(self, scale: float) -> MountRun:
        with contextlib.ExitStack() as stack:
            origin = time.monotonic() + WARM_UP
            waiting = list(JOBS)
            running: dict[str, subprocess.Popen[bytes]] = {}
            ends: dict[str, float] = {}
            samples: list[Sample] = [(0.0, dict.fromkeys((job.name for job in JOBS), 0.0))]
            while len(ends) < len(JOBS):
                now = time.monotonic() - origin
                while waiting and now >= waiting[0].start * scale:
                    job = waiting.pop(0)
                    running[job.name] = stack.enter_context(self._started(job, scale))
                ends |= self._ended(running, ends, now)
                if now > 0:
                    samples.append((now, self._moved()))
                if now > PATIENCE:
                    raise Problem(
                        f"the jobs did not end within {PATIENCE:.0f} s; their logs are in "
                        f"{self._programs.work}"
                    )
                time.sleep(INTERVAL / 4)
            time.sleep(2 * INTERVAL)  # proxies write their status so often
            samples.append((time.monotonic() - origin, self._moved()))
        return MountRun(ends, thinned(samples), scale)

    def _ended(
        self,
        running: Mapping[str, subprocess.Popen[bytes]],
        known: Mapping[str, float],
        now: float,
    ) -> dict[str, float]:
        found = {
            name: now
            for name, process in running.items()
            if name not in known and process.poll() is not None
        }
        for name in found:
            if code := running[name].returncode:
                text = self._log(name).read_text(errors="replace")
                raise Problem(f"{self._load} of {name} ended with {code}:\n{text[-2000:]}")
        return found

    def _log(self, job: str) -> pathlib.Path:
        return self._programs.work / f"{self._load}-{job}.log"

    def _started(
        self, job: Job, scale: float
    ) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
        words = command(self._load, job, scale, self._place / job.name)
        return started(words, self._log(job.name), {"SLURM_JOB_ID": job.name})

    def _moved(self) -> dict[str, float]:
        files = self._cluster.status_files(self._front)
        return moved_bytes(files, (job.name for job in JOBS))


def thinned(samples: Sequence[Sample]) -> list[Sample]:
    """Some of them, the first and the last included.

    Proxies write their status at different times, so rates over a shorter time would be too high
    and too low in turn.
    """
    found = list(samples[:1])
    for sample in samples[1:-1]:
        if sample[0] - found[-1][0] >= BIN:
            found.append(sample)
    return [*found, *samples[1:][-1:]]


@contextlib.contextmanager
def on_a_mount(programs: Programs, cluster: Cluster, front: str, load: str) -> Iterator[Jobs]:
    """The jobs on a mount behind the cluster's proxies, which run already."""
    for index, proxy in enumerate(cluster.running[front]):
        proxy.wait_until(cluster.status_file(front, index).exists, "writing its status")
    place = programs.work / "mount"
    place.mkdir(exist_ok=True)
    with mounted(programs, place.name, vpfs_mount(cluster.address(front), place), place):
        yield Jobs(programs, cluster, front, place, load)
