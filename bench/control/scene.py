"""A server, a proxy with a control port before it, and attacks on that port."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from bench.attacks import orangefs
from bench.control.attacks import ATTACKS, EXPIRED, FOREIGN, NOBODY, READER, WRITER, WRITERS_ATTACKS
from bench.control.client import Client, Door, Probe
from lab.cluster import Cluster, Front
from lab.harness import ROOT, Problem, Program, Programs
from lab.load import Application, run_load
from lab.report import Json

SOCKET = "control.sock"  # relative to the directory of all programs, since such paths are short
THREAD = "vpfs-control"
DEVICE = {"bandwidth": "100 MiB/s", "per_request": "100 us", "parallelism": 1}
VICTIM = Application(
    "victim", size=256 << 10, outstanding=16, read_percent=50, pattern="random", file_size=8 << 20
)
ODD_JOB = b"\xff\xc0odd\x1b[2J"
TEMPLATE = "job-{jobid}"
WARM_UP = 0.5
SERVER = "server"  # name of a certificate
SETTLE = 20.0  # seconds within which memory and descriptors must be back


CERTIFICATES = {
    "": [f"{SERVER}=localhost,127.0.0.1", READER, WRITER],
    "--expired": [EXPIRED],
    "--foreign": [FOREIGN],
}


def make_certificates(directory: pathlib.Path) -> pathlib.Path:
    # A directory of an earlier run may have certificates that have expired meanwhile.
    shutil.rmtree(directory, ignore_errors=True)
    for kind, names in CERTIFICATES.items():
        command = [
            str(ROOT / "script/certificates"),
            *([kind] if kind else []),
            str(directory),
            *names,
        ]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise Problem(f"script/certificates failed:\n{done.stderr}")
    return directory


def control_config(certificates: pathlib.Path, tcp: int) -> dict[str, object]:
    return {
        "socket": SOCKET,
        "mode": "0666",
        "tcp": f"127.0.0.1:{tcp}",
        "certificate": str(certificates / f"{SERVER}.pem"),
        "key": str(certificates / f"{SERVER}.key"),
        "ca": str(certificates / "ca.pem"),
        "audit": "audit.log",
        "readers": [f"uid:{NOBODY}", f"cert:{READER}"],
        "writers": [f"cert:{WRITER}"],
    }


@dataclasses.dataclass(frozen=True)
class State:
    """What an attack must leave as it was."""

    own_mib: float  # resident memory that no file backs
    open_files: int

    def worse_than(self, before: State) -> bool:
        return self.open_files > before.open_files or self.own_mib > before.memory_limit()

    def memory_limit(self) -> float:
        return 1.1 * self.own_mib + 8


class ControlScene:
    """One device-limited server, and the proxy in front of it."""

    def __init__(
        self, programs: Programs, front: Front, device: Mapping[str, object] | None = None
    ) -> None:
        self.programs = programs
        certificates = make_certificates(programs.work / "certificates")
        tcp = programs.reserve_port()
        # Peers without rights connect too.
        programs.work.chmod(0o755)
        self.cluster = Cluster(
            programs,
            1,
            [dataclasses.replace(front, control=control_config(certificates, tcp))],
            device,
        )
        self.proxy: Program = self.cluster.start(front.name)[0]
        self._port = self.cluster.ports(front.name)[0]
        self.address = self.cluster.address(front.name)
        self.door = Door(str(programs.work / SOCKET), tcp, certificates)
        self._runs = 0

    def odd_job(self) -> None:
        """An application's request with a job id that is not text.

        It has a virtual PFS from now on.
        """
        with socket.create_connection(("127.0.0.1", self._port)) as connection:
            connection.sendall(orangefs.small_read(1, orangefs.FIRST_DATAFILE, 4096, ODD_JOB))
            orangefs.Reader(connection).next()

    def load(self, applications: Sequence[Application], seconds: float) -> Json:
        """Its data are verified, and requests may fail."""
        self._runs += 1
        return run_load(
            self.programs,
            f"load{self._runs}",
            self.address,
            applications,
            seconds,
            WARM_UP,
            verify=True,
            may_fail=True,
        )

    @contextmanager
    def attacked(self, names: Sequence[str]) -> Iterator[dict[str, Mapping[str, int]]]:
        """Runs the attacks inside the context.

        At its end, the dictionary has what each of them did.
        """
        attackers = self.programs.start(
            "attackers",
            sys.executable,
            "-B",
            str(ROOT / "bench/control/attack_main.py"),
            *names,
            "--socket",
            SOCKET,
            "--tcp",
            str(self.door.tcp),
            "--certificates",
            str(self.door.certificates),
        )
        attackers.wait_until(
            lambda: attackers.log.read_text().count("ready\n") == len(names), "attacking"
        )
        counts: dict[str, Mapping[str, int]] = {}
        yield counts
        attackers.stop()
        for line in attackers.log.read_text().splitlines():
            if line.startswith("{"):
                counts.update(json.loads(line))
        if counts.keys() != set(names):
            raise Problem(f"an attack has failed:\n{attackers.last_lines(20)}")

    def stop_rules(self) -> None:
        """Stops all rules that administrators started."""
        with Client(self.door.over_tls(self.door.context(WRITER))) as client:
            client.ask(
                {"rule": {"action": "APPLY", "file": "rules: []\n", "file_name": "no rules"}}
            )

    def state(self) -> State:
        return State(self.proxy.own_mib(), self.proxy.open_files())

    def settled(self, before: State) -> State:
        """Waits until the proxy has no more than before, or for as long as it may take."""
        deadline = time.monotonic() + SETTLE
        while (now := self.state()).worse_than(before) and time.monotonic() < deadline:
            time.sleep(0.2)
        return now

    def log_lines(self) -> int:
        return len(self.proxy.log.read_text(errors="replace").splitlines())

    def audit_lines(self) -> int:
        audit = self.programs.work / "audit.log"
        return len(audit.read_text(errors="replace").splitlines()) if audit.exists() else 0

    def control_cpu(self) -> float:
        return self.proxy.thread_cpu_seconds(THREAD)

    def probe(self) -> Probe:
        return Probe(self.door, READER)


def attack_names(only: Sequence[str] | None) -> list[str]:
    found = [
        name
        for name in [*ATTACKS, *WRITERS_ATTACKS]
        if not only or any(text in name for text in only)
    ]
    if not found:
        raise Problem("no attack has such a name (--help lists them)")
    return found


def runs_as_root() -> bool:
    return os.geteuid() == 0
