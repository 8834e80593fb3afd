#!/usr/bin/env python3
"""conf/flux and conf/pbs with what stands for these systems here: the environment, arguments and answers that they give.

    hooks_test.py DIRECTORY_OF_PROGRAMS
"""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Mapping

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from lab.cluster import Cluster, Front  # noqa: E402
from lab.harness import Programs  # noqa: E402

PROGRAMS: list[pathlib.Path] = []
PATIENCE = 30.0
BOUNDS = "weight=1..8 rate=..500MiB/s deadline=5ms.."
UID = os.getuid()

# `flux job id`, `flux job info` and `flux getattr`, by what files beside it say.
FLUX = """#!/bin/sh
facts=$(dirname "$0")
case "$*" in
  "job id --to=f58plain "*) echo "$4" | sed 's/\u0192/f/' ;;
  "job info $(cat "$facts/id") "*) cat "$facts/$4" ;;
  "getattr rank") cat "$facts/rank" ;;
  *) echo "flux: $*: not found" >&2; exit 1 ;;
esac
"""

# The module that pbs_mom gives to its hooks. accept() ends a hook; a hook that ends in another way rejects the job.
PBS = """import json, os, sys
EXECJOB_BEGIN, EXECJOB_END, EXECJOB_ABORT, LOG_WARNING = 1, 2, 4, 4
with open(os.environ["PBS_FACTS"], encoding="utf-8") as file:
    facts = json.load(file)
class Job:
    def __init__(self):
        self.__dict__.update(facts["job"])
    def in_ms_mom(self):
        return facts["in_ms_mom"]
class Event:
    type, job = facts["type"], Job()
    def accept(self):
        print("accepted")
        raise SystemExit(0)
def event():
    return Event()
def logmsg(level, text):
    print("log:", text)
"""
PBS_JOB = {"id": "12.server", "euser": "root", "egroup": "root", "exec_host": "127.0.0.7/0*2+127.0.0.8/1+127.0.0.7/3",
           "exec_host2": "", "Account_Name": "physics", "project": "_pbs_project_default", "Resource_List": {"walltime": 300},
           "Variable_List": {"VPFS_WEIGHT": "4", "HOME": "/root"}}


class Stage:
    """A proxy, and scripts that know its socket."""

    def __init__(self, programs: Programs) -> None:
        front = Front("px", "proxy", shares={"job-{jobid}": {}}, templates={"job-{jobid}": {"hint": {"jobid": "*"}}},
                      control={"socket": "px.sock", "name": "stor0"})
        self.cluster = Cluster(programs, 1, [front])
        self.cluster.start("px")
        self.vpfsctl = programs.binaries / "vpfsctl"
        self.socket = programs.work / "px.sock"

    def ask(self, *words: str) -> Mapping[str, list[dict[str, object]]]:
        done = subprocess.run([self.vpfsctl, "--proxy", self.socket, "--json", *words], check=True, capture_output=True, text=True,
                              timeout=PATIENCE)
        data: Mapping[str, list[dict[str, object]]] = json.loads(done.stdout)["proxies"][0]["data"]
        return data

    def job(self, job: str) -> dict[str, object] | None:
        return next((each for each in self.ask("job", "list").get("jobs", []) if each["jobid"] == job), None)

    def words(self, job: str) -> object:
        return next((rule["words"] for rule in self.ask("rule", "list")["rules"] if rule["name"] == f"job:{job}"), None)


class BatchHooksTest(unittest.TestCase):
    stage: Stage
    work: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.work = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="vpfs")))
        programs = Programs(PROGRAMS[0], cls.work)
        cls.enterClassContext(programs)
        cls.stage = Stage(programs)

    def write(self, name: str, text: str, mode: int = 0o644) -> pathlib.Path:
        file = self.work / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    # Flux.

    def flux(self, act: str, attributes: Mapping[str, object] = {}, **changes: str) -> str:
        """Standard error of the script, as perilog.so runs it."""
        resources = {"version": 1, "execution": {"R_lite": [{"rank": "3-4", "children": {"core": "0"}}],
                                                 "nodelist": ["127.0.0.[3-4]"], "starttime": time.time(),
                                                 "expiration": time.time() + 300}}
        facts = {"id": "\u0192abc", "rank": "0", "R": json.dumps(resources),
                 "jobspec": json.dumps({"version": 1, "attributes": {"system": {"duration": 300, **attributes}}})}
        self.write("bin/flux", FLUX, 0o755)
        for name, text in facts.items():
            self.write(f"bin/{name}", changes.get(name, text))
        environment = {"PATH": f"{self.work}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "FLUX_JOB_ID": "\u0192abc",
                       "FLUX_JOB_USERID": str(UID), "FLUX_JOB_RANKS": "3-4", "VPFSCTL": str(self.stage.vpfsctl),
                       "VPFS_TARGETS": f"--proxy {self.stage.socket}", "VPFS_JOB_WORDS": "weight=2", "VPFS_BOUNDS": BOUNDS}
        environment |= {key: value for key, value in changes.items() if key not in facts}
        done = subprocess.run([ROOT / "conf/flux/job", act], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env=environment, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        return done.stderr

    def test_a_job_of_flux_is_registered_with_the_wishes_of_its_user(self) -> None:
        self.assertEqual(self.flux("prolog", {"bank": "physics", "vpfs": {"weight": 4}}), "")
        job = self.stage.job("fabc")
        assert job is not None
        self.assertEqual((job["uids"], job["account"], job["nodes"], job["clients"]),
                         ([UID], "physics", 2, ["127.0.0.3", "127.0.0.4"]))
        self.assertAlmostEqual(int(str(job["until_at"])), time.time() + 300, delta=30)
        self.assertEqual(self.stage.words("fabc"), ["weight=4"])
        self.assertEqual(self.flux("epilog"), "")
        self.assertIsNone(self.stage.job("fabc"))

    def test_wishes_in_flux_out_of_bounds_are_left_out(self) -> None:
        for wish in (9, -1, "", "4\n5", "$(id)", {"a": 1}, None, True):
            told = self.flux("prolog", {"vpfs": {"weight": wish}})
            self.assertRegex(told, "^job \u0192abc: prolog: vpfsctl: warning: --wish weight=.*: expected a whole number", repr(wish))
            self.assertEqual(self.stage.words("fabc"), ["weight=2"])
        self.assertEqual(self.flux("prolog", {"vpfs": "heavy"}), "")
        self.assertEqual(self.flux("epilog"), "")

    def test_whatever_a_user_of_flux_says_the_job_is_registered(self) -> None:
        for text in ("x" * 200_000, "a\0b", "\ud800", "\u0192"):
            told = self.flux("prolog", {"bank": text, "vpfs": {"weight": text}})
            self.assertIn("--wish weight=", told)
            job = self.stage.job("fabc")
            assert job is not None, told
            self.assertLessEqual(len(str(job.get("account", ""))), 128)
            self.assertEqual(self.stage.words("fabc"), ["weight=2"])
            self.assertEqual(self.flux("epilog"), "")

    def test_a_wish_that_a_stage_refuses_costs_only_the_wishes(self) -> None:
        told = self.flux("prolog", {"vpfs": {"deadline": "20ms"}})
        self.assertRegex(told, "stor0 refuses weight=2 latency=20ms: .*; without the wishes")
        self.assertEqual(self.stage.words("fabc"), ["weight=2"])
        self.assertEqual(self.flux("epilog"), "")

    def test_on_each_node_of_flux_only_the_first_speaks(self) -> None:
        self.assertEqual(self.flux("prolog", rank="4"), "")
        self.assertIsNone(self.stage.job("fabc"))
        self.assertEqual(self.flux("prolog", rank="3"), "")
        self.assertIsNotNone(self.stage.job("fabc"))
        self.assertEqual(self.flux("epilog", rank="4"), "")
        self.assertIsNotNone(self.stage.job("fabc"))
        self.assertEqual(self.flux("epilog", rank="3"), "")
        self.assertIsNone(self.stage.job("fabc"))

    def test_a_job_of_flux_starts_whatever_fails(self) -> None:
        self.assertIn("FileNotFoundError", self.flux("prolog", VPFSCTL="/nowhere/vpfsctl"))
        self.assertIn("unreachable", self.flux("prolog", VPFS_TARGETS=f"--proxy {self.work}/none.sock"))
        self.assertIn("JSONDecodeError", self.flux("prolog", R="{"))
        self.assertIn("KeyError", self.flux("prolog", R="{}"))
        self.assertIn("flux job info", self.flux("prolog", id="another"))
        self.assertIn("expected the word prolog or epilog", self.flux("start"))
        self.assertIsNone(self.stage.job("fabc"))

    # PBS.

    def pbs(self, kind: str, in_ms_mom: bool = True, settings: Mapping[str, str] = {}, **job: object) -> str:
        """What the hook has logged, as pbs_mom runs it."""
        self.write("pbs/pbs.py", PBS)
        text = (ROOT / "conf/pbs/vpfs_hook.py").read_text()
        for name, value in ({"VPFSCTL": str(self.stage.vpfsctl), "VPFS_TARGETS": f"--proxy {self.stage.socket}",
                             "VPFS_JOB_WORDS": "weight=2", "VPFS_BOUNDS": BOUNDS} | dict(settings)).items():
            before = next(line for line in text.splitlines() if line.startswith(f"{name} = "))
            text = text.replace(before, f"{name} = {value!r}")
        hook = self.write("pbs/hook.py", text)
        # A file: a variable of the environment holds at most 128 KiB.
        facts = self.write("pbs/facts", json.dumps({"type": {"begin": 1, "end": 2, "abort": 4}[kind],
                                                    "in_ms_mom": in_ms_mom, "job": PBS_JOB | job}))
        done = subprocess.run([sys.executable, "-B", hook], check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={"PYTHONPATH": str(hook.parent), "PBS_FACTS": str(facts)}, timeout=PATIENCE, cwd="/")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.endswith("accepted\n"), done.stdout)
        return done.stdout.removesuffix("accepted\n")

    def test_a_job_of_pbs_is_registered_with_the_wishes_of_its_user(self) -> None:
        self.assertEqual(self.pbs("begin"), "")
        job = self.stage.job("12.server")
        assert job is not None
        self.assertEqual((job["uids"], job["gids"], job["account"], job["nodes"], job["clients"]),
                         ([0], [0], "physics", 2, ["127.0.0.7", "127.0.0.8"]))
        self.assertAlmostEqual(int(str(job["until_at"])), time.time() + 300, delta=30)
        self.assertEqual(self.stage.words("12.server"), ["weight=4"])
        self.assertEqual(self.pbs("end"), "")
        self.assertIsNone(self.stage.job("12.server"))

    def test_a_job_of_pbs_that_is_aborted_is_not_registered_any_longer(self) -> None:
        self.assertEqual(self.pbs("begin", exec_host2="127.0.0.7:15002/0*2+127.0.0.8:15002/1"), "")
        self.assertIsNotNone(self.stage.job("12.server"))
        self.assertEqual(self.pbs("abort"), "")
        self.assertIsNone(self.stage.job("12.server"))

    def test_wishes_in_pbs_out_of_bounds_are_left_out(self) -> None:
        for wish in ("9", "-1", "4\n5", "$(id)", "4 --class=best"):
            told = self.pbs("begin", Variable_List={"VPFS_WEIGHT": wish})
            self.assertRegex(told, "^log: job 12.server: vpfsctl job start: vpfsctl: warning: --wish weight=", wish)
            self.assertEqual(self.stage.words("12.server"), ["weight=2"])
        self.assertEqual(self.pbs("end"), "")

    def test_whatever_a_user_of_pbs_says_the_job_is_registered(self) -> None:
        self.assertIn("--account ", self.pbs("begin", Account_Name="x" * 200_000,
                                             Variable_List={"VPFS_WEIGHT": "9" * 200_000}))
        job = self.stage.job("12.server")
        assert job is not None
        self.assertEqual(job.get("account", ""), "")
        self.assertEqual(self.pbs("end"), "")

    def test_only_the_mother_superior_of_pbs_speaks(self) -> None:
        self.assertEqual(self.pbs("begin", in_ms_mom=False), "")
        self.assertIsNone(self.stage.job("12.server"))

    def test_a_job_of_pbs_starts_whatever_fails(self) -> None:
        self.assertIn("FileNotFoundError", self.pbs("begin", settings={"VPFSCTL": "/nowhere/vpfsctl"}))
        self.assertIn("unreachable", self.pbs("begin", settings={"VPFS_TARGETS": f"--proxy {self.work}/none.sock"}))
        self.assertIn("--bounds: weight: ", self.pbs("begin", settings={"VPFS_BOUNDS": "weight=1-8"}))
        self.assertEqual(self.stage.words("12.server"), ["weight=2"])
        self.assertEqual(self.pbs("begin", Resource_List={}, Variable_List=None, Account_Name=None, project=None), "")
        self.assertIn("neither a number nor known here", self.pbs("begin", euser="no-such-user"))
        self.assertEqual(self.pbs("end"), "")


if __name__ == "__main__":
    PROGRAMS.append(pathlib.Path(sys.argv.pop(1)))
    unittest.main()
