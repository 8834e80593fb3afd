"""As much of the control port's protocol as reads what limits a stage has in force.

The generated classes of protobuf are not needed for a handful of fields, and Debian's package of
them is slow where it is in Python.
"""

from __future__ import annotations

import dataclasses
import select
import socket
import struct
import time
from collections.abc import Iterator, Mapping

VERSION = 1
ADMINISTRATOR = 3
# Fields of control.proto.
_ID, _HELLO, _ERROR, _STATS, _STATS_REPLY = 1, 3, 4, 24, 25
_TERM, _SEQUENCE, _ALLOCATED, _VIRTUAL_PFS = 14, 15, 16, 9
_INCARNATION = 5
_ALLOCATED_RATE, _NAME = 17, 3
MOST_FRAME = 64 << 20

Value = int | bytes


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def nested(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def fields(message: bytes) -> Iterator[tuple[int, Value]]:
    """Each field of a message with its value; a ValueError where the message is damaged."""
    place, end = 0, len(message)

    def take_varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            if place >= end or shift > 63:
                raise ValueError("a message ends within a number")
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while place < end:
        key = take_varint()
        wire_type = key & 7
        if wire_type == 0:
            yield key >> 3, take_varint()
            continue
        sizes = {1: 8, 5: 4}
        size = take_varint() if wire_type == 2 else sizes.get(wire_type, -1)
        if size < 0 or size > end - place:
            raise ValueError("a message ends within a field")
        yield key >> 3, message[place : place + size]
        place += size


def frame(envelope: bytes) -> bytes:
    return struct.pack(">I", len(envelope)) + envelope


def hello() -> bytes:
    greeting = number(1, VERSION) + number(2, VERSION) + number(3, ADMINISTRATOR)
    return frame(number(_ID, 1) + nested(_HELLO, greeting))


def ask_stats(identity: int) -> bytes:
    return frame(number(_ID, identity) + nested(_STATS, b""))


@dataclasses.dataclass(frozen=True)
class Epoch:
    term: int = 0
    sequence: int = 0

    def text(self) -> str:
        return f"cycle {self.sequence} of term {self.term}"

    def __lt__(self, other: Epoch) -> bool:
        return (self.term, self.sequence) < (other.term, other.sequence)


@dataclasses.dataclass(frozen=True)
class Reading:
    """What a stage says of itself."""

    incarnation: int  # of its process
    epoch: Epoch  # of the last cycle that it applied
    led: bool  # whether the lease of that one is in force
    limits: Mapping[str, int]  # bytes each second, by virtual PFS
    asked_at: float
    answered_at: float

    @property
    def total(self) -> int:
        return sum(self.limits.values()) if self.led else 0


def decode_stats(message: bytes) -> tuple[Epoch, bool, dict[str, int]]:
    term = sequence = 0
    led = False
    limits: dict[str, int] = {}
    for field, value in fields(message):
        if field == _TERM and isinstance(value, int):
            term = value
        elif field == _SEQUENCE and isinstance(value, int):
            sequence = value
        elif field == _ALLOCATED:
            led = bool(value)
        elif field == _VIRTUAL_PFS and isinstance(value, bytes):
            name, rate = _limit_of(value)
            if rate is not None:
                limits[name] = rate
    return Epoch(term, sequence), led, limits


def _limit_of(message: bytes) -> tuple[str, int | None]:
    name, rate = "", None
    for field, value in fields(message):
        if field == _NAME and isinstance(value, bytes):
            name = value.decode(errors="replace")
        elif field == _ALLOCATED_RATE and isinstance(value, int):
            rate = value
    return name, rate


class StageConnection:
    """The control port of a stage at a UNIX socket, which no fault of the network reaches."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._input = b""
        self._asked: tuple[int, float] | None = None
        self._next = 2
        self._incarnation = 0

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._input, self._asked, self._incarnation = None, b"", None, 0

    def ask(self) -> bool:
        """Asks, unless the last question has no answer yet. False: it cannot be asked."""
        if self._asked is not None:
            return True
        try:
            if self._socket is None:
                opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                opened.setblocking(False)
                self._socket = opened
                opened.connect(self._path)
                opened.sendall(hello())
            self._asked = (self._next, time.monotonic())
            self._socket.sendall(ask_stats(self._next))
            self._next += 1
        except OSError:
            self.close()
            return False
        return True

    def descriptor(self) -> int | None:
        return self._socket.fileno() if self._socket is not None and self._asked else None

    def receive(self) -> Reading | None:
        """To be called when there is something to read."""
        if self._socket is None:
            return None
        try:
            got = self._socket.recv(1 << 18)
        except BlockingIOError:
            return None
        except OSError:
            got = b""
        if not got:
            self.close()
            return None
        self._input += got
        while len(self._input) >= 4:
            size = struct.unpack(">I", self._input[:4])[0]
            if size > MOST_FRAME:
                raise ValueError(f"{self._path}: a frame of {size} bytes")
            if len(self._input) < 4 + size:
                break
            envelope, self._input = self._input[4 : 4 + size], self._input[4 + size :]
            if (reading := self._take(envelope)) is not None:
                return reading
        return None

    def _take(self, envelope: bytes) -> Reading | None:
        found = dict(fields(envelope))
        greeting, stats = found.get(_HELLO), found.get(_STATS_REPLY)
        if isinstance(greeting, bytes):
            incarnation = dict(fields(greeting)).get(_INCARNATION, 0)
            self._incarnation = incarnation if isinstance(incarnation, int) else 0
        if not isinstance(stats, bytes) or self._asked is None or found.get(_ID) != self._asked[0]:
            return None
        asked_at, self._asked = self._asked[1], None
        epoch, led, limits = decode_stats(stats)
        return Reading(self._incarnation, epoch, led, limits, asked_at, time.monotonic())


def read_all(
    stages: Mapping[str, StageConnection], patience: float
) -> tuple[dict[str, Reading], float, float]:
    """One question to each; what was answered in time, and from when to when this took."""
    begun = time.monotonic()
    for connection in stages.values():
        connection.ask()
    readings: dict[str, Reading] = {}
    until = begun + patience
    while (left := until - time.monotonic()) > 0:
        waiting = {
            descriptor: name
            for name, connection in stages.items()
            if (descriptor := connection.descriptor()) is not None
        }
        if not waiting:
            break
        for descriptor in select.select(list(waiting), [], [], left)[0]:
            reading = stages[waiting[descriptor]].receive()
            if reading is not None and reading.asked_at >= begun:
                readings[waiting[descriptor]] = reading
    return readings, begun, time.monotonic()
