#!/usr/bin/env python3
"""Runs the examples of the administrator's guide and compares what they print with the pages, numbers masked.

    pages_test.py DIRECTORY_OF_PROGRAMS [PAGE ...]
    pages_test.py DIRECTORY_OF_PROGRAMS --write PAGE    puts what the commands print into the page
"""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator
from contextlib import contextmanager

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(pathlib.Path(__file__).resolve().parent)]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

import page  # noqa: E402
from lab.cluster import Cluster, Front  # noqa: E402
from lab.file_systems import DIRECT  # noqa: E402
from lab.harness import Program, Programs  # noqa: E402
from lab.load import Application, seconds  # noqa: E402

WITH_LOAD = {"a-slow-job.md"}
TLS = "/etc/vpfs/tls"
JOBS = [Application(name, size=64 << 10, outstanding=16, file_size=4 << 20, jobid=name) for name in ("4711", "4712", "4713")]
SETTLE = 2.5  # until rates follow a change
PATIENCE = 20.0
PROGRAMS: list[pathlib.Path] = []
MASK = page.Mask(ROOT)


class Site:
    """A server and the proxy of a page before it. The proxy's paths and ports are of a temporary directory."""

    def __init__(self, programs: Programs) -> None:
        self.programs = programs
        self.cluster = Cluster(programs, 1, [Front("px", "proxy")])
        self._tls_port = programs.reserve_port()
        self.proxy: Program | None = None
        self._load: Program | None = None

    def local(self, text: str) -> str:
        for there in ("/run/vpfs", "/var/lib/vpfs", "/var/log/vpfs", "/etc/vpfs"):
            text = text.replace(there, str(self.programs.work))
        text = text.replace("0.0.0.0:7311", f"127.0.0.1:{self._tls_port}")
        text = text.replace("stor0.example:7311", f"localhost:{self._tls_port}")
        for address, path in (("0.0.0.0:4334", "px"), ("127.0.0.1:3334", DIRECT), ("0.0.0.0:8003", "px"),
                              ("127.0.0.1:8003", DIRECT)):
            text = text.replace(address, f"127.0.0.1:{self.cluster.ports(path)[0]}")
        return text

    def as_typed(self, printed: str) -> str:
        """What a program has printed, with the one folder that pages name and programs print."""
        return printed.replace(self.local(TLS), TLS)

    def use(self, config: str) -> None:
        """Starts the proxy with this configuration, and without what another one has left."""
        if self.proxy is not None:
            self.proxy.stop()
            for left in self.programs.work.glob("proxy.journal*"):
                left.unlink()
        file = self.programs.work / page.CONFIG
        file.write_text(self.local(config))
        checked = subprocess.run([self.programs.binaries / "vpfs-proxy", "--config", file, "--check-config"], check=False,
                                 capture_output=True, text=True, timeout=PATIENCE)
        if checked.returncode != 0 or "warning" in checked.stderr:
            raise AssertionError(f"{config}\n{checked.stdout}{checked.stderr}")
        self.proxy = self.programs.start("proxy", "vpfs-proxy", "--config", str(file))
        self.proxy.wait_for_line("ready at")

    def load(self) -> None:
        config = {"file_system": self.cluster.address("px"), "directory": "/load", "duration": "600 s",
                  "warm_up": seconds(0), "interval": "1 s", "applications": [job.config() for job in JOBS]}
        file = self.programs.work / "load.yaml"
        file.write_text(json.dumps(config))
        self._load = self.programs.start("load", "vpfs-load", "--config", str(file))
        self._load.wait_for_line("the run begins")
        time.sleep(SETTLE)

    def end_successor(self) -> None:
        """Ends a proxy that has taken the place of the one that the page started."""
        if self.proxy is not None and not self.proxy.running():
            subprocess.run([self.programs.binaries / "vpfsctl", "--proxy", self.programs.work / "proxy.sock", "drain"],
                           check=True, capture_output=True, timeout=PATIENCE)

    def run(self, command: page.Command) -> subprocess.CompletedProcess[str]:
        environment = dict(os.environ, VPFS_PROXY=str(self.programs.work / "proxy.sock"))
        words = [self.local(word) for word in command.words()]
        program = (ROOT if "/" in words[0] else self.programs.binaries) / words[0]
        return subprocess.run([program, *words[1:]], check=False, capture_output=True, text=True,
                              cwd=self.programs.work, env=environment, timeout=PATIENCE)


@dataclasses.dataclass
class Done:
    section: page.Section
    command: page.Command
    printed: str
    code: int


@contextmanager
def site() -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="vpfs") as folder, Programs(PROGRAMS[0], pathlib.Path(folder)) as programs:
        here = Site(programs)
        try:
            yield here
        finally:
            here.end_successor()


def run_page(file: pathlib.Path) -> Iterator[Done]:
    """Does what the page says, in its order. A configuration holds until the next one."""
    with site() as here:
        changed = False
        for section in page.sections(file):
            for step in section.steps:
                if isinstance(step, tuple):
                    name, text = step
                    if name == page.CONFIG:
                        here.use(text)
                        if file.name in WITH_LOAD:
                            here.load()
                    else:
                        (here.programs.work / name).write_text(text)
                    continue
                if file.name in WITH_LOAD and changed and step.words()[1] in ("stat", "top"):
                    time.sleep(SETTLE)
                done = here.run(step)
                changed = step.words()[1] == "rule"
                yield Done(section, step, here.as_typed(done.stdout + done.stderr), done.returncode)


def row(printed: str, name: str) -> dict[str, str]:
    """A row of a table whose columns are numbers or single words up to what holds it."""
    lines = printed.splitlines()
    titles = next(line for line in lines if line.startswith("NAME")).split()
    return dict(zip(titles, next(line for line in lines if line.startswith(f"{name} ")).split()))


class PagesTest(unittest.TestCase):
    def check(self, name: str) -> list[Done]:
        all_done = list(run_page(ROOT / "docs/admin" / name))
        self.assertTrue(all_done)
        for done in all_done:
            with self.subTest(section=done.section.title, command=done.command.text):
                refused = any(": refused: " in line for line in done.command.output)
                self.assertEqual(done.code != 0, refused, done.printed)
                self.assertEqual(MASK.lines(done.printed), MASK.lines(done.command.output), done.printed)
        return all_done

    def test_a_slow_job(self) -> None:
        tables = [done.printed for done in self.check("a-slow-job.md") if done.command.text == "vpfsctl stat"]
        before, given, after = tables
        # The limits are 4 MiB/s and 12 MiB/s.
        self.assertAlmostEqual(float(row(before, "job-4711")["MiB/s"]), 4, delta=1)
        self.assertAlmostEqual(float(row(given, "urgent")["MiB/s"]), 12, delta=3)
        self.assertAlmostEqual(float(row(given, "job-4712")["MiB/s"]), 4, delta=1)
        self.assertAlmostEqual(float(row(after, "job-4711")["MiB/s"]), 4, delta=1)

    def test_rules_by_example(self) -> None:
        self.check("rules-by-example.md")

    def test_live_rules(self) -> None:
        self.check("live-rules.md")

    def test_upgrade_without_a_pause(self) -> None:
        self.check("upgrade-without-a-pause.md")

    def test_permissions(self) -> None:
        if shutil.which("openssl") is None:
            self.skipTest("there is no openssl command")
        self.check("permissions.md")


def write(file: pathlib.Path) -> None:
    """Puts what each command prints below it, in place of what is there."""
    printed = [(done.command, done.printed) for done in run_page(file)]
    lines, skipping = [], False
    queue = iter(printed)
    continued = False
    for line in file.read_text(encoding="utf-8").splitlines():
        is_command = line.startswith(tuple("    " + page.PROMPT + command for command in page.COMMANDS))
        if is_command or continued:
            lines.append(line)
            continued = line.endswith("\\")
            if not continued:
                lines += [("    " + each).rstrip() for each in next(queue)[1].splitlines()]
            skipping = True
        elif skipping and (line.startswith("    ") and line.strip()):
            continue
        else:
            skipping = False
            lines.append(line)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    PROGRAMS.append(pathlib.Path(sys.argv.pop(1)))
    if "--write" in sys.argv:
        for name in sys.argv[2:]:
            write(pathlib.Path(name))
    else:
        unittest.main()
