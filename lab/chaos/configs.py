"""The configuration of each program of the site. Pure."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable

from lab.chaos.schedule import (
    AGGREGATORS,
    COORDINATORS,
    DIALLED,
    ETCD,
    MOUNT,
    OF_AGGREGATOR,
    PROXIES,
    STAGES,
)
from lab.etcd import CLIENT, USER

Config = dict[str, object]

MIB_PER_SECOND = 12  # less than what servers could do
CAPACITY = MIB_PER_SECOND << 20
PSFA, TOTAL = "psfa", "total"
LIMITS: Config = {
    "capacity": {"bytes": f"{MIB_PER_SECOND} MiB/s"},
    "floor": {"bytes": "64 KiB/s"},
}
# At most this follows one leader that has lost its office: its lease, that of its limits, and what
# is under way. docs/admin/several-coordinators.md has the rule.
OFFICE_LEASE, CYCLE_LEASE, TRANSIT = 2.0, 2.0, 0.5
CYCLES: Config = {"period": "100 ms", "deadline": "40 ms", "lease": "2 s", "transit": "500 ms"}
CYCLES_BELOW: Config = {
    "period": "100 ms",
    "deadline": "15 ms",
    "lease": "900 ms",
    "transit": "500 ms",
}
COORDINATOR_PORT, STAGES_PORT, PROXY_PORT, CONTROL_PORT = 7313, 7314, 4334, 7312
SERVER_PORT, ETCD_PORT, ETCD_PEER_PORT = 3334, 2379, 2380
JOBS = ("a", "b")  # of the load on proxies
MOUNT_JOB = "work"
JOURNAL = "journal"  # in the state folder of a program


@dataclasses.dataclass(frozen=True)
class Places:
    """Where things are."""

    work: pathlib.Path
    address: Callable[[str], str]  # of a host
    policy: str = PSFA

    def tls(self, name: str) -> Config:
        folder = self.work / "tls"
        return {
            "certificate": str(folder / f"{name}.pem"),
            "key": str(folder / f"{name}.key"),
            "ca": str(folder / "ca.pem"),
        }

    def socket(self, name: str) -> str:
        return str(self.work / f"{name}.sock")

    def state(self, name: str) -> pathlib.Path:
        """The store of that program: a small file system of its own."""
        return self.work / "state" / name

    def parents(self) -> list[str]:
        return [f"{self.address(each)}:{STAGES_PORT}" for each in COORDINATORS]


def certificates() -> dict[str, list[str]]:
    """By the certificate's name, the hosts that show it."""
    return {
        "etcd": list(ETCD),
        "coordinator": list(COORDINATORS),
        **{name: [name] for name in (*AGGREGATORS, *STAGES)},
    }


def coordinator(places: Places, name: str) -> Config:
    stages = [
        {"name": each, "address": f"{places.address(each)}:{CONTROL_PORT}"} for each in DIALLED
    ]
    listening = [f"cert:{each}" for each in (*AGGREGATORS, *STAGES)]
    tls = places.tls("coordinator")
    return {
        "name": "main",
        "policy": places.policy,
        **(LIMITS if places.policy == PSFA else {}),
        **CYCLES,
        "store": {
            "lease": f"{round(OFFICE_LEASE * 1000)} ms",
            "addresses": [f"{places.address(name)}:{COORDINATOR_PORT}"],
            "etcd": {
                "endpoints": [f"https://{places.address(each)}:{ETCD_PORT}" for each in ETCD],
                **places.tls(CLIENT),
                "user": USER,
                "password_file": str(places.work / "etcd.password"),
            },
        },
        "control": {
            "socket": places.socket(name),
            "tcp": f"{places.address(name)}:{COORDINATOR_PORT}",
            **tls,
            "writers": ["cert:coordinator"],
        },
        "stages": {
            "dial": stages,
            "listen": {
                "tcp": f"{places.address(name)}:{STAGES_PORT}",
                **tls,
                "writers": listening,
            },
            **tls,
        },
    }


def aggregator(places: Places, name: str) -> Config:
    tls = places.tls(name)
    return {
        "name": name,
        "policy": places.policy,
        **CYCLES_BELOW,
        "journal": str(places.state(name) / JOURNAL),
        "control": {"socket": places.socket(name)},
        "parent": {"addresses": places.parents()},
        "stages": {
            "dial": [
                {"name": each, "address": f"{places.address(each)}:{CONTROL_PORT}"}
                for each in OF_AGGREGATOR[name]
            ],
            **tls,
        },
    }


def _control_of_stage(places: Places, name: str) -> Config:
    control: Config = {
        "name": name,
        "socket": places.socket(name),
        "journal": str(places.state(name) / JOURNAL),
        **places.tls(name),
    }
    for aggregator_name, stages in OF_AGGREGATOR.items():
        if name in stages:
            return control | _port(places, name, aggregator_name)
    if name in DIALLED:
        return control | _port(places, name, "coordinator")
    return control | {"coordinator": places.parents()}


def _port(places: Places, name: str, writer: str) -> Config:
    return {"tcp": f"{places.address(name)}:{CONTROL_PORT}", "writers": [f"cert:{writer}"]}


def proxy(places: Places, name: str) -> Config:
    here = places.address(name)
    return {
        "proxy": {
            "listen": f"{here}:{PROXY_PORT}",
            "upstream": f"{here}:{SERVER_PORT}",
            "protocol": "orangefs",
        },
        "control": _control_of_stage(places, name),
        "scheduler": {"policy": "sfq", "depth": {"requests": 8, "bytes": "4 MiB"}},
        "virtual_pfs": {job: {"weight": 1} for job in JOBS},
        "rules": [
            {"name": f"of-{job}", "match": f"jobid={job}", "virtual_pfs": job} for job in JOBS
        ],
    }


def mount(places: Places) -> Config:
    return {
        "mount": {"log_level": "info"},
        "control": _control_of_stage(places, MOUNT),
        "scheduler": {"policy": "sfq", "depth": {"requests": 16, "bytes": "16 MiB"}},
        "virtual_pfs": {MOUNT_JOB: {"weight": 1}},
        "rules": [{"name": "of-work", "match": f"jobid={MOUNT_JOB}", "virtual_pfs": MOUNT_JOB}],
    }


def server(places: Places) -> Config:
    """The file of all data servers: one is behind each proxy, on its host."""
    return {
        "file_system": {"name": "vpfs", "id": 1234},
        "servers": [
            {
                "alias": each,
                "addresses": [
                    f"tcp://{places.address(each)}:{SERVER_PORT}",
                    f"tcp-px://{places.address(each)}:{PROXY_PORT}",
                ],
            }
            for each in PROXIES
        ],
        "storage": {"engine": "memory"},
        "device": {"bandwidth": "2 MiB/s", "parallelism": 4},
        # A proxy that is killed costs a client its connection; it tries until there is another one.
        "client_timeouts": {
            "job": "20 s",
            "flow": "20 s",
            "retry_limit": 1000,
            "retry_delay": "50 ms",
        },
        "log_level": "warn",
    }


def load(places: Places, seed: int) -> Config:
    """Both jobs on all servers, without an end."""
    application = {
        "processes": 4,
        "outstanding": 3,
        "size": "32 KiB",
        "read_percent": 50,
        "pattern": "random",
        "file_size": "1 MiB",
        "think": "20 ms",
    }
    return {
        "file_system": f"tcp-px://{places.address(PROXIES[0])}:{PROXY_PORT}/vpfs",
        "duration": "24 h",
        "warm_up": "1 s",
        "interval": "60 s",
        "verify": True,
        "seed": seed % (1 << 31) + 1,
        "applications": [{"name": job, "jobid": job, **application} for job in JOBS],
    }
