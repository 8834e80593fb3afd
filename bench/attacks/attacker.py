"""The connections and threads of an attacker. All of them end with it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

PATIENCE = 20.0


class Attacker:
    """Connects to one port of this host.

    stop() ends the attack: after it, calls of its threads fail.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._at_stop: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    def pause(self, seconds: float) -> None:
        """Sleeps. Raises an error as soon as the attack is over."""
        if self._stopped.wait(seconds):
            raise ConnectionError("the attack is over")

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE)
        connection.settimeout(None)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._sockets.append(connection)
        if self.stopped:
            connection.close()
            raise ConnectionError("the attack is over")
        return connection

    def start(self, work: Callable[[], None], again: bool = False) -> None:
        """Runs `work` in a thread until a connection fails.

        With `again`, repeats it until the attack is over.
        """

        def run() -> None:
            while not self.stopped:
                with contextlib.suppress(OSError):
                    work()
                if not again or self._stopped.wait(0.05):
                    return

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def drain(self, connection: socket.socket) -> None:
        """Receives and drops everything, in a thread."""

        def take() -> None:
            buffer = bytearray(1 << 20)
            while connection.recv_into(buffer):
                pass

        self.start(take)

    def at_stop(self, call: Callable[[], None]) -> None:
        self._at_stop.append(call)

    def stop(self) -> None:
        if self._stopped.is_set():
            return
        self._stopped.set()
        for call in self._at_stop:
            call()
        with self._lock:
            for connection in self._sockets:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                # Data under way do not matter any more.
                connection.close()
        for thread in self._threads:
            thread.join(PATIENCE)
