"""A vpfs-coordinator that dials the proxies of a cluster."""

from __future__ import annotations

import dataclasses
import json
import signal
import time
from collections.abc import Mapping, Sequence

from lab.harness import Problem, Program, Programs
from lab.load import seconds
from lab.report import Row

NAME = "vpfs-coordinator"
SOCKET = "s{index}.sock"  # of the proxy before that server
CONTROL = {"name": "s{index}", "socket": SOCKET}  # of a Front


@dataclasses.dataclass(frozen=True)
class Settings:
    policy: str = "total"
    period: float = 0.05
    lease: float = 1.0
    capacity: Mapping[str, str] = dataclasses.field(
        default_factory=dict
    )  # bytes, operations, metadata_operations
    jobs: Sequence[Row] = ()

    def config(self, stages: int, journal: str) -> dict[str, object]:
        config: dict[str, object] = {
            "name": "bench",
            "policy": self.policy,
            "period": seconds(self.period),
            "lease": seconds(self.lease),
            "journal": journal,
            "stages": {
                "dial": [
                    {
                        "name": CONTROL["name"].format(index=index),
                        "address": f"./{SOCKET.format(index=index)}",
                    }
                    for index in range(stages)
                ]
            },
        }
        if self.capacity:
            config["capacity"] = dict(self.capacity)
        if self.jobs:
            config["jobs"] = [dict(job) for job in self.jobs]
        return config


class Coordinator:
    """One process at a time, always with the same journal."""

    def __init__(self, programs: Programs, stages: int) -> None:
        self._programs, self._stages = programs, stages
        self._runs = 0
        self._program: Program | None = None

    def start(self, settings: Settings) -> float:
        """Returns the monotonic time at which it was ready: then it dials, and its cycles begin."""
        self._runs += 1
        name = f"coordinator{self._runs}"
        config = self._programs.work / f"{name}.yaml"
        config.write_text(
            json.dumps(settings.config(self._stages, "coordinator.journal"), indent=1) + "\n"
        )
        self._program = self._programs.start(
            name, NAME, "--config", str(config), "--cycle-log", f"{name}.csv"
        )
        self._program.wait_for_line("ready")
        return time.monotonic()

    @property
    def program(self) -> Program:
        if self._program is None:
            raise Problem("the coordinator was not started")
        return self._program

    def stop(self) -> None:
        self.program.stop()

    def pause(self) -> None:
        self.program.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.program.signal(signal.SIGCONT)
