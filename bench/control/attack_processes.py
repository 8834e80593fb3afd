"""Runs attacks on a control port: each in a process without rights, until it is told to end."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import signal
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence

from bench.control.attacks import (
    ATTACKS,
    NOBODY,
    READER,
    STRANGERS,
    WRITER,
    WRITERS_ATTACKS,
    Attacker,
    Over,
)
from bench.control.client import Door
from lab.harness import LIBC, PR_SET_PDEATHSIG


def become_nobody() -> None:
    """A peer on the UNIX socket without root's rights.

    The socket's directory is the current one.
    """
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    # This process was to end with its parent, which is forgotten when rights change.
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def until_told() -> Iterator[None]:
    def end(*_: object) -> None:
        raise Over

    signal.signal(signal.SIGTERM, end)
    with contextlib.suppress(Over):
        yield


def say(line: str) -> None:
    """A whole line at once, as several processes share the output."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


def attack(name: str, attacker: Attacker) -> None:
    """One of them, in this process. Its last line is what it did, as JSON."""
    become_nobody()
    with until_told():
        say("ready")
        (ATTACKS | WRITERS_ATTACKS)[name](attacker)
    say(json.dumps({name: attacker.count}))


def run_all(names: Sequence[str], door: Door, contexts: Mapping[str, ssl.SSLContext]) -> int:
    """Until SIGTERM, or until one of them ends by itself."""
    running: dict[int, str] = {}
    for name in names:
        process = os.fork()
        if process == 0:
            attack(name, Attacker(door, contexts))
            os._exit(0)
        running[process] = name
    with until_told():
        process, _ = os.wait()
        print(f"{running.pop(process)} ended by itself", flush=True)
    for process in running:
        os.kill(process, signal.SIGTERM)
    for process in running:
        os.waitpid(process, 0)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="attack_main.py", description="Attacks a control port until SIGTERM."
    )
    parser.add_argument("names", nargs="+", choices=[*ATTACKS, *WRITERS_ATTACKS])
    parser.add_argument("--socket", required=True)
    parser.add_argument("--tcp", type=int, required=True)
    parser.add_argument("--certificates", type=pathlib.Path, required=True)
    options = parser.parse_args()
    # Attackers are other machines: what they compute must not take time from the programs under
    # attack.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    door = Door(options.socket, options.tcp, options.certificates)
    # The keys are for root's eyes only.
    return run_all(
        options.names, door, {who: door.context(who) for who in (READER, WRITER, *STRANGERS)}
    )
