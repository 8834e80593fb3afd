"""Passes connections on and counts their messages."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import socket
import struct
import threading

LENGTH = struct.Struct(">I")
ROOM = 1 << 18


@dataclasses.dataclass
class Tally:
    messages: int = 0
    bytes: int = 0

    def mean(self) -> float:
        return self.bytes / self.messages if self.messages else 0.0


class Frames:
    """Finds where the frames of a stream end."""

    def __init__(self) -> None:
        self._part = bytearray()

    def sizes(self, data: bytes) -> list[int]:
        """The frames that end in `data`, with their lengths."""
        self._part += data
        found, at = [], 0
        while len(self._part) - at >= LENGTH.size:
            size = LENGTH.size + LENGTH.unpack_from(self._part, at)[0]
            if len(self._part) - at < size:
                break
            found.append(size)
            at += size
        del self._part[:at]
        return found


class Tap:
    """Listens at a UNIX socket and passes each connection on to another one.

    Ends with this program.
    """

    def __init__(self, path: pathlib.Path, target: pathlib.Path) -> None:
        self.up, self.down = Tally(), Tally()  # from the side that dials, and to it
        self._target = target
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def clear(self) -> None:
        with self._lock:
            self.up.messages = self.up.bytes = self.down.messages = self.down.bytes = 0

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                below, _ = self._listener.accept()
            except OSError:
                return
            above = socket.socket(socket.AF_UNIX)
            above.connect(str(self._target))
            for source, sink, tally in ((below, above, self.up), (above, below, self.down)):
                threading.Thread(
                    target=self._pass_on, args=(source, sink, tally), daemon=True
                ).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, tally: Tally) -> None:
        frames = Frames()
        try:
            while data := source.recv(ROOM):
                sink.sendall(data)
                sizes = frames.sizes(data)
                with self._lock:
                    tally.messages += len(sizes)
                    tally.bytes += sum(sizes)
        except OSError:
            pass  # one side has ended
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
