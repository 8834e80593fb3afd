"""The runs of script/bench vpfs with OrangeFS's own servers, and IOR as the applications.

Each application is on a host of its own, a network namespace, and that is how proxies tell them
apart, as [VPFS] does. IOR writes through MPI-IO, whose driver for PVFS2 uses OrangeFS's client
library, or to a mount of pvfs2fuse. The servers keep data in directories with a rate, so that they
are what all wait for, and not a processor.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence

from bench.schedulers.vpfs_cases import (
    ALL,
    LONGEST_DELAY,
    MIB_PER_S,
    READ,
    SCHEDULER,
    SERVERS,
    SFQ,
    TOTAL,
    WRITE,
    Case,
)
from lab import ior, network, real_orangefs
from lab.applications import started
from lab.cluster import Front
from lab.coordinator import CONTROL, Coordinator, Settings
from lab.file_systems import DIRECT
from lab.harness import Problem, Program, Programs
from lab.load import seconds
from lab.mount import directory_mounted, in_prefix, mounted, why_mounting_is_refused
from lab.mpi import mpi_command
from lab.network import Network
from lab.shared_time import rates_between
from lab.status import INTERVAL, moved_bytes

MPIIO, PVFS2FUSE = "mpiio", "pvfs2fuse"
CLIENTS = {MPIIO: "IOR through MPI-IO", PVFS2FUSE: "IOR on a mount of pvfs2fuse"}
# IOR passes it to ROMIO: on how many servers a new file is.
SERVERS_HINT = "IOR_HINT__MPI__striping_factor"
HOST = "servers"
SERVER_PORT, PROXY_PORT = 3334, 4334  # and the next ones; the host has no other programs
# MiB/s of each server's directory. A mount of pvfs2fuse has few requests in flight, and two of them
# have to keep four servers busy.
RATES = {MPIIO: MIB_PER_S, PVFS2FUSE: 8}
DEVICE = """
mount: {{drain: 0s}}
scheduler: {{policy: tbf, cost: {{per_request: 0}}}}
virtual_pfs: {{default: {{rate: {rate} MiB/s, burst: 1 MiB}}}}
"""
BLOCK = 2 << 30  # of each process's part of a file that is written for a time
READ_TOTAL = 512 << 20  # of all processes of an application
DEPTH = 4
DEPTH_BYTES = "4 MiB"
PATIENCE = 300.0
TOOL_PATIENCE = START_PATIENCE = 60.0
SETTINGS = {
    "servers": f"{SERVERS} pvfs2-server, which keep data in directories with a rate",
    "MiB/s of each directory": RATES,
    "clients": CLIENTS,
    "hosts": "the servers with their proxies, and each application, in a network namespace",
    "depth of each proxy": f"{DEPTH} requests, {DEPTH_BYTES}",
    "rates": "of one application, and of two without proxies: IOR's own; of two through proxies: "
    "what these counted while both ran",
    "reads": "what the hosts of the servers have in memory counts: rates of directories may not",
}


def why_not_here() -> str:
    """Why nothing of this can be measured here; empty if it can."""
    if not real_orangefs.server_program():
        return "there is no pvfs2-server (VPFS_ORANGEFS_PREFIX)"
    if not in_prefix(ior.PREFIX, "ior"):
        return f"there is no IOR ({ior.PREFIX})"
    return network.why_not() or why_mounting_is_refused()


def installed() -> list[str]:
    if why := why_not_here():
        print(f"real servers are not measured: {why}")
        return []
    return list(CLIENTS)


def ior_options(case: Case, length: float) -> list[str]:
    """What is written is written for a time; what is read has been written before."""
    if case.op == READ:
        return ["-r", "-b", str(READ_TOTAL // case.processes)]
    return ["-w", "-b", str(BLOCK), "-D", f"{length:g}"]


def filling_options(case: Case) -> list[str]:
    """Before a read."""
    return ["-w", "-k", "-b", str(READ_TOTAL // case.processes)]


class Servers:
    """OrangeFS's servers, which run all the time, and proxies before them, which do not."""

    def __init__(self, programs: Programs, hosts: Network, devices: Sequence[pathlib.Path]) -> None:
        self._programs, self._hosts = programs, hosts
        host = hosts.address(HOST)
        self._servers = [
            real_orangefs.Server(
                f"{host}:{SERVER_PORT + index}", f"{host}:{PROXY_PORT + index}", device / "data"
            )
            for index, device in enumerate(devices)
        ]
        running = real_orangefs.start_servers(programs, self._servers, hosts.within(HOST))
        for index, server in enumerate(running):
            self._wait_for_port(server, SERVER_PORT + index)

    def address(self, path: str) -> str:
        first = self._servers[0]
        if path == DIRECT:
            return real_orangefs.address_of(first)
        return real_orangefs.proxied_address(str(first.proxy))

    def _wait_for_port(self, program: Program, port: int) -> None:
        command = [*self._hosts.within(HOST), "ss", "-Hltn", "sport", "=", f":{port}"]

        def listens() -> bool:
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            return bool(done.stdout.strip())

        program.wait_until(listens, f"listening on port {port}", TOOL_PATIENCE)

    def _config(self, case: Case, index: int) -> dict[str, object]:
        front = Front(
            "px",
            "proxy",
            SFQ if case.path == TOTAL else case.path,
            shares={name: {"weight": weight} for name, weight in case.weights().items()},
            scheduler=SCHEDULER,
            templates={name: {"client": self._hosts.address(name)} for name in case.weights()},
            control=(
                {**CONTROL, "longest_delay": seconds(LONGEST_DELAY)} if case.path == TOTAL else {}
            ),
            depth_requests=DEPTH,
            depth_bytes=DEPTH_BYTES,
            proxy={
                "listen": self._servers[index].proxy,
                "upstream": self._servers[index].address,
                "status_interval": f"{round(INTERVAL * 1000)} ms",
            },
        )
        return front.proxy_config(0, 0, str(self.status_file(index)), index)

    def status_file(self, index: int) -> pathlib.Path:
        return self._programs.work / f"px{index}.status.json"

    @contextlib.contextmanager
    def proxied(self, case: Case) -> Iterator[None]:
        """With proxies for the case, and with its coordinator."""
        program = str(self._programs.binaries / "vpfs-proxy")
        with Programs(self._programs.binaries, self._programs.work) as programs:
            for index in range(len(self._servers)):
                self.status_file(index).unlink(missing_ok=True)
                config = programs.work / f"px{index}.yaml"
                config.write_text(json.dumps(self._config(case, index), indent=1) + "\n")
                proxy = programs.start(
                    f"px{index}", *self._hosts.within(HOST), program, "--config", str(config)
                )
                self._wait_for_port(proxy, PROXY_PORT + index)
                proxy.wait_until(self.status_file(index).exists, "writing its status")
            if case.path == TOTAL:
                Coordinator(programs, len(self._servers)).start(Settings())
            yield

    def moved(self) -> dict[str, float]:
        """The bytes of each application that all proxies have counted."""
        return moved_bytes(map(self.status_file, range(len(self._servers))), ("a", "b"))


class Site:
    """Runs of IOR over the servers."""

    def __init__(
        self, programs: Programs, hosts: Network, client: str, devices: Sequence[pathlib.Path]
    ) -> None:
        self._programs, self._hosts, self._client = programs, hosts, client
        self._servers = Servers(programs, hosts, devices)
        self._ior = in_prefix(ior.PREFIX, "ior") or "ior"
        self._wait_until_they_work()
        for count in range(1, SERVERS + 1):
            place = self._directory(count, real_orangefs.PLACE)
            self._tool("pvfs2-mkdir", place)
            dfiles = ("-k", "user.pvfs2.num_dfiles", "-v", str(count))
            self._tool("pvfs2-xattr", "-s", *dfiles, place)
        self._no_driver = self._why_no_driver() if client == MPIIO else ""

    @staticmethod
    def _directory(count: int, below: str | pathlib.Path) -> str:
        """One whose files are on so many servers."""
        return f"{below}/on{count}"

    def _table(self, path: str) -> str:
        table = self._programs.work / f"pvfs2tab-{path}"
        address = self._servers.address(path)
        table.write_text(f"{address} {real_orangefs.PLACE} pvfs2 defaults,noauto 0 0\n")
        return str(table)

    def _wait_until_they_work(self) -> None:
        """They listen seconds before they can make files: their pools of handles are empty."""
        until = time.monotonic() + START_PATIENCE
        while True:
            try:
                return self._tool("pvfs2-touch", f"{real_orangefs.PLACE}/ready")
            except Problem:
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)

    def _tool(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._hosts.within("a"), real_orangefs.tool(name) or name, *arguments],
            check=False,
            env=os.environ | {"PVFS2TAB_FILE": self._table(DIRECT)},
            capture_output=True,
            text=True,
            timeout=TOOL_PATIENCE,
        )
        if done.returncode != 0:
            raise Problem(f"{name} {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")

    def _why_no_driver(self) -> str:
        """IOR's MPI may have been built without PVFS2."""
        case = Case("", DIRECT, processes=1, size=64 << 10, applications=("a",))
        try:
            self._run(case, {"a": ["-w", "-b", str(case.size)]}, {})
        except Problem as problem:
            return f"IOR's MPI-IO does not write to PVFS2: {str(problem).splitlines()[-1]}"
        return ""

    def why_not(self, case: Case) -> str:
        """Why a case cannot be measured; empty if it can."""
        if self._no_driver:
            return self._no_driver
        if ALL not in [case.servers(name) for name in ("a", "b")]:
            return "which servers a file is on cannot be chosen, only on how many"
        return ""

    def measure(self, case: Case, length: float) -> Mapping[str, float]:
        """MiB/s by application."""
        with contextlib.ExitStack() as stack:
            if case.path != DIRECT:
                stack.enter_context(self._servers.proxied(case))
            below = {
                name: stack.enter_context(self._mounted(case, name)) for name in case.applications
            }
            if case.op == READ:
                self._run(case, dict.fromkeys(case.applications, filling_options(case)), below)
            options = dict.fromkeys(case.applications, ior_options(case, length))
            return self._run(case, options, below)

    @contextlib.contextmanager
    def _mounted(self, case: Case, name: str) -> Iterator[str | pathlib.Path]:
        """What the names of files begin with for an application."""
        if self._client == MPIIO:
            yield f"pvfs2:{real_orangefs.PLACE}"
            return
        place = self._programs.work / f"mount-{name}"
        command = real_orangefs.pvfs2fuse(self._servers.address(case.path), place) or []
        command = [*self._hosts.within(name), *command]
        with mounted(self._programs, place.name, command, place):
            yield place

    def _run(
        self,
        case: Case,
        options: Mapping[str, Sequence[str]],
        below: Mapping[str, str | pathlib.Path],
    ) -> Mapping[str, float]:
        samples: list[tuple[float, Mapping[str, float]]] = []
        is_counted = case.path != DIRECT and len(options) > 1
        before = self._servers.moved() if is_counted else {}
        with contextlib.ExitStack() as stack:
            running = {}
            for name, own in options.items():
                directory = self._directory(
                    len(case.servers(name)), below.get(name, f"pvfs2:{real_orangefs.PLACE}")
                )
                command = self._command(case, name, [*own, "-o", f"{directory}/{name}"])
                running[name] = stack.enter_context(started(command, self._log(name), {}))
            until = time.monotonic() + PATIENCE
            while any(each.poll() is None for each in running.values()):
                if time.monotonic() > until:
                    raise Problem(f"IOR did not end within {PATIENCE:.0f} s")
                time.sleep(INTERVAL)
                if is_counted:
                    moved = self._servers.moved()
                    now = time.monotonic()
                    samples.append((now, {name: moved[name] - before[name] for name in moved}))
            for name, each in running.items():
                self._check(name, each.returncode)
        if not is_counted:
            return {name: self._own_rate(name, options[name]) for name in options}
        if not (rates := rates_between(samples)):
            raise Problem("both applications did not run beside each other for long enough")
        return rates

    def _command(self, case: Case, name: str, options: Sequence[str]) -> list[str]:
        variables = {"PVFS2TAB_FILE": self._table(case.path)}
        api = "POSIX"
        if self._client == MPIIO:
            api = "MPIIO"
            variables[SERVERS_HINT] = str(len(case.servers(name)))  # ROMIO ignores the directory's
        return [
            *self._hosts.within(name),
            *mpi_command(self._ior, case.processes, variables),
            *(self._ior, "-a", api, "-t", str(case.size)),
            *options,
        ]

    def _log(self, name: str) -> pathlib.Path:
        return self._programs.work / f"ior-{name}.log"

    def _check(self, name: str, code: int) -> None:
        if code != 0:
            text = self._log(name).read_text(errors="replace").strip()
            raise Problem(f"IOR of application {name} ended with {code}:\n{text[-2000:]}")

    def _own_rate(self, name: str, options: Sequence[str]) -> float:
        text = self._log(name).read_text(errors="replace")
        return ior.mean_mib_per_s(text, READ if "-r" in options else WRITE)


@contextlib.contextmanager
def opened(binaries: pathlib.Path, work: pathlib.Path, client: str) -> Iterator[Site]:
    """The servers, with a client of CLIENTS, until the context is left."""
    if why := why_not_here():
        raise Problem(f"{client} cannot be measured: {why}")
    with contextlib.ExitStack() as stack:
        mounts = stack.enter_context(Programs(binaries, work))
        devices = []
        for index in range(SERVERS):
            below = work / f"below{index}"
            stack.callback(shutil.rmtree, below, ignore_errors=True)  # gigabytes
            shutil.rmtree(below, ignore_errors=True)  # of a run that was killed
            below.mkdir(parents=True)
            _, place = stack.enter_context(
                directory_mounted(
                    mounts, f"device{index}", DEVICE.format(rate=RATES[client]), below
                )
            )
            devices.append(place)
        hosts = stack.enter_context(Network([HOST, "a", "b"]))
        # pvfs2-server makes no file system where there is one.
        shutil.rmtree(work / "site", ignore_errors=True)
        programs = stack.enter_context(Programs(binaries, work / "site"))
        yield Site(programs, hosts, client, devices)
