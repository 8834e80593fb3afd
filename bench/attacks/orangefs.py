"""The messages of the OrangeFS protocol that attackers send; docs/wire-orangefs.md has the facts.

Every function returns a whole message as bytes, so that a message sent many times is encoded once.
"""

from __future__ import annotations

import socket
import struct

UNEXPECTED, EAGER, RENDEZVOUS = 2, 4, 8
HEADER = struct.Struct("<IIQQ")  # magic, mode, tag, payload size
MAGIC = 51903
VERSION, LITTLE_ENDIAN = 7000, 2
MOST_EAGER = 16384
IO, GETCONFIG, SMALL_IO = 3, 13, 33
READ, WRITE = 1, 2
FS_ID = 1234  # of the servers of bench.file_systems
ISSUER = b"S:s0"
METAFILE = 7
# The embedded server accepts any datafile handle in its range. These are below the handles that it
# gives to files.
FIRST_DATAFILE = (1 << 62) + 1000
ALL_OPERATIONS = 0xFFFFFFFF
FAR_FUTURE = (1 << 63) - 1
MOST_OF_FILE = 1 << 60  # the limit of the embedded server; a pvfs2-server accepts 2^63 - 1
TAG_OFFSET = 8


def padded(payload: bytes) -> bytes:
    """Pads to a multiple of 8."""
    return payload + bytes(-len(payload) % 8)


def text(value: bytes) -> bytes:
    return padded(struct.pack("<I", len(value)) + value + b"\0")


def capability(handles: list[int]) -> bytes:
    """A capability that allows everything on a metafile and its datafiles.

    It begins at a multiple of 8.
    """
    signed = padded(text(ISSUER) + struct.pack("<i4xI", FS_ID, 0))
    return padded(
        signed
        + struct.pack(f"<QII{len(handles)}Q", FAR_FUTURE, ALL_OPERATIONS, len(handles), *handles)
    )


NO_CAPABILITY = padded(
    padded(text(b"") + struct.pack("<i4xI", 0, 0)) + struct.pack("<QII", 0, 0, 0)
)


def hints(metafile: int | None = METAFILE, jobid: bytes | None = None) -> bytes:
    known = struct.pack("<IQ", 3, metafile) if metafile is not None else b""
    named = struct.pack("<I", 0) + text(b"jobid") + text(jobid) if jobid is not None else b""
    return struct.pack("<I", (metafile is not None) + (jobid is not None)) + known + named


def simple_stripe(strip_size: int = 65536) -> bytes:
    """It begins and ends at a multiple of 8."""
    return text(b"simple_stripe") + struct.pack("<q", strip_size)


# One byte, as often as the aggregate size says: offset, num_ereqs, num_blocks, stride, ub, lb,
# aggregate_size, num_contig_chunks, depth, num_nested_req, committed, refcount, pad, ereq, sreq.
CONTIGUOUS = struct.pack("<i4x", 0) + struct.pack(
    "<qiiqqqqiiiii4xii", 0, 1, 0, 1, 1, 0, 1, 1, 1, 0, -1, -1, -1, -1
)


def message(tag: int, payload: bytes, mode: int = UNEXPECTED) -> bytes:
    return HEADER.pack(MAGIC, mode, tag, len(payload)) + payload


def request(tag: int, operation: int, head: bytes, body: bytes = b"") -> bytes:
    return message(tag, struct.pack("<IIi4x", VERSION, LITTLE_ENDIAN, operation) + head + body)


def _file_io(
    tag: int,
    operation: int,
    datafile: int,
    kind: bytes,
    tail: bytes,
    jobid: bytes | None,
    extent: tuple[int, int],
) -> bytes:
    # The part before the distribution is padded relative to the start of the payload.
    head = capability([METAFILE, datafile]) + hints(METAFILE, jobid)
    before = head + struct.pack("<Qi", datafile, FS_ID) + kind + struct.pack("<II", 0, 1)
    offset, size = extent
    # After the distribution, the payload is padded to a multiple of 8.
    striped = padded(before + simple_stripe())
    return request(tag, operation, striped, CONTIGUOUS + struct.pack("<qq", offset, size) + tail)


def io(
    tag: int, kind: int, datafile: int, size: int, jobid: bytes | None = None, offset: int = 0
) -> bytes:
    """An I/O whose data are sent as a flow."""
    return _file_io(tag, IO, datafile, struct.pack("<4xii", kind, 3), b"", jobid, (offset, size))


def small_read(
    tag: int, datafile: int, size: int, jobid: bytes | None = None, offset: int = 0
) -> bytes:
    return _file_io(
        tag,
        SMALL_IO,
        datafile,
        struct.pack("<i", READ),
        struct.pack("<q4x", 0),
        jobid,
        (offset, size),
    )


def small_write(
    tag: int, datafile: int, data: bytes, jobid: bytes | None = None, offset: int = 0
) -> bytes:
    return _file_io(
        tag,
        SMALL_IO,
        datafile,
        struct.pack("<i", WRITE),
        struct.pack("<q4x", len(data)) + data,
        jobid,
        (offset, len(data)),
    )


def getconfig(tag: int) -> bytes:
    return request(tag, GETCONFIG, NO_CAPABILITY + hints(None))


def data(tag: int, content: bytes) -> bytes:
    """One message of a flow."""
    return message(tag, content, EAGER if len(content) <= MOST_EAGER else RENDEZVOUS)


class TaggedFlood:
    """The same request many times, each with another tag, as one block of bytes."""

    def __init__(self, one: bytes, tags: range) -> None:
        self._size, self.count = len(one), len(tags)
        self.bytes = bytearray(one * self.count)
        for byte in range(8):
            self._set_byte(byte, bytes(tag >> (8 * byte) & 255 for tag in tags))

    def next_round(self, number: int) -> None:
        """Changes the tags of all requests: bits 32 to 47 become the number of the round."""
        for byte in (4, 5):
            self._set_byte(byte, bytes([number >> (8 * (byte - 4)) & 255]) * self.count)

    def _set_byte(self, byte: int, values: bytes) -> None:
        self.bytes[TAG_OFFSET + byte :: self._size] = values


class Reader:
    """Receives messages from a connection, one after the other."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb", buffering=1 << 18)

    def next(self) -> tuple[int, bytes]:
        """Returns tag and payload. Raises ConnectionError at the end of the connection."""
        _, _, tag, size = HEADER.unpack(self._take(HEADER.size))
        return tag, self._take(size)

    def _take(self, size: int) -> bytes:
        content = self._file.read(size)
        if content is None or len(content) < size:
            raise ConnectionError("the connection has ended")
        return content
