"""Clients of a control port, over its UNIX socket or TLS."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import socket
import ssl
import time
from collections.abc import Mapping

from bench.control import messages
from lab.harness import Problem, Ticker, median
from lab.report import Json

VERSION = 1
PATIENCE = 20.0
PROBE_INTERVAL = 0.25
MOST_ANSWER = 64 << 20


@dataclasses.dataclass(frozen=True)
class Door:
    """The two ways into a control port.

    `certificates` is a directory that script/certificates made.
    """

    unix: str  # the path of the socket
    tcp: int
    certificates: pathlib.Path

    def over_unix(self, patience: float = PATIENCE) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(patience)
        try:
            connection.connect(self.unix)
        except OSError:
            connection.close()
            raise
        return connection

    def over_tcp(self, patience: float = PATIENCE) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.tcp), timeout=patience)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def context(self, who: str) -> ssl.SSLContext:
        """For a client with the certificate of that name. "" has none."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.certificates / "ca.pem")
        if who:
            context.load_cert_chain(
                self.certificates / f"{who}.pem", self.certificates / f"{who}.key"
            )
        return context

    def over_tls(self, context: ssl.SSLContext, patience: float = PATIENCE) -> ssl.SSLSocket:
        plain = self.over_tcp(patience)
        try:
            return context.wrap_socket(plain, server_hostname="127.0.0.1")
        except (OSError, ValueError):
            plain.close()
            raise


def hello(role: str = "ADMINISTRATOR") -> bytes:
    return messages.frame(
        {"id": 1, "hello": {"version": VERSION, "least": VERSION, "role": role, "name": "bench"}}
    )


class Client:
    """Asks one thing at a time. Owns its connection."""

    def __init__(self, connection: socket.socket, role: str = "ADMINISTRATOR") -> None:
        self._connection = connection
        self._last = 0
        self.hello = self.ask(
            {"hello": {"version": VERSION, "least": VERSION, "role": role, "name": "bench"}}
        )["hello"]

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, body: Mapping[str, object]) -> Json:
        """The answer's Envelope. An Error in it is a Problem."""
        self._last += 1
        self._connection.sendall(messages.frame({"id": self._last, **body}))
        while True:
            answer = messages.decode("Envelope", self._receive())
            if "error" in answer:
                raise Problem(f"the control port refuses: {answer['error'].get('text')}")
            if answer.get("id") == self._last:
                return answer

    def _receive(self) -> bytes:
        (size,) = messages.LENGTH.unpack(self._take(messages.LENGTH.size))
        if size > MOST_ANSWER:
            raise messages.Malformed(f"a frame of {size} bytes")
        return self._take(size)

    def _take(self, size: int) -> bytes:
        content = bytearray()
        while len(content) < size:
            part = self._connection.recv(size - len(content))
            if not part:
                raise ConnectionError("the control port has closed the connection")
            content += part
        return bytes(content)


class Probe:
    """A good client: connects now and then and asks for the statistics, by both ways in turn."""

    def __init__(self, door: Door, who: str) -> None:
        self._door = door
        self._context = door.context(who)
        self._ticker = Ticker(PROBE_INTERVAL, self._ask)
        self._seconds: list[float] = []
        self._failures: list[str] = []

    def start(self) -> None:
        self._ticker.start()

    def stop(self) -> None:
        self._ticker.stop()

    def _ask(self) -> None:
        begin = time.monotonic()
        try:
            by_tls = len(self._seconds) % 2 == 1
            connection = self._door.over_tls(self._context) if by_tls else self._door.over_unix()
            with contextlib.closing(connection), Client(connection) as client:
                client.ask({"stats": {}})
        except (OSError, Problem, messages.Malformed) as problem:
            self._failures.append(f"{type(problem).__name__}: {problem}")
        self._seconds.append(time.monotonic() - begin)

    def facts(self) -> dict[str, object]:
        return {
            "asked": len(self._seconds),
            "failed": len(self._failures),
            "failures": self._failures[:3],
            "answer_ms_p50": median(self._seconds) * 1000,
            "answer_ms_max": max(self._seconds, default=0.0) * 1000,
        }
