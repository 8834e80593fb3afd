"""One run of the chaos: the site, its faults, the checks, and what they say at the end."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from lab import etcd, mount, network
from lab.chaos import configs, schedule, site
from lab.chaos.faults import Faults
from lab.chaos.history import check
from lab.chaos.leaders import Leaders
from lab.chaos.resources import Held, growths, held_by, most_of
from lab.chaos.rules import Administrators
from lab.chaos.site import Site
from lab.chaos.stall import StallWatch
from lab.chaos.watch import Watch, wait_for
from lab.harness import ROOT, Problem, Programs, require_programs
from lab.network import Network

Json = dict[str, Any]
PROGRAMS = ("vpfs-coordinator", "vpfs-proxy", "vpfs-server", "vpfs-load", "vpfs-mount", "vpfsctl")
SETTLE = 5.0  # before the first fault, led by a coordinator
BEGIN_PATIENCE = 180.0
# After the last fault: 3 s, and for an office that is vacant until its lease has ended, that time.
# etcd looks for leases that have ended twice a second, and gives each anew when it elects a leader.
LED_WITHIN = 3.0
VACANT = configs.OFFICE_LEASE + 2.5
# Limits come when those of the leader before have ended.
LIMITS_AFTER = configs.OFFICE_LEASE + configs.CYCLE_LEASE + configs.TRANSIT + LED_WITHIN
RULES_PATIENCE = 30.0
END_PATIENCE = 60.0
RESOURCES_PATIENCE = 20.0
BAD_LOAD = re.compile(r"\((\d+) errors\)")


@dataclasses.dataclass(frozen=True)
class Options:
    seconds: float
    seed: int
    binaries: pathlib.Path
    logs: pathlib.Path
    kinds: tuple[str, ...] = tuple(schedule.KINDS)
    policy: str = configs.PSFA


def why_not() -> str:
    """Why this machine cannot run it; empty if it can."""
    if why := network.why_not() or etcd.missing():
        return why
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "there is no /dev/fuse that may be used"
    return mount.why_mounting_is_refused()


class Checks:
    """What was violated, with its time."""

    def __init__(self, begun: float) -> None:
        self._begun = begun
        self._lock = threading.Lock()
        self.violations: list[str] = []

    def violated(self, what: str) -> None:
        line = f"[{time.monotonic() - self._begun:7.2f} s] VIOLATED: {what}"
        with self._lock:
            self.violations.append(line)
        print(line, flush=True)


class Run:
    def __init__(self, options: Options, programs: Programs, net: Network) -> None:
        self._options = options
        self._site = Site(programs, net, options.seed, options.policy)
        self._network = net
        self._begun = time.monotonic()
        self._checks = Checks(self._begun)
        self._stall = StallWatch()
        self._leaders = Leaders()
        self._summary: list[str] = []
        self._load_bad = self._load_lines = 0

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._begun:7.2f} s] {text}", flush=True)

    def conclude(self, name: str, result: str) -> None:
        self._summary.append(f"{name:26} {result}")

    def run(self) -> bool:
        """Whether nothing was violated."""
        with self._site.prepared():
            self._stall.start()
            try:
                self._site.start_all()
                self.say("all programs run")
                self._site.start_loads(self._mount_load())
                self._with_watch()
            finally:
                self._site.kill_all()
                self._stall.stop()
        self.print_summary()
        return not self._checks.violations

    def _mount_load(self) -> list[str]:
        return [
            "env",
            f"SLURM_JOB_ID={configs.MOUNT_JOB}",
            f"PYTHONPATH={ROOT}",
            sys.executable,
            "-B",
            "-m",
            "lab.chaos.mount_load",
            str(self._site.mount_place),
            str(self._options.seed),
        ]

    def _with_watch(self) -> None:
        watch = Watch(self._site.sockets(), configs.CAPACITY, self._checks.violated)
        watch.start()
        rules = Administrators(self._options.binaries / "vpfsctl", self._site.coordinators())
        try:
            before = self._settle(watch)
            faults = Faults(self._site, self._network, rules, self._checks.violated)
            last = self._faults(faults, watch, rules)
            self._come_back(watch, last)
            self._look_at_programs(watch, rules)
            rules.stop()
            self._look_at_programs(watch, rules)
            self._compare_rules(rules)
            self._compare_resources(before)
        finally:
            watch.stop()
        self._end_loads()
        self._look_at_leaders()
        self.conclude("leaders", f"{len(self._leaders.by_term)}, one in each term")
        if self._has_limits():
            self._judge_sums(watch)

    # --- Before, during ---------------------------------------------------------------------------

    def _settle(self, watch: Watch) -> dict[str, Held]:
        waits_for = watch.without_limits if self._has_limits() else watch.not_led
        if wait_for(lambda: not waits_for(), BEGIN_PATIENCE, self._stall.between) is None:
            raise Problem(f"not led after {BEGIN_PATIENCE:.0f} s: {' '.join(waits_for())}")
        self.say("a coordinator leads all stages")
        time.sleep(SETTLE)
        return self._held()

    def _has_limits(self) -> bool:
        return self._options.policy == configs.PSFA

    def _held(self) -> dict[str, Held]:
        names = [name for name in site.NAMES if name not in schedule.ETCD]
        return {name: held_by(self._site.running[name]) for name in names}

    def _faults(self, faults: Faults, watch: Watch, rules: Administrators) -> float:
        begun = time.monotonic()
        plan = schedule.schedule(self._options.seed, self._options.seconds, self._options.kinds)
        for fault in plan:
            faults.run_until(begun + fault.at)
            self.say(f"{fault.title()}, {fault.until - fault.at:.1f} s")
            faults.begin(fault)
            self._look_at_programs(watch, rules)
        faults.run_until(begun + self._options.seconds)
        last = faults.finish()
        self.say(f"{len(plan)} faults, the last has ended")
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(faults.begun.items()))
        self.conclude("faults", f"{len(plan)}: {counts}")
        return last

    def _look_at_programs(self, watch: Watch, rules: Administrators) -> None:
        for problem in self._site.dead():
            self._checks.violated(problem)
            name = problem.split()[0]
            self._site.start(name)
        for failure in (watch.failure, rules.failure):
            if failure is not None:
                raise Problem(f"a check has ended: {failure!r}") from failure
        self._look_at_leaders()
        self._look_at_loads()

    def _look_at_loads(self) -> None:
        load, mount_load = self._site.load, self._site.mount_load
        if load is None or mount_load is None:
            return
        for program in (load, mount_load):
            if not program.running():
                raise Problem(f"{program.name} has ended: {program.last_lines()}")
        errors = BAD_LOAD.findall(load.last_lines(1))
        bad = mount_load.log.read_text().splitlines()
        wrong = [line for line in bad if line.startswith(("wrong:", "failed:"))]
        if errors and self._load_bad == 0:
            self._load_bad = 1
            self._checks.violated(f"the load on proxies: {load.last_lines(1)}")
        for line in wrong[self._load_lines :]:
            self._checks.violated(f"the load on the mount: {line}")
        self._load_lines = len(wrong)

    # --- Afterwards -------------------------------------------------------------------------------

    def _come_back(self, watch: Watch, last: float) -> None:
        patience = LED_WITHIN + VACANT
        led = wait_for(lambda: not watch.not_led(), patience, self._stall.between)
        if led is None:
            self._checks.violated(
                f"{patience:.1f} s after the last fault these are not led: "
                f"{' '.join(watch.not_led())}"
            )
        else:
            after = time.monotonic() - last
            self.say(f"all stages are led {after:.2f} s after the last fault")
            self.conclude("led again", f"after {after:.2f} s (at most {patience:.1f} s)")
        if not self._has_limits():
            return
        if wait_for(lambda: not watch.without_limits(), LIMITS_AFTER, self._stall.between) is None:
            self._checks.violated(
                f"{LIMITS_AFTER:.1f} s later these have no limits: "
                f"{' '.join(watch.without_limits())}"
            )
        else:
            self.conclude("limits again", f"after {time.monotonic() - last:.2f} s")

    def _compare_rules(self, rules: Administrators) -> None:
        final = rules.read_at_last(RULES_PATIENCE)
        operations = rules.operations()
        (self._site.places.work / "history.txt").write_text(
            "\n".join(each.text() for each in sorted(operations, key=lambda op: op.called_at))
            + "\n"
        )
        verdict = check(operations)
        unknown = sum(not each.known() for each in operations)
        if verdict.problem:
            self._checks.violated(f"rules: {verdict.problem}")
        if verdict.undecided:
            raise Problem("the history of rules has too many possible orders to be judged")
        self.conclude(
            "rules",
            f"{len(operations)} answers and {unknown} unknown outcomes are in one order; "
            f"{len(final.seen)} rules at the end; {rules.refused} refused without an effect; "
            f"{rules.uncertain} lists said that they may be old",
        )
        self._compare_stages()

    def _compare_stages(self) -> None:
        """At the end each stage has the rules of the site."""

        def without_rules() -> list[str]:
            bad = []
            for name in (*schedule.AGGREGATORS, "main"):
                status = self._status(name)
                stages = status["stages"] if status else []
                bad += [
                    f"{name}/{each['name']}: {each['rules']['state']} {each['rules']['problem']}"
                    for each in stages
                    if each["rules"]["state"] != "in force"
                ]
                if not stages:
                    bad.append(f"{name} does not answer")
            return bad

        if wait_for(lambda: not without_rules(), RULES_PATIENCE, self._stall.between) is None:
            for each in without_rules():
                self._checks.violated(f"{RULES_PATIENCE:.0f} s after the last fault: {each}")

    def _status(self, name: str) -> Json | None:
        where = self._site.coordinators() if name == "main" else self._site.places.socket(name)
        command = [str(self._options.binaries / "vpfsctl"), "--coordinator", where, "--json"]
        done = subprocess.run([*command, "status"], check=False, capture_output=True, text=True)
        return json.loads(done.stdout)["proxies"][0]["data"] if done.returncode == 0 else None

    def _compare_resources(self, before: dict[str, Held]) -> None:
        def grown() -> list[str]:
            return list(growths(before, self._held()))

        if wait_for(lambda: not grown(), RESOURCES_PATIENCE, self._stall.between) is None:
            for each in grown():
                self._checks.violated(each)
        after = most_of(self._held())
        text = "; ".join(f"{kind}: {held.text()}" for kind, held in sorted(after.items()))
        self.conclude("held at the end, at most", text)

    def _end_loads(self) -> None:
        load, mount_load = self._site.load, self._site.mount_load
        if load is None or mount_load is None:
            raise Problem("the loads were not started")
        load.signal(signal.SIGINT)
        mount_load.signal(signal.SIGTERM)
        both = (load, mount_load)

        def have_ended() -> bool:
            return not any(program.running() for program in both)

        if wait_for(have_ended, END_PATIENCE, self._stall.between) is None:
            still = " and ".join(program.name for program in both if program.running())
            raise Problem(f"{still} did not end within {END_PATIENCE:.0f} s")
        self._judge_load(json.loads((self._site.places.work / "load.json").read_text()))
        last = mount_load.last_lines(1)
        if mount_load.exit_code() != 0 or not last.startswith("ended"):
            self._checks.violated(f"the load on the mount: {last}")
        self.conclude("load on the mount", last.removeprefix("ended "))

    def _judge_load(self, result: Json) -> None:
        parts = []
        for each in result["applications"]:
            if each["errors"] or each["verify_failures"] or not each["verified_blocks"]:
                self._checks.violated(
                    f"job {each['name']}: {each['errors']} requests failed, "
                    f"{each['verify_failures']} of {each['verified_blocks']} blocks were wrong"
                )
            parts.append(
                f"{each['name']}: {each['requests']} requests, {each['errors']} failed, "
                f"{each['verified_blocks']} blocks verified, {each['verify_failures']} wrong"
            )
        self.conclude("load on proxies", "; ".join(parts))

    def _look_at_leaders(self) -> None:
        logs = [log for name in schedule.COORDINATORS for log in self._site.logs[name]]
        for problem in self._leaders.look(logs):
            self._checks.violated(problem)

    def _judge_sums(self, watch: Watch) -> None:
        if watch.with_limits == 0:
            self._checks.violated("no limits were seen")
        self.conclude(
            "limits in force",
            f"at most {watch.most} of {configs.CAPACITY}; {watch.rounds} looks, "
            f"{watch.with_limits} with limits, {watch.whole} of all stages at one instant",
        )

    def print_summary(self) -> None:
        print()
        for line in self._summary:
            print(line)
        print(f"{'stall of this machine':26} at worst {self._stall.worst:.2f} s")
        if self._checks.violations:
            print(f"\n{len(self._checks.violations)} violations, seed {self._options.seed}:")
            for line in self._checks.violations:
                print(line)


def keep_logs(work: pathlib.Path, logs: pathlib.Path) -> None:
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    for pattern in ("*.log", "*.yaml", "*.json", "history.txt"):
        for file in work.glob(pattern):
            shutil.copy(file, logs / file.name)


def run(options: Options) -> int:
    require_programs(options.binaries, PROGRAMS)
    for left in [*network.sweep(), *site.sweep()]:
        print(f"removed {left}, which a killed run has left")
    minutes = options.seconds / 60
    print(f"seed {options.seed}, {minutes:.4g} minutes", flush=True)
    work = site.work_folder()
    good = False
    try:
        with Network(site.HOSTS) as net, Programs(options.binaries, work) as programs:
            good = Run(options, programs, net).run()
    finally:
        if work.exists():
            keep_logs(work, options.logs)
        site.release(work)
        if not good:
            print(f"logs: {options.logs}; again: script/chaos --seed {options.seed}", flush=True)
    print("nothing was violated" if good else "FAILED")
    return 0 if good else 1
