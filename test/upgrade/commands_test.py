#!/usr/bin/env python3
"""Every command of vpfsctl of one release, at programs of the other.

    commands_test.py DIRECTORY_OF_PROGRAMS

A command of vpfsctl --help without a row in STEPS fails the test.
"""
from __future__ import annotations

import dataclasses
import pathlib
import re
import subprocess
import sys
import unittest
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(pathlib.Path(__file__).resolve().parent)]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

import upgrade_site  # noqa: E402
from upgrade_site import Release, Site, eventually  # noqa: E402

PROGRAMS: list[pathlib.Path] = []
RULES = """rules:
  - {name: silver, match: {jobid: "8"}, weight: 2}
  - {name: bronze, match: {jobid: "9"}, weight: 1}
"""
GROUPS = ("rule", "job", "record")  # commands that have commands
# It replaces a program by another one, which the release before cannot: test/integration/handover_test.cc.
ELSEWHERE = {"upgrade"}
OF_ONE_STAGE = ("record", "drain")  # of a coordinator's


@dataclasses.dataclass(frozen=True)
class Step:
    """`text` is a pattern that the output has. `json`: it changes nothing, so it is tried with --json too, and again
    until the output is so. `of_a_coordinator`: false if it refuses that.
    """

    command: str
    words: str = ""
    text: str = ""
    json: bool = False
    of_a_coordinator: bool = True


# In this order, with a load of the jobs a and b.
STEPS = [
    Step("status", text=r"ds\d|m-0", json=True),
    Step("config", text="virtual_pfs", json=True),
    Step("rule start", "gold jobid=7 weight=3", "rule gold started; this is version 1"),
    Step("rule change", "gold weight=5", "rule gold changed; this is version 2"),
    Step("rule list", text=r"gold.*weight=5", json=True),
    Step("rule apply", "-f rules.yaml --dry-run", r"\+ silver"),
    Step("rule apply", "-f rules.yaml --confirm 1min", "3 differences applied; this is version 3"),
    Step("rule confirm", text="confirmed; this is version 3"),
    Step("rule history", text="(?s)rule start gold.*rule apply", json=True),
    Step("rule rollback", "2", "rolled back to version 2; this is version 4"),
    Step("rule stop", "gold", "rule gold stopped; this is version 5"),
    Step("rule start", "all jobid=7 weight=3 --atomic", "rule all started; this is version 6", of_a_coordinator=False),
    Step("job start", "77 --nodes 2 --uid 1001 --clients 127.0.0.2 --time-limit 2h weight=2", "job 77 registered"),
    Step("job list", text="77 +2 +1001", json=True),
    Step("job stop", "77", "job 77 is no longer registered"),
    Step("record start", "--size 4MiB --for 10min", "record"),
    Step("record show", text=r"[1-9]\d* requests", json=True),
    Step("rule plan", "-f rules.yaml", r"(?m)^a +", of_a_coordinator=False),
    Step("record dump", "recording.json", "recording.json"),
    Step("record stop", text="record"),
    Step("record drop", text="record"),
    Step("top", "-n 2 -d 200ms --plain", r"(?m)^a +", json=True),
    Step("stat", "--each", r"(?m)^a +", json=True),
    Step("job_stats", text=r"job_id: +a\b"),
    Step("who", text="no client is in default", json=True),
    Step("who", "a", r"\ba\b", json=True),
    Step("why", "a --since 1m", r"It got [1-9]", json=True),
    Step("fairness", "--since 1m", r"(?m)^a +1 ", json=True),
    Step("ledger", text="NAME|nothing was held", json=True),
    # It measures for minutes otherwise: test/tools/selftest.
    Step("selftest", "--on DATA_SERVERS --directory /selftest --clean", "0 rules have ended", of_a_coordinator=False),
    Step("reload", text="nothing has changed"),
    Step("bypass", "on for=1min", "bypass is on"),
    Step("bypass", "off", "bypass is off"),
    Step("drain", text="draining"),
]


def commands_of(release: Release) -> set[str]:
    """Such as "rule start", from its --help."""

    def listed(*group: str) -> list[str]:
        done = subprocess.run([release.program("vpfsctl"), *group, "--help"], check=True, capture_output=True, text=True)
        below = re.split(r"(?mi)^(?:sub)?commands:$", done.stdout)
        return re.findall(r"(?m)^  (\w+) ", below[1]) if len(below) == 2 else []

    found = set()
    for name in listed():
        inner = listed(name) if name in GROUPS else []
        found |= {f"{name} {each}" for each in inner} or {name}
    return found


class CommandsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.releases = upgrade_site.releases(PROGRAMS[0])

    def test_each_command_has_a_row(self) -> None:
        for release in (self.releases.old, self.releases.new):
            found = commands_of(release)
            self.assertGreater(len(found), 20, f"the commands in the help of {release.name} are not found")
            self.assertEqual(found - ELSEWHERE - {step.command for step in STEPS}, set(), f"commands of {release.name} without a row")

    def site(self) -> Site:
        site = Site(self.releases)
        self.addCleanup(site.close)
        (site.work / "rules.yaml").write_text(RULES)
        return site

    def run_steps(self, site: Site, release: Release, target: str, steps: Sequence[Step] = STEPS) -> None:
        commands = commands_of(release)
        is_coordinator = target in site.coordinators
        for step in steps:
            if step.command not in commands or (is_coordinator and not step.of_a_coordinator):
                continue
            words = [*step.command.split(), *step.words.replace("DATA_SERVERS", site.data_servers()).split()]
            if is_coordinator and step.command.startswith(OF_ONE_STAGE):
                words += ["--stage", "ds0"]
            with self.subTest(command=step.command, release=release.name, target=target):
                self.expect(site, release, target, words, step)

    def expect(self, site: Site, release: Release, target: str, words: list[str], step: Step) -> None:
        done = site.ctl(release, target, *words)
        if step.json and not re.search(step.text, done.text):  # numbers come each second
            eventually(lambda: re.search(step.text, site.ctl(release, target, *words).text), done)
        else:
            self.assertRegex(done.text, step.text)
        self.assertEqual(done.code, 0, done)
        if step.json:
            with_json = site.ctl(release, target, "--json", *words)
            self.assertEqual(with_json.code, 0, with_json)
            self.assertTrue(with_json.data, with_json)

    def test_at_a_proxy(self) -> None:
        for asking, asked in self.releases.both_ways():
            site = self.site()
            site.start_proxies(asked, asked)
            load = upgrade_site.ProxyLoad(site)
            self.run_steps(site, asking, "ds0")
            site.stages["ds0"].wait_until_ended()  # it was drained
            site.start_proxy(0, asked)
            load.end()

    def test_at_a_mount(self) -> None:
        if why := upgrade_site.why_no_mounts():
            self.skipTest(why)
        for asking, asked in self.releases.both_ways():
            site = self.site()
            load = upgrade_site.MountLoad(site.start_mount("m-0", asked, []))
            self.run_steps(site, asking, "m-0", STEPS[:-1])
            load.may_be_away.set()
            self.run_steps(site, asking, "m-0", STEPS[-1:])
            load.end()
            site.stages["m-0"].wait_until_ended()

    def test_at_a_coordinator_of_stages_of_both(self) -> None:
        for asking, asked in self.releases.both_ways():
            site = self.site()
            site.start_proxies(*([asked, asking] if asking is self.releases.new else [asking, asked]))
            site.start_coordinator("main", asked, {"policy": "psfa", "capacity": {"bytes": "100 MiB/s"},
                                                   "stages": {"dial": site.dials()}})
            load = upgrade_site.ProxyLoad(site)
            site.expect_cycles(["ds0", "ds1"])
            self.run_steps(site, asking, "main")
            site.stages["ds0"].wait_until_ended()
            site.start_proxy(0, asked)
            load.end()


if __name__ == "__main__":
    PROGRAMS.append(pathlib.Path(sys.argv.pop(1)))
    upgrade_site.run_tests()
