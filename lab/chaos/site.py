"""All programs of the site on their hosts, each of which may be killed and started again."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping

from lab import etcd
from lab.chaos import configs
from lab.chaos.resources import MOUNT_THREADS
from lab.chaos.schedule import AGGREGATORS, COORDINATORS, ETCD, LOADER, MOUNT, PROXIES, STAGES
from lab.harness import ROOT, Problem, Program, Programs
from lab.mount import UNMOUNT_PATIENCE, unmount
from lab.network import PREFIX, Network, is_left_behind

CLOCK_LIBRARY = "libvpfs_jumping_clock.so"
SMALL, OF_ETCD = "1m", "224m"  # sizes of stores: etcd reserves 128 MiB for its log
NODE_SNAPSHOTS = 20  # an etcd writes a file for so many changes: a full disk is noticed then
FILLER = "filler"
HOSTS = (*COORDINATORS, *ETCD, *AGGREGATORS, *PROXIES, MOUNT, LOADER)
# The programs that may be hit, by host.
NAMES = (*ETCD, *PROXIES, MOUNT, *COORDINATORS, *AGGREGATORS)


def work_folder() -> pathlib.Path:
    # Sockets have short paths.
    return pathlib.Path("/tmp") / f"{PREFIX}{os.getpid()}"


def _unmount_below(folder: pathlib.Path) -> None:
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    places = [line.split()[4] for line in lines]
    for place in reversed([each for each in places if each.startswith(f"{folder}/")]):
        subprocess.run(["umount", "-l", place], check=False, timeout=UNMOUNT_PATIENCE)


def release(folder: pathlib.Path) -> None:
    """Unmounts all below a folder, whether it answers or not, and removes it."""
    _unmount_below(folder)
    shutil.rmtree(folder, ignore_errors=True)


def sweep() -> list[str]:
    left = [each for each in pathlib.Path("/tmp").glob(f"{PREFIX}*") if is_left_behind(each.name)]
    for folder in left:
        release(folder)
    return [str(each) for each in left]


class Site:
    """Starts and stops programs. One thread calls it: they end with the thread that made them."""

    def __init__(self, programs: Programs, network: Network, seed: int, policy: str) -> None:
        self._programs, self._network, self._seed = programs, network, seed
        self.places = configs.Places(programs.work, network.address, policy)
        self._library = programs.binaries.parent / "lib" / CLOCK_LIBRARY
        self._runs: dict[str, int] = {}
        self.running: dict[str, Program] = {}
        self.logs: dict[str, list[pathlib.Path]] = {}
        # Programs that are down because they were told to be, or may end.
        self.may_be_down: set[str] = set()
        self.load: Program | None = None
        self.mount_load: Program | None = None

    # --- Before the start -----------------------------------------------------------------------

    @contextlib.contextmanager
    def prepared(self) -> Iterator[None]:
        """File systems for stores, certificates and configurations."""
        if not self._library.exists():
            raise Problem(f"not built: {self._library}")
        try:
            for name in (*ETCD, *AGGREGATORS, *STAGES):
                place = self.places.state(name)
                place.mkdir(parents=True)
                options = f"size={OF_ETCD if name in ETCD else SMALL}"
                done = subprocess.run(
                    ["mount", "-t", "tmpfs", "-o", options, "none", str(place)],
                    check=False,
                    capture_output=True,
                    text=True,
                )
                if done.returncode != 0:
                    raise Problem(f"mount: {done.stderr.strip()}")
            self._make_certificates()
            for name in NAMES:
                self.set_clock(name, 0)
            self._write_configs()
            yield
        finally:
            if MOUNT in self.running:
                unmount(self.mount_place, "-z")
            _unmount_below(self.places.work)

    def _make_certificates(self) -> None:
        names = [
            f"{name}=" + ",".join(self._network.address(host) for host in hosts)
            for name, hosts in configs.certificates().items()
        ]
        self._run_certificates("tls", [], names)
        self._run_certificates("tls", ["--nameless"], [etcd.CLIENT])
        (self.places.work / "etcd.password").write_text(etcd.PASSWORD + "\n")

    def _run_certificates(self, folder: str, options: list[str], names: list[str]) -> None:
        command = [str(ROOT / "script/certificates"), *options]
        subprocess.run(
            [*command, str(self.places.work / folder), *names], check=True, capture_output=True
        )

    def _write_configs(self) -> None:
        texts: dict[str, object] = {each: configs.proxy(self.places, each) for each in PROXIES}
        texts |= {each: configs.coordinator(self.places, each) for each in COORDINATORS}
        texts |= {each: configs.aggregator(self.places, each) for each in AGGREGATORS}
        texts |= {MOUNT: configs.mount(self.places)}
        texts |= {"server": configs.server(self.places)}
        texts |= {"load": configs.load(self.places, self._seed)}
        for name, config in texts.items():
            self.config_file(name).write_text(json.dumps(config, indent=1) + "\n")

    def config_file(self, name: str) -> pathlib.Path:
        return self.places.work / f"{name}.yaml"

    # --- Programs -------------------------------------------------------------------------------

    @property
    def mount_place(self) -> pathlib.Path:
        return self.places.work / "mounted"

    def _command(self, name: str) -> list[str]:
        config = str(self.config_file(name))
        if name in ETCD:
            urls = [
                (
                    f"https://{self._network.address(each)}:{configs.ETCD_PORT}",
                    f"https://{self._network.address(each)}:{configs.ETCD_PEER_PORT}",
                )
                for each in ETCD
            ]
            data = self.places.state(name) / "data"
            command = etcd.member_command(ETCD.index(name), data, self.places.work / "tls", urls)
            # A password that costs little: with the usual cost, logins take a busy machine whole.
            return [*command, f"--snapshot-count={NODE_SNAPSHOTS}", "--bcrypt-cost=4"]
        if name == MOUNT:
            below = f"posix:{self.places.work / 'below'}"
            options = f"config={config},threads={MOUNT_THREADS}"
            return ["vpfs-mount", below, str(self.mount_place), "-f", "-o", options]
        if name in PROXIES:
            return ["vpfs-proxy", "--config", config]
        return ["vpfs-coordinator", "--config", config]

    def _start(self, name: str, host: str, command: list[str]) -> Program:
        self._runs[name] = self._runs.get(name, 0) + 1
        own = self._programs.binaries / command[0]
        clock = [
            "env",
            f"LD_PRELOAD={self._library}",
            f"VPFS_CLOCK_FILE={self._clock_file(name)}",
        ]
        before = [*self._network.within(host), *(clock if own.exists() and name in NAMES else [])]
        program = self._programs.start(
            f"{name}-{self._runs[name]}",
            *before,
            str(own) if own.exists() else command[0],
            *command[1:],
        )
        self.logs.setdefault(name, []).append(program.log)
        return program

    def start(self, name: str) -> Program:
        self.running[name] = self._start(name, name, self._command(name))
        self.may_be_down.discard(name)
        return self.running[name]

    def start_all(self) -> None:
        for name in ETCD:
            self.start(name)
        self._await_etcd()
        self._set_up_etcd()
        for name in PROXIES:
            command = ["vpfs-server", "--config", str(self.config_file("server")), "--server", name]
            server = self._start(f"server-{name}", name, command)
            server.wait_for_line("ready on")
        for folder in ("below", "mounted"):
            (self.places.work / folder).mkdir()
        for name in (*PROXIES, MOUNT, *COORDINATORS, *AGGREGATORS):
            self.start(name).wait_for_line("ready")

    def start_loads(self, mount_load: list[str]) -> None:
        result = str(self.places.work / "load.json")
        command = ["vpfs-load", "--config", str(self.config_file("load")), "--json", result]
        self.load = self._start("load", LOADER, command)
        self.load.wait_for_line("the run begins")
        self.mount_load = self._start("mount-load", LOADER, mount_load)

    def etcdctl(self, *arguments: str) -> str:
        tls = self.places.tls(etcd.CLIENT)
        endpoints = [f"https://{self._network.address(each)}:{configs.ETCD_PORT}" for each in ETCD]
        command = [
            *self._network.within(LOADER),
            "etcdctl",
            f"--endpoints={','.join(endpoints)}",
            f"--cacert={tls['ca']}",
            f"--cert={tls['certificate']}",
            f"--key={tls['key']}",
            "--command-timeout=5s",
            *arguments,
        ]
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            env={"ETCDCTL_API": "3", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )
        if done.returncode != 0:
            raise Problem(f"etcdctl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def _await_etcd(self) -> None:
        def is_well() -> bool:
            try:
                self.etcdctl("endpoint", "health")
            except Problem:
                return False
            return True

        self.running[ETCD[0]].wait_until(is_well, "healthy", etcd.PATIENCE)

    def _set_up_etcd(self) -> None:
        self.etcdctl("role", "add", etcd.USER)
        grant = ("role", "grant-permission", etcd.USER, "--prefix=true", "readwrite")
        self.etcdctl(*grant, "/vpfs/main/")
        self.etcdctl("user", "add", f"{etcd.USER}:{etcd.PASSWORD}")
        self.etcdctl("user", "grant-role", etcd.USER, etcd.USER)
        self.etcdctl("user", "add", f"root:{etcd.ROOT_PASSWORD}")
        self.etcdctl("user", "grant-role", "root", "root")
        self.etcdctl("auth", "enable")

    def signal(self, name: str, number: int) -> None:
        self.running[name].signal(number)

    def is_ready(self, name: str) -> bool:
        """Whether it has said so since its start: before that, SIGHUP would end it."""
        return "ready" in self.running[name].log.read_text(errors="replace")

    def kill(self, name: str) -> None:
        self.may_be_down.add(name)
        self.running[name].signal(signal.SIGKILL)
        self.running[name].wait_until_ended()

    def dead(self) -> list[str]:
        """What has ended without being told to."""
        return [
            f"{name} ended with {program.exit_code()}: {program.last_lines(3)}"
            for name, program in self.running.items()
            if name not in self.may_be_down and not program.running()
        ]

    def kill_all(self) -> None:
        """A quick end: what they would still say does not count."""
        for program in [*self.running.values(), *filter(None, (self.load, self.mount_load))]:
            if program.running():
                program.signal(signal.SIGKILL)

    def coordinators(self) -> str:
        """All of them, as vpfsctl takes them."""
        return ",".join(self.places.socket(each) for each in COORDINATORS)

    # --- What faults change ---------------------------------------------------------------------

    def _clock_file(self, name: str) -> pathlib.Path:
        return self.places.work / f"{name}.clock"

    def set_clock(self, name: str, seconds: int) -> None:
        """The program's time of day is so much ahead of the machine's."""
        # Written in place: it is mapped.
        descriptor = os.open(self._clock_file(name), os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.pwrite(descriptor, struct.pack("=q", seconds * 10**9), 0)
        finally:
            os.close(descriptor)

    def fill(self, name: str) -> None:
        """Leaves no room where the program keeps its state."""
        with (self.places.state(name) / FILLER).open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12):  # that of a page last
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))

    def make_room(self, name: str) -> None:
        (self.places.state(name) / FILLER).unlink(missing_ok=True)

    def shorten_certificate(self, name: str, seconds: int) -> None:
        """From now on it shows one that is valid for so long."""
        folder = self.places.work / "short"
        folder.mkdir(exist_ok=True)
        tls = self.places.work / "tls"
        for each in ("ca.pem", "ca.key"):
            shutil.copy(tls / each, folder / each)
        also = ",".join(self._network.address(each) for each in configs.certificates()[name])
        self._run_certificates("short", ["--seconds", str(seconds)], [f"{name}={also}"])
        self._keep_ordinary(name)
        for end in ("key", "pem"):
            (folder / f"{name}.{end}").replace(tls / f"{name}.{end}")

    def _keep_ordinary(self, name: str) -> None:
        tls = self.places.work / "tls"
        for end in ("key", "pem"):
            kept = tls / f"{name}.ordinary.{end}"
            if not kept.exists():
                shutil.copy(tls / f"{name}.{end}", kept)

    def renew_certificate(self, name: str) -> None:
        tls = self.places.work / "tls"
        for end in ("key", "pem"):
            fresh = tls / f"{name}.fresh.{end}"
            shutil.copy(tls / f"{name}.ordinary.{end}", fresh)
            fresh.replace(tls / f"{name}.{end}")

    def replace_config(self, name: str, change: Callable[[str], str]) -> str:
        """Returns the text before."""
        file = self.config_file(name)
        before = file.read_text()
        fresh = file.with_suffix(".new")
        fresh.write_text(change(before))
        fresh.replace(file)
        return before

    def sockets(self) -> Mapping[str, str]:
        return {name: self.places.socket(name) for name in STAGES}
