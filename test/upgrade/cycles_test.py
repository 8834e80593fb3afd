#!/usr/bin/env python3
"""Cycles between programs of two releases: each policy, aggregators, and a leader that is of another release each time.

    cycles_test.py DIRECTORY_OF_PROGRAMS
"""
from __future__ import annotations

import pathlib
import signal
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(pathlib.Path(__file__).resolve().parent)]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

import upgrade_site  # noqa: E402
from upgrade_site import JOBS, Config, Release, Site, eventually  # noqa: E402

PROGRAMS: list[pathlib.Path] = []
MIB = 1 << 20
CAPACITY = 12 * MIB
LIMIT = 3 * MIB
# What the policies divide. Stages do less than the devices could, so that limits are felt.
POLICIES: dict[str, Config] = {
    "total": {"policy": "total"},
    "psfa": {"policy": "psfa", "capacity": {"bytes": f"{CAPACITY // MIB} MiB/s"}},
    "static": {"policy": "static", "jobs": [{"name": job, "limit": f"{LIMIT // MIB} MiB/s"} for job in JOBS]},
}


class CyclesTest(unittest.TestCase):
    def setUp(self) -> None:
        self.releases = upgrade_site.releases(PROGRAMS[0])

    def site(self) -> Site:
        """One proxy and, where mounts can be made, one mount of each release."""
        site = Site(self.releases)
        self.addCleanup(site.close)
        site.start_proxies(self.releases.old, self.releases.new)
        return site

    def start_mounts(self, site: Site, coordinators: list[str]) -> list[pathlib.Path]:
        if upgrade_site.why_no_mounts():
            return []
        return [site.start_mount(f"m-{each.name}", each, coordinators) for each in (self.releases.old, self.releases.new)]

    def expect_led(self, site: Site, coordinator: str) -> Config:
        """Each stage is connected, and takes part in cycles. Returns the coordinator's status."""
        stages = list(site.stages)

        def is_whole() -> bool:
            found = site.status(coordinator)
            return {each["name"] for each in found.get("stages", []) if each["connected"]} == set(stages)
        eventually(is_whole, lambda: f"all stages at {coordinator}: {site.status(coordinator)}")
        site.expect_cycles(stages)
        status = site.status(coordinator)
        for each in status["stages"]:
            self.assertEqual((each["not_applied"], each["lies"]), (0, 0), each)
        return status

    def limits_of(self, site: Site, stage: str, release: Release) -> dict[str, int]:
        found = site.ctl(release, stage, "--json", "stat").data
        return {row["name"]: int(row["allocated_rate"]) for row in found[0]["virtual_pfs"] if row["allocated_rate"] is not None}

    def expect_divided(self, site: Site, coordinator: str, policy: str) -> None:
        status = self.expect_led(site, coordinator)
        self.assertEqual(status["policy"], policy)
        for job in status["jobs"]:
            if job["name"] in JOBS:
                self.assertGreater(job["cost_done"], 0, job)
        for stage in site.stages:
            has_all = stage.startswith("ds")  # a mount has the job of its processes only
            wanted = set(JOBS if has_all else "a") if policy != "total" else set()
            for release in (self.releases.old, self.releases.new):
                limits: dict[str, int] = {}

                def has_limits() -> bool:
                    limits.clear()
                    limits.update(self.limits_of(site, stage, release))
                    return set(limits) >= wanted
                eventually(has_limits, lambda: f"limits at {stage}: {limits}")
                if policy == "total":
                    self.assertEqual(limits, {}, stage)
                if policy == "static":
                    self.assertEqual({limits[job] for job in wanted}, {LIMIT}, stage)
        if policy == "psfa":
            self.assertLessEqual(site.status(coordinator)["in_force"]["bytes"], CAPACITY)

    def test_each_policy_divides_stages_of_both(self) -> None:
        site = self.site()
        places = self.start_mounts(site, [site.socket("stages")])
        with upgrade_site.loads(site, places):
            for policy, config in POLICIES.items():
                for release in (self.releases.old, self.releases.new):
                    with self.subTest(policy=policy, coordinator=release.name):
                        stages = {"dial": site.dials(), "listen": {"socket": site.socket("stages")}}
                        # One journal: each is the successor of the one before, of another release.
                        coordinator = site.start_coordinator("main", release, config | {"stages": stages})
                        try:
                            self.expect_divided(site, "main", policy)
                        finally:
                            site.stop(coordinator)

    def test_aggregators_of_one_below_a_coordinator_of_the_other(self) -> None:
        site = self.site()
        places = self.start_mounts(site, [site.socket("listen-aggregator")])
        with upgrade_site.loads(site, places):
            for above, below in self.releases.both_ways():
                for policy in ("total", "psfa"):
                    with self.subTest(policy=policy, above=above.name):
                        try:
                            self.expect_two_levels(site, above, below, policy)
                        finally:
                            for name in ("aggregator", "root"):
                                site.stop(site.coordinators[name])

    def expect_two_levels(self, site: Site, above: Release, below: Release, policy: str) -> None:
        site.start_coordinator("root", above, POLICIES[policy] | {
            "lease": "6 s", "deadline": "90 ms", "stages": {"listen": {"socket": site.socket("listen-root")}}})
        site.start_coordinator("aggregator", below, {
            "name": "aggregator", "policy": policy, "deadline": "40 ms", "parent": {"address": site.socket("listen-root")},
            "stages": {"dial": site.dials(), "listen": {"socket": site.socket("listen-aggregator")}}})
        status = self.expect_led(site, "aggregator")
        eventually(lambda: site.status("aggregator")["parent"]["leads"], f"a parent: {status}")
        eventually(lambda: {job["name"] for job in site.status("root")["jobs"]} >= set(JOBS), "jobs at the root")
        self.assertEqual([(each["name"], each["aggregator"], each["not_applied"]) for each in site.status("root")["stages"]],
                         [("aggregator", True, 0)])
        # A rule of the site goes down, and questions go down and come back.
        rule = f"gold-{above.name}-{policy}"
        for release, verb in ((above, "start"), (below, "stop")):
            words = ["jobid=7", "weight=3"] if verb == "start" else []
            done = site.ctl(release, "root", "rule", verb, rule, *words)
            self.assertEqual(done.code, 0, done)
            for stage in site.stages:
                eventually(lambda: (rule in site.ctl(release, stage, "rule", "list").text) == (verb == "start"),
                           f"rule {verb} at {stage}")
            told = site.ctl(release, "root", "--json", "stat")
            self.assertEqual((told.code, {each["name"] for each in told.data}), (0, set(site.stages)), told)

    def test_the_lead_passes_between_releases(self) -> None:
        site = self.site()
        (site.work / "shared").mkdir()
        names = ["c0", "c1"]
        places = self.start_mounts(site, [site.socket(f"listen-{name}") for name in names])

        def start(name: str, release: Release) -> None:
            site.start_coordinator(name, release, {
                "store": {"directory": str(site.work / "shared"), "lease": "6 s"},
                "stages": {"dial": site.dials(), "listen": {"socket": site.socket(f"listen-{name}")}}})

        old, new = self.releases.old, self.releases.new
        with upgrade_site.loads(site, places):
            start("c0", old)
            self.expect_led(site, "c0")
            # The leader's release, and how it ends.
            terms = []
            for number, (standby, end) in enumerate([(new, signal.SIGTERM), (old, signal.SIGTERM), (new, signal.SIGKILL),
                                                     (old, signal.SIGKILL), (old, signal.SIGTERM), (new, signal.SIGTERM)]):
                leader, other = names[number % 2], names[1 - number % 2]
                start(other, standby)
                site.coordinators[other].wait_for_line(f"{site.socket(leader)} leads, with term")
                done = site.ctl(standby, f"{leader},{other}", "rule", "start", f"rule{number}", f"jobid={number}", "weight=2")
                self.assertEqual(done.code, 0, done)
                site.stop(site.coordinators[leader], end)
                terms.append(self.expect_led(site, other)["term"])
                for release in (old, new):
                    listed = site.ctl(release, ",".join(names), "rule", "list").text
                    for each in range(number + 1):
                        self.assertIn(f"rule{each}", listed)
            self.assertEqual(terms, sorted(set(terms)))


if __name__ == "__main__":
    PROGRAMS.append(pathlib.Path(sys.argv.pop(1)))
    upgrade_site.run_tests()
