#!/usr/bin/env python3
"""What one release wrote down is read by the other, after an upgrade and after the way back.

    records_test.py DIRECTORY_OF_PROGRAMS
"""
from __future__ import annotations

import pathlib
import re
import signal
import sys
import unittest
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(pathlib.Path(__file__).resolve().parent)]

from lab import etcd, interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

import upgrade_site  # noqa: E402
from upgrade_site import Config, Release, Site, eventually  # noqa: E402

PROGRAMS: list[pathlib.Path] = []
# What a process counts, and at how many stages a rule is in force now.
COUNTERS = {"hits", "virtual_pfs_made", "would_hold", "stages"}
RULES = """rules:
  - {name: silver-NAME, match: {jobid: "8"}, weight: 2}
  - {name: bronze-NAME, match: {jobid: "9", uid: 1001}, weight: 1, for: 2h}
"""


def is_of_file(answer: Any) -> bool:
    """The release before lists such rules for a proxy only."""
    return isinstance(answer, dict) and answer.get("origin") == "file"


def only_kept(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {key: only_kept(value) for key, value in answer.items() if key not in COUNTERS}
    return [only_kept(each) for each in answer if not is_of_file(each)] if isinstance(answer, list) else answer


class RecordsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.releases = upgrade_site.releases(PROGRAMS[0])

    def site(self, control: dict[str, object] | None = None) -> Site:
        site = Site(self.releases, control)
        self.addCleanup(site.close)
        return site

    def change(self, site: Site, release: Release, target: str, name: str) -> None:
        """Each kind of change that is kept."""
        (site.work / f"{name}.yaml").write_text(RULES.replace("NAME", name))
        for words in (["rule", "start", f"gold-{name}", "jobid=7&uid={1001}", "weight=3", "for=2h"],
                      ["rule", "change", f"gold-{name}", "weight=5"],
                      ["rule", "start", f"other-{name}", "jobid=6", "rate=20MiB/s", "iops=500"],
                      ["rule", "stop", f"other-{name}"],
                      ["rule", "apply", "-f", f"{name}.yaml", "--confirm", "1h"],
                      ["rule", "confirm"],
                      ["rule", "start", f"platinum-{name}", "jobid={5*}", "rate=1GiB/s", "mode=shadow"],
                      ["job", "start", f"1{name}", "--nodes", "3", "--uid", "1001", "--gid", "100", "--clients",
                       "127.0.0.[2-4]", "--account", "ocean", "--time-limit", "2h", "weight=2"],
                      ["job", "start", f"2{name}", "--nodes", "1", "--uid", "1002", "--clients", "127.0.0.9"],
                      ["job", "stop", f"2{name}"]):
            done = site.ctl(release, target, *words)
            self.assertEqual(done.code, 0, done)

    def kept(self, site: Site, release: Release, target: str) -> list[Any]:
        answers = []
        for words in (["rule", "list"], ["rule", "history"], ["job", "list"]):
            done = site.ctl(release, target, "--json", *words)
            self.assertEqual(done.code, 0, done)
            self.assertTrue(done.data, done)
            answers.append(only_kept(done.data))
        return answers

    def expect_kept(self, site: Site, target: str, before: list[Any]) -> None:
        for release in (self.releases.old, self.releases.new):
            self.assertEqual(self.kept(site, release, target), before)

    def test_of_a_proxy(self) -> None:
        site = self.site()
        site.start_proxies(self.releases.new, self.releases.new)
        load = upgrade_site.ProxyLoad(site)
        before: list[Any] = []
        # Each way, after a good end and after a kill.
        for number, (release, end) in enumerate([(self.releases.old, signal.SIGTERM), (self.releases.new, signal.SIGTERM),
                                                 (self.releases.old, signal.SIGKILL), (self.releases.new, signal.SIGKILL),
                                                 (self.releases.old, signal.SIGTERM)]):
            site.stop(site.stages["ds0"], end)
            site.start_proxy(0, release)
            if before:
                self.expect_kept(site, "ds0", before)
                rolled = site.ctl(release, "ds0", "rule", "rollback", "3")
                self.assertEqual(rolled.code, 0, rolled)
            self.change(site, release, "ds0", f"r{number}")
            before = self.kept(site, release, "ds0")
        load.end()

    def start_coordinator(self, site: Site, release: Release, store: Config) -> None:
        site.start_coordinator("main", release, store | {"policy": "psfa", "capacity": {"bytes": "100 MiB/s"},
                                                         "stages": {"dial": site.dials()}})
        eventually(lambda: "term" in site.status("main"), "a coordinator that leads")

    def expect_of_a_coordinator(self, store_of: Callable[[Site], Config]) -> None:
        """`store_of` makes the part of its configuration that says where it keeps records."""
        site = self.site()
        store = store_of(site)
        (site.work / "shared").mkdir()
        site.start_proxies(self.releases.old, self.releases.new)
        before: list[Any] = []
        terms = []
        for number, (release, end) in enumerate([(self.releases.old, signal.SIGTERM), (self.releases.new, signal.SIGKILL),
                                                 (self.releases.old, signal.SIGKILL), (self.releases.new, signal.SIGTERM),
                                                 (self.releases.old, signal.SIGTERM)]):
            self.start_coordinator(site, release, store)
            terms.append(site.status("main")["term"])
            if before:
                self.expect_kept(site, "main", before)
            self.change(site, release, "main", f"r{number}")
            done = site.ctl(release, "main", "rule", "start", f"most-r{number}", "jobid=4", "total_rate=1GiB/s")
            self.assertEqual(done.code, 0, done)
            before = self.kept(site, release, "main")
            site.stop(site.coordinators["main"], end)
        self.assertEqual(terms, sorted(set(terms)))

    def test_of_a_coordinator(self) -> None:
        self.expect_of_a_coordinator(lambda _: {})

    def test_of_coordinators_with_a_store(self) -> None:
        self.expect_of_a_coordinator(lambda _: {"store": {"directory": "shared", "lease": "6 s"}})

    def test_of_coordinators_with_etcd(self) -> None:
        if why := etcd.missing():
            self.skipTest(why)
        self.expect_of_a_coordinator(lambda site: {"store": site.start_etcd().store("6 s")})

    def ledger(self, site: Site, release: Release) -> set[tuple[object, ...]]:
        """The entries that have ended."""
        listed = site.ctl(release, "ds0", "--json", "ledger")
        self.assertEqual((listed.code, len(listed.data)), (0, 1), listed)
        return {tuple(entry[key] for key in ("name", "jobid", "rule", "begin_at", "end_at", "bytes", "held_us"))
                for entry in listed.data[0]["entries"] if not entry["goes_on"]}

    def known_from(self, site: Site, release: Release) -> int:
        told = site.ctl(release, "ds0", "--json", "fairness", "--since", "10m")
        self.assertEqual((told.code, len(told.data)), (0, 1), told)
        return int(told.data[0]["known_from_at"])

    def test_history_and_ledger(self) -> None:
        site = self.site({"history": "ds{index}.history", "ledger": "ds{index}.ledger"})
        site.start_proxies(self.releases.old, self.releases.new)
        load = upgrade_site.ProxyLoad(site)
        both = (self.releases.old, self.releases.new)
        eventually(lambda: self.known_from(site, self.releases.new), "the first second of a history")
        begin = self.known_from(site, self.releases.new)
        entries: set[tuple[object, ...]] = set()
        for number, release in enumerate([self.releases.old, self.releases.new, self.releases.old]):
            if number:
                site.stop(site.stages["ds0"])
                site.start_proxy(0, release)
            for asking in both:
                self.assertEqual(self.known_from(site, asking), begin, "the history begins anew")
                self.assertGreaterEqual(self.ledger(site, asking), entries)
            name = f"slow{number}"
            for words in (["start", name, "jobid=b", "rate=2MiB/s"], ["stop", name]):
                done = site.ctl(release, "ds0", "rule", *words)
                self.assertEqual(done.code, 0, done)
                goal = "goes on" if words[0] == "start" else rf"\d +{name} +b +limit"
                eventually(lambda: re.search(f"(?m)^.*{goal}", site.ctl(release, "ds0", "ledger", name).text),
                           lambda: site.ctl(release, "ds0", "ledger"))
            entries = self.ledger(site, release)
            self.assertIn(name, {entry[2] for entry in entries})
        load.end()


if __name__ == "__main__":
    PROGRAMS.append(pathlib.Path(sys.argv.pop(1)))
    upgrade_site.run_tests()
