"""Makes the ends of idle connections say something, so that a rule that refuses packets sees them.

A program of its own, for the router: `python3 -m lab.chaos.provoke FROM:PORT TO:PORT ...`. It sends
each TO a segment that seems to be of FROM and is outside of the window. The answer to that is an
acknowledgement (RFC 9293), which passes the router.
"""

from __future__ import annotations

import random
import socket
import struct
import sys
from collections.abc import Sequence

Place = tuple[str, int]
ACK, WINDOW, TTL = 0x10, 1024, 64


def checksum(data: bytes) -> int:
    """That of RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def segment(source: Place, target: Place, number: int) -> bytes:
    """A packet without data, with a sequence number and an acknowledgement that are of nothing."""
    addresses = socket.inet_aton(source[0]) + socket.inet_aton(target[0])
    header = struct.Struct(">HHIIBBHHH")
    fields = (source[1], target[1], number, number, header.size // 4 << 4, ACK, WINDOW)
    bare = header.pack(*fields, 0, 0)
    pseudo = addresses + struct.pack(">BBH", 0, socket.IPPROTO_TCP, header.size)
    tcp = header.pack(*fields, checksum(pseudo + bare), 0)
    # The kernel fills in the length and the checksum of this header.
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 0, 0, 0, TTL, socket.IPPROTO_TCP, 0)
    return ip + addresses + tcp


def place(text: str) -> Place:
    address, _, port = text.rpartition(":")
    return address, int(port)


def main(words: Sequence[str]) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        for source, target in zip(words[::2], words[1::2]):
            to = place(target)
            packet = segment(place(source), to, random.randrange(1 << 32))
            raw.sendto(packet, (to[0], 0))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
