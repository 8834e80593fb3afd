"""The rows of script/bench anticipation through OrangeFS's own server, where it is installed.

Its own copying program, which uses its own client library with one request in flight, writes in
loops as one user or as another; or fio writes to two FUSE mounts. The proxy tells the users, or the
mounts, apart and counts what each got. The server keeps its data in a mounted directory with a
rate, so that the server is what all wait for, and not a processor.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lab import real_orangefs
from lab.cluster import Front
from lab.harness import MIB, Problem, Program, Programs, median
from lab.mount import directory_mounted, mounted, vpfs_mount, why_not
from lab.report import Json, Row
from lab.status import read_status

COPIES, MOUNTS = "copies", "mounts"
USERS = {"a": 4711, "b": 4712}
DIRECTORY = f"{real_orangefs.PLACE}/all"
SIZE = 1 << 20
FILE = 64 << 20
DEPTH = 8
DEVICE_MIB_PER_S = 200
DEVICE = f"""
mount: {{drain: 0s}}
scheduler: {{policy: tbf, cost: {{per_request: 0}}}}
virtual_pfs: {{default: {{rate: {DEVICE_MIB_PER_S} MiB/s, burst: 1 MiB}}}}
"""
WARM_UP = 12.0  # seconds; what the proxy learns takes about a thousand requests
TOOL_PATIENCE = 60.0
COLUMNS = [
    "clients",
    "in_flight_a",
    "in_flight_b",
    "weight",
    "size",
    "parallelism",
    "think_us",
    "ratio_off",
    "ratio_on",
    "feasible_ratio",
    "total_vs_fifo",
    "idle_percent",
    "kept_percent",
    "mib_per_s",
]


@dataclasses.dataclass(frozen=True)
class Case:
    clients: str
    in_flight_a: int
    in_flight_b: int
    weight: int

    def jobs(self) -> dict[str, int]:
        return {"a": self.in_flight_a, "b": self.in_flight_b}


CASES = [
    Case(COPIES, 8, 8, 4),
    Case(COPIES, 1, 16, 1),
    Case(MOUNTS, 1, 1, 4),
    Case(MOUNTS, 1, 8, 1),
]


def cases() -> list[Case]:
    """Those that can be measured here."""
    return [] if not real_orangefs.server_program() or os.geteuid() != 0 or why_not() else CASES


@dataclasses.dataclass(frozen=True)
class Measured:
    rates: dict[str, float]  # bytes per second of each of the applications
    kept: float  # the part of the time that slots were kept
    think_us: float | None  # what the proxy has learnt of a


class Site:
    """One server and its proxy. Every process of an application writes a file of its own."""

    def __init__(
        self,
        programs: Programs,
        case: Case,
        policy: str,
        scheduler: Mapping[str, object],
        device: pathlib.Path,
    ) -> None:
        self._programs, self._case = programs, case
        server, proxy = programs.reserve_port(), programs.reserve_port()
        direct = real_orangefs.start_at(programs, server, proxy, device / "data")
        self._address = real_orangefs.proxied_address(proxy)
        matches = {
            name: {"uid": USERS[name]} if case.clients == COPIES else {"jobid": name}
            for name in USERS
        }
        front = Front(
            "px",
            "proxy",
            policy,
            shares={"a": {"weight": case.weight}, "b": {"weight": 1}},
            templates=matches,
            scheduler=scheduler,
            depth_requests=DEPTH,
            depth_bytes="64 MiB",
        )
        self._status = programs.work / "status.json"
        config = programs.work / "px.yaml"
        config.write_text(json.dumps(front.proxy_config(proxy, server, str(self._status))))
        self._proxy: Program = programs.start("px", "vpfs-proxy", "--config", str(config))
        self._proxy.wait_for_port(proxy)
        self._source = programs.work / "source"
        self._source.write_bytes(os.urandom(FILE))
        self._tool("pvfs2-mkdir", DIRECTORY, address=direct)
        self._tool("pvfs2-chmod", "777", DIRECTORY, address=direct)

    def _tool(self, name: str, *arguments: str, address: str) -> None:
        environment = os.environ | {
            "PVFS2TAB_FILE": real_orangefs.mount_table(self._programs, address)
        }
        done = subprocess.run(
            [real_orangefs.tool(name) or name, *arguments],
            check=False,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TOOL_PATIENCE,
        )
        if done.returncode != 0:
            raise Problem(f"{name} {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")

    def measure(self, names: Sequence[str], seconds: float) -> Measured:
        with contextlib.ExitStack() as stack:
            self._begin(names, stack)
            time.sleep(WARM_UP)
            begin, before = time.monotonic(), self._read_status()
            time.sleep(seconds)
            passed, after = time.monotonic() - begin, self._read_status()
        moved = [
            {each["name"]: each["done_bytes"] for each in status["virtual_pfs"]}
            for status in (before, after)
        ]
        rates = {name: (moved[1].get(name, 0) - moved[0].get(name, 0)) / passed for name in names}
        if min(rates.values()) <= 0:
            raise Problem(f"an application moved nothing; its log is in {self._programs.work}")
        kept = [status.get("slots_kept_us", 0) / 1e6 for status in (before, after)]
        think_us = [
            each.get("think_time_us") for each in after["virtual_pfs"] if each["name"] == "a"
        ]
        return Measured(rates, (kept[1] - kept[0]) / passed, think_us[0])

    def _read_status(self) -> Json:
        self._status.unlink(missing_ok=True)
        self._proxy.signal(signal.SIGUSR1)
        self._proxy.wait_until(self._status.exists, "writing its status")
        return read_status(self._status)

    def _begin(self, names: Sequence[str], stack: contextlib.ExitStack) -> None:
        jobs = {name: self._case.jobs()[name] for name in names}
        if self._case.clients == COPIES:
            table = real_orangefs.mount_table(self._programs, self._address)
            copy = f"{real_orangefs.tool('pvfs2-cp')} -b {SIZE} {self._source} {DIRECTORY}"
            for name in [name for name, count in jobs.items() for _ in range(count)]:
                stack.enter_context(
                    self._runs(
                        name,
                        ["sh", "-c", f"while {copy}/{name}.$$.$((i += 1)); do :; done"],
                        user=USERS[name],
                        group=USERS[name],
                        extra_groups=[],
                        env=os.environ | {"PVFS2TAB_FILE": table},
                    )
                )
            return
        for name, count in jobs.items():
            place = self._programs.work / f"mount-{name}"
            command = vpfs_mount(self._address, place, [f"jobid={name}"])
            stack.enter_context(mounted(self._programs, f"mount-{name}", command, place))
            stack.enter_context(
                self._runs(
                    name,
                    [
                        "fio",
                        f"--name={name}",
                        f"--directory={place}/all",
                        "--rw=write",
                        f"--bs={SIZE}",
                        f"--size={FILE}",
                        "--thread",
                        f"--numjobs={count}",
                        "--direct=1",
                        "--ioengine=psync",
                        "--time_based",
                        "--runtime=600",
                        "--fallocate=none",
                    ],
                )
            )

    @contextlib.contextmanager
    def _runs(self, name: str, command: Sequence[str], **options: Any) -> Iterator[None]:
        with (self._programs.work / f"load-{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd="/",
                **options,
            )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def site(
    binaries: pathlib.Path,
    work: pathlib.Path,
    case: Case,
    scheduler: tuple[str, Mapping[str, object]],
) -> Iterator[Site]:
    with contextlib.ExitStack() as stack:
        shutil.rmtree(work, ignore_errors=True)  # of a run that was interrupted
        below = work / "below"
        below.mkdir(parents=True)
        devices = stack.enter_context(Programs(binaries, work))
        _, device = stack.enter_context(directory_mounted(devices, "device", DEVICE, below))
        programs = stack.enter_context(Programs(binaries, work / "site"))
        try:
            yield Site(programs, case, *scheduler, device)
        finally:
            shutil.rmtree(below / "data", ignore_errors=True)  # gigabytes


def row(
    binaries: pathlib.Path,
    work: pathlib.Path,
    case: Case,
    schedulers: Mapping[str, tuple[str, Mapping[str, object]]],
    seconds: float,
    runs: int,
) -> Row:
    """One case with each of the schedulers `fifo`, `off` and `on`.

    How many requests the server does at once is not known.
    """
    found: dict[str, list[Measured]] = {which: [] for which in schedulers}
    alone = 0.0
    for run in range(runs):
        for which, scheduler in schedulers.items():
            with site(binaries, work / f"{which}{run}", case, scheduler) as one:
                found[which].append(one.measure(list(USERS), seconds))
                if which == "fifo" and run == 0:
                    alone = one.measure(["a"], seconds).rates["a"]
    ratio = {
        which: median([each.rates["a"] / each.rates["b"] for each in found[which]])
        for which in found
    }
    total = {which: median([sum(each.rates.values()) for each in found[which]]) for which in found}
    think_us = [each.think_us for each in found["on"] if each.think_us is not None]
    feasible = min(alone, total["fifo"] * case.weight / (case.weight + 1))
    return dataclasses.asdict(case) | {
        "size": SIZE,
        "parallelism": None,
        "think_us": median(think_us) if think_us else None,
        "ratio_off": ratio["off"],
        "ratio_on": ratio["on"],
        "feasible_ratio": feasible / (total["fifo"] - feasible),
        "total_vs_fifo": total["on"] / total["fifo"],
        "idle_percent": 100 * max(1 - total["on"] / total["fifo"], 0.0),
        "kept_percent": 100 * median([each.kept for each in found["on"]]),
        "mib_per_s": total["on"] / MIB,
    }
