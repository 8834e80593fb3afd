#!/usr/bin/env python3
"""A whole site is upgraded, in the order of docs/admin/upgrade.md, and goes back. No request fails.

    order_test.py DIRECTORY_OF_PROGRAMS
"""
from __future__ import annotations

import pathlib
import re
import signal
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(pathlib.Path(__file__).resolve().parent)]

from lab import etcd, interpreter, mount  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

import upgrade_site  # noqa: E402
from upgrade_site import Config, MountLoad, Release, Site, eventually  # noqa: E402

PAGE = ROOT / "docs/admin/upgrade.md"
PROGRAMS: list[pathlib.Path] = []
COORDINATORS = ["c0", "c1", "c2"]
AGGREGATOR = "aggregator"
PLACE = "mounted"


def steps_of_page() -> list[str]:
    order = PAGE.read_text(encoding="utf-8").split("\n## In this order\n")[1].split("\n## ")[0]
    return re.findall(r"(?m)^\d+\. \*\*(\w+)\*\*", order)


def way_back_of_page() -> list[str]:
    words = PAGE.read_text(encoding="utf-8").split("\n## The way back\n")[1].strip().split(", each with")[0]
    return [word.capitalize() for word in words.split(", ")]


class OrderTest(unittest.TestCase):
    """Three coordinators. Below them ds0 and the mount, and an aggregator with ds1."""

    def setUp(self) -> None:
        self.releases = upgrade_site.releases(PROGRAMS[0])
        self.site = Site(self.releases)
        self.addCleanup(self.site.close)
        self.store = self.make_store()
        self.loads: list[MountLoad] = []
        self.mounts_made = 0
        self.steps = {"Standbys": self.standbys, "Leader": self.leader, "Aggregators": self.aggregators,
                      "Proxies": self.proxies, "Mounts": self.mounts}

    def make_store(self) -> Config:
        """In etcd, as on a site, where that is installed. records_test.py has the directory."""
        if not etcd.missing():
            return self.site.start_etcd().store("6 s")
        (self.site.work / "shared").mkdir()
        return {"directory": str(self.site.work / "shared"), "lease": "6 s"}

    def listens(self) -> list[str]:
        return [self.site.socket(f"listen-{name}") for name in COORDINATORS]

    def start_coordinator(self, name: str, release: Release) -> None:
        self.site.start_coordinator(name, release, {
            "store": self.store,
            "policy": "psfa", "capacity": {"bytes": "24 MiB/s"}, "lease": "6 s", "deadline": "90 ms",
            "stages": {"dial": self.site.dials()[:1], "listen": {"socket": self.site.socket(f"listen-{name}")}}})

    def start_aggregator(self, release: Release) -> None:
        self.site.start_coordinator(AGGREGATOR, release, {
            "name": AGGREGATOR, "policy": "psfa", "deadline": "40 ms", "parent": {"addresses": self.listens()},
            "stages": {"dial": self.site.dials()[1:]}})

    def leading(self) -> str:
        found: list[str] = []

        def one_leads() -> bool:
            found[:] = [name for name in COORDINATORS if self.site.status(name).get("term")]
            return len(found) == 1
        eventually(one_leads, lambda: {name: self.site.status(name) for name in COORDINATORS})
        return found[0]

    def expect_whole(self) -> None:
        """All are there, whatever their release, and limits follow."""
        stages = {"ds0", AGGREGATOR, *(name for name in self.site.stages if name.startswith("m-"))}

        def is_whole() -> bool:
            there = self.site.status(self.leading()).get("stages", [])
            return {each["name"] for each in there if each["connected"]} == stages
        eventually(is_whole, lambda: self.site.status(self.leading()))
        self.site.expect_cycles(list(self.site.stages))
        for release in (self.releases.old, self.releases.new):
            told = self.site.ctl(release, ",".join(COORDINATORS), "--json", "stat")
            self.assertEqual({each["name"] for each in told.data}, set(self.site.stages), told)

    def standbys(self, release: Release) -> None:
        leader = self.leading()
        for name in COORDINATORS:
            if name != leader:
                self.site.stop(self.site.coordinators[name])
                self.start_coordinator(name, release)
                self.site.coordinators[name].wait_for_line(f"{self.site.socket(leader)} leads")

    def leader(self, release: Release) -> None:
        leader = self.leading()
        self.site.stop(self.site.coordinators[leader])
        self.start_coordinator(leader, release)
        self.assertNotEqual(self.leading(), leader)

    def aggregators(self, release: Release) -> None:
        self.site.stop(self.site.coordinators[AGGREGATOR])
        self.start_aggregator(release)

    def proxies(self, release: Release) -> None:
        for index in (0, 1):
            self.site.stop(self.site.stages[f"ds{index}"])
            self.site.start_proxy(index, release)

    def mounts(self, release: Release) -> None:
        for load in self.loads:
            name = next(each for each in self.site.stages if each.startswith("m-"))
            before = self.site.stages.pop(name)
            load.may_be_away.set()
            before.signal(signal.SIGTERM)
            eventually(lambda: not mount.is_mounted(self.site.work / PLACE), "a mount whose name is gone")
            self.start_mount(release)
            load.may_be_away.clear()
            self.assertTrue(before.running(), "it has an open file")
            load.reopen()
            before.wait_until_ended()
            self.assertEqual(before.exit_code(), 0, before.last_lines())

    def start_mount(self, release: Release) -> pathlib.Path:
        """The one before may still have the socket and the name of its own."""
        self.mounts_made += 1
        return self.site.start_mount(f"m-{self.mounts_made}", release, self.listens(), PLACE)

    def test_there_and_back(self) -> None:
        self.assertEqual(steps_of_page(), list(self.steps), f"the steps of {PAGE.name} are not those of this test")
        self.assertEqual(sorted(way_back_of_page()), sorted(self.steps))
        for name in COORDINATORS:
            self.start_coordinator(name, self.releases.old)
        self.start_aggregator(self.releases.old)
        self.site.start_proxies(self.releases.old, self.releases.old)
        can_mount = not upgrade_site.why_no_mounts()
        places = [self.start_mount(self.releases.old)] if can_mount else []
        rules: list[str] = []
        with upgrade_site.loads(self.site, places) as self.loads:
            self.expect_whole()
            for release, order in ((self.releases.new, steps_of_page()), (self.releases.old, way_back_of_page())):
                for step in order:
                    with self.subTest(step=step, to=release.name):
                        self.steps[step](release)
                        self.expect_whole()
                        rules.append(f"rule-{len(rules)}")
                        done = self.site.ctl(release, ",".join(COORDINATORS), "rule", "start", rules[-1], "jobid=7", "weight=2")
                        self.assertEqual(done.code, 0, done)
                for program in [*self.site.stages.values(), *self.site.coordinators.values()]:
                    self.assertIn(f"-{release.name}-", program.name)
            listed = self.site.ctl(self.releases.new, ",".join(COORDINATORS), "rule", "list").text
            for rule in rules:
                self.assertIn(rule, listed)


if __name__ == "__main__":
    PROGRAMS.append(pathlib.Path(sys.argv.pop(1)))
    upgrade_site.run_tests()
