"""Requests that cost the server more or less than the proxy assumes."""

from __future__ import annotations

import functools

from bench.attacks import beegfs, orangefs
from bench.attacks.attack import Attack, victim_mean
from bench.attacks.attacker import Attacker
from bench.attacks.scene import ATTACKER, Scene, Setting
from lab.file_systems import uid_of
from lab.harness import MIB

SHORT_READS = 8  # in flight
SHORT_FILE = 4096
ASKED = 10 * MIB  # as pvfs2-cp asks for, whatever the file's size
JOB = ATTACKER.encode()
NODE = 77
WINDOW = 64  # requests that an OrangeFS connection has in flight
SMALL_CONNECTIONS = 4
SMALL_READERS = 64  # connections of BeeGFS


def short_reads_orangefs(_: Scene, attacker: Attacker) -> None:
    connection = attacker.connect()
    reader = orangefs.Reader(connection)
    tags = range(1, SHORT_READS + 1)
    for tag in tags:
        connection.sendall(
            orangefs.small_write(tag, orangefs.FIRST_DATAFILE + tag, bytes(SHORT_FILE), JOB)
        )
        reader.next()
    reads = {
        tag: orangefs.io(tag, orangefs.READ, orangefs.FIRST_DATAFILE + tag, ASKED, JOB)
        for tag in tags
    }

    def work() -> None:
        connection.sendall(b"".join(reads.values()))
        while True:
            # The response precedes the data, which are one message.
            tag, payload = reader.next()
            if len(payload) == SHORT_FILE:
                connection.sendall(reads[tag])

    attacker.start(work)


def short_reads_beegfs(_: Scene, attacker: Attacker) -> None:
    def work(session: int) -> None:
        connection = attacker.connect()
        entry = b"%X-1" % session
        of_it: beegfs.FileOfNode = {
            "node": NODE,
            "user": uid_of(ATTACKER),
            "entry": entry,
            "session": session,
        }
        connection.sendall(
            beegfs.hello(NODE)
            + beegfs.file_io(beegfs.WRITE, SHORT_FILE, **of_it)
            + bytes(SHORT_FILE)
        )
        beegfs.receive_write(connection)
        read = beegfs.file_io(beegfs.READ, ASKED, **of_it)
        while True:
            connection.sendall(read)
            beegfs.receive_read(connection)

    for session in range(1, SHORT_READS + 1):
        attacker.start(functools.partial(work, session), again=True)


def one_byte_orangefs(_: Scene, attacker: Attacker) -> None:
    """Keeps some requests in flight, but never so many that the proxy refuses one."""

    def work() -> None:
        connection = attacker.connect()
        reader = orangefs.Reader(connection)
        connection.sendall(orangefs.small_write(1, orangefs.FIRST_DATAFILE, bytes(SHORT_FILE), JOB))
        reader.next()
        reads = orangefs.TaggedFlood(
            orangefs.small_read(0, orangefs.FIRST_DATAFILE, 1, JOB), range(1, WINDOW + 1)
        )
        for number in range(1, 1 << 30):
            reads.next_round(number)
            connection.sendall(reads.bytes)
            for _answer in range(WINDOW):
                reader.next()

    for _connection in range(SMALL_CONNECTIONS):
        attacker.start(work, again=True)


def one_byte_beegfs(_: Scene, attacker: Attacker) -> None:
    of_it: beegfs.FileOfNode = {"node": NODE, "user": uid_of(ATTACKER)}

    def work(first: bool) -> None:
        connection = attacker.connect()
        connection.sendall(beegfs.hello(NODE))
        if first:
            connection.sendall(
                beegfs.file_io(beegfs.WRITE, SHORT_FILE, **of_it) + bytes(SHORT_FILE)
            )
            beegfs.receive_write(connection)
        attacker.drain(connection)
        block = beegfs.file_io(beegfs.READ, 1, **of_it) * 256
        while True:
            connection.sendall(block)

    for index in range(SMALL_READERS):
        attacker.start(functools.partial(work, index == 0), again=True)


SHORT = Setting(depth_bytes="8 MiB", scheduler={"cost": {"per_request": "16 KiB"}})
# The attacker sends as many requests as it can, and the proxy sends none of them back.
MANY = Setting(limits={"max_held_per_client": "off"})
ATTACKS = [
    Attack("short reads", "orangefs", short_reads_orangefs, (victim_mean(0.95),), SHORT),
    Attack("short reads", "beegfs", short_reads_beegfs, (victim_mean(0.95),), SHORT),
    Attack("one-byte reads", "orangefs", one_byte_orangefs, (victim_mean(0.8),)),
    Attack("one-byte reads", "beegfs", one_byte_beegfs, (victim_mean(0.8),), MANY),
]
