"""The BeeGFS messages that attackers send; docs/wire-beegfs.md has the facts.

Every function returns a whole message as bytes, so that a message sent many times is encoded once.
"""

from __future__ import annotations

import socket
import struct
from typing import Required, TypedDict

from lab.file_systems import TARGET

# Length, feature flags, compatibility flags, flags, prefix, type, target, user, sequence, sequence
# done.
HEADER = struct.Struct("<IHBBQHHIQQ")
PREFIX = 0x42474653 << 32
SET_CHANNEL_DIRECT, PEER_INFO = 4001, 4011
WRITE, WRITE_ANSWER, READ = 3009, 3010, 3019
CLIENT = 3  # a node type
ROOT = 0  # a user
HAS_ORIGIN = 1
ACCESS = {READ: 0x21, WRITE: 0x02}  # as captured
LONGEST = (1 << 63) - 1
ANSWER_SIZE = HEADER.size + 8


def aligned_text(value: bytes) -> bytes:
    whole = struct.pack("<I", len(value)) + value + b"\0"
    return whole + bytes(-len(whole) % 4)


def path_info(owner: int, directory: bytes) -> bytes:
    return struct.pack("<II", HAS_ORIGIN, owner) + aligned_text(directory)


def message(kind: int, body: bytes, target: int = 0, user: int = ROOT) -> bytes:
    return HEADER.pack(HEADER.size + len(body), 0, 0, 0, PREFIX, kind, target, user, 0, 0) + body


def hello(node: int) -> bytes:
    """What a client sends first, with its node number. There is no answer."""
    return introduction() + message(PEER_INFO, struct.pack("<II", CLIENT, node))


def introduction() -> bytes:
    """The same without a node number."""
    return message(SET_CHANNEL_DIRECT, struct.pack("<i", 0))


class FileOfNode(TypedDict, total=False):
    """Which file a node's I/O is on, and whose the I/O is: arguments of file_io()."""

    node: Required[int]
    user: Required[int]
    entry: bytes
    session: int


def file_io(
    kind: int,
    count: int,
    node: int,
    user: int,
    *,
    entry: bytes = b"A-1",
    session: int = 1,
    offset: int = 0,
    owner: int = 0,
    directory: bytes = b"root",
    target: int = TARGET,
    header_target: int | None = None,
) -> bytes:
    """A read, or a write that `count` bytes must follow.

    The server uses `target`; the header may name another.
    """
    body = (
        struct.pack("<qqI", offset, count, ACCESS[kind])
        + aligned_text(b"%X#" % session + entry)
        + struct.pack("<I", node)
        + path_info(owner, directory)
        + struct.pack("<H", target)
    )
    return message(kind, body, target if header_target is None else header_target, user)


def receive(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError("the connection has ended")
        parts += part
    return bytes(parts)


def receive_read(connection: socket.socket) -> int:
    """Receives the answer of a read. Returns the number of bytes, or a negated error."""
    total = 0
    while (word := struct.unpack("<q", receive(connection, 8))[0]) > 0:
        receive(connection, word)
        total += word
    return word or total


def receive_write(connection: socket.socket) -> int:
    """Receives the answer of a write. Returns the number of bytes written, or a negated error."""
    return struct.unpack("<q", receive(connection, ANSWER_SIZE)[HEADER.size :])[0]
