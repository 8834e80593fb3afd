"""The scene of an attack: a server, a proxy, and a victim that is measured."""

from __future__ import annotations

import dataclasses
import mmap
import os
import pathlib
import re
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from bench.attacks.attacker import Attacker
from lab.cluster import Cluster, Front
from lab.harness import Problem, Program, Programs
from lab.load import Application, application_of, run_begins, run_load
from lab.report import Json, Row

VICTIM, HONEST, ATTACKER = "victim", "honest", "attacker"
# A request of 256 KiB takes 1.33 ms. An empty request takes as long as 16 KiB.
DEVICE = {"bandwidth": "200 MiB/s", "per_request": "80 us", "parallelism": 1}
DEPTH = 16
INTERVAL = 0.25  # of the victim's timeline
WARM_UP = 1.0
ALONE, BESIDE = 2.0, 3.0  # seconds of the victim alone, and with an honest competitor
SETTLE = 0.5  # seconds at the start of each, which do not count
PREPARATION = 1.0  # seconds that most attacks need to begin
# A client that kept the server waiting may have to wait for half a minute. Only then does the proxy
# notice its end.
QUIET_PATIENCE = 60.0
STATUS_PATIENCE = 120.0
FOREVER = "1 h"


def application(name: str) -> Application:
    return Application(
        name, size=256 << 10, outstanding=16, read_percent=50, pattern="random", file_size=32 << 20
    )


@dataclasses.dataclass(frozen=True)
class Setting:
    """The proxy's settings for an attack, besides sfq and the depth in requests."""

    scheduler: Mapping[str, object] = dataclasses.field(default_factory=dict)
    limits: Mapping[str, object] = dataclasses.field(default_factory=dict)
    depth_bytes: str | None = None
    templates: Mapping[str, Mapping[str, object]] = dataclasses.field(default_factory=dict)

    def front(self, program: str, weights: Sequence[str] = (VICTIM, HONEST, ATTACKER)) -> Front:
        depth = {"requests": DEPTH} | ({"bytes": self.depth_bytes} if self.depth_bytes else {})
        # The status is written only on request, since a status of many virtual PFSes takes time.
        return Front(
            "px",
            "proxy",
            "sfq",
            dict.fromkeys(weights, 1),
            program=program,
            limits=self.limits,
            scheduler={"depth": depth, **self.scheduler},
            templates=self.templates,
            proxy={"status_interval": FOREVER, "log_level": "warn"},
        )


class Scene:
    """One server, and the proxy in front of it."""

    def __init__(
        self, programs: Programs, protocol: str, front: Front, device: Mapping[str, object] = DEVICE
    ) -> None:
        self.programs, self.protocol = programs, protocol
        self.cluster = Cluster(programs, 1, [front], device, protocol=protocol)
        self.proxy: Program = self.cluster.start("px")[0]
        self.port = self.cluster.ports("px")[0]
        self.address = self.cluster.address("px")

    def status(self) -> Status:
        """The current status of the proxy."""
        file = self.cluster.status_file("px")
        # A new status replaces the old one. File times are too coarse to tell them apart.
        before = file.stat().st_ino if file.exists() else None
        os.kill(self.proxy.pid, signal.SIGUSR1)
        deadline = time.monotonic() + STATUS_PATIENCE
        while not file.exists() or file.stat().st_ino == before:
            if not self.proxy.running():
                raise Problem(f"the proxy ended:\n{self.proxy.last_lines()}")
            if time.monotonic() > deadline:
                raise Problem("the proxy does not write its status")
            time.sleep(0.02)
        return Status(file)

    def leaked_slots(self) -> int:
        """Slots, waiting requests and I/Os in memory that remain once all clients are gone.

        Waits for 0.
        """
        deadline = time.monotonic() + QUIET_PATIENCE
        while (left := self.status().alive()) > 0 and time.monotonic() < deadline:
            time.sleep(0.2)
        return left


class Status:
    """The numbers of a status file, which may be too large to parse."""

    def __init__(self, file: pathlib.Path) -> None:
        self.mib = file.stat().st_size / (1 << 20)
        with (
            file.open("rb") as opened,
            mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            self._alive = [
                self._number(content, name) for name in (b"outstanding", b"queued", b"ios_alive")
            ]
            self.excess_requests = self._number(content, b"excess_requests")

    @staticmethod
    def _number(content: mmap.mmap, name: bytes) -> int:
        # Two or four blanks before the name: a number of the proxy or one of its counters, not one
        # of a target.
        found = re.search(rb'\n(?:  |    )"' + name + rb'": (\d+)', content)
        if found is None:
            raise Problem(f"the status of the proxy has no {name.decode()}")
        return int(found[1])

    def alive(self) -> int:
        return sum(self._alive)


@dataclasses.dataclass(frozen=True)
class Victim:
    """The victim's results. Rates are in MiB/s."""

    entitled: float  # half of what the server gives to the victim alone, or to both
    before: float  # with an honest, equal competitor
    mean: float  # during the attack, like all that follows
    worst_second: float
    seconds_lost: float  # time in which it was denied its half
    wrong_blocks: int
    failed: int

    def row(self, attack: str, protocol: str, leaked_slots: int, rss_mib: float) -> Row:
        return {
            "attack": attack,
            "protocol": protocol,
            "entitled_mib_per_s": self.entitled,
            "victim_before_mib_per_s": self.before,
            "victim_mean_mib_per_s": self.mean,
            "victim_min_1s_mib_per_s": self.worst_second,
            "leaked_slots": leaked_slots,
            "wrong_blocks": self.wrong_blocks,
            "rss_mib": rss_mib,
        }


Bins = Sequence[tuple[float, float]]  # for each bin its end in seconds of the run, and MiB/s


def mean_of(bins: Bins) -> float:
    if not bins:
        raise Problem("the run was too short to measure anything")
    return sum(rate for _, rate in bins) / len(bins)


def worst_second(bins: Bins, interval: float = INTERVAL) -> float:
    """The smallest mean of any second."""
    many = max(1, round(1 / interval))
    return min(mean_of(bins[first : first + many]) for first in range(max(1, len(bins) - many + 1)))


def seconds_lost(bins: Bins, entitled: float, interval: float = INTERVAL) -> float:
    return sum(max(0.0, 1 - rate / entitled) * interval for _, rate in bins)


def timeline(result: Json, name: str, warm_up: float) -> Bins:
    """An application's timeline, in the time of the live lines."""
    return [
        (point["t"] + warm_up, point["mib_per_s"])
        for point in application_of(result, name)["timeline"]
    ]


def between(bins: Bins, first: float, last: float) -> Bins:
    """The bins that are completely within that time."""
    return [(at, rate) for at, rate in bins if first <= at - INTERVAL and at <= last]


class Conductor(threading.Thread):
    """Begins and ends the attack at given times of the victim's run."""

    def __init__(
        self, begin: Callable[[], None], end: Callable[[], None], begin_at: float, end_at: float
    ) -> None:
        super().__init__(daemon=True)
        self._begin, self._end, self._begin_at, self._end_at = begin, end, begin_at, end_at
        self._origin: float | None = None
        self._known, self._over = threading.Event(), threading.Event()
        self._problem: Exception | None = None
        self._began = 0.0

    def saw_line(self, line: str) -> None:
        if self._origin is None and run_begins(line):
            self._origin = time.monotonic()
            self._known.set()

    def run(self) -> None:
        self._known.wait()
        try:
            self._wait_until(self._begin_at)
            if self._over.is_set():
                raise Problem("the victim's run ended before the attack began")
            self._begin()
            self._began = time.monotonic() - (self._origin or 0.0)
            self._wait_until(self._end_at)
        except Exception as problem:
            self._problem = problem
        finally:
            self._end()

    def _wait_until(self, at: float) -> None:
        self._over.wait(max(0.0, (self._origin or 0.0) + at - time.monotonic()))

    def began(self) -> float:
        """The second of the run at which the attack was under way.

        Ends the attack if it still runs.
        """
        self._known.set()
        self._over.set()
        self.join()
        if self._problem:
            raise Problem(f"the attack did not begin: {self._problem}") from self._problem
        return self._began


def attack_victim(
    scene: Scene,
    attacker: Attacker,
    begin: Callable[[], None],
    seconds: float,
    grace: float,
    preparation: float = PREPARATION,
) -> Victim:
    """Measures the victim alone, with an honest competitor, and under attack.

    Results leave out the first `grace` seconds of the attack. `begin` may take up to `preparation`
    seconds.
    """
    honest_from = WARM_UP + ALONE
    honest_to = honest_from + BESIDE
    end = honest_to + preparation + grace + seconds
    honest = dataclasses.replace(application(HONEST), start=honest_from, stop=honest_to)
    conductor = Conductor(begin, attacker.stop, honest_to, end)
    try:
        conductor.start()
        result = run_load(
            scene.programs,
            VICTIM,
            scene.address,
            [application(VICTIM), honest],
            end - WARM_UP,
            WARM_UP,
            conductor.saw_line,
            interval=INTERVAL,
            verify=True,
            may_fail=True,
        )
        began = conductor.began()
    finally:
        attacker.stop()
    bins = {name: timeline(result, name, WARM_UP) for name in (VICTIM, HONEST)}
    alone = mean_of(between(bins[VICTIM], WARM_UP + SETTLE, honest_from))
    before, of_honest = (
        mean_of(between(bins[name], honest_from + SETTLE, honest_to)) for name in (VICTIM, HONEST)
    )
    # The larger value counts: other programs may have used this machine during one of the two.
    entitled = max(alone, before + of_honest) / 2
    during = between(bins[VICTIM], began + grace, end - INTERVAL)
    return Victim(
        entitled=entitled,
        before=before,
        mean=mean_of(during),
        worst_second=worst_second(during),
        seconds_lost=seconds_lost(between(bins[VICTIM], began, end - INTERVAL), entitled),
        wrong_blocks=sum(one["verify_failures"] for one in result["applications"]),
        failed=sum(one["errors"] for one in result["applications"]),
    )
