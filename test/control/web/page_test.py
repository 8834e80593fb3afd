#!/usr/bin/env python3
"""The page of a proxy and of a coordinator in Chromium, as people see it.

    page_test.py DIRECTORY_OF_PROGRAMS [FOLDER]    puts screenshots into FOLDER

Where there is no chromium that starts, it is skipped.
"""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from bench.insight.site import Burst  # noqa: E402
from lab import browser  # noqa: E402
from lab.browser import Browser  # noqa: E402
from lab.cluster import Cluster, Front  # noqa: E402
from lab.harness import Problem, Program, Programs  # noqa: E402

PROGRAMS: list[pathlib.Path] = []
PICTURES: list[pathlib.Path] = []
MARKUP = "<img src=x onerror=alert(1)><b>bold"
SKIPPED = 77
MANY = 10_000


class Site:
    """A server, a proxy before it with a page, a coordinator with another, and load."""

    def __init__(self, programs: Programs) -> None:
        self.programs = programs
        server, px = programs.reserve_port(), programs.reserve_port()
        self.page, self.site_page = programs.reserve_port(), programs.reserve_port()
        self.socket = programs.work / "px.sock"
        self._write(
            "server.yaml",
            {
                "file_system": {"name": "vpfs", "id": 1234},
                "servers": [{"alias": "s0", "addresses": [f"tcp://127.0.0.1:{server}", f"tcp-px://127.0.0.1:{px}"]}],
                "storage": {"engine": "memory"},
                "device": {"bandwidth": "50 MiB/s"},
            },
        )
        self._write(
            "proxy.yaml",
            {
                "proxy": {"listen": f"127.0.0.1:{px}", "upstream": f"127.0.0.1:{server}", "protocol": "orangefs"},
                "control": {"socket": str(self.socket), "http": f"127.0.0.1:{self.page}", "name": "px"},
                "scheduler": {"policy": "sfq", "depth": {"requests": 8}},
                "virtual_pfs": {MARKUP: {"weight": 2}, "plain": {"weight": 1, "rate": "4 MiB/s"}},
                "rules": [
                    {"name": "marked", "match": "jobid=marked", "vpfs": MARKUP},
                    {"name": "plains", "match": "jobid=plain", "vpfs": "plain"},
                ],
            },
        )
        self._write(
            "coordinator.yaml",
            {
                "policy": "total",
                "journal": str(programs.work / "journal"),
                "stages": {"dial": [{"name": "px", "address": str(self.socket)}]},
                "control": {"socket": str(programs.work / "c.sock"), "http": f"127.0.0.1:{self.site_page}"},
            },
        )
        application = {"size": "64 KiB", "outstanding": 8, "read_percent": 100, "file_size": "4 MiB"}
        self._write(
            "load.yaml",
            {
                "file_system": f"tcp-px://127.0.0.1:{px}/vpfs",
                "duration": "600 s",
                "applications": [{"name": name, "jobid": name, **application} for name in ("marked", "plain")],
            },
        )
        self.server = self._start("vpfs-server", "server.yaml")
        self.server.wait_for_port(server)
        self.proxy = self._start("vpfs-proxy", "proxy.yaml")
        self.proxy.wait_for_port(self.page)
        self.coordinator = self._start("vpfs-coordinator", "coordinator.yaml")
        self.coordinator.wait_for_port(self.site_page)
        self.load = self._start("vpfs-load", "load.yaml")

    def _write(self, name: str, settings: object) -> None:
        (self.programs.work / name).write_text(json.dumps(settings))  # which is YAML, too

    def _start(self, program: str, config: str) -> Program:
        return self.programs.start(program, program, "--config", str(self.programs.work / config))

    def ctl(self, *words: str) -> None:
        subprocess.run(
            [self.programs.binaries / "vpfsctl", "--proxy", self.socket, *words], check=True, stdout=subprocess.DEVNULL
        )


def status_of(port: int, path: str, host: str | None = None) -> int:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def why_no_browser() -> str | None:
    if browser.missing() is not None:
        return f"{browser.missing()} is not installed"
    try:
        with tempfile.TemporaryDirectory() as folder, Programs(PROGRAMS[0], pathlib.Path(folder)) as programs:
            Browser(programs).close()
    except Problem as problem:
        return str(problem)
    return None


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        programs = cls.enterClassContext(Programs(PROGRAMS[0], pathlib.Path(folder)))
        cls.site = Site(programs)
        cls.window = Browser(programs)
        cls.window.resize(1200, 900)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.window.close()

    def see(self, port: int) -> Browser:
        self.window.open(f"http://127.0.0.1:{port}/")
        return self.window

    def picture(self, name: str) -> None:
        if PICTURES:
            self.window.screenshot(PICTURES[0] / f"{name}.png")

    def shows(self, selector: str, text: str, patience: float = 20.0) -> None:
        self.window.wait_until(lambda: text in self.window.text(selector), f"{selector} with {text}", patience)

    def test_1_a_proxy(self) -> None:
        window = self.see(self.site.page)
        self.shows("#title", "vpfs-proxy 127.0.0.1:")
        self.shows("#state", "as of")
        self.shows("#now", MARKUP)
        self.shows("#throughput-legend", MARKUP)
        self.shows("#fairness", "its limit")
        self.assertEqual(window.run("return document.querySelectorAll('.chart canvas').length > 1"), True)
        self.assertEqual(window.run("return document.images.length + document.querySelectorAll('b').length"), 0)
        window.run("[...document.querySelectorAll('#now button')].find((each) => each.textContent === 'plain').click()")
        self.shows("#why-title", "Why did plain get what it got?")
        self.shows("#why-text", "Its own limit")
        self.assertIn("its limit", window.run("return document.getElementById('why-parts').ariaLabel"))
        self.picture("proxy")

    def test_2_a_rule_that_changes_meanwhile(self) -> None:
        self.see(self.site.page)
        self.shows("#rules", "plains")
        self.site.ctl("rule", "start", "urgent", "jobid=urgent", "weight=7")
        self.shows("#rules", "urgent")
        self.shows("#changes", "rule start urgent jobid=urgent weight=7")
        self.site.ctl("rule", "stop", "urgent")
        self.shows("#changes", "rule stop urgent")

    def test_3_sizes_and_colours(self) -> None:
        window = self.see(self.site.page)
        self.shows("#now", MARKUP)
        self.shows("#fairness", MARKUP)
        grounds = set()
        for scheme in ("light", "dark"):
            window.prefer(scheme)
            for width in (400, 1000, 1600):
                window.resize(width, 900)
                wide = window.run("return document.documentElement.scrollWidth - window.innerWidth")
                self.assertLessEqual(wide, 0, f"{scheme}, {width} pixels")
                self.picture(f"{scheme}-{width}")
            grounds.add(window.run("return getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(len(grounds), 2)
        window.prefer("light")
        window.resize(1200, 900)

    def test_4_longer_times(self) -> None:
        window = self.see(self.site.page)
        window.click("button[data-back='86400']")
        self.assertEqual(window.run("return document.querySelector('[aria-pressed=true]').textContent"), "24 hours")
        self.shows("#throughput-legend", MARKUP)
        window.run("const it = document.getElementById('filter'); it.value = 'PLA'; it.dispatchEvent(new Event('input'))")
        self.assertRegex(window.text("#now-count"), "^1 of ")
        self.assertNotIn(MARKUP, window.text("#now"))

    def test_5_a_site(self) -> None:
        self.see(self.site.site_page)
        self.shows("#title", "vpfs-coordinator")
        self.shows("#stages", "connected")
        self.shows("#throughput-legend", MARKUP)
        self.shows("#fairness", MARKUP)
        self.picture("site")

    def test_6_nothing_is_wrong_in_the_eyes_of_the_browser(self) -> None:
        self.window.complaints()  # of the pages before
        self.see(self.site.page)
        self.shows("#fairness", MARKUP)
        self.assertEqual(self.window.complaints(), [])

    def test_7_strangers(self) -> None:
        self.assertEqual(status_of(self.site.page, "/"), 200)
        self.assertEqual(status_of(self.site.page, "/", "evil.example"), 403)
        self.assertEqual(status_of(self.site.page, "/api/status", "evil.example:80"), 403)
        self.assertEqual(status_of(self.site.page, "/metrics", "any.example"), 200)
        self.assertEqual(status_of(self.site.page, "/api/past?back=x"), 400)
        self.assertEqual(status_of(self.site.page, "/api/drain"), 404)

    def test_8_ten_thousand_virtual_pfses(self) -> None:
        programs = self.site.programs
        page = programs.reserve_port()
        front = Front("px", "proxy", "sfq", templates={"job-{jobid}": {"hint": {"jobid": "*"}}},
                      proxy={"status_interval": "1 h"}, limits={"held_bytes": "64 MiB"}, control={"socket": "many.sock"},
                      pages=[page])
        cluster = Cluster(programs, 1, [front], prefix="many-")
        cluster.start("px")
        burst = Burst(cluster.ports("px")[0], MANY)
        burst.send()
        burst.close()
        window = self.see(page)
        # A busy machine may miss the time that a program has for an answer.
        self.shows("#now-count", f"200 of {MANY + 1} are shown", patience=90)
        window.run("const it = document.getElementById('filter'); it.value = 'b-9999'; it.dispatchEvent(new Event('input'))")
        self.shows("#now-count", f"1 of {MANY + 1}")
        self.assertIn("job-9999", window.text("#now"))
        cluster.stop("px")

    def test_9_a_program_that_goes_away(self) -> None:
        self.see(self.site.page)
        self.shows("#state", "as of")
        self.site.proxy.stop()
        self.shows("#state", "no answer")
        self.see(self.site.site_page)
        self.shows("#state", "stages that are not connected: 1 of 1")


if __name__ == "__main__":
    PROGRAMS.append(pathlib.Path(sys.argv.pop(1)))
    if len(sys.argv) > 1:
        PICTURES.append(pathlib.Path(sys.argv.pop(1)))
        os.makedirs(PICTURES[0], exist_ok=True)
    if (problem := why_no_browser()) is not None:
        print(f"skipped: {problem}")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
