"""script/bench takeover: how soon another coordinator leads when the leader is gone.

Three coordinators share a store. The leader is killed, asked to end, or stopped, again and again;
the time until each proxy has a lease of a later term is measured. Before each of these a rule is
changed, and all of the changes that were answered have to be there at the end. Beside it: what etcd
is asked when nothing happens.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import re
import signal
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lab import etcd, plot
from lab.harness import Problem, Program, Programs, machine_settings, median
from lab.numbers import one_or_more
from lab.report import Row, print_settings, table, write_json
from lab.targets import COLUMNS as TARGET_COLUMNS
from lab.targets import one_at_most

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COORDINATORS, PROXIES = 3, 4
LEASE = 5.0  # of the office
PATIENCE = 60.0
SETTLE = 1.0  # standbys are connected to a new leader
IDLE = 10.0  # for requests when nothing happens
POLICY = {"policy": "total", "period": "50 ms", "lease": "1 s", "transit": "500 ms"}
STORES = ("etcd", "directory")
SIGNALS = {"killed": signal.SIGKILL, "ended": signal.SIGTERM, "stopped": signal.SIGSTOP}
COLUMNS = ["store", "leader", "times", "p50_ms", "p90_ms", "worst_ms", "changes", "lost"]
IDLE_COLUMNS = ["store", "coordinators", "requests_per_s", "requests_each"]
LEADS = re.compile(r"ready, policy \w+, term (\d+)")


@dataclasses.dataclass(frozen=True)
class Case:
    store: str
    leader: str  # of SIGNALS
    times: int

    def fields(self) -> Row:
        return dataclasses.asdict(self)


class Site:
    """Proxies without clients, and the coordinators that lead them."""

    def __init__(self, programs: Programs, store: str) -> None:
        self._programs = programs
        self.etcd = etcd.Etcd(programs) if store == "etcd" else None
        if self.etcd is not None:
            self.etcd.add_user("/vpfs/bench/")
            self._store = self.etcd.store(f"{LEASE:g} s")
        else:
            shared = programs.work / "shared"
            shared.mkdir(mode=0o755)
            self._store = {"directory": str(shared), "lease": f"{LEASE:g} s"}
        self._sockets = [str(programs.work / f"ds{index}.sock") for index in range(PROXIES)]
        for index, socket in enumerate(self._sockets):
            self._start_proxy(index, socket)
        self._runs = 0
        self._members = [self._start(index) for index in range(COORDINATORS)]

    def _start_proxy(self, index: int, socket: str) -> None:
        config = {
            "proxy": {
                "listen": f"127.0.0.1:{self._programs.reserve_port()}",
                "upstream": f"127.0.0.1:{self._programs.reserve_port()}",
                "status_file": f"status{index}.json",
            },
            "scheduler": {"policy": "sfq"},
            "control": {"socket": socket, "name": f"ds{index}"},
            "virtual_pfs": {"a": {"weight": 1}, "b": {"weight": 1}},
            "rules": [],
        }
        file = self._programs.work / f"proxy{index}.yaml"
        file.write_text(json.dumps(config))
        self._programs.start(f"proxy{index}", "vpfs-proxy", "--config", str(file)).wait_for_line(
            "ready at"
        )

    def socket(self, index: int) -> str:
        return str(self._programs.work / f"c{index}.sock")

    def _start(self, index: int) -> Program:
        self._runs += 1
        config = {
            "name": "bench",
            **POLICY,
            "store": self._store,
            "control": {"socket": self.socket(index)},
            "stages": {
                "dial": [
                    {"name": f"ds{each}", "address": socket}
                    for each, socket in enumerate(self._sockets)
                ]
            },
        }
        file = self._programs.work / f"c{index}.yaml"
        file.write_text(json.dumps(config))
        program = self._programs.start(
            f"c{index}-{self._runs}", "vpfs-coordinator", "--config", str(file)
        )
        program.wait_for_line("ready")
        return program

    def ctl(self, *arguments: str) -> str:
        command = [str(self._programs.binaries / "vpfsctl"), *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise Problem(f"vpfsctl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def _term(self, index: int) -> int:
        """The term that it leads with; 0: it does not."""
        if not self._members[index].running():
            return 0
        text = self._members[index].log.read_text(errors="replace")
        last = text.rfind("ready, ")
        found = LEADS.match(text, last) if last >= 0 else None
        return int(found[1]) if found else 0

    def leader(self) -> tuple[int, int]:
        """Its number and its term."""
        found: list[tuple[int, int]] = []

        def leads() -> bool:
            found[:] = [(self._term(index), index) for index in range(COORDINATORS)]
            return max(found)[0] > 0

        wait_until(leads, "leader")
        term, index = max(found)
        return index, term

    def led_with(self) -> int:
        """The least term of the leases that proxies have; 0: one has none."""
        terms = []
        answers = json.loads(
            self.ctl("--json", "status", *(f"--proxy={socket}" for socket in self._sockets))
        )
        for each in answers["proxies"]:
            coordinator = (each["data"] or {}).get("coordinator", {})
            terms.append(coordinator["term"] if "lease_us_left" in coordinator else 0)
        return min(terms)

    def fault(self, leader: str) -> float:
        """Ends the leadership; milliseconds until all proxies are led by another one."""
        index, term = self.leader()
        wait_until(lambda: self.led_with() >= term, "lease at all proxies")
        time.sleep(SETTLE)
        name = f"change-{term}"
        self.ctl(
            "rule", "start", name, "jobid=1", "weight=2", f"--coordinator={self.socket(index)}"
        )
        began = time.monotonic()
        self._members[index].signal(SIGNALS[leader])
        wait_until(lambda: self.led_with() > term, "other leader")
        took = 1000 * (time.monotonic() - began)
        if leader == "stopped":
            self._members[index].signal(signal.SIGCONT)
        else:
            self._members[index].wait_until_ended()
            self._members[index] = self._start(index)
        if name not in self.changes():
            raise Problem(f"the change {name} was answered, and is lost")
        return took

    def changes(self) -> list[str]:
        index, _ = self.leader()
        listed = self.ctl("rule", "list", f"--coordinator={self.socket(index)}")
        return re.findall(r"change-\d+", listed)

    def requests(self) -> int:
        """Calls that the members of etcd have answered so far, by their own counts."""
        if self.etcd is None:
            return 0
        context = ssl.create_default_context(cafile=str(self.etcd.folder / "ca.pem"))
        context.load_cert_chain(
            self.etcd.folder / f"{etcd.CLIENT}.pem", self.etcd.folder / f"{etcd.CLIENT}.key"
        )
        total = 0.0
        for endpoint in self.etcd.endpoints:
            with urllib.request.urlopen(f"{endpoint}/metrics", context=context) as answer:
                for line in answer.read().decode().splitlines():
                    if line.startswith("grpc_server_started_total{"):
                        total += float(line.rsplit(" ", 1)[1])
        return round(total)


def wait_until(holds: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > until:
            raise Problem(f"no {what} within {PATIENCE:.0f} s")
        time.sleep(0.005)


def measure(binaries: pathlib.Path, work: pathlib.Path, case: Case) -> Row:
    with Programs(binaries, work) as programs:
        site = Site(programs, case.store)
        took = sorted(site.fault(case.leader) for _ in range(case.times))
        kept = len(set(site.changes()))
    return {
        **case.fields(),
        "p50_ms": median(took),
        "p90_ms": took[min(len(took) - 1, (9 * len(took)) // 10)],
        "worst_ms": took[-1],
        "changes": case.times,
        "lost": case.times - kept,
    }


def measure_idle(binaries: pathlib.Path, work: pathlib.Path, seconds: float) -> Row:
    with Programs(binaries, work) as programs:
        site = Site(programs, "etcd")
        _, term = site.leader()
        wait_until(lambda: site.led_with() >= term, "lease at all proxies")
        before, began = site.requests(), time.monotonic()
        time.sleep(seconds)
        rate = (site.requests() - before) / (time.monotonic() - began)
    return {
        "store": "etcd",
        "coordinators": COORDINATORS,
        "requests_per_s": rate,
        "requests_each": rate / COORDINATORS,
    }


def cases(stores: Sequence[str], kills: int, stops: int) -> list[Case]:
    times = {"killed": kills, "ended": stops, "stopped": stops}
    return [Case(store, leader, times[leader]) for store in stores for leader in SIGNALS]


def check(rows: Sequence[Row], idle: Sequence[Row]) -> list[Row]:
    targets = []
    for row in rows:
        name = f"{row['store']}: leader {row['leader']}"
        most = 1000 * (LEASE + 2) if row["leader"] == "stopped" else 2000
        targets.append(
            one_at_most(f"{name}: led again, worst", most, float(str(row["worst_ms"])), " ms")
        )
        targets.append(one_at_most(f"{name}: changes lost", 0, float(str(row["lost"]))))
    targets += [
        one_at_most("requests of each coordinator", 2, float(str(row["requests_each"])), "/s")
        for row in idle
    ]
    return targets


def figure(rows: Sequence[Row], caption: str) -> Figure:
    sheet = plot.Sheet("Until another coordinator leads", caption, columns=1, heights=[2.8])
    (panel,) = sheet.panels
    names = [f"{row['store']}, {row['leader']}" for row in rows]
    plot.bars(
        panel,
        names,
        {
            what: [float(str(row[f"{key}_ms"])) for row in rows]
            for what, key in (("median", "p50"), ("worst", "worst"))
        },
    )
    plot.label(panel, "store, and what happens to the leader", "time (ms)", "All proxies led again")
    return sheet.finish()


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, prog="script/bench takeover")
    parser.add_argument("--stores", nargs="+", choices=STORES, help="only these stores")
    parser.add_argument(
        "--kills", type=one_or_more, help="how often the leader is killed (default 100)"
    )
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    stores = [store for store in STORES if store in (options.stores or STORES)]
    if "etcd" in stores and (why := etcd.missing()):
        raise Problem(f"{why}; --stores directory does without")
    kills = options.kills or (5 if quick else 100)
    settings = machine_settings() | {
        "quick": quick,
        "coordinators": COORDINATORS,
        "proxies": PROXIES,
        "office's lease": f"{LEASE:g} s",
        "coordinator": ", ".join(f"{key} {value}" for key, value in POLICY.items()),
        "etcd": "three members with TLS, client certificates and a password; 3.4 of Debian",
        "measured": "from the signal until each proxy has a lease of a later term, looked at by "
        "vpfsctl, which takes some milliseconds each time",
        "changes": "a rule before each signal; all that were answered are there at the end",
        "requests": f"that etcd has counted in {IDLE:g} s without any change",
    }
    print_settings(settings)
    rows: list[Row] = []
    for case in cases(stores, kills, max(3, kills // 10)):
        rows.append(measure(binaries, out / f"takeover-{os.getpid()}-{len(rows)}", case))
        print("\n" + table(rows[-1:], COLUMNS), flush=True)
    idle = (
        [measure_idle(binaries, out / f"takeover-{os.getpid()}-idle", IDLE)]
        if "etcd" in stores
        else []
    )
    targets = check(rows, idle)
    print("\n" + table(rows, COLUMNS))
    if idle:
        print("\n" + table(idle, IDLE_COLUMNS))
    print("\n" + table(targets, TARGET_COLUMNS))
    write_json(
        out / "takeover.json",
        {"settings": settings, "rows": rows, "idle": idle, "targets": targets},
    )
    plot.save(
        out / "takeover",
        lambda: figure(rows, plot.caption(settings, f"{COORDINATORS} coordinators", "each fault")),
    )
    return 0
