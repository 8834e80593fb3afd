"""An etcd of several members on loopback, with TLS, client certificates and passwords."""

from __future__ import annotations

import pathlib
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence

from lab.harness import ROOT, Problem, Program, Programs

PATIENCE = 30.0
USER, ROOT_PASSWORD, PASSWORD = "vpfs", "of-root", "of-vpfs"
SERVER, CLIENT = "etcd", "etcd-client"  # names of certificates


def missing() -> str:
    """Why there can be none; "": there can."""
    for name in ("etcd", "etcdctl", "openssl"):
        if shutil.which(name) is None:
            return f"there is no {name} command"
    return ""


def member_command(
    index: int, data: pathlib.Path, tls: pathlib.Path, urls: Sequence[tuple[str, str]]
) -> list[str]:
    """`urls`: those of all members, for clients and for each other."""
    client, peer = urls[index]
    files = {
        "cert-file": tls / f"{SERVER}.pem",
        "key-file": tls / f"{SERVER}.key",
        "trusted-ca-file": tls / "ca.pem",
    }
    return [
        "etcd",
        f"--name=m{index}",
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        "--initial-cluster=" + ",".join(f"m{each}={url}" for each, (_, url) in enumerate(urls)),
        "--client-cert-auth",
        "--peer-client-cert-auth",
        "--bcrypt-cost=4",  # a password costs some ms instead of a tenth of a second
        *(f"--{key}={path}" for key, path in files.items()),
        *(f"--peer-{key}={path}" for key, path in files.items()),
    ]


class Etcd:
    """`folder` below the work of the programs has certificates, and the password of USER."""

    def __init__(self, programs: Programs, members: int = 3) -> None:
        self._programs = programs
        self.folder = programs.work / "tls"
        self.make_certificates(f"{SERVER}=localhost,127.0.0.1")
        self.make_certificates("--nameless", CLIENT)
        self.password_file = programs.work / "etcd.password"
        self.password_file.write_text(PASSWORD + "\n")
        self._ports = [(programs.reserve_port(), programs.reserve_port()) for _ in range(members)]
        self.members: list[Program] = []
        self._runs = 0
        self._has_users = False
        for index in range(members):
            self.members.append(self._start(index))
        for index in range(members):
            self.await_member(index)

    def make_certificates(self, *words: str) -> None:
        options = [word for word in words if word.startswith("--")]
        names = [word for word in words if not word.startswith("--")]
        subprocess.run(
            [str(ROOT / "script/certificates"), *options, str(self.folder), *names],
            check=True,
            capture_output=True,
        )

    @property
    def endpoints(self) -> list[str]:
        return [f"https://127.0.0.1:{client}" for client, _ in self._ports]

    def _start(self, index: int) -> Program:
        self._runs += 1
        command = member_command(
            index,
            data=self._programs.work / f"etcd{index}",
            tls=self.folder,
            urls=[
                (f"https://127.0.0.1:{each}", f"https://127.0.0.1:{other}")
                for each, other in self._ports
            ],
        )
        return self._programs.start(f"etcd{index}-{self._runs}", *command)

    def ctl(self, *arguments: str, endpoints: Sequence[str] | None = None) -> str:
        """What etcdctl prints, as the administrator; an error is a Problem."""
        login = [f"--user=root:{ROOT_PASSWORD}"] if self._has_users else []
        command = [
            "etcdctl",
            "--endpoints=" + ",".join(endpoints or self.endpoints),
            f"--cacert={self.folder / 'ca.pem'}",
            f"--cert={self.folder / CLIENT}.pem",
            f"--key={self.folder / CLIENT}.key",
            "--command-timeout=5s",
            *login,
            *arguments,
        ]
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            env={"ETCDCTL_API": "3", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )
        if done.returncode != 0:
            raise Problem(f"etcdctl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def await_member(self, index: int) -> None:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self.ctl("endpoint", "health", endpoints=[self.endpoints[index]])
                return
            except Problem as problem:
                if time.monotonic() > until or not self.members[index].running():
                    raise Problem(f"{problem}\n{self.members[index].last_lines()}") from None
                time.sleep(0.1)

    def require_passwords(self) -> None:
        """From now on a user is needed: that of coordinators must be there already."""
        self.ctl("user", "add", f"root:{ROOT_PASSWORD}")
        self.ctl("user", "grant-role", "root", "root")
        self.ctl("auth", "enable")
        self._has_users = True

    def add_user(self, prefix: str) -> None:
        self.ctl("role", "add", USER)
        self.ctl("role", "grant-permission", USER, "--prefix=true", "readwrite", prefix)
        self.ctl("user", "add", f"{USER}:{PASSWORD}")
        self.ctl("user", "grant-role", USER, USER)
        self.require_passwords()

    def kill(self, index: int) -> None:
        self.members[index].signal(signal.SIGKILL)
        self.members[index].wait_until_ended()

    def restart(self, index: int) -> None:
        self.members[index] = self._start(index)
        self.await_member(index)

    def store(self, lease: str) -> dict[str, object]:
        """The mapping `store` of a coordinator."""
        return {
            "lease": lease,
            "etcd": {
                "endpoints": self.endpoints,
                "ca": str(self.folder / "ca.pem"),
                "certificate": str(self.folder / f"{CLIENT}.pem"),
                "key": str(self.folder / f"{CLIENT}.key"),
                "user": USER,
                "password_file": str(self.password_file),
            },
        }
