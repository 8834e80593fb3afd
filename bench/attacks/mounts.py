"""Attacks by users of a shared mount on its other users.

The victim works on the mount alone and beside the attacker, in turns. It is entitled to half of
what it has alone. If the attack also hurts on the directory below, it is entitled to half of what
it has there beside the same attacker.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping

from bench.attacks.attack import Outcome, Target, always, resident, victim_mean
from bench.attacks.mount_users import FILES, LARGE, SMALL
from bench.attacks.scene import INTERVAL, Victim, mean_of, seconds_lost, worst_second
from lab.harness import ROOT, Problem, Program, Programs, median
from lab.mount import mounted, require_mounts, vpfs_mount
from lab.report import Row

PROTOCOL = "mount"
VICTIM, ATTACKER = 1001, 1002
LIMIT = "200 KiB/s"  # of the attacker, where it has one
TURN = 4.0  # seconds of each measurement
PATIENCE = 60.0
UNIT = {
    "Files": len(SMALL),
    "Writer": LARGE,
    "Reader": LARGE,
}  # bytes of each thing that a victim does
CONFIG = """
mount: {{status_file: {status}, log_level: warn}}
{more}
scheduler: {{policy: sfq, depth: {{requests: 16, bytes: 16 MiB}}}}
virtual_pfs:
  limited: {{rate: {limit}, burst: 1 MiB}}
  "job-{{jobid}}": {{}}
  "user-{{uid}}": {{}}
  default: {{}}
rules: {rules}
"""
BY_USER = '[{match: {}, virtual_pfs: "user-{uid}"}]'
LIMITED = f"[{{match: {{uid: {ATTACKER}}}, virtual_pfs: limited}}, {BY_USER[1:]}"
BY_JOB = f'[{{match: {{jobid: "*"}}, virtual_pfs: "job-{{jobid}}"}}, {BY_USER[1:]}'
REGISTERED = "jobs: registered"


class MountScene:
    """A directory and its mount, in which both users have a directory of their own."""

    def __init__(self, programs: Programs, rules: str, more: str) -> None:
        self.programs = programs
        self._exit = contextlib.ExitStack()
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="vpfs-attacks-"))
        self._exit.callback(shutil.rmtree, self.scratch, ignore_errors=True)
        self.scratch.chmod(0o755)
        self.below, self.place = self.scratch / "below", self.scratch / "mount"
        for user in (VICTIM, ATTACKER):
            own = self.below / str(user)
            own.mkdir(parents=True)
            os.chown(own, user, user)
        self._status = self.scratch / "status.json"
        config = self.scratch / "mount.yaml"
        config.write_text(CONFIG.format(status=self._status, rules=rules, more=more, limit=LIMIT))
        self.mount: Program = self._exit.enter_context(
            mounted(
                programs,
                "mount",
                vpfs_mount(f"posix:{self.below}", self.place, ["allow_other", f"config={config}"]),
                self.place,
            )
        )
        self._started = 0

    def close(self) -> None:
        self._exit.close()

    def user(
        self,
        uid: int,
        act: str,
        directory: pathlib.Path,
        environment: Mapping[str, str] | None = None,
        **options: object,
    ) -> Program:
        self._started += 1
        given = [f"--{name}={value}" for name, value in options.items()]
        variables = [f"{name}={value}" for name, value in (environment or {}).items()]
        return self.programs.start(
            f"user-{self._started}",
            "env",
            *variables,
            sys.executable,
            str(ROOT / "bench/attacks/mount_users.py"),
            f"--uid={uid}",
            *given,
            act,
            str(directory / str(uid)),
        )

    def alive(self) -> int:
        """Requests that the mount still has.

        What the limited user has read ahead waits on, as the kernel wants it.
        """
        self._status.unlink(missing_ok=True)
        self.mount.signal(signal.SIGUSR1)
        self.mount.wait_until(self._status.exists, "writing its status")
        shown = json.loads(self._status.read_text())
        return sum(
            each["queued_requests"] + each["outstanding_requests"]
            for each in shown["virtual_pfs"]
            if each["name"] != "limited"
        )


def nothing(_: MountScene) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


@contextlib.contextmanager
def leased_file(scene: MountScene) -> Iterator[None]:
    """Keeps a lease on a file of the attacker below."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    file = os.open(scene.below / str(ATTACKER) / "leased", os.O_CREAT | os.O_RDWR, 0o600)
    os.fchown(file, ATTACKER, ATTACKER)
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        yield
    finally:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        os.close(file)
        signal.signal(signal.SIGIO, before)


@contextlib.contextmanager
def many_files(scene: MountScene) -> Iterator[None]:
    directory = scene.below / str(ATTACKER) / "many"
    directory.mkdir(exist_ok=True)
    for number in range(20_000):
        (directory / str(number)).touch()
    yield


@contextlib.contextmanager
def files_to_read(scene: MountScene) -> Iterator[None]:
    for user in (VICTIM, ATTACKER):
        for number in range(FILES):
            with (scene.below / str(user) / f"read-{number}").open("wb") as file:
                file.truncate(64 * LARGE)
                os.fchown(file.fileno(), user, user)
    yield


@dataclasses.dataclass(frozen=True)
class MountAttack:
    """One user's attack on another user of a mount."""

    name: str
    act: str
    targets: tuple[Target, ...] = (victim_mean(1.0),)
    threads: int = 1
    processes: int = 1
    with_jobs: bool = False  # each process claims a job of its own
    victim: str = "Files"
    victim_threads: int = 1
    rules: str = BY_USER
    more: str = ""  # of the mount's configuration
    compared_below: bool = False  # the attack takes something below as well
    preparation: Callable[[MountScene], contextlib.AbstractContextManager[None]] = nothing

    protocol = PROTOCOL
    seconds = 20.0
    quick_seconds = TURN

    def run(self, programs: Programs, program: str, seconds: float) -> Outcome:
        require_mounts()
        scene = MountScene(programs, self.rules, self.more)
        try:
            return self._measure(scene, max(1, round(seconds / TURN)))
        finally:
            scene.close()

    def _measure(self, scene: MountScene, rounds: int) -> Outcome:
        alone, below, beside = [], [], []
        bins: list[tuple[float, float]] = []
        failed = 0
        with self.preparation(scene):
            for _ in range(rounds):
                alone.append(mean_of(self._suffer(scene, scene.place)[0]))
                if self.compared_below:
                    with self._attacked(scene, scene.below):
                        below.append(mean_of(self._suffer(scene, scene.below)[0]))
                with self._attacked(scene, scene.place):
                    seen, errors = self._suffer(scene, scene.place)
                beside.append(mean_of(seen))
                bins += [(at + len(bins) * INTERVAL, rate) for at, rate in seen]
                failed += errors
        entitled = median(below if self.compared_below else alone) / 2
        victim = Victim(
            entitled=entitled,
            before=median(alone),
            mean=median(beside),
            worst_second=worst_second(bins),
            seconds_lost=seconds_lost(bins, entitled),
            wrong_blocks=0,
            failed=failed,
        )
        row: Row = victim.row(self.name, PROTOCOL, scene.alive(), scene.mount.peak_rss_mib())
        return Outcome(
            row, victim, {"alone": median(alone), "below": median(below) if below else 0.0}
        )

    @contextlib.contextmanager
    def _attacked(self, scene: MountScene, where: pathlib.Path) -> Iterator[None]:
        attackers = [
            scene.user(
                ATTACKER,
                self.act,
                where,
                {"SLURM_JOB_ID": f"9{number}"} if self.with_jobs else None,
                threads=self.threads,
            )
            for number in range(self.processes)
        ]
        try:
            for each in attackers:
                each.wait_for_line("READY", PATIENCE)
            yield
        finally:
            for each in attackers:
                each.stop()

    def _suffer(
        self, scene: MountScene, where: pathlib.Path
    ) -> tuple[list[tuple[float, float]], int]:
        """The victim's MiB/s in each interval, and how many of its calls failed."""
        victim = scene.user(
            VICTIM, self.victim, where, threads=self.victim_threads, seconds=TURN, interval=INTERVAL
        )
        victim.wait_until(
            lambda: not victim.running() or '"counts"' in victim.log.read_text(), "done", PATIENCE
        )
        try:
            found = json.loads(victim.last_lines(1))
        except ValueError as error:
            raise Problem(f"the victim has no results:\n{victim.last_lines()}") from error
        rate = UNIT[self.victim] / INTERVAL / (1 << 20)
        bins = [
            ((number + 1) * INTERVAL, count * rate) for number, count in enumerate(found["counts"])
        ]
        return bins, found["failed"]

    def judge(self, seen: Outcome) -> list[Row]:
        name = f"{self.name} ({PROTOCOL})"
        return [target(name, seen) for target in self.targets] + always(name, seen)


ATTACKS = [
    *(
        MountAttack(
            f"fsync by {threads} threads", "synchronize", threads=threads, compared_below=True
        )
        for threads in (64, 256, 400)
    ),
    MountAttack("300 opens of a leased file", "open_leased", threads=300, preparation=leased_file),
    MountAttack("a walk of 20,000 files", "walk", threads=4, preparation=many_files),
    MountAttack(
        "held writes of 400 threads",
        "write_direct",
        (victim_mean(1.0), resident(400, "the mount")),
        threads=400,
        rules=LIMITED,
    ),
    MountAttack(
        "held reads ahead",
        "read_ahead",
        threads=512,
        victim="Reader",
        rules=LIMITED,
        preparation=files_to_read,
    ),
    MountAttack(
        "16 invented jobs",
        "write_direct",
        (victim_mean(0.8),),
        processes=16,
        with_jobs=True,
        victim="Writer",
        victim_threads=16,
        rules=BY_JOB,
        more=REGISTERED,
    ),
]
