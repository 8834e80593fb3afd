"""Two applications of a batch system with weights 3:1, on a mounted OrangeFS behind proxies.

The applications are programs of others. Nothing but SLURM_JOB_ID tells them apart. What each of
them got is what the proxies have counted while both ran.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import signal
import time
from collections.abc import Iterator, Mapping, Sequence

from lab.applications import started
from lab.cluster import Cluster, Depth, Front
from lab.harness import Problem, Programs
from lab.mount import mounted, vpfs_mount
from lab.report import Row
from lab.shared_time import SETTLES, TAIL, Sample, rates_between
from lab.status import INTERVAL, moved_bytes

WEIGHTS = {"4711": 3, "4712": 1}
WANTED = WEIGHTS["4711"] / sum(WEIGHTS.values())
POLICIES = ["fifo", "sfq"]
ANTICIPATING = "sfq+think"  # sfq with anticipation
TOLERANCE = 0.03  # of the ratio
# Slow enough for two processors to keep it busy through two mounts, whatever the requests are.
DEVICE = {"bandwidth": "200 MiB/s", "per_request": "500 us", "parallelism": 1}
DEPTH: Depth = {"depth_requests": 4, "depth_bytes": "4 MiB"}
FRONT = "px"
PATIENCE = 900.0


@dataclasses.dataclass(frozen=True)
class Done:
    """What one application printed, and how it ended."""

    text: str
    code: int
    seconds: float


@dataclasses.dataclass(frozen=True)
class Outcome:
    done: Mapping[str, Done]
    rates: Mapping[
        str, float
    ]  # MiB/s while both ran; empty: they did not run beside each other for long enough

    def share(self, job: str) -> float | None:
        total = sum(self.rates.values())
        return self.rates[job] / total if total else None

    def rate(self, job: str) -> float | None:
        return self.rates.get(job)


class Site:
    """Servers with a device, proxies, and one or two mounts; each application has a directory."""

    def __init__(
        self, programs: Programs, cluster: Cluster, places: Sequence[pathlib.Path]
    ) -> None:
        self.programs, self.cluster = programs, cluster
        self.directories = {
            job: places[index % len(places)] / job for index, job in enumerate(WEIGHTS)
        }
        for directory in self.directories.values():
            directory.mkdir(exist_ok=True)

    def run(self, commands: Mapping[str, Sequence[str]], seconds: float | None = None) -> Outcome:
        """Runs one command for each job at the same time, until all have ended.

        With `seconds` they would not end by themselves: they are interrupted when both have run
        for so long.
        """
        with contextlib.ExitStack() as stack:
            running = {
                job: stack.enter_context(started(command, self._log(job), {"SLURM_JOB_ID": job}))
                for job, command in commands.items()
            }
            # Counters go on from one run to the next.
            before = self._moved()
            ended: dict[str, float] = {}
            samples: list[Sample] = []
            begin, until = time.monotonic(), float("inf")
            while len(ended) < len(running):
                time.sleep(INTERVAL)
                now = time.monotonic()
                if now > begin + PATIENCE:
                    raise Problem(
                        f"the applications did not end within {PATIENCE:.0f} s; their logs are in "
                        f"{self.programs.work}"
                    )
                ended |= {
                    job: now
                    for job, each in running.items()
                    if job not in ended and each.poll() is not None
                }
                moved = self._moved()
                samples.append((now, {job: moved[job] - before[job] for job in moved}))
                if seconds is not None and until == float("inf") and all(samples[-1][1].values()):
                    until = now + SETTLES + seconds + TAIL
                if now >= until:
                    until, seconds = float("inf"), None
                    for each in running.values():
                        each.send_signal(signal.SIGINT)
            done = {
                job: Done(
                    self._log(job).read_text(errors="replace"), each.returncode, ended[job] - begin
                )
                for job, each in running.items()
            }
        return Outcome(done, rates_between(samples))

    def _log(self, job: str) -> pathlib.Path:
        return self.programs.work / f"job-{job}.log"

    def _moved(self) -> dict[str, float]:
        return moved_bytes(self.cluster.status_files(FRONT), WEIGHTS)


@contextlib.contextmanager
def site(
    binaries: pathlib.Path, work: pathlib.Path, policy: str, servers: int = 1, mounts: int = 1
) -> Iterator[Site]:
    scheduler = {"sfq": {"anticipation": "on"}} if policy == ANTICIPATING else {}
    front = Front(
        FRONT,
        "proxy",
        "sfq" if scheduler else policy,
        WEIGHTS,
        scheduler=scheduler,
        proxy={"status_interval": f"{round(INTERVAL * 1000)} ms"},
        **DEPTH,
    )
    with contextlib.ExitStack() as stack:
        programs = stack.enter_context(Programs(binaries, work))
        cluster = Cluster(programs, servers, [front], DEVICE)
        for index, proxy in enumerate(cluster.start(FRONT)):
            proxy.wait_until(cluster.status_file(FRONT, index).exists, "writing its status")
        places = [programs.work / f"mount{index}" for index in range(mounts)]
        for place in places:
            stack.enter_context(
                mounted(programs, place.name, vpfs_mount(cluster.address(FRONT), place), place)
            )
        yield Site(programs, cluster, places)


def ratio_errors(rows: Sequence[Row]) -> list[float]:
    """How far the ratio of the heavier job to the other is from the wanted one, as a part of it."""
    shares = [
        float(row["share"]) for row in rows if row["job"] == "4711" and row["share"] is not None
    ]
    wanted = WANTED / (1 - WANTED)
    return [
        abs(share / (1 - share) / wanted - 1) if share < 1 else float("inf") for share in shares
    ]
