#!/usr/bin/env python3
"""Proxies of one release take over from those of the other, again and again, while a coordinator leads them, a rule
changes all the time, and a load checks each block.

    handover_test.py DIRECTORY_OF_PROGRAMS
"""
from __future__ import annotations

import pathlib
import sys
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(pathlib.Path(__file__).resolve().parent)]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

import upgrade_site  # noqa: E402
from upgrade_site import Release, Site, eventually  # noqa: E402

PROGRAMS: list[pathlib.Path] = []
ROUNDS = 3  # there and back
STAGES = ("ds0", "ds1")
COORDINATOR = "main"
RULES = 5  # live ones at a time


class Administrator(threading.Thread):
    """Starts jobs, stops old ones, and asks for the status: of proxies alone, and through the coordinator."""

    def __init__(self, site: Site) -> None:
        super().__init__(daemon=True)
        self._site, self._ends = site, threading.Event()
        self.failed: list[str] = []
        self.asked = 0
        self.started: list[str] = []
        self.start()

    def run(self) -> None:
        while not self._ends.is_set():
            self._do(COORDINATOR, "rule", "start", f"job-{len(self.started)}", "jobid=7", "weight=2")
            self.started.append(f"job-{len(self.started)}")
            if len(self.started) > RULES:
                self._do(COORDINATOR, "rule", "stop", self.started[-RULES - 1])
            self._do(COORDINATOR, "--json", "stat")
            self._do(STAGES[len(self.started) % 2], "--json", "status")

    def _do(self, target: str, *words: str) -> None:
        self.asked += 1
        done = self._site.ctl(self._site.both.new, target, *words)
        if done.code != 0:
            self.failed.append(f"{target} {' '.join(words)}: {done.code}: {done.text.strip().splitlines()[-1:]}")

    def end(self) -> None:
        self._ends.set()
        self.join()


class HandoverTest(unittest.TestCase):
    maxDiff = None

    def setUp(self) -> None:
        self.releases = upgrade_site.releases(PROGRAMS[0])
        self.site = Site(self.releases)
        self.addCleanup(self.site.close)

    def start_coordinator(self) -> None:
        self.site.start_coordinator(COORDINATOR, self.releases.new, {
            "policy": "psfa", "capacity": {"bytes": "24 MiB/s"}, "lease": "4 s", "deadline": "90 ms",
            "stages": {"dial": self.site.dials()}})

    def take_over(self, stage: str, release: Release) -> None:
        index = STAGES.index(stage)
        before = self.site.stages[stage]
        counted = self.site.status(stage)
        self.site.take_over(index, release)
        before.wait_until_ended()
        self.assertEqual(before.exit_code(), 0, before.last_lines())
        after = self.site.status(stage)
        self.assertIn("lease_us_left", after["coordinator"], "the lease did not go on")
        self.assertGreaterEqual(after["coordinator"]["cycles_applied"], counted["coordinator"]["cycles_applied"])
        done = [sum(row["done_requests"] for row in status["virtual_pfs"]) for status in (counted, after)]
        self.assertGreaterEqual(done[1], done[0])

    def test_there_and_back(self) -> None:
        self.site.start_proxies(self.releases.old, self.releases.old)
        self.start_coordinator()
        with upgrade_site.loads(self.site, []):
            self.site.expect_cycles(STAGES)
            administrator = Administrator(self.site)
            for _ in range(ROUNDS):
                for release in (self.releases.new, self.releases.old):
                    for stage in STAGES:
                        self.take_over(stage, release)
                    self.site.expect_cycles(STAGES)
            administrator.end()
        self.assertEqual(administrator.failed, [], f"of {administrator.asked} commands")
        live = administrator.started[-RULES:]

        def has_the_rules() -> bool:
            listed = [self.site.ctl(self.releases.new, stage, "rule", "list").text for stage in STAGES]
            return all(name in text and administrator.started[0] not in text for name in live for text in listed)
        eventually(has_the_rules, lambda: self.site.ctl(self.releases.new, STAGES[0], "rule", "list"))


if __name__ == "__main__":
    PROGRAMS.append(pathlib.Path(sys.argv.pop(1)))
    upgrade_site.run_tests()
