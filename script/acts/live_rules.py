"""The demo's second act: vpfsctl changes rules while load runs, and the rates follow.

The commands are those that an administrator would type. They reach the proxies before all servers
at once.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import math
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

from lab.cluster import Cluster
from lab.harness import Problem, Programs
from lab.load import application_of, run_begins
from lab.report import Json

# Relative to the directory of the programs. {index} is the number of the server.
CONTROL = {
    "name": "storage{index}",
    "socket": "storage{index}.sock",
    "journal": "storage{index}.journal",
}
INTERVAL = 0.5  # of the load's lines: rates are taken from whole ones
WATCH = 1.5  # before its end a step shows its rates; vpfsctl takes a second for them


@dataclasses.dataclass(frozen=True)
class Step:
    """Commands, and what holds after them: shares by application, or the most that one may have."""

    title: str
    commands: Sequence[str] = ()
    shares: Mapping[str, int] = dataclasses.field(default_factory=dict)
    limit: tuple[str, float] | None = None  # of an application, in MiB/s at all servers together
    before: str = ""  # said before the commands
    watched_by: str = "top -n 1"
    # After its commands a step does not count for so long: requests that wait were charged by the
    # weights before.
    settles: float = 1.5

    def wanted(self, total: float) -> dict[str, float]:
        """MiB/s of each application when the servers do `total`."""
        if self.limit:
            return {self.limit[0]: self.limit[1]}
        return {
            name: total * share / sum(self.shares.values()) for name, share in self.shares.items()
        }

    def target(self) -> float:
        """What is compared: the ratio of the first two applications, or the limit."""
        if self.limit:
            return self.limit[1]
        first, second = list(self.shares.values())[:2]
        return first / second

    def achieved(self, rates: Mapping[str, float]) -> float:
        if self.limit:
            return rates[self.limit[0]]
        first, second = [rates[name] for name in list(self.shares)[:2]]
        return first / second if second > 0 else math.inf


@dataclasses.dataclass(frozen=True)
class Measured:
    """What a step did between its commands and the next step's."""

    step: Step
    begin: float
    end: float
    rates: Mapping[str, float]

    def error_percent(self) -> float:
        return abs(self.step.achieved(self.rates) / self.step.target() - 1) * 100


class LiveRules:
    """Types the commands of each step in its turn. Give on_line() to run_load()."""

    def __init__(
        self,
        programs: Programs,
        cluster: Cluster,
        path: str,
        steps: Sequence[Step],
        seconds: float,
        warm_up: float,
    ) -> None:
        self._vpfsctl = str(programs.binaries / "vpfsctl")
        self._folder = programs.work
        sockets = [
            CONTROL["socket"].format(index=index) for index in range(len(cluster.ports(path)))
        ]
        self._environment = dict(
            os.environ, VPFS_PROXY=" ".join(f"./{socket}" for socket in sockets)
        )
        self._steps, self._seconds, self._warm_up = steps, seconds, warm_up
        self._stopped = threading.Event()
        self._thread = concurrent.futures.ThreadPoolExecutor(1)
        self._typing: concurrent.futures.Future[list[tuple[float, float]]] | None = None

    @property
    def seconds(self) -> float:
        return self._seconds * len(self._steps)

    def on_line(self, line: str) -> None:
        if run_begins(line):
            self._typing = self._thread.submit(self._run, time.monotonic() + self._warm_up)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.shutdown()

    def measured(self, result: Json) -> list[Measured]:
        """What each step did, from the timeline of the load."""
        if self._typing is None:
            raise Problem("the load never began")
        typed = self._typing.result()
        found = []
        for index, (step, (_, done)) in enumerate(zip(self._steps, typed)):
            begin = done + step.settles if index > 0 else 0.0
            end = typed[index + 1][0] if index + 1 < len(typed) else self.seconds
            rates = {
                name: mean_rate(application_of(result, name)["timeline"], begin, end)
                for name in self._steps[0].shares
            }
            found.append(Measured(step, index * self._seconds, (index + 1) * self._seconds, rates))
        return found

    def _run(self, start: float) -> list[tuple[float, float]]:
        """Returns when each step's commands began and when they were done."""
        typed = []
        for index, step in enumerate(self._steps):
            self._sleep_until(start + index * self._seconds)
            begin = time.monotonic() - start
            if step.before:
                print(f"\n# {step.before}", flush=True)
            for command in step.commands:
                self.type(command)
            typed.append((begin, time.monotonic() - start))
            self._sleep_until(start + (index + 1) * self._seconds - WATCH)
            self.type(step.watched_by)
        return typed

    def _sleep_until(self, when: float) -> None:
        if self._stopped.wait(max(0.0, when - time.monotonic())):
            raise Problem("the load ended before the commands")

    def type(self, command: str) -> str:
        """Runs a command of vpfsctl, and shows both it and its output."""
        done = subprocess.run(
            [self._vpfsctl, *shlex.split(command)],
            check=False,
            capture_output=True,
            text=True,
            cwd=self._folder,
            env=self._environment,
            timeout=20,
        )
        print(f"\n$ vpfsctl {command}\n{done.stdout}{done.stderr}", flush=True)
        if done.returncode != 0:
            raise Problem(f"vpfsctl {command} ended with {done.returncode}")
        return done.stdout


def mean_rate(timeline: Sequence[Mapping[str, float]], begin: float, end: float) -> float:
    """MiB/s in the intervals between the two times."""
    slack = 0.05
    rates = [
        point["mib_per_s"]
        for point in timeline
        if point["t"] - INTERVAL >= begin - slack and point["t"] <= end + slack
    ]
    if not rates:
        raise Problem(f"nothing was measured between {begin:.1f} s and {end:.1f} s")
    return sum(rates) / len(rates)
