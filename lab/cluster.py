"""A file system on loopback: servers, and the fronts before them.

A front is a vpfs-proxy or an HAProxy before each server. Every front is a separate path to the same
file system, so paths can be measured in turn against the same server processes. Configurations are
written as JSON, which is also YAML.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import TypedDict

from lab.file_systems import DIRECT, FILE_SYSTEMS
from lab.harness import Problem, Program, Programs


class Depth(TypedDict):
    """What a proxy passes on before it has answers: fields of a Front."""

    depth_requests: int
    depth_bytes: str


@dataclasses.dataclass(frozen=True)
class Front:
    """One kind of proxy before every server.

    A vpfs-proxy has a virtual PFS and a rule for every job in `weights`, `shares` or `classes`,
    followed by those of `templates`, whose shares are in `shares` too.
    """

    name: str
    kind: str  # "proxy" or "haproxy"
    policy: str = "sfq"
    weights: Mapping[str, int] = dataclasses.field(default_factory=dict)  # by job
    shares: Mapping[str, Mapping[str, object]] = dataclasses.field(
        default_factory=dict
    )  # other fields of their shares
    classes: Mapping[str, str] = dataclasses.field(default_factory=dict)  # traffic classes by job
    templates: Mapping[str, Mapping[str, object]] = dataclasses.field(
        default_factory=dict
    )  # by name: what its rule matches
    scheduler: Mapping[str, object] = dataclasses.field(
        default_factory=dict
    )  # besides policy and depth
    proxy: Mapping[str, object] = dataclasses.field(
        default_factory=dict
    )  # besides addresses and files
    limits: Mapping[str, object] = dataclasses.field(default_factory=dict)
    # The control port. {index} in its texts is the number of the server.
    control: Mapping[str, object] = dataclasses.field(default_factory=dict)
    restart: Mapping[str, object] = dataclasses.field(default_factory=dict)
    pages: Sequence[int] = ()  # ports of their pages, by server; none: they have no page
    depth_requests: int = 16
    depth_bytes: str = "8 MiB"
    splice: bool = False
    protocol: str = "orangefs"  # set by the Cluster
    program: str = "vpfs-proxy"  # of a proxy; a path replaces the build's program

    def proxy_config(
        self, listen: int, upstream: int, status_file: str, index: int = 0
    ) -> dict[str, object]:
        named = dict.fromkeys([*self.weights, *self.shares, *self.classes])
        jobs = [name for name in named if name not in self.templates]
        return {
            "proxy": {
                "listen": f"127.0.0.1:{listen}",
                "upstream": f"127.0.0.1:{upstream}",
                "protocol": self.protocol,
                "status_file": status_file,
                "log_level": "info",
            }
            | dict(self.proxy),
            "limits": dict(self.limits),
            "scheduler": self.scheduler_config(),
            "virtual_pfs": {name: self.share(name) for name in [*jobs, *self.templates]},
            "rules": [self._rule(job) for job in jobs]
            + [
                {"match": dict(match), "virtual_pfs": name}
                for name, match in self.templates.items()
            ],
            **({"restart": dict(self.restart)} if self.restart else {}),
        } | ({"control": self._control(index)} if self.control else {})

    def _control(self, index: int) -> dict[str, object]:
        control = {
            key: value.replace("{index}", str(index)) if isinstance(value, str) else value
            for key, value in self.control.items()
        }
        return control | ({"http": f"127.0.0.1:{self.pages[index]}"} if self.pages else {})

    def scheduler_config(self) -> dict[str, object]:
        return {
            "policy": self.policy,
            "depth": {"requests": self.depth_requests, "bytes": self.depth_bytes},
        } | dict(self.scheduler)

    def share(self, job: str) -> dict[str, object]:
        weight = {"weight": self.weights[job]} if job in self.weights else {}
        return weight | dict(self.shares.get(job, {}))

    def _rule(self, job: str) -> dict[str, object]:
        rule: dict[str, object] = {
            "match": FILE_SYSTEMS[self.protocol].match(job),
            "virtual_pfs": job,
        }
        return rule | ({"class": self.classes[job]} if job in self.classes else {})

    def haproxy_config(self, listen: int, upstream: int) -> str:
        # With splice-auto alone, a heuristic decides, and it never splices this traffic. The other
        # two options make HAProxy splice whenever it can, which is best for large messages.
        options = ["splice-auto", "splice-request", "splice-response"] if self.splice else []
        splice = "".join(f"    option {option}\n" for option in options)
        return (
            "global\n    maxconn 4000\n"
            "defaults\n    mode tcp\n    timeout connect 5s\n    timeout client 1h\n    timeout "
            "server 1h\n"
            f"{splice}"
            f"listen front\n    bind 127.0.0.1:{listen}\n    server upstream 127.0.0.1:{upstream}\n"
        )


class Cluster:
    """Servers that run until their Programs are stopped, and fronts that start on demand."""

    def __init__(
        self,
        programs: Programs,
        servers: int,
        fronts: Sequence[Front] = (),
        device: Mapping[str, object] | None = None,
        prefix: str = "",
        protocol: str = "orangefs",
        file_system: Mapping[str, object]
        | None = None,  # keys of its section in the servers' configuration
    ) -> None:
        self._programs = programs
        self._prefix = prefix
        self._file_system = FILE_SYSTEMS[protocol]
        if servers > self._file_system.most_servers:
            raise Problem(
                f"with {protocol} there are at most {self._file_system.most_servers} servers"
            )
        self.fronts = {
            front.name: dataclasses.replace(front, protocol=protocol) for front in fronts
        }
        self._ports = {
            path: [programs.reserve_port() for _ in range(servers)]
            for path in (DIRECT, *self.fronts)
        }
        self.running: dict[str, list[Program]] = {}
        self.running[DIRECT] = self._file_system.start_servers(
            programs, self._ports, device, prefix, file_system or {}
        )
        for server in self.running[DIRECT]:
            server.wait_for_line("ready")

    def _write(self, name: str, text: str) -> pathlib.Path:
        file = self._programs.work / f"{self._prefix}{name}"
        file.write_text(text + "\n")
        return file

    def address(self, path: str) -> str:
        """The address that a client mounts to use `path`: DIRECT or the name of a front."""
        return self._file_system.address(path, self._ports[path][0])

    def ports(self, path: str) -> list[int]:
        return self._ports[path]

    def start(self, path: str) -> list[Program]:
        """Starts a front before every server."""
        front = self.fronts[path]
        pairs = list(zip(self._ports[path], self._ports[DIRECT]))
        make = {"proxy": self._start_proxy, "haproxy": self._start_haproxy}[front.kind]
        self.running[path] = [
            make(front, index, listen, upstream) for index, (listen, upstream) in enumerate(pairs)
        ]
        for program, (listen, _) in zip(self.running[path], pairs):
            # A connection that only probes the port harms neither kind of front.
            program.wait_for_port(listen)
        return self.running[path]

    def stop(self, path: str) -> None:
        for program in self.running.pop(path):
            program.stop()

    def status_file(self, path: str, index: int = 0) -> pathlib.Path:
        """The status file of a front's proxy before that server."""
        return self._programs.work / f"{self._prefix}{path}{index}.status.json"

    def status_files(self, path: str) -> list[pathlib.Path]:
        """Those of all proxies of a front that runs."""
        return [self.status_file(path, index) for index in range(len(self.running[path]))]

    def _start_proxy(self, front: Front, index: int, listen: int, upstream: int) -> Program:
        name = f"{self._prefix}{front.name}{index}"
        config = front.proxy_config(
            listen, upstream, str(self.status_file(front.name, index)), index
        )
        file = self._write(f"{front.name}{index}.yaml", json.dumps(config, indent=1))
        return self._programs.start(name, front.program, "--config", str(file))

    def _start_haproxy(self, front: Front, index: int, listen: int, upstream: int) -> Program:
        file = self._write(f"{front.name}{index}.cfg", front.haproxy_config(listen, upstream))
        return self._programs.start(
            f"{self._prefix}{front.name}{index}", haproxy_program(), "-db", "-f", str(file)
        )


def haproxy_program() -> str:
    for candidate in ("/usr/sbin/haproxy", "/usr/local/sbin/haproxy", "/usr/bin/haproxy"):
        if pathlib.Path(candidate).exists():
            return candidate
    raise Problem("haproxy is not installed: script/bootstrap does that")
