"""Many jobs that a limit always holds, so that their virtual PFSes change all the time."""

from __future__ import annotations

import socket
import threading

from bench.attacks import orangefs

SIZE = 4096
PATIENCE = 30.0


class LimitedJobs:
    """Each job has one small read under way and sends the next when that is answered.

    All share a connection to a proxy. A template with a limit on operations holds each of them
    nearly all the time, and the time for which it was held goes into every report.
    """

    def __init__(self, port: int, count: int) -> None:
        self._connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reads = [
            orangefs.small_read(number, orangefs.FIRST_DATAFILE, SIZE, b"%d" % number)
            for number in range(count)
        ]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.answered = 0

    def __enter__(self) -> LimitedJobs:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(PATIENCE)
        self._connection.close()

    def _run(self) -> None:
        try:
            self._connection.sendall(b"".join(self._reads))
            reader = orangefs.Reader(self._connection)
            while True:
                number, _ = reader.next()
                self.answered += 1
                self._connection.sendall(self._reads[number])
        except OSError:
            if not self._stopping.is_set():
                raise
