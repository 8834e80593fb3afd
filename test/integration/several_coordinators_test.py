#!/usr/bin/env python3
"""Does what docs/admin/several-coordinators.md says, with three coordinators and a real etcd of three members.

    several_coordinators_test.py DIRECTORY_OF_PROGRAMS
"""
from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(pathlib.Path(__file__).resolve().parent)]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

import page  # noqa: E402
from lab import etcd  # noqa: E402
from lab.harness import Program, Programs  # noqa: E402

PAGE = ROOT / "docs/admin/several-coordinators.md"
CONFIG = "vpfs-coordinator.yaml"
PREFIX = "/vpfs/main/"
PATIENCE = 20.0
PROGRAMS: list[pathlib.Path] = []


def code_of_page() -> tuple[str, list[str]]:
    """The configuration, and the commands of etcdctl."""
    config, commands = "", []
    for _, block in page.code_blocks(PAGE.read_text(encoding="utf-8")):
        if block[0] == f"# {CONFIG}":
            config = "\n".join(block) + "\n"
        commands += [line.strip() for line in block if line.strip().startswith("etcdctl ")]
    return config, commands


class Coordinators:
    def __init__(self, programs: Programs, config: str, store: etcd.Etcd) -> None:
        self.programs = programs
        self.ports = [programs.reserve_port() for _ in range(3)]
        self.members: list[Program] = []
        self._runs = 0
        self._texts = []
        for port in self.ports:
            text = config.replace("0.0.0.0:7313", f"127.0.0.1:{port}").replace("/etc/vpfs/tls", str(store.folder))
            for index, endpoint in enumerate(store.endpoints):
                text = text.replace(f"https://etcd{index}.example:2379", endpoint)
            text = text.replace("/etc/vpfs/etcd.password", str(store.password_file))
            # The proxy of this test listens at a socket.
            self._texts.append(text.replace("ds0.example:7311", str(programs.work / "ds0.sock")))
        for index in range(3):
            self.members.append(self._start(index))

    def _start(self, index: int) -> Program:
        file = self.programs.work / f"c{index}.yaml"
        file.write_text(self._texts[index])
        checked = subprocess.run([self.programs.binaries / "vpfs-coordinator", "--config", file, "--check-config"],
                                 check=False, capture_output=True, text=True, timeout=PATIENCE)
        if checked.returncode != 0 or checked.stderr:
            raise AssertionError(f"{self._texts[index]}\n{checked.stdout}{checked.stderr}")
        self._runs += 1
        program = self.programs.start(f"c{index}-{self._runs}", "vpfs-coordinator", "--config", str(file))
        program.wait_for_line("ready")
        return program

    def restart(self, index: int) -> None:
        self.members[index] = self._start(index)

    def ctl(self, *arguments: str, members: tuple[int, ...] = (0, 1, 2)) -> subprocess.CompletedProcess[str]:
        tls = self.programs.work / "tls"
        addresses = ",".join(f"127.0.0.1:{self.ports[each]}" for each in members)
        command = [str(self.programs.binaries / "vpfsctl"), "--ca", str(tls / "ca.pem"), "--certificate",
                   str(tls / "operator.pem"), "--key", str(tls / "operator.key"), "--coordinator", addresses, *arguments]
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=PATIENCE, env=dict(os.environ))

    def status(self) -> dict[str, object] | None:
        """That of the leader, which comes before those of stages; None: none leads."""
        done = self.ctl("--json", "status")
        answers = json.loads(done.stdout)["proxies"] if done.stdout.startswith("{") else []
        found: list[dict[str, object]] = [each["data"] for each in answers if each["ok"] and "stages" in each["data"]]
        return found[0] if found else None

    def leader(self) -> int:
        status = self.status()
        if status is None:
            raise AssertionError("none leads")
        return next(index for index, program in enumerate(self.members) if program.pid == status["pid"])


def comes_true(what: Callable[[], object], patience: float = PATIENCE) -> bool:
    until = time.monotonic() + patience
    while not what():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


class SeveralCoordinatorsTest(unittest.TestCase):
    def setUp(self) -> None:
        if why := etcd.missing():
            self.skipTest(why)
        folder = tempfile.TemporaryDirectory(prefix="vpfs")
        self.addCleanup(folder.cleanup)
        self.programs = Programs(PROGRAMS[0], pathlib.Path(folder.name))
        self.addCleanup(self.programs.__exit__)
        self.etcd = etcd.Etcd(self.programs)
        self.etcd.make_certificates("coordinator=localhost,127.0.0.1", "operator")
        config, commands = code_of_page()
        self.assertEqual(len(commands), 4)
        for command in commands:
            words = command.split()[1:]
            if words[:2] == ["user", "add"]:
                words[2] += f":{etcd.PASSWORD}"  # it would be asked for
            self.etcd.ctl(*words)
        self.etcd.require_passwords()
        proxy = self.programs.work / "proxy.yaml"
        proxy.write_text(json.dumps({
            "proxy": {"listen": f"127.0.0.1:{self.programs.reserve_port()}",
                      "upstream": f"127.0.0.1:{self.programs.reserve_port()}", "status_file": "status.json"},
            "scheduler": {"policy": "sfq"}, "control": {"socket": str(self.programs.work / "ds0.sock"), "name": "ds0"},
            "virtual_pfs": {"a": {"weight": 1}}, "rules": []}))
        self.programs.start("proxy", "vpfs-proxy", "--config", str(proxy)).wait_for_line("ready at")
        self.coordinators = Coordinators(self.programs, config, self.etcd)

    def connected(self) -> bool:
        status = self.coordinators.status()
        return status is not None and [each["connected"] for each in status["stages"]] == [True]  # type: ignore[attr-defined]

    def test_as_the_page_says(self) -> None:
        at = self.coordinators
        self.assertTrue(comes_true(self.connected))
        self.assertEqual(at.ctl("rule", "start", "first", "jobid=1", "weight=2").returncode, 0)
        first = at.leader()

        # A standby changes nothing, and names the leader.
        refused = at.ctl("rule", "start", "second", "jobid=2", "weight=2", members=((first + 1) % 3,))
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(f"127.0.0.1:{at.ports[first]} leads", refused.stdout + refused.stderr)

        # It is killed.
        at.members[first].signal(signal.SIGKILL)
        began = time.monotonic()
        self.assertTrue(comes_true(self.connected))
        # At once, or after its lease of 5 s if no standby had met it yet.
        self.assertLess(time.monotonic() - began, 10)
        self.assertIn("first", at.ctl("rule", "list").stdout)
        at.restart(first)

        # It is asked to end.
        second = at.leader()
        at.members[second].signal(signal.SIGTERM)
        self.assertTrue(comes_true(self.connected))
        at.restart(second)

        # It hangs, and comes back.
        third = at.leader()
        at.members[third].signal(signal.SIGSTOP)
        self.assertTrue(comes_true(lambda: self.connected() and at.leader() != third))
        at.members[third].signal(signal.SIGCONT)
        at.members[third].wait_for_line("leads, with term", PATIENCE)
        self.assertNotEqual(at.leader(), third)

        # A node of etcd is lost.
        self.etcd.kill(0)
        done = at.ctl("rule", "start", "third", "jobid=3", "weight=2")
        self.assertEqual(done.returncode, 0, done.stderr)

        # The store is away for all.
        self.etcd.kill(1)
        self.assertTrue(comes_true(lambda: at.status() is None, 30))
        self.etcd.restart(1)
        self.assertTrue(comes_true(self.connected, 30))
        listed = at.ctl("rule", "list").stdout
        self.assertIn("first", listed)
        self.assertIn("third", listed)
        at.members[at.leader()].wait_for_line("ready")


if __name__ == "__main__":
    PROGRAMS.append(pathlib.Path(sys.argv.pop(1)))
    unittest.main()
