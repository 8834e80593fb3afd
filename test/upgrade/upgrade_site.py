"""A site whose programs are of two releases: two data servers with a proxy before each, mounts, coordinators, and a
load that never ends and checks each block.
"""
from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import build_previous
from lab import etcd, mount
from lab.cluster import Cluster, Front
from lab.file_systems import DIRECT
from lab.harness import Problem, Program, Programs
from lab.load import Application

PATIENCE = 40.0  # of what takes a second or two
JOBS = ("a", "b")
BLOCK = 64 << 10
SERVERS = 2
# Each server, a second. Slow, so that the load leaves the processors to the programs.
DEVICE = {"bandwidth": "16 MiB/s"}
FRONT = "vpfs"
Config = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Release:
    name: str  # "old" or "new"
    binaries: pathlib.Path

    def program(self, name: str) -> str:
        return str(self.binaries / name)


@dataclasses.dataclass(frozen=True)
class Releases:
    old: Release
    new: Release

    def both_ways(self) -> tuple[tuple[Release, Release], tuple[Release, Release]]:
        return (self.old, self.new), (self.new, self.old)


def releases(new: pathlib.Path) -> Releases:
    return Releases(Release("old", build_previous.build(os.cpu_count() or 2)), Release("new", new.resolve()))


def run_tests() -> None:
    """Those of the main module, unless the release before cannot be had."""
    try:
        build_previous.build(os.cpu_count() or 2)
    except build_previous.Missing as reason:
        print(f"skipped: {reason}")
        sys.exit(build_previous.SKIPPED)
    unittest.main()


def eventually(is_true: Callable[[], object], what: Callable[[], object] | str, patience: float = PATIENCE) -> None:
    until = time.monotonic() + patience
    while not is_true():
        if time.monotonic() > until:
            raise AssertionError(f"not within {patience:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(0.05)


class Done:
    """What vpfsctl has done."""

    def __init__(self, done: subprocess.CompletedProcess[str], command: Sequence[str]) -> None:
        self.code, self.text = done.returncode, done.stdout + done.stderr
        self._output, self._command = done.stdout, " ".join(command)

    def __str__(self) -> str:
        return f"{self._command}\nexit code {self.code}\n{self.text}"

    @property
    def data(self) -> list[Config]:
        """With --json: what each program answers, of the last object that was printed."""
        answers, rest = [], self._output.strip()
        while rest:
            try:
                answer, length = json.JSONDecoder().raw_decode(rest)
                answers, rest = answer["proxies"], rest[length:].strip()
            except (ValueError, KeyError):
                return []
        return [each["data"] for each in answers if each["ok"]]


class Site:
    """`control` has more keys of that mapping, for each proxy."""

    def __init__(self, both: Releases, control: Mapping[str, object] | None = None) -> None:
        self.both = both
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="vpfs"))
        self.programs = Programs(both.new.binaries, self._folder)
        self.work = self.programs.work
        front = Front(FRONT, "proxy", weights=dict.fromkeys(JOBS, 1), depth_requests=4,
                      control={"name": "ds{index}", "socket": "ds{index}.sock", "journal": "ds{index}.journal",
                               **(control or {})},
                      proxy={"status_interval": "200 ms"})
        self.stages: dict[str, Program] = {}
        self.coordinators: dict[str, Program] = {}
        self._runs = 0
        try:
            self._cluster = Cluster(self.programs, SERVERS, [front], DEVICE)
        except Problem:
            self.close()
            raise

    def close(self) -> None:
        try:
            self.programs.__exit__()
            for place in self.work.iterdir():
                if place.is_dir() and mount.is_mounted(place):
                    mount.unmount(place, "-z")
        finally:
            shutil.rmtree(self._folder)

    # Stages.

    def start_proxy(self, index: int, release: Release, *more: str) -> None:
        listen, upstream = self._cluster.ports(FRONT)[index], self._cluster.ports(DIRECT)[index]
        name = f"ds{index}"
        status = f"{name}-{self._run()}.status.json"  # the one before may be draining
        config = self._cluster.fronts[FRONT].proxy_config(listen, upstream, status, index)
        self.stages[name] = self._start(release, name, "vpfs-proxy", "--config", self._write(name, config), *more)
        self.stages[name].wait_for_line("ready at")

    def take_over(self, index: int, release: Release) -> None:
        """A proxy that takes the place of the one that runs."""
        self.start_proxy(index, release, "--take-over", self.socket(f"ds{index}") + ".restart")

    def start_proxies(self, *of: Release) -> None:
        for index, release in enumerate(of):
            self.start_proxy(index, release)

    def start_mount(self, name: str, release: Release, coordinators: Sequence[str], where: str = "") -> pathlib.Path:
        """It has a directory of its own, at `where` or at its name. `coordinators`: sockets where they take stages."""
        below, place = self.work / f"below-{where or name}", self.work / (where or name)
        for each in (below, place):
            each.mkdir(exist_ok=True)
        config = {"mount": {"status_file": f"{name}-{self._run()}.status.json", "drain": "20 s"},
                  "control": {"name": name, "socket": f"{name}.sock"}
                  | ({"coordinator": list(coordinators)} if coordinators else {}),
                  "scheduler": {"policy": "sfq"},
                  "virtual_pfs": {job: {"weight": 1} for job in JOBS},
                  "rules": [{"match": {}, "virtual_pfs": "a"}]}
        self.stages[name] = self._start(release, name, "vpfs-mount", f"posix:{below}", str(place), "-f", "-o",
                                        f"config={self._write(name, config)}")
        self.stages[name].wait_for_line("ready at")
        return place

    # Coordinators.

    def dials(self) -> list[Config]:
        return [{"name": f"ds{index}", "address": self.socket(f"ds{index}")} for index in range(SERVERS)]

    def start_coordinator(self, name: str, release: Release, config: Config) -> Program:
        """`config`: without times, the control port and, unless it is there, the journal."""
        times = {"period": "100 ms", "deadline": "50 ms", "lease": "2 s", "transit": "200 ms", "silent_cycles": 100}
        whole = times | {"name": "main", "control": {"socket": self.socket(name)}} | config
        if "store" not in whole:
            whole.setdefault("journal", str(self.work / f"{name}.journal"))
        program = self._start(release, name, "vpfs-coordinator", "--config", self._write(name, whole))
        program.wait_for_line("vpfs-coordinator: ready" if "store" not in whole else "vpfs-coordinator: ")
        self.coordinators[name] = program
        return program

    def start_etcd(self) -> etcd.Etcd:
        """Three members with users. Coordinators of the site `main` may write there."""
        store = etcd.Etcd(self.programs)
        store.add_user("/vpfs/main/")
        return store

    def socket(self, name: str) -> str:
        return str(self.work / f"{name}.sock")

    # Questions.

    def ctl(self, release: Release, target: str, *arguments: str) -> Done:
        """`target`: names of coordinators with commas, or of a stage."""
        option = "--proxy" if target in self.stages else "--coordinator"
        where = ",".join(self.socket(name) for name in target.split(","))
        command = [release.program("vpfsctl"), option, where, *arguments]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("VPFS_")}
        return Done(subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE,
                                   cwd=self.work, env=environment), command)

    def status(self, target: str) -> Config:
        """{}: it does not answer. That of a coordinator is without its stages' own."""
        found = self.ctl(self.both.new, target, "--json", "status").data
        return found[0] if found else {}

    def cycles_applied(self, stage: str) -> int:
        """Since its start; 0 while it has no lease."""
        led = self.status(stage).get("coordinator", {})
        return int(led["cycles_applied"]) if "lease_us_left" in led else 0

    def expect_cycles(self, stages: Sequence[str]) -> None:
        """Each of the stages applies ten more, and none that it cannot do."""
        before = {name: self.cycles_applied(name) for name in stages}
        for name in stages:
            eventually(lambda: self.cycles_applied(name) >= before[name] + 10, f"cycles at {name}: {self.status(name)}")
            led = self.status(name)["coordinator"]
            if led["cycles_unsupported"]:
                raise AssertionError(f"{name} cannot do what its coordinator asks for: {led}")

    # Programs.

    def stop(self, program: Program, number: int = signal.SIGTERM) -> None:
        program.signal(number)
        program.wait_until_ended()
        if number == signal.SIGTERM and program.exit_code() != 0:
            raise Problem(f"{program.name} ended with {program.exit_code()}:\n{program.last_lines()}")

    def _start(self, release: Release, name: str, program: str, *arguments: str) -> Program:
        return self.programs.start(f"{name}-{release.name}-{self._run()}", release.program(program), *arguments)

    def _run(self) -> int:
        self._runs += 1
        return self._runs

    def _write(self, name: str, config: Config) -> str:
        file = self.work / f"{name}.yaml"
        file.write_text(json.dumps(config, indent=1) + "\n")
        return str(file)

    def address(self) -> str:
        return self._cluster.address(FRONT)

    def data_servers(self) -> str:
        return self._cluster.address(DIRECT)


class ProxyLoad:
    """vpfs-load through the proxies."""

    def __init__(self, site: Site) -> None:
        jobs = [Application(job, BLOCK, outstanding=4, read_percent=50, pattern="random", file_size=4 << 20)
                for job in JOBS]
        config = {"file_system": site.address(), "directory": "/load", "duration": "1 h", "warm_up": "0 s",
                  "verify": True, "applications": [job.config() for job in jobs]}
        self._site, self._result = site, site.work / "load.json"
        self._program = site.programs.start("load", "vpfs-load", "--config", site._write("load", config), "--json",
                                            str(self._result))
        self._program.wait_for_line("the run begins")

    def end(self) -> None:
        self._program.signal(signal.SIGTERM)
        self._program.wait_until_ended()
        if self._program.exit_code() != 0:
            raise AssertionError(f"vpfs-load ended with {self._program.exit_code()}:\n{self._program.last_lines(20)}")
        for job in json.loads(self._result.read_text())["applications"]:
            if job["errors"] or job["verify_failures"] or not job["verified_blocks"]:
                raise AssertionError(f"the load of {job['name']}: {job['errors']} failed, {job['verify_failures']} of "
                                     f"{job['verified_blocks']} blocks were wrong")


class MountLoad(threading.Thread):
    """Writes files below a directory and reads them again. One of them is open all the time.

    While `may_be_away`, a name may be missing: between two programs that mount there.
    """

    def __init__(self, place: pathlib.Path) -> None:
        super().__init__(daemon=True)
        self.may_be_away = threading.Event()
        self._place, self._ends = place, threading.Event()
        self._failures: list[str] = []
        self._blocks = 0
        self._opened = 0
        self._open = self._open_another()
        self.start()

    def run(self) -> None:
        while not self._ends.is_set():
            block = os.urandom(BLOCK)
            self._try("the open file", lambda: self._through(self._open, block))
            self._try("a file", lambda: self._through_file(block))
            time.sleep(0.01)

    def _try(self, what: str, work: Callable[[], bool]) -> None:
        is_expected = self.may_be_away.is_set()
        try:
            if not work():
                self._failures.append(f"{what} has wrong bytes")
            self._blocks += 1
        except OSError as error:
            # The old mount's name has gone, so this made a file in the directory of the mount, or found none there.
            if not is_expected and not self.may_be_away.is_set() or what == "the open file":
                self._failures.append(f"{what}: {error}")

    def _through_file(self, block: bytes) -> bool:
        if not mount.is_mounted(self._place):
            raise FileNotFoundError("it is not mounted")
        path = self._place / f"file{self._blocks % 4}"
        with path.open("wb", buffering=0) as file:
            file.write(block)
        return path.read_bytes() == block

    @staticmethod
    def _through(file: Any, block: bytes) -> bool:
        file.seek(0)
        file.write(block)
        file.seek(0)
        return bool(file.read(len(block)) == block)

    def _open_another(self) -> Any:
        self._opened += 1
        return (self._place / f"open{self._opened}").open("w+b", buffering=0)

    def reopen(self) -> None:
        """Lets the program that has its file end."""
        before, self._open = self._open, self._open_another()
        time.sleep(0.1)  # a turn with the one before
        before.close()

    def end(self) -> None:
        self._ends.set()
        self.join()
        self._open.close()
        if self._failures or not self._blocks:
            raise AssertionError(f"{self._blocks} blocks were right at {self._place}; {self._failures[:5]}")


def why_no_mounts() -> str:
    """Empty: there can be some."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "there is no /dev/fuse that may be used"
    if not shutil.which("fusermount3"):
        return "fusermount3 is not installed"
    return mount.why_mounting_is_refused()


@contextlib.contextmanager
def loads(site: Site, places: Sequence[pathlib.Path]) -> Iterator[list[MountLoad]]:
    """Verified load through the proxies and these mounts, until the context is left."""
    through_proxies = ProxyLoad(site)
    through_mounts = [MountLoad(place) for place in places]
    yield through_mounts
    for each in through_mounts:
        each.end()
    through_proxies.end()
