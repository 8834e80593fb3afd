"""A stand-in for systemd that starts a proxy anew after a crash, with what it has stored."""

from __future__ import annotations

import array
import fcntl
import os
import pathlib
import select
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable

PATIENCE = 20.0
ENDED = select.POLLHUP | select.POLLERR
FIRST = 3  # descriptor of what is kept


class Store:
    """The notify socket, and what systemd would keep.

    Descriptors have names. There is one of a file only, up to a number, until its connection ends.
    """

    def __init__(self, folder: pathlib.Path, most: int) -> None:
        self.path = folder / "notify"
        self.most = most
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.lock = threading.Lock()  # guards what follows
        self.kept: list[tuple[str, int]] = []
        self.main = 0
        self.refused = 0
        self.is_paused = False
        self.is_over = False
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def close(self) -> None:
        self.is_over = True
        self.thread.join()
        self.socket.close()
        for _, descriptor in self.kept:
            os.close(descriptor)

    def serve(self) -> None:
        while not self.is_over:
            poll = select.poll()
            if not self.is_paused:
                poll.register(self.socket, select.POLLIN)
            with self.lock:
                for _, descriptor in self.kept:
                    poll.register(descriptor, 0)
            ready = poll.poll(20)
            with self.lock:
                self.drop_ended({one for one, events in ready if events & ENDED})
                if any(descriptor == self.socket.fileno() for descriptor, _ in ready):
                    self.hear()

    def drop_ended(self, ended: set[int]) -> None:
        self.drop(lambda _, descriptor: descriptor in ended)

    def drop(self, is_dropped: Callable[[str, int], bool]) -> None:
        for name, descriptor in self.kept:
            if is_dropped(name, descriptor):
                os.close(descriptor)
        self.kept = [each for each in self.kept if not is_dropped(*each)]

    def hear(self) -> None:
        descriptors = array.array("i")
        text, ancillary, _, _ = self.socket.recvmsg(
            4096, socket.CMSG_SPACE(16 * descriptors.itemsize)
        )
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
        words = dict(line.split("=", 1) for line in text.decode().splitlines())
        if "MAINPID" in words:
            self.main = int(words["MAINPID"])
        if "FDSTOREREMOVE" in words:
            self.drop(lambda name, _: name == words["FDNAME"])
        for descriptor in descriptors:
            self.add(words["FDNAME"], descriptor)

    def add(self, name: str, descriptor: int) -> None:
        known = {os.fstat(each)[1:3] for _, each in self.kept}
        if os.fstat(descriptor)[1:3] in known:
            os.close(descriptor)
        elif len(self.kept) >= self.most:
            self.refused += 1
            os.close(descriptor)
        else:
            self.kept.insert(0, (name, descriptor))

    def count(self, prefix: str) -> int:
        with self.lock:
            return sum(name.startswith(prefix) for name, _ in self.kept)

    def start(self, command: list[object], **environment: str) -> subprocess.Popen[bytes]:
        """Starts a program as systemd does, with what is kept."""
        with self.lock:
            names = [name for name, _ in self.kept]
            kept = [descriptor for _, descriptor in self.kept]

            def place() -> None:
                # The descriptors must not be among those that are assigned.
                high = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, FIRST + len(kept)) for one in kept]
                for i, one in enumerate(high):
                    os.dup2(one, FIRST + i)

            full = dict(
                os.environ, NOTIFY_SOCKET=str(self.path), FDSTORE=str(self.most), **environment
            )
            if names:
                full.update(LISTEN_FDS=str(len(names)), LISTEN_FDNAMES=":".join(names))
            return subprocess.Popen(
                ["sh", "-c", 'LISTEN_PID=$$ exec "$0" "$@"', *map(str, command)],
                env=full,
                stdout=subprocess.DEVNULL,
                preexec_fn=place,  # noqa: PLW1509
                close_fds=False,
            )


def crash(process: subprocess.Popen[bytes], how: int = signal.SIGKILL) -> None:
    process.send_signal(how)
    process.wait(PATIENCE)


# The messages of the protocols that pass at once: a client's question, and the server's answer.
def orangefs_message(number: int, payload: bytes, mode: int = 1) -> bytes:
    return struct.pack("<IIQQ", 0xCABF, mode, number, len(payload)) + payload


def orangefs_request(number: int, payload: bytes) -> bytes:
    return orangefs_message(number, payload, mode=2)


def beegfs_message(number: int, payload: bytes, kind: int = 2021) -> bytes:
    return (
        struct.pack(
            "<IHBBQHHIQQ", 40 + len(payload), 0, 0, 0, 0x42474653 << 32, kind, 0, 0, number, 0
        )
        + payload
    )


# The header, a question, an answer, and the most that a question has behind its first 16 bytes.
PROTOCOLS = {
    "orangefs": (24, orangefs_request, orangefs_message, 16_000),
    "beegfs": (40, beegfs_message, beegfs_message, 1 << 24),
}


def receive(peer: socket.socket, size: int) -> bytes:
    """All of it, or less if the peer has ended."""
    data = bytearray()
    while len(data) < size:
        some = peer.recv(size - len(data))
        if not some:
            break
        data += some
    return bytes(data)


class WrongBytes(Exception):
    """What must never be."""


class Script:
    """What a client and its server say: each knows every byte that comes.

    A question has the client's number behind the header. The server expects each to follow the one
    before.
    """

    def __init__(self, protocol: str) -> None:
        self.header, self.asking, self.answering, self.most = PROTOCOLS[protocol]

    @staticmethod
    def filling(client: int, number: int, salt: int, size: int) -> bytes:
        seed = struct.pack("<QQQ", client, number, salt)
        return (seed * (size // len(seed) + 1))[:size]

    def question(self, client: int, number: int, size: int) -> bytes:
        filling = self.filling(client, number, 1, self.asked(size))
        return self.asking(number, struct.pack("<QQ", client, size) + filling)

    def asked(self, size: int) -> int:
        """What the question for an answer of this size has itself."""
        return min(size, self.most)

    def answer(self, client: int, number: int, size: int) -> bytes:
        return self.answering(number, self.filling(client, number, 2, size))


class Upstream:
    """A data server that answers each question once, and finds each wrong byte."""

    def __init__(self, protocol: str) -> None:
        self.script = Script(protocol)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.problems: list[str] = []
        self.served = 0
        self.accepted = 0
        self.stall = threading.Event()  # while it is set, answers wait
        threading.Thread(target=self.accept, daemon=True).start()

    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def accept(self) -> None:
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer: socket.socket) -> None:
        with peer:
            try:
                self.answer_all(peer)
            except OSError:
                pass  # a crash resets connections
            except WrongBytes as wrong:
                self.problems.append(str(wrong))

    def answer_all(self, peer: socket.socket) -> None:
        script, last = self.script, None
        while True:
            head = receive(peer, script.header + 16)
            if len(head) < script.header + 16:
                return  # it ended, in the middle of a message or not
            client, size = struct.unpack("<QQ", head[-16:])
            number = struct.unpack_from("<Q", head, 8 if script.header == 24 else 24)[0]
            if size > 1 << 24 or (last is not None and (client, number) != (last[0], last[1] + 1)):
                raise WrongBytes(
                    f"the server got question {number} of client {client} behind {last}"
                )
            body = receive(peer, script.asked(size))
            whole = script.question(client, number, size)
            if (head + body) != whole[: len(head) + len(body)]:
                raise WrongBytes(f"question {number} of client {client} is damaged")
            if len(body) < script.asked(size):
                return
            last = (client, number)
            while self.stall.is_set():
                time.sleep(0.005)
            peer.sendall(script.answer(client, number, size))
            self.served += 1


class Client:
    """Asks, and finds each wrong byte of the answers."""

    def __init__(self, protocol: str, port: int, client: int) -> None:
        self.script = Script(protocol)
        self.client = client
        self.number = 0
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)

    def ask(self, size: int) -> bool:
        """Whether the connection still serves. Raises WrongBytes."""
        self.number += 1
        answer = self.script.answer(self.client, self.number, size)
        try:
            self.socket.sendall(self.script.question(self.client, self.number, size))
            got = receive(self.socket, len(answer))
        except TimeoutError as late:
            raise WrongBytes(
                f"client {self.client} has no answer to question {self.number}"
            ) from late
        except OSError:
            return False
        if got != answer[: len(got)]:
            raise WrongBytes(f"answer {self.number} of client {self.client} is damaged")
        return len(got) == len(answer)

    def has_ended(self) -> bool:
        """Whether the proxy has closed it, within the time of the socket."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    def close(self) -> None:
        self.socket.close()
