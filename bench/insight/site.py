"""The time that an answer about the past of a whole site takes."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence

from bench.attacks import orangefs
from lab.cluster import Cluster, Front
from lab.harness import Problem, Program, Programs, median
from lab.report import Row

TEMPLATE = "job-{jobid}"
SIZE = 4096
ASKED = 7  # the job that is asked about
IDLE_SECONDS = 2.0  # from one burst of requests to the next, so that they are in several seconds
COORDINATOR = "site.sock"
PATIENCE = 60.0


@dataclasses.dataclass(frozen=True)
class Size:
    proxies: int
    virtual_pfs: int  # of each proxy

    def fields(self) -> Row:
        return {"proxies": self.proxies, "virtual_pfs": self.virtual_pfs}


def run_ctl(programs: Programs, *words: str) -> str:
    """What vpfsctl prints. Every program that it asks must answer."""
    done = subprocess.run(
        [str(programs.binaries / "vpfsctl"), *words],
        check=False,
        cwd=programs.work,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise Problem(f"vpfsctl {' '.join(words)}:\n{done.stdout[:1000]}{done.stderr[:1000]}")
    return done.stdout


def front_of(index: int) -> Front:
    return Front(
        f"s{index}",
        "proxy",
        "sfq",
        templates={TEMPLATE: {"hint": {"jobid": "*"}}},
        proxy={"status_interval": "1 h"},
        limits={"held_bytes": "16 MiB"},
        control={"name": f"s{index}", "socket": f"s{index}.sock"},
        depth_requests=64,
        depth_bytes="64 MiB",
    )


class Burst:
    """One small read of each job at once, over one connection to a proxy.

    The job that is asked about sends more, so that it is among the busiest, which have names.
    """

    def __init__(self, port: int, jobs: int) -> None:
        self._connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._reader = orangefs.Reader(self._connection)
        senders = [*range(jobs), ASKED, ASKED]
        self._reads = b"".join(
            orangefs.small_read(number, orangefs.FIRST_DATAFILE, SIZE, b"%d" % job)
            for number, job in enumerate(senders)
        )
        self._count = len(senders)

    def send(self) -> None:
        self._connection.sendall(self._reads)
        for _ in range(self._count):
            self._reader.next()

    def close(self) -> None:
        self._connection.close()


class Site:
    """Proxies before one server, each with all jobs, and a coordinator that knows them all."""

    def __init__(self, programs: Programs, size: Size) -> None:
        self._programs, self._size = programs, size
        fronts = [front_of(index) for index in range(size.proxies)]
        cluster = Cluster(programs, 1, fronts)
        self.proxies: list[Program] = [cluster.start(front.name)[0] for front in fronts]
        self._ports = [cluster.ports(front.name)[0] for front in fronts]
        config = programs.work / "coordinator.yaml"
        config.write_text(json.dumps(self._coordinator(), indent=1) + "\n")
        self._coordinating = programs.start(
            "coordinator", "vpfs-coordinator", "--config", str(config)
        )
        self._coordinating.wait_for_line("ready")

    def _coordinator(self) -> Row:
        return {
            "name": "site",
            "policy": "total",
            "period": "1 s",
            "lease": "4 s",
            "journal": "coordinator.journal",
            "control": {"socket": COORDINATOR},
            "stages": {
                "dial": [
                    {"name": f"s{index}", "address": f"./s{index}.sock"}
                    for index in range(self._size.proxies)
                ]
            },
        }

    def use(self, bursts: int) -> None:
        """All jobs send to all proxies, and the seconds of that have ended when it returns."""
        connections = [Burst(port, self._size.virtual_pfs) for port in self._ports]
        for _ in range(bursts):
            for each in connections:
                each.send()
            time.sleep(IDLE_SECONDS)
        for each in connections:
            each.close()

    def ask(self, command: Sequence[str]) -> float:
        """The seconds from the start of vpfsctl to its end. Every proxy must answer."""
        began = time.monotonic()
        printed = run_ctl(self._programs, *command)
        took = time.monotonic() - began
        if f"at {self._size.proxies} servers" not in printed:
            raise Problem(f"vpfsctl {' '.join(command)} is not about all:\n{printed[:1000]}")
        return took

    def ways(self) -> Mapping[str, Sequence[str]]:
        """How vpfsctl can reach all proxies."""
        listed = self._programs.work / "proxies"
        listed.write_text(
            "".join(f"./s{index}.sock s{index}\n" for index in range(self._size.proxies))
        )
        return {
            "coordinator": ["--coordinator", f"./{COORDINATOR}"],
            "proxies": ["--proxies", listed.name, "--all"],
        }


def measure(binaries: pathlib.Path, work: pathlib.Path, size: Size, runs: int) -> list[Row]:
    """A row for each way of asking."""
    with Programs(binaries, work) as programs:
        site = Site(programs, size)
        before = median([proxy.own_mib() for proxy in site.proxies])
        site.use(bursts=3)
        took: dict[str, list[float]] = {way: [] for way in site.ways()}
        for _ in range(runs):
            for way, options in site.ways().items():
                took[way].append(
                    1000 * site.ask([*options, "why", f"job-{ASKED}", "--since", "10m"])
                )
        memory = median([proxy.own_mib() for proxy in site.proxies])
    return [
        {
            **size.fields(),
            "asked": way,
            "ms_p50": median(times),
            "ms_max": max(times),
            "own_mib_before": before,
            "own_mib": memory,
        }
        for way, times in took.items()
    ]
