"""The file systems of benchmarks: how their servers start, and how jobs are identified.

OrangeFS requests carry a job's hint, BeeGFS requests its uid.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Protocol

from lab.harness import Problem, Program, Programs

DIRECT = "direct"
NAME = "vpfs"
TARGET = 101  # of every BeeGFS storage server
OTHER_TARGETS = (102, 103, 104, 105)  # more targets of the same server
Device = Mapping[str, object]  # bandwidth, per_request, parallelism


class FileSystem(Protocol):
    protocol: str
    program: str  # of a data server
    most_servers: int

    def start_servers(
        self,
        programs: Programs,
        ports: Mapping[str, Sequence[int]],
        device: Device | None,
        prefix: str,
        settings: Mapping[str, object],
    ) -> list[Program]:
        """Starts one server for each port of DIRECT. The ports of other paths belong to fronts.

        `settings` are keys of the file system's section of the configuration, if it has one.
        """

    def address(self, path: str, port: int) -> str:
        """The address that a client mounts to use `path`. `port` is its first port."""

    def match(self, job: str) -> dict[str, object]:
        """What a proxy's rule matches to find the job's I/O."""

    def application_fields(self, job: str, outstanding: int) -> dict[str, object]:
        """Fields for vpfs-load that applications of this job need in addition."""


class Orangefs:
    """Embedded servers. Every path to them is a zone of one file system."""

    protocol = "orangefs"
    program = "vpfs-server"
    most_servers = 64

    def start_servers(
        self,
        programs: Programs,
        ports: Mapping[str, Sequence[int]],
        device: Device | None,
        prefix: str,
        settings: Mapping[str, object],
    ) -> list[Program]:
        count = len(ports[DIRECT])
        config = programs.work / f"{prefix}servers.yaml"
        config.write_text(json.dumps(self._config(count, ports, device, settings), indent=1) + "\n")
        return [
            programs.start(
                f"{prefix}server{index}",
                self.program,
                "--config",
                str(config),
                "--server",
                f"s{index}",
            )
            for index in range(count)
        ]

    def _config(
        self,
        count: int,
        ports: Mapping[str, Sequence[int]],
        device: Device | None,
        settings: Mapping[str, object],
    ) -> dict[str, object]:
        config: dict[str, object] = {
            "file_system": {"name": NAME, "id": 1234} | dict(settings),
            "servers": [
                {
                    "alias": f"s{index}",
                    "addresses": [
                        f"{self._scheme(path)}://127.0.0.1:{of_path[index]}"
                        for path, of_path in ports.items()
                    ],
                }
                for index in range(count)
            ],
            "storage": {"engine": "memory", "capacity": "8 GiB"},
            "log_level": "info",
        }
        if device:
            config["device"] = dict(device)
        return config

    @staticmethod
    def _scheme(path: str) -> str:
        return "tcp" if path == DIRECT else f"tcp-{path}"

    def address(self, path: str, port: int) -> str:
        return f"{self._scheme(path)}://127.0.0.1:{port}/{NAME}"

    def match(self, job: str) -> dict[str, object]:
        return {"hint": {"jobid": job}}

    def application_fields(self, job: str, outstanding: int) -> dict[str, object]:
        return {"connections": 1}


class Beegfs:
    """One storage server without the rest of BeeGFS. The load is on one of its targets."""

    protocol = "beegfs"
    program = "vpfs-bench-beegfs-storage"
    most_servers = 1

    def start_servers(
        self,
        programs: Programs,
        ports: Mapping[str, Sequence[int]],
        device: Device | None,
        prefix: str,
        settings: Mapping[str, object],
    ) -> list[Program]:
        if settings:
            raise Problem("the storage server of BeeGFS has no settings of a file system")
        options = [
            text
            for name, value in (device or {}).items()
            for text in (f"--{name.replace('_', '-')}", str(value))
        ]
        targets = ",".join(str(target) for target in (TARGET, *OTHER_TARGETS))
        return [
            programs.start(
                f"{prefix}server{index}",
                self.program,
                "--port",
                str(port),
                "--targets",
                targets,
                *options,
            )
            for index, port in enumerate(ports[DIRECT])
        ]

    def address(self, path: str, port: int) -> str:
        return f"beegfs://127.0.0.1:{port}/{TARGET}"

    def match(self, job: str) -> dict[str, object]:
        return {"uid": uid_of(job)}

    def application_fields(self, job: str, outstanding: int) -> dict[str, object]:
        # A connection carries one request at a time.
        return {"connections": outstanding, "uid": uid_of(job)}


def uid_of(job: str) -> int:
    """The same uid every time, and never that of a system user."""
    return 1000 + zlib.crc32(job.encode()) % 1_000_000


FILE_SYSTEMS: dict[str, FileSystem] = {one.protocol: one for one in (Orangefs(), Beegfs())}


def file_system_at(address: str) -> FileSystem:
    return FILE_SYSTEMS["beegfs" if address.startswith("beegfs://") else "orangefs"]
