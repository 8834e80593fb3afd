"""What one attacker has open: connections and threads, all of which end with it."""
from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

PATIENCE = 20.0


class Attacker:
    """Connects to one port of this host. An attack is over at stop(): whatever its threads do then fails."""

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
        """Ends at once, with an error, when the attack is over."""
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
        """Runs it in a thread until a connection fails; with `again` anew until the attack is over."""

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
        """Takes and drops whatever comes."""

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
                # Nothing of what is on its way matters any more.
                connection.close()
        for thread in self._threads:
            thread.join(PATIENCE)
