"""BeeGFS connections that hide or fake what their requests are for."""

from __future__ import annotations

from bench.attacks import beegfs
from bench.attacks.attack import Attack, victim_mean
from bench.attacks.attacker import Attacker
from bench.attacks.scene import ATTACKER, Scene, Setting
from lab.file_systems import OTHER_TARGETS, uid_of

NODE = 77
SIZE = 256 << 10
READERS = 64  # connections


def read_for_ever(
    attacker: Attacker, first_words: bytes, index: int, header_target: int | None = None
) -> None:
    """Sends one request at a time, as any client does."""
    of_it: beegfs.FileOfNode = {
        "node": NODE,
        "user": uid_of(ATTACKER),
        "entry": b"%X-1" % index,
        "session": index,
    }

    def work() -> None:
        connection = attacker.connect()
        connection.sendall(first_words + beegfs.file_io(beegfs.WRITE, SIZE, **of_it) + bytes(SIZE))
        beegfs.receive_write(connection)
        read = beegfs.file_io(beegfs.READ, SIZE, header_target=header_target, **of_it)
        while True:
            connection.sendall(read)
            beegfs.receive_read(connection)

    attacker.start(work, again=True)


def lie_about_target(_: Scene, attacker: Attacker) -> None:
    for index in range(READERS):
        read_for_ever(
            attacker, beegfs.hello(NODE), index, OTHER_TARGETS[index % len(OTHER_TARGETS)]
        )


def say_nothing(_: Scene, attacker: Attacker) -> None:
    for index in range(READERS):
        read_for_ever(attacker, beegfs.introduction(), index)


# Requests wait on all of its connections, as if they came from many nodes.
ATTACKS = [
    Attack(
        "header's target lies",
        "beegfs",
        lie_about_target,
        (victim_mean(0.9),),
        Setting(scheduler={"per_target": True}, limits={"max_held_per_client": "off"}),
    ),
    Attack(
        "no PeerInfo",
        "beegfs",
        say_nothing,
        (victim_mean(0.9),),
        Setting(limits={"max_held_per_client": "off"}),
    ),
]
