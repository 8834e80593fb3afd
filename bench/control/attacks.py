"""Attacks on a control port.

Each has a process of its own until it is told to end, and counts what it does.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import encodings.idna  # noqa: F401 - sockets need it later, without the rights to read it
import random
import resource
import select
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import BinaryIO

from bench.control import messages
from bench.control.client import Door, hello
from lab.report import Json

NOBODY = 65534
READER, WRITER, EXPIRED, FOREIGN = "reader", "writer", "expired", "foreign"  # names of certificates
STRANGERS = (EXPIRED, FOREIGN, "")
MANY = 1000  # connections
FEW = 24
LONGEST = 0xFFFFFFFF
READER_FRAME = 64 << 10  # what a port takes of peers that may change nothing
PACE = 0.002  # seconds between two connections of those that open many
PATIENCE = 2.0
STATS = {"stats": {"rules": True}}


class Over(Exception):
    """The attack was told to end."""


@dataclasses.dataclass
class Attacker:
    door: Door
    contexts: Mapping[str, ssl.SSLContext]  # by name of the certificate
    count: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    random: random.Random = dataclasses.field(default_factory=lambda: random.Random(1))

    def unix(self) -> socket.socket:
        self.count["connections"] += 1
        return self.door.over_unix(PATIENCE)

    def tcp(self) -> socket.socket:
        self.count["connections"] += 1
        return self.door.over_tcp(PATIENCE)

    def tls(self, who: str) -> ssl.SSLSocket:
        self.count["connections"] += 1
        return self.door.over_tls(self.contexts[who], PATIENCE)

    def again(self, work: Callable[[], None]) -> None:
        """For ever. A connection that the port closes is what most attacks aim at."""
        while True:
            try:
                work()
            except OSError as problem:
                self.count[type(problem).__name__] += 1
                time.sleep(PACE)

    def drain(self, connection: socket.socket) -> None:
        """Takes what comes until the other side closes, or says nothing for a while."""
        while part := connection.recv(1 << 16):
            self.count["bytes_received"] += len(part)

    def bytes(self, size: int) -> bytes:
        return self.random.randbytes(size)


def garbage(attacker: Attacker) -> None:
    """Random bytes, whose first four are a length now and then."""

    def work() -> None:
        with attacker.unix() as connection:
            size = attacker.random.randrange(1, 2048)
            length = messages.LENGTH.pack(size) if attacker.random.random() < 0.5 else b""
            connection.sendall(length + attacker.bytes(size))
            connection.shutdown(socket.SHUT_WR)
            attacker.drain(connection)

    attacker.again(work)


def huge_lengths(attacker: Attacker) -> None:
    """Lengths up to 4 GiB, before and after Hello, and as many bytes as the port takes."""

    def work() -> None:
        with attacker.unix() as connection:
            length = attacker.random.choice([LONGEST, LONGEST - 3, 1 << 31, READER_FRAME + 1])
            first = hello() if attacker.random.random() < 0.5 else b""
            connection.sendall(first + messages.LENGTH.pack(length))
            for _ in range(64):
                connection.sendall(bytes(16 << 10))
            attacker.drain(connection)

    attacker.again(work)


def half_messages(attacker: Attacker) -> None:
    """Connections that stop within a message, such as Hello; some are closed there."""
    kept: collections.deque[socket.socket] = collections.deque()
    whole = hello() + messages.frame({"id": 2, **STATS})

    def work() -> None:
        connection = attacker.unix()
        connection.sendall(whole[: attacker.random.randrange(1, len(whole))])
        kept.append(connection)
        if len(kept) > FEW:
            kept.popleft().close()
        time.sleep(PACE)

    attacker.again(work)


def mutated_messages(attacker: Attacker) -> None:
    """Sound frames of messages with a few wrong bytes."""
    bodies: list[Json] = [
        STATS,
        {"watch": {"period_us": 1}},
        {"why": {"who": "10.0.0.0/8"}},
        {"status": {}},
        {
            "rule": {
                "action": "START",
                "name": "x",
                "condition": "jobid={a b}",
                "words": ["weight=4"],
            }
        },
        {
            "job": {
                "action": "START",
                "jobid": "1",
                "nodes": 3,
                "uids": [1, 2],
                "clients": ["n[1-4]"],
            }
        },
        {
            "cycle": {
                "term": 1,
                "sequence": 1,
                "lease_us": 1,
                "allocations": [{"flow": 1, "bytes_per_second": 1}],
            }
        },
    ]
    seeds = [messages.encode("Envelope", {"id": 2, **body}) for body in bodies]

    def one() -> bytes:
        content = bytearray(attacker.random.choice(seeds))
        for _ in range(attacker.random.randrange(1, 4)):
            content[attacker.random.randrange(len(content))] = attacker.random.randrange(256)
        return messages.LENGTH.pack(len(content)) + content

    def work() -> None:
        with attacker.unix() as connection:
            connection.sendall(hello() + b"".join(one() for _ in range(16)))
            attacker.count["messages"] += 16
            connection.shutdown(socket.SHUT_WR)
            attacker.drain(connection)

    attacker.again(work)


def flood(attacker: Attacker, connection: socket.socket, block: bytes, read: bool = True) -> None:
    """Sends the block again and again, as fast as the port takes it."""
    connection.setblocking(False)
    rest = memoryview(block)
    while True:
        readable, writable, _ = select.select(
            [connection] if read else [], [connection], [], PATIENCE
        )
        if readable:
            part = connection.recv(1 << 18)
            if not part:
                return
            attacker.count["bytes_received"] += len(part)
        if writable:
            rest = rest[connection.send(rest) :]
            if not rest:
                rest = memoryview(block)
                attacker.count["blocks"] += 1
        if not readable and not writable:
            attacker.count["refused_more"] += 1


def unknown_messages(attacker: Attacker) -> None:
    """Sound messages with the numbers of later versions, and answers without a question."""
    numbered = messages.encode("Envelope", {"id": 2})
    unknown = [numbered + messages.tagged(number, b"x" * 40) for number in (34, 999, 1 << 28)]
    known = [
        messages.encode("Envelope", {"id": 3, "report": {"sequence": 1}}),
        messages.encode("Envelope", {"id": 4}),
    ]
    block = b"".join(messages.LENGTH.pack(len(one)) + one for one in (*unknown, *known)) * 40

    def work() -> None:
        with attacker.unix() as connection:
            connection.sendall(hello())
            flood(attacker, connection, block)

    attacker.again(work)


def valid_reads(attacker: Attacker) -> None:
    """Requests that a reader may make, one behind the other, without end."""
    block = b"".join(messages.frame({"id": number + 2, **STATS}) for number in range(100))

    def work() -> None:
        with attacker.unix() as connection:
            connection.sendall(hello())
            flood(attacker, connection, block)

    attacker.again(work)


def slow_readers(attacker: Attacker) -> None:
    """Peers that ask for much, watch at the shortest period, and read nothing."""
    watch = b"".join(
        messages.frame({"id": number + 2, "watch": {"period_us": 1, "rules": True}})
        for number in range(4)
    )
    block = b"".join(messages.frame({"id": number + 9, **STATS}) for number in range(1000))

    def work() -> None:
        opened: list[socket.socket] = []
        with contextlib.ExitStack() as stack:
            for _ in range(FEW):
                connection = stack.enter_context(attacker.unix())
                connection.sendall(hello() + watch)
                connection.setblocking(False)
                opened.append(connection)
            for _ in range(100):
                for connection in opened:
                    with contextlib.suppress(BlockingIOError):
                        attacker.count["bytes_sent"] += connection.send(block)
                time.sleep(0.1)

    attacker.again(work)


def say_nothing(attacker: Attacker, connect: Callable[[], socket.socket]) -> None:
    """Holds many silent connections open, and replaces each that the port closes."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    poll = select.poll()
    opened: dict[int, socket.socket] = {}

    def fill() -> None:
        while len(opened) < MANY:
            connection = connect()
            opened[connection.fileno()] = connection
            poll.register(connection, select.POLLIN | select.POLLHUP)
            attacker.count["most_at_once"] = max(attacker.count["most_at_once"], len(opened))
            drop(0)
            time.sleep(PACE)

    def drop(patience: float) -> None:
        for number, _ in poll.poll(patience * 1000):
            poll.unregister(number)
            opened.pop(number).close()
            attacker.count["closed"] += 1

    def work() -> None:
        fill()
        drop(0.1)

    attacker.again(work)


def silent_unix(attacker: Attacker) -> None:
    say_nothing(attacker, attacker.unix)


def silent_tcp(attacker: Attacker) -> None:
    say_nothing(attacker, attacker.tcp)


def tls_garbage(attacker: Attacker) -> None:
    """Bytes other than TLS, the first half of a handshake, and control messages without TLS."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        attacker.contexts[READER].wrap_bio(
            incoming, outgoing, server_hostname="127.0.0.1"
        ).do_handshake()
    client_hello = outgoing.read()

    def work() -> None:
        with attacker.tcp() as connection:
            choice = attacker.random.randrange(4)
            record = b"\x16\x03\x01" + messages.LENGTH.pack(LONGEST)[2:]
            connection.sendall(
                [attacker.bytes(512), record + attacker.bytes(4096), client_hello[:100], hello()][
                    choice
                ]
            )
            if choice != 2:
                connection.shutdown(socket.SHUT_WR)
                attacker.drain(connection)

    attacker.again(work)


def strangers(attacker: Attacker) -> None:
    """Certificates that have expired or that another authority signed, and none."""

    def one(who: str) -> None:
        with attacker.tls(who) as connection:
            # With TLS 1.3 a client learns only now that it is refused.
            connection.sendall(hello())
            if connection.recv(1 << 12):
                attacker.count["let_in"] += 1

    def work() -> None:
        for who in STRANGERS:
            try:
                one(who)
            except OSError:
                attacker.count["refused"] += 1

    attacker.again(work)


def tls_renewals(attacker: Attacker) -> None:
    """Handshakes with a good certificate, each for a single request."""

    def work() -> None:
        with attacker.tls(READER) as connection:
            connection.sendall(hello() + messages.frame({"id": 2, **STATS}))
            attacker.count["bytes_received"] += len(connection.recv(1 << 12))

    attacker.again(work)


def refused_rules(attacker: Attacker) -> None:
    """Changes by a peer that may only read, with texts as long as a frame may be and longer."""

    def rule(number: int, size: int) -> bytes:
        return messages.frame(
            {
                "id": number + 2,
                "rule": {
                    "action": "START",
                    "name": f"r{number}",
                    "words": ["weight=4"],
                    "condition": "jobid={" + "a " * (size // 2) + "}",
                },
            }
        )

    block = b"".join(rule(number, 20) for number in range(200)) + rule(200, READER_FRAME - 200)

    def work() -> None:
        with attacker.unix() as connection:
            connection.sendall(hello())
            flood(attacker, connection, block)

    def too_long() -> None:
        with attacker.unix() as connection:
            connection.sendall(hello() + rule(1, 8 << 20))
            attacker.drain(connection)

    def both() -> None:
        with contextlib.suppress(OSError):
            too_long()
        work()

    attacker.again(both)


def rule_starts(attacker: Attacker) -> None:
    """A peer that may change rules starts new ones without end, with short and long conditions."""
    window = 8

    def rule(number: int) -> bytes:
        size = 2000 if number % 100 == 0 else 1
        condition = "jobid={" + " ".join(f"none-{number}-{each}" for each in range(size)) + "}"
        return messages.frame(
            {
                "id": number + 2,
                "rule": {
                    "action": "START",
                    "name": f"flood-{number}",
                    "condition": condition,
                    "words": ["weight=1"],
                },
            }
        )

    def work() -> None:
        with attacker.tls(WRITER) as connection, connection.makefile("rb") as answers:
            connection.sendall(hello())
            _next_answer(answers)
            while True:
                first = attacker.count["tried"]
                connection.sendall(b"".join(rule(first + each) for each in range(window)))
                attacker.count["tried"] += window
                for _ in range(window):
                    attacker.count[
                        "refused" if "error" in _next_answer(answers) else "started"
                    ] += 1

    attacker.again(work)


def _next_answer(answers: BinaryIO) -> dict[str, object]:
    length = answers.read(messages.LENGTH.size)
    if len(length) < messages.LENGTH.size:
        raise ConnectionError("the control port has closed the connection")
    return messages.decode("Envelope", answers.read(messages.LENGTH.unpack(length)[0]))


# The attacks of peers that may not change anything, and those of one that may.
ATTACKS: dict[str, Callable[[Attacker], None]] = {
    one.__name__: one
    for one in (
        garbage,
        huge_lengths,
        half_messages,
        mutated_messages,
        unknown_messages,
        valid_reads,
        slow_readers,
        silent_unix,
        silent_tcp,
        tls_garbage,
        strangers,
        tls_renewals,
        refused_rules,
    )
}
WRITERS_ATTACKS = {one.__name__: one for one in (rule_starts,)}
