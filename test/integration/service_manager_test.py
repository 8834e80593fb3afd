#!/usr/bin/env python3
"""A small stand-in for systemd: it hears what a proxy tells, keeps its descriptors, and starts it again.

    service_manager_test.py DIRECTORY_OF_PROGRAMS
"""
from __future__ import annotations

import array
import contextlib
import ctypes
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS: list[pathlib.Path] = []
PATIENCE = 20.0
FIRST = 3  # descriptor of what is kept
MAGIC = 0xCABF


def message(tag: int, payload: bytes) -> bytes:
    """A request of OrangeFS that passes at once."""
    return struct.pack("<IIQQ", MAGIC, 2, tag, len(payload)) + payload


class Manager:
    """Keeps descriptors by their names, and knows the main process."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.path = folder / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.settimeout(PATIENCE)
        self.watchdog = 0.0  # seconds; 0: it does not ask
        self.kept: dict[str, int] = {}
        self.main = 0

    def hear(self) -> tuple[dict[str, str], int, array.array[int]]:
        """The words of a message, the process that sent it, and its descriptors."""
        descriptors = array.array("i")
        text, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_LEN(16 * descriptors.itemsize) + 64)
        sender = 0
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
            if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
                sender = struct.unpack("iII", data[:12])[0]
        return dict(line.split("=", 1) for line in text.decode().splitlines()), sender, descriptors

    def hear_for(self, seconds: float, word: str) -> list[int]:
        """The processes that said a word in a time."""
        senders = []
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            with contextlib.suppress(TimeoutError):
                words, sender, _ = self.hear()
                if word in words:
                    senders.append(sender)
        self.socket.settimeout(PATIENCE)
        return senders

    def hear_until(self, word: str) -> dict[str, str]:
        while True:
            words, _, _ = self.hear()
            if word in words:
                return words

    def hear_until_ready(self) -> None:
        while True:
            words, _, descriptors = self.hear()
            if "FDSTOREREMOVE" in words and words["FDNAME"] in self.kept:
                os.close(self.kept.pop(words["FDNAME"]))
            if "FDSTORE" in words:
                self.kept[words["FDNAME"]] = descriptors[0]
            if words.get("READY") == "1":
                self.main = int(words["MAINPID"])
                return

    def start(self, config: pathlib.Path, program: str = "vpfs-proxy") -> subprocess.Popen[bytes]:
        """Starts a program as systemd does, with what is kept."""
        names = list(self.kept)
        high = [os.dup(self.kept[name]) for name in names]
        # The descriptors must not be among those that are assigned.
        high = [os.dup2(one, 100 + i) for i, one in enumerate(high)]
        command = 'LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$0" "$@"'
        environment = dict(os.environ, NOTIFY_SOCKET=str(self.path))
        if self.watchdog:
            environment["WATCHDOG_USEC"] = str(int(self.watchdog * 1e6))
        if names:
            environment.update(LISTEN_FDS=str(len(names)), LISTEN_FDNAMES=":".join(names))

        def place() -> None:
            for i, one in enumerate(high):
                os.dup2(one, FIRST + i)

        return subprocess.Popen(["sh", "-c", command, PROGRAMS[0] / program, "--config", config], env=environment,
                                stdout=subprocess.DEVNULL, preexec_fn=place,  # noqa: PLW1509
                                pass_fds=[FIRST + i for i in range(len(names))])


class StoppedThread:
    """One thread of a process does not go on, while the others run: ptrace(2) stops it."""

    SEIZE, INTERRUPT, DETACH, ALL = 0x4206, 0x4207, 17, 0x40000000

    def __init__(self, thread: int) -> None:
        self.thread = thread

    def call(self, request: int) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        if library.ptrace(request, self.thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")

    def __enter__(self) -> None:
        self.call(self.SEIZE)
        self.call(self.INTERRUPT)
        os.waitpid(self.thread, self.ALL)

    def __exit__(self, *_: object) -> None:
        self.call(self.DETACH)


def worker_of(process: int) -> int:
    """A thread that moves data."""
    for task in pathlib.Path(f"/proc/{process}/task").iterdir():
        if (task / "comm").read_text().startswith("worker-"):
            return int(task.name)
    raise AssertionError("no worker")


class ServiceManagerTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="vpfs")
        self.addCleanup(self.folder.cleanup)
        work = pathlib.Path(self.folder.name)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(PATIENCE)
        self.addCleanup(self.server.close)
        self.control = work / "control"
        self.config = work / "proxy.yaml"
        self.config.write_text(f"proxy: {{listen: '127.0.0.1:0', upstream: '127.0.0.1:{self.server.getsockname()[1]}', "
                               f"log: {work}/log}}\ncontrol: {{socket: {self.control}, http: '127.0.0.1:0'}}\n")
        self.manager = Manager(work)
        self.addCleanup(self.manager.socket.close)

    def start(self) -> subprocess.Popen[bytes]:
        proxy = self.manager.start(self.config)
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.kill)
        self.manager.hear_until_ready()
        self.assertEqual(self.manager.main, proxy.pid)
        return proxy

    def port(self) -> int:
        with socket.socket(fileno=os.dup(self.manager.kept["proxy.listen"])) as listener:
            return int(listener.getsockname()[1])

    def expect_served(self, client: socket.socket) -> None:
        client.settimeout(PATIENCE)
        client.sendall(message(1, b"hello"))
        upstream, _ = self.server.accept()
        with upstream:
            upstream.settimeout(PATIENCE)
            self.assertEqual(upstream.recv(100), message(1, b"hello"))

    def test_listeners_are_kept_over_a_crash(self) -> None:
        proxy = self.start()
        self.server.accept()[0].close()  # the look at its start
        self.assertEqual(sorted(self.manager.kept), ["control.http", "control.socket", "control.socket.lock", "proxy.listen",
                                                     "restart.socket", "restart.socket.lock"])
        port = self.port()
        proxy.send_signal(signal.SIGKILL)
        proxy.wait()
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
            self.start()
            self.assertEqual(self.port(), port, "the kernel chose it for the first one")
            self.server.accept()[0].close()
            self.expect_served(client)
        asked = self.status()
        self.assertEqual(asked.returncode, 0, asked.stderr)

    def test_a_clean_stop_and_a_start_with_what_was_kept(self) -> None:
        for _ in range(2):
            proxy = self.start()
            proxy.send_signal(signal.SIGTERM)
            self.assertEqual(proxy.wait(PATIENCE), 0)
            self.assertFalse(self.control.exists())
        self.start()
        asked = self.status()
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.assertEqual(self.upgrade().returncode, 0)
        self.manager.hear_until_ready()
        self.addCleanup(self.end, self.manager.main)

    def test_a_process_that_takes_over_is_the_main_one(self) -> None:
        first = self.start()
        self.server.accept()[0].close()
        port = self.port()
        asked = self.upgrade()
        self.assertEqual(asked.returncode, 0, asked.stderr)
        self.manager.hear_until_ready()
        second = self.manager.main
        self.assertNotEqual(second, first.pid)
        self.addCleanup(self.end, second)
        self.assertIn(f"process {second} has taken over", asked.stdout)
        self.assertEqual(first.wait(PATIENCE), 0)
        self.assertEqual(self.port(), port)
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
            self.expect_served(client)
        # What the second one has stored serves a third one after a crash.
        os.kill(second, signal.SIGKILL)
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
            self.start()
            self.server.accept()[0].close()
            self.expect_served(client)

    def upgrade(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run([PROGRAMS[0] / "vpfsctl", "--proxy", self.control, "upgrade"], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)

    def test_descriptors_do_not_grow_with_each_upgrade(self) -> None:
        process = self.start()
        self.server.accept()[0].close()
        clients = [socket.create_connection(("127.0.0.1", self.port()), PATIENCE) for _ in range(5)]
        upstreams = []
        for client in clients:
            self.addCleanup(client.close)
            client.sendall(message(1, b"hello"))
            upstreams.append(self.server.accept()[0])
            self.addCleanup(upstreams[-1].close)
        counts = [self.settled_descriptors(process.pid)]
        for _ in range(2):
            before = self.manager.main
            asked = self.upgrade()
            self.assertEqual(asked.returncode, 0, asked.stderr)
            self.manager.hear_until_ready()
            self.addCleanup(self.end, self.manager.main)
            self.assertNotEqual(self.manager.main, before)
            if before == process.pid:
                self.assertEqual(process.wait(PATIENCE), 0)
            counts.append(self.settled_descriptors(self.manager.main))
        # The channel of the hand-over is one more.
        self.assertLessEqual(max(counts), counts[0] + 2, counts)
        self.assertLessEqual(counts[2], counts[1], counts)
        # A process that kept a copy would keep the connection open.
        os.kill(self.manager.main, signal.SIGKILL)
        for peer in clients + upstreams:
            peer.settimeout(PATIENCE)
            with contextlib.suppress(ConnectionResetError):
                while peer.recv(4096):
                    pass

    def settled_descriptors(self, pid: int) -> int:
        """The number when it has not changed for a while."""
        folder = pathlib.Path(f"/proc/{pid}/fd")
        last, since = -1, time.monotonic()
        while time.monotonic() - since < 0.5:
            now = len(list(folder.iterdir()))
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.05)
        return last

    def end(self, pid: int) -> None:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        time.sleep(0.1)

    def test_a_manager_that_is_busy_delays_nothing(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    other.sendto(b"STATUS=x", str(self.manager.path))
        begin = time.monotonic()
        proxy = self.manager.start(self.config)
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.kill)
        while self.status().returncode != 0:
            self.assertLess(time.monotonic() - begin, 4)
        self.assertLess(time.monotonic() - begin, 4)
        self.manager.hear_until_ready()
        self.assertIn("proxy.listen", self.manager.kept)
        proxy.send_signal(signal.SIGTERM)
        self.assertEqual(proxy.wait(PATIENCE), 0)

    def status(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run([PROGRAMS[0] / "vpfsctl", "--proxy", self.control, "status"], capture_output=True, text=True,
                              timeout=PATIENCE, check=False)

    def test_a_worker_that_stalls_ends_the_word_that_all_is_well(self) -> None:
        self.manager.watchdog = 0.4
        proxy = self.start()
        self.assertGreaterEqual(len(self.manager.hear_for(1, "WATCHDOG")), 4, "four in each period")
        with StoppedThread(worker_of(proxy.pid)):
            self.manager.hear_for(0.4, "WATCHDOG")  # it may have turned since the last word
            self.assertEqual(self.manager.hear_for(0.8, "WATCHDOG"), [])
            self.assertIsNone(proxy.poll(), "only the manager may end it")
        self.assertGreaterEqual(len(self.manager.hear_for(1, "WATCHDOG")), 4, "it goes on")
        log = (pathlib.Path(self.folder.name) / "log").read_text()
        self.assertIn("a thread has not turned", log)
        self.assertIn("all threads turn again", log)

    def test_only_the_process_that_took_over_says_that_all_is_well(self) -> None:
        self.manager.watchdog = 0.4
        first = self.start()
        self.server.accept()[0].close()
        with socket.create_connection(("127.0.0.1", self.port()), PATIENCE) as client:
            # In the middle of a message, so that the connection stays, and the process too.
            client.sendall(message(1, bytes(1000))[:500])
            upstream, _ = self.server.accept()
            self.addCleanup(upstream.close)
            upstream.settimeout(PATIENCE)
            self.assertTrue(upstream.recv(100))
            self.assertEqual(self.upgrade().returncode, 0)
            self.manager.hear_until_ready()
            second = self.manager.main
            self.addCleanup(self.end, second)
            self.assertEqual(set(self.manager.hear_for(0.6, "WATCHDOG")), {second})
            self.assertIsNone(first.poll())
            with StoppedThread(worker_of(second)):
                self.manager.hear_for(0.4, "WATCHDOG")
                self.assertEqual(self.manager.hear_for(0.8, "WATCHDOG"), [])

    def test_a_reload_and_the_end_are_told(self) -> None:
        proxy = self.start()
        for text in (self.config.read_text(), "proxy: {listen: nowhere}\n"):  # a mistake ends the reload too
            self.config.write_text(text)
            proxy.send_signal(signal.SIGHUP)
            began = self.manager.hear_until("RELOADING")
            self.assertLess(abs(int(began["MONOTONIC_USEC"]) / 1e6 - time.monotonic()), PATIENCE)
            self.assertEqual(self.manager.hear_until("READY"), {"READY": "1"})
        proxy.send_signal(signal.SIGTERM)
        self.manager.hear_until("STOPPING")
        self.assertEqual(proxy.wait(PATIENCE), 0)

    def test_a_coordinator_is_ready_alive_and_ends(self) -> None:
        self.manager.watchdog = 0.4
        work = pathlib.Path(self.folder.name)
        config = work / "coordinator.yaml"
        config.write_text(f"name: site\npolicy: total\njournal: {work}/journal\nlog: {work}/coordinator.log\n"
                          f"stages: {{dial: [{{name: s0, address: {self.control}}}]}}\n")
        coordinator = self.manager.start(config, "vpfs-coordinator")
        self.addCleanup(coordinator.wait)
        self.addCleanup(coordinator.kill)
        self.assertEqual(self.manager.hear_until("READY")["MAINPID"], str(coordinator.pid))
        self.assertGreaterEqual(len(self.manager.hear_for(1, "WATCHDOG")), 4)
        with StoppedThread(coordinator.pid):  # the loop of its cycles
            self.manager.hear_for(0.2, "WATCHDOG")
            self.assertEqual(self.manager.hear_for(0.8, "WATCHDOG"), [])
        coordinator.send_signal(signal.SIGTERM)
        self.manager.hear_until("STOPPING")
        self.assertEqual(coordinator.wait(PATIENCE), 0)

    def test_a_manager_that_asks_another_process_hears_nothing(self) -> None:
        environment = dict(os.environ, NOTIFY_SOCKET=str(self.manager.path), WATCHDOG_PID="1",
                           WATCHDOG_USEC="200000")
        proxy = subprocess.Popen([PROGRAMS[0] / "vpfs-proxy", "--config", self.config], env=environment,
                                 stdout=subprocess.DEVNULL)
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.kill)
        self.manager.hear_until_ready()
        self.assertEqual(self.manager.hear_for(0.5, "WATCHDOG"), [])

    def test_a_listener_of_a_socket_unit_serves(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as unit:
            port = unit.getsockname()[1]
            self.manager.kept["proxy.listen"] = os.dup(unit.fileno())
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:  # before the proxy runs
            self.start()
            self.server.accept()[0].close()
            self.expect_served(client)

    def test_too_few_open_files_are_told_at_the_start(self) -> None:
        for most, is_told in ((10000, True), (100, False)):
            self.config.write_text(self.config.read_text() + f"limits: {{connections: {most}}}\n")
            with subprocess.Popen(["prlimit", "--nofile=1000:1000", PROGRAMS[0] / "vpfs-proxy", "--config", self.config],
                                  stdout=subprocess.PIPE) as proxy:
                assert proxy.stdout is not None
                self.assertIn(b"ready at", proxy.stdout.readline())
                proxy.send_signal(signal.SIGTERM)
            self.config.write_text(self.config.read_text().replace(f"limits: {{connections: {most}}}\n", ""))
            log = pathlib.Path(self.folder.name) / "log"
            self.assertEqual("limits.connections of 10000 takes 20064 open files, and this process may have 1000" in
                             log.read_text(), is_told)
            log.unlink()

    def test_without_a_manager_nothing_is_told(self) -> None:
        proxy = subprocess.Popen([PROGRAMS[0] / "vpfs-proxy", "--config", self.config], stdout=subprocess.PIPE)
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.kill)
        assert proxy.stdout is not None
        self.assertIn(b"ready at", proxy.stdout.readline())
        proxy.stdout.close()


if __name__ == "__main__":
    PROGRAMS.append(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
