"""A data server, a proxy that the stand-in for systemd starts, and clients."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import subprocess
import time
from collections.abc import Callable

from descriptor_store import PATIENCE, Client, Store, Upstream, crash

PROGRAMS: list[pathlib.Path] = []
SOCKETS = "conn-"


def wait_until(is_so: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    end = time.monotonic() + patience
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError(f"waited for: {what}")
        time.sleep(0.02)


def is_zombie(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Site:
    """A data server, a proxy that the stand-in starts, and clients."""

    def __init__(
        self, folder: pathlib.Path, protocol: str, most: int = 400, more: str = ""
    ) -> None:
        self.protocol = protocol
        self.folder = folder
        self.upstream = Upstream(protocol)
        self.store = Store(folder, most)
        self.config = folder / "proxy.yaml"
        self.control = folder / "control"
        self.status_file = folder / "status.json"
        self.log = folder / "log"
        self.write(more)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.clients: list[Client] = []
        self.start()

    def write(self, more: str = "") -> None:
        self.config.write_text(
            f"proxy: {{listen: '127.0.0.1:0', upstream: '127.0.0.1:{self.upstream.port()}', "
            f"protocol: {self.protocol}, workers: 2, log: {self.log}}}\n"
            f"control: {{socket: {self.control}}}\n{more}\n"
        )

    def close(self) -> None:
        for client in self.clients:
            client.close()
        for process in self.processes:
            if process.poll() is None:
                crash(process)
        if self.store.main and self.is_running(self.store.main):
            os.kill(self.store.main, signal.SIGKILL)
        self.upstream.listener.close()
        self.store.close()

    @staticmethod
    def is_running(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True

    def wait_for_end(self, pid: int) -> None:
        wait_until(lambda: is_zombie(pid), "it ended")

    def start(self) -> subprocess.Popen[bytes]:
        process = self.store.start([PROGRAMS[0] / "vpfs-proxy", "--config", self.config])
        self.processes.append(process)
        wait_until(
            lambda: (
                self.store.main == process.pid
                and self.store.count("proxy.listen") == 1
                and self.serves()
            ),
            "the proxy serves",
        )
        return process

    def restart(self, how: int = signal.SIGKILL) -> None:
        crash(self.processes[-1], how)
        self.start()

    def port(self) -> int:
        listener = next(
            descriptor for name, descriptor in self.store.kept if name == "proxy.listen"
        )
        with socket.socket(fileno=os.dup(listener)) as copy:
            return int(copy.getsockname()[1])

    def connect(self, size: int = 100) -> Client:
        client = Client(self.protocol, self.port(), len(self.clients) + 1)
        self.clients.append(client)
        assert client.ask(size)
        return client

    def serves(self) -> bool:
        asked = subprocess.run(
            [PROGRAMS[0] / "vpfsctl", "--proxy", self.control, "status"],
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        return asked.returncode == 0

    def wait_for_kept(self, connections: int) -> None:
        wait_until(
            lambda: self.store.count(SOCKETS) == 2 * connections,
            f"{connections} connections are kept",
        )

    def logged(self, text: str) -> bool:
        return text in self.log.read_text()

    def upgrade(self) -> None:
        before = self.store.main
        done = subprocess.run(
            [PROGRAMS[0] / "vpfsctl", "--proxy", self.control, "upgrade"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        wait_until(lambda: self.store.main != before and self.serves(), "it has taken over")
