"""Writers that take slots and then send no data, or hardly any."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
import signal
import socket

from bench.attacks import beegfs, orangefs
from bench.attacks.attack import Attack, victim_every_second, victim_loses
from bench.attacks.attacker import Attacker
from bench.attacks.scene import ATTACKER, DEPTH, INTERVAL, Scene, Setting, application
from lab.file_systems import file_system_at, uid_of
from lab.harness import MIB
from lab.load import seconds as seconds_text

GRACE = 3.0  # from the stop until the victim must have its half again
KEPT = 0.9
# BeeGFS clients send the data of a write at once, OrangeFS clients after the server's response.
STOPPED_SIZE = {"orangefs": MIB, "beegfs": 32 * MIB}
DRIP = 5.0  # seconds between two bytes
DRIP_SIZE = 8 * MIB
STALLED_SIZE = 256 << 10
# Below and above the default of timeouts.client_stall, 2 s.
STALLS = (2.5, 1.0, 1.9, 4.0)
JOB = ATTACKER.encode()
NODE = 77


def stop_writer(scene: Scene, attacker: Attacker) -> None:
    """Runs an ordinary vpfs-load that writes, and stops it by SIGSTOP."""
    # More requests than the depth, and each too large for socket buffers.
    writer = dataclasses.replace(
        application(ATTACKER),
        size=STOPPED_SIZE[scene.protocol],
        outstanding=2 * DEPTH,
        read_percent=0,
        pattern="sequential",
        file_size=128 * MIB,
    )
    config = {
        "file_system": scene.address,
        "directory": "/attack",
        "duration": "1 h",
        "warm_up": "0 s",
        "interval": seconds_text(INTERVAL),
        "applications": [writer.config(file_system_at(scene.address))],
    }
    file = scene.programs.work / "writer.yaml"
    file.write_text(json.dumps(config, indent=1) + "\n")
    program = scene.programs.start("writer", "vpfs-load", "--config", str(file))
    program.wait_for_line(f"{ATTACKER} ")
    attacker.pause(1.0)
    os.kill(program.pid, signal.SIGSTOP)
    # A stopped process reacts to no other signal.
    attacker.at_stop(lambda: os.kill(program.pid, signal.SIGKILL))


def drip_orangefs(_: Scene, attacker: Attacker) -> None:
    connection = attacker.connect()
    attacker.drain(connection)
    connection.sendall(
        b"".join(
            orangefs.io(tag, orangefs.WRITE, orangefs.FIRST_DATAFILE, DRIP_SIZE, JOB)
            for tag in range(1, DEPTH + 1)
        )
    )

    def drip() -> None:
        while True:
            attacker.pause(DRIP)
            connection.sendall(b"".join(orangefs.data(tag, b"x") for tag in range(1, DEPTH + 1)))

    attacker.start(drip)


def begin_beegfs_write(attacker: Attacker, size: int, session: int) -> socket.socket:
    connection = attacker.connect()
    connection.sendall(
        beegfs.hello(NODE)
        + beegfs.file_io(beegfs.WRITE, size, NODE, uid_of(ATTACKER), session=session)
    )
    return connection


def drip_beegfs(_: Scene, attacker: Attacker) -> None:
    connections = [begin_beegfs_write(attacker, DRIP_SIZE, session) for session in range(DEPTH)]

    def drip() -> None:
        while True:
            attacker.pause(DRIP)
            for connection in connections:
                connection.sendall(b"x")

    attacker.start(drip)


def claim_orangefs(_: Scene, attacker: Attacker) -> None:
    connection = attacker.connect()
    attacker.drain(connection)
    connection.sendall(
        orangefs.io(1, orangefs.WRITE, orangefs.FIRST_DATAFILE, orangefs.MOST_OF_FILE, JOB)
    )


def claim_beegfs(_: Scene, attacker: Attacker) -> None:
    begin_beegfs_write(attacker, beegfs.LONGEST, 1)


def stall_orangefs(_: Scene, attacker: Attacker) -> None:
    """Starts as many writes as there are slots, pauses, sends all data, and repeats this.

    It uses one connection.
    """

    def work() -> None:
        connection = attacker.connect()
        reader = orangefs.Reader(connection)
        first = 1
        for stall in itertools.cycle(STALLS):
            tags = range(first, first + DEPTH)
            first += DEPTH
            connection.sendall(
                b"".join(
                    orangefs.io(tag, orangefs.WRITE, orangefs.FIRST_DATAFILE, STALLED_SIZE, JOB)
                    for tag in tags
                )
            )
            attacker.pause(stall)
            started: set[int] = set()
            ended = 0
            while ended < DEPTH:
                tag, _payload = reader.next()
                if tag in started:
                    ended += 1  # this is the completion
                else:
                    started.add(tag)
                    connection.sendall(orangefs.data(tag, bytes(STALLED_SIZE)))

    attacker.start(work, again=True)


def stall_beegfs(_: Scene, attacker: Attacker) -> None:
    def work(session: int) -> None:
        connection = attacker.connect()
        connection.sendall(beegfs.hello(NODE))
        for stall in itertools.cycle(STALLS):
            connection.sendall(
                beegfs.file_io(beegfs.WRITE, STALLED_SIZE, NODE, uid_of(ATTACKER), session=session)
            )
            attacker.pause(stall)
            connection.sendall(bytes(STALLED_SIZE))
            beegfs.receive_write(connection)

    for session in range(DEPTH):
        attacker.start(functools.partial(work, session), again=True)


HELD = (victim_every_second(KEPT),)
BOUNDED = Setting(depth_bytes="8 MiB")
# Longer than timeouts.service, so that the attack shows what renews a slot.
LONG = 75.0
ATTACKS = [
    Attack(
        "stopped writer", "orangefs", stop_writer, HELD, grace=GRACE, seconds=LONG, preparation=5.0
    ),
    Attack(
        "stopped writer", "beegfs", stop_writer, HELD, grace=GRACE, seconds=LONG, preparation=5.0
    ),
    Attack(
        "dripping writer",
        "orangefs",
        drip_orangefs,
        HELD,
        grace=GRACE,
        seconds=LONG,
        quick_seconds=10,
    ),
    Attack(
        "dripping writer", "beegfs", drip_beegfs, HELD, grace=GRACE, seconds=LONG, quick_seconds=10
    ),
    Attack("huge claim", "orangefs", claim_orangefs, HELD, BOUNDED, grace=GRACE),
    Attack("huge claim", "beegfs", claim_beegfs, HELD, BOUNDED, grace=GRACE),
    Attack(
        "repeated staller",
        "orangefs",
        stall_orangefs,
        (victim_loses(2.0),),
        seconds=60,
        quick_seconds=15,
    ),
    Attack(
        "repeated staller",
        "beegfs",
        stall_beegfs,
        (victim_loses(2.0),),
        seconds=60,
        quick_seconds=15,
    ),
]
