"""Floods of requests: unscheduled ones, refused ones, and ones with useless names."""

from __future__ import annotations

import functools
import socket

from bench.attacks import beegfs, orangefs
from bench.attacks.attack import Attack, Facts, fact, resident, victim_every_second, victim_mean
from bench.attacks.attacker import Attacker
from bench.attacks.scene import ATTACKER, DEPTH, Scene, Setting
from lab.file_systems import uid_of

JOB = ATTACKER.encode()
NODE = 77
CONFIGS = 100_000
TAGS = 200_000
TAG_STEP = 1 << 20  # all tags have the same low bits
UNREAD = 5.0  # seconds without reading, so that answers pile up
WINDOW = 64
REFUSED = 4096  # requests in a block
HELD_LIMIT = 64
NAMES = 10_000  # the largest number of virtual PFSes that templates may make
NAME_SIZE = 15_400
NO_RULES_USER = 999  # no rule by uid matches, so the rule by directory is the first that does


def flood_for_ever(attacker: Attacker, one: bytes, count: int) -> None:
    """Repeats an OrangeFS request on one connection, and on a new one when that is closed."""
    flood = orangefs.TaggedFlood(one, range(1, count + 1))

    def work() -> None:
        connection = attacker.connect()
        attacker.drain(connection)
        for number in range(1, 1 << 30):
            flood.next_round(number)
            connection.sendall(flood.bytes)

    attacker.start(work, again=True)


def getconfigs(_: Scene, attacker: Attacker) -> None:
    flood_for_ever(attacker, orangefs.getconfig(0), CONFIGS)


def answer_all(port: int, blocks: list[bytearray], answers: int) -> None:
    """Sends each block when the previous one has been answered."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        attacker = Attacker(port)
        reader = orangefs.Reader(connection)
        for block in blocks:
            # Sent in a thread: the proxy may not take the whole block before answers are read.
            attacker.start(functools.partial(connection.sendall, block))
            for _ in range(answers // len(blocks)):
                reader.next()
        attacker.stop()


def config_cost(scene: Scene) -> Facts:
    """The proxy's processor time for GETCONFIGs that are sent all at once, and a few at a time."""

    def cost(window: int) -> float:
        blocks = [
            orangefs.TaggedFlood(orangefs.getconfig(0), range(first, first + window)).bytes
            for first in range(1, CONFIGS + 1, window)
        ]
        before = scene.proxy.cpu_seconds()
        answer_all(scene.port, blocks, len(blocks) * window)
        return scene.proxy.cpu_seconds() - before

    at_once, in_turn = cost(CONFIGS), cost(WINDOW)
    return {
        "getconfig_cpu_s": at_once,
        "getconfig_window_cpu_s": in_turn,
        "getconfig_cpu_ratio": at_once / in_turn,
    }


def colliding_tags(_: Scene, attacker: Attacker) -> None:
    flood = orangefs.TaggedFlood(
        orangefs.getconfig(0), range(TAG_STEP, (TAGS + 1) * TAG_STEP, TAG_STEP)
    )
    connection = attacker.connect()

    def read_late() -> None:
        attacker.pause(UNREAD)
        attacker.drain(connection)

    attacker.start(lambda: connection.sendall(flood.bytes))
    attacker.start(read_late)


def refused_orangefs(_: Scene, attacker: Attacker) -> None:
    flood_for_ever(attacker, orangefs.small_read(0, orangefs.FIRST_DATAFILE, 1, JOB), REFUSED)


def refused_beegfs(_: Scene, attacker: Attacker) -> None:
    """Uses more connections of one node than may wait. Requests on the others are sent back."""

    def work(session: int) -> None:
        connection = attacker.connect()
        connection.sendall(beegfs.hello(NODE))
        attacker.drain(connection)
        # Every request has another offset, since a repeated request is not sent back for ever.
        block = b"".join(
            beegfs.file_io(beegfs.READ, 1, NODE, uid_of(ATTACKER), session=session, offset=offset)
            for offset in range(REFUSED)
        )
        while True:
            connection.sendall(block)

    for session in range(DEPTH + 8):
        attacker.start(functools.partial(work, session), again=True)


def name(number: int) -> bytes:
    """A long name. Each unprintable byte would take six bytes in the status."""
    return b"%06d" % number + b"\x01" * (NAME_SIZE - 6)


def names_orangefs(_: Scene, attacker: Attacker) -> None:
    connection = attacker.connect()
    attacker.drain(connection)

    def work() -> None:
        for number in range(1, NAMES + 1):
            connection.sendall(
                orangefs.small_read(number, orangefs.FIRST_DATAFILE, 1, name(number))
            )

    attacker.start(work)


def names_beegfs(_: Scene, attacker: Attacker) -> None:
    def work(first: int) -> None:
        connection = attacker.connect()
        connection.sendall(beegfs.hello(NODE))
        attacker.drain(connection)
        for number in range(first, NAMES + 1, DEPTH):
            connection.sendall(
                beegfs.file_io(beegfs.READ, 1, NODE, NO_RULES_USER, directory=name(number))
            )

    for first in range(1, DEPTH + 1):
        attacker.start(functools.partial(work, first))


# Requests that are not scheduled always take processor time of the server and the proxy.
UNSCHEDULED = (victim_every_second(0.5),)
# Each read costs what the device needs for it, since these attacks are not about wrong costs.
FAIR = {"cost": {"per_request": "16 KiB"}}
REFUSING = {
    "orangefs": Setting(FAIR, {"held_requests": HELD_LIMIT}),
    "beegfs": Setting(FAIR, {"max_held_per_client": DEPTH}),
}
NAMED = {
    "orangefs": Setting(templates={"job-{jobid}": {"hint": {"jobid": "*"}}}),
    "beegfs": Setting(templates={"dir-{dir}": {"dir": "*"}}),
}
KNOWN_NAMES = (resident(100), fact("status_mib", "the status file", 16, " MiB"))
ATTACKS = [
    Attack(
        "GETCONFIG flood",
        "orangefs",
        getconfigs,
        (*UNSCHEDULED, fact("getconfig_cpu_ratio", "CPU of 100,000 at once / 64 at a time", 2)),
        after=config_cost,
    ),
    Attack("tag flood", "orangefs", colliding_tags, UNSCHEDULED, quick_seconds=12),
    Attack(
        "refused reads", "orangefs", refused_orangefs, (victim_mean(0.9),), REFUSING["orangefs"]
    ),
    Attack("refused reads", "beegfs", refused_beegfs, (victim_mean(0.9),), REFUSING["beegfs"]),
    Attack(
        "long names", "orangefs", names_orangefs, KNOWN_NAMES, NAMED["orangefs"], quick_seconds=10
    ),
    Attack("long names", "beegfs", names_beegfs, KNOWN_NAMES, NAMED["beegfs"], quick_seconds=10),
]
