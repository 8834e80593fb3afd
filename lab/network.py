"""Hosts in network namespaces with a router between them, where packets are lost.

Each host is a namespace of its own, with one address. All packets between two hosts pass the
router, a namespace too: its nftables rules cut, thin out and slow down what they send each other.
The namespaces' names have the pid of the program that made them. Those of a program that was killed
are removed by the next one.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Sequence

from lab.harness import ROOT, Problem

PREFIX = "vpfs-lab-"
NAMESPACES = pathlib.Path("/run/netns")
FIRST = ipaddress.IPv4Address("10.78.0.0")
MOST_HOSTS = 64
# What a pair of hosts may be in. 1 Mb/s is policed in each direction: what is over it is lost.
RULES = """table ip faults {
  set cut { type ipv4_addr . ipv4_addr; }
  set refused { type ipv4_addr . ipv4_addr; }
  set lossy { type ipv4_addr . ipv4_addr; }
  set slow { type ipv4_addr . ipv4_addr; }
  chain forward {
    type filter hook forward priority 0; policy accept;
    ip saddr . ip daddr @cut drop
    ip saddr . ip daddr @refused meta l4proto tcp reject with tcp reset
    ip saddr . ip daddr @lossy numgen random mod 10 == 0 drop
    ip saddr . ip daddr @slow limit rate over 125 kbytes/second burst 16 kbytes drop
  }
}
"""
CUT, REFUSED, LOSSY, SLOW = "cut", "refused", "lossy", "slow"
Pair = tuple[str, str]


def why_not() -> str:
    """Why this machine cannot have them; empty if it can."""
    if os.geteuid() != 0:
        return "network namespaces take root"
    for program in ("ip", "ss", "nft", "nsenter"):
        if shutil.which(program) is None:
            return f"there is no {program} command"
    probe = f"{PREFIX}{os.getpid()}-probe"
    try:
        _run("ip", "netns", "add", probe)
    except Problem as problem:
        return f"this system does not allow network namespaces: {problem}"
    try:
        _run(*_within(probe), "nft", "-f", "-", text=RULES)
    except Problem as problem:
        return f"nftables does not work in a network namespace: {problem}"
    finally:
        _run("ip", "netns", "delete", probe)
    return ""


def _within(namespace: str) -> list[str]:
    return ["nsenter", f"--net={NAMESPACES / namespace}"]


def _run(*command: str, text: str = "") -> str:
    done = subprocess.run(command, check=False, capture_output=True, text=True, input=text)
    if done.returncode != 0:
        raise Problem(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def owner_of(name: str) -> int | None:
    """The pid in the name of something that a run made; None: it is of others."""
    number = name.removeprefix(PREFIX).partition("-")[0]
    return int(number) if name.startswith(PREFIX) and number.isdigit() else None


def is_left_behind(name: str) -> bool:
    pid = owner_of(name)
    return pid is not None and not pathlib.Path(f"/proc/{pid}").exists()


def sweep() -> list[str]:
    """Removes what killed runs left."""
    names = [path.name for path in NAMESPACES.glob(f"{PREFIX}*")] if NAMESPACES.is_dir() else []
    left = [name for name in names if is_left_behind(name)]
    for name in left:
        with contextlib.suppress(Problem):
            _run("ip", "netns", "delete", name)
    return left


class Network:
    """Made when its context is entered, removed when it is left."""

    def __init__(self, hosts: Sequence[str]) -> None:
        if len(hosts) > MOST_HOSTS:
            raise Problem(f"at most {MOST_HOSTS} hosts")
        self._numbers = {host: number for number, host in enumerate(hosts)}
        self._made: list[str] = []

    def __enter__(self) -> Network:
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def _namespace(self, host: str) -> str:
        return f"{PREFIX}{os.getpid()}-{host}"

    def _add(self, host: str) -> str:
        name = self._namespace(host)
        self._made.append(name)
        _run("ip", "netns", "add", name)
        return name

    def _make(self) -> None:
        router = self._add("router")
        _run(*_within(router), "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        _run(*_within(router), "ip", "link", "set", "lo", "up")
        for host, number in self._numbers.items():
            name = self._add(host)
            port, gateway = f"to-{number}", FIRST + 4 * number + 1
            inside = (
                f"link set lo up\naddr add {self.address(host)}/30 dev eth0\nlink set eth0 up\n"
            )
            link = f"link add {port} netns {router} type veth peer name eth0 netns {name}"
            _run("ip", *link.split())
            _run("ip", "-n", name, "-batch", "-", text=f"{inside}route add default via {gateway}\n")
            outside = f"addr add {gateway}/30 dev {port}\nlink set {port} up\n"
            _run("ip", "-n", router, "-batch", "-", text=outside)
        _run(*_within(router), "nft", "-f", "-", text=RULES)

    def _remove(self) -> None:
        for name in reversed(self._made):
            with contextlib.suppress(Problem):
                _run("ip", "netns", "delete", name)
        self._made.clear()

    def address(self, host: str) -> str:
        return str(FIRST + 4 * self._numbers[host] + 2)

    def within(self, host: str) -> list[str]:
        """Before a command, this runs it on that host."""
        return _within(self._namespace(host))

    def begin(self, kind: str, pair: Pair) -> None:
        self._change("add", kind, pair)
        if kind == REFUSED:
            self._provoke(*pair)

    def _provoke(self, one: str, other: str) -> None:
        """Connections that are idle end too."""
        listed = _run(*self.within(one), "ss", "-Htn", "dst", self.address(other))
        ends: list[str] = []
        for line in listed.splitlines():
            mine, theirs = line.split()[3:5]
            ends += [mine, theirs, theirs, mine]
        if ends:
            router = _within(self._namespace("router"))
            program = [sys.executable, "-B", "-m", "lab.chaos.provoke"]
            _run(*router, "env", f"PYTHONPATH={ROOT}", *program, *ends)

    def end(self, kind: str, pair: Pair) -> None:
        self._change("delete", kind, pair)

    def _change(self, verb: str, kind: str, pair: Pair) -> None:
        one, other = self.address(pair[0]), self.address(pair[1])
        both = f"{{ {one} . {other}, {other} . {one} }}"
        command = ["nft", verb, "element", "ip", "faults", kind, both]
        _run(*_within(self._namespace("router")), *command)
