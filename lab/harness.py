"""Programs, ports and measurements, for the demo, the benchmarks and checks of scripts.

All programs that a Programs object started are stopped by process id when its context is left in
any way. They also die if this program is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import pathlib
import platform
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent
MIB = 1 << 20
PR_SET_PDEATHSIG = 1
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
START_PATIENCE = 20.0
STOP_PATIENCE = 10.0
LIBC = ctypes.CDLL(None, use_errno=True)


class Problem(Exception):
    """An error that a person must fix: one clear message and exit code 1."""


class PortReservation:
    """A port of 127.0.0.1 that the kernel gives to no other program while this is open.

    It is bound but does not listen, so a server that sets SO_REUSEADDR (all of vpfs, and HAProxy)
    can listen on it meanwhile.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]

    def close(self) -> None:
        self._socket.close()


class Program:
    """One running program, with its output in a file."""

    def __init__(self, command: Sequence[str], log: pathlib.Path, cwd: pathlib.Path) -> None:
        self.name = log.stem
        self.log = log
        with log.open("wb") as out:
            try:
                self._process = subprocess.Popen(
                    command,
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    # The child only makes a system call before it becomes the program.
                    preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509
                )
            except OSError as error:
                raise Problem(f"{command[0]} cannot be started: {error.strerror}") from error
        self.pid = self._process.pid

    def running(self) -> bool:
        return self._process.poll() is None

    def exit_code(self) -> int | None:
        return self._process.poll()

    def last_lines(self, count: int = 5) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])

    def wait_until(
        self, ready: Callable[[], bool], what: str, patience: float = START_PATIENCE
    ) -> None:
        deadline = time.monotonic() + patience
        while not ready():
            if not self.running():
                raise Problem(
                    f"{self.name} ended with {self.exit_code()} instead of "
                    f"{what}:\n{self.last_lines()}"
                )
            if time.monotonic() > deadline:
                raise Problem(
                    f"{self.name} was not {what} within {patience:.0f} s:\n{self.last_lines()}"
                )
            time.sleep(0.02)

    def wait_for_line(self, text: str, patience: float = START_PATIENCE) -> None:
        self.wait_until(lambda: text in self.log.read_text(errors="replace"), text, patience)

    def wait_for_port(self, port: int) -> None:
        def accepts() -> bool:
            with contextlib.closing(socket.socket()) as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        self.wait_until(accepts, f"listening on port {port}")

    def cpu_seconds(self) -> float:
        """The user and system time of all its threads so far."""
        # The name in parentheses may contain spaces. utime and stime are the 12th and 13th field
        # after it.
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS

    def thread_cpu_seconds(self, thread: str) -> float:
        """The same of its threads with this name, to a nanosecond."""
        used = []
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):  # the thread has ended
                if (task / "comm").read_text().strip() == thread:
                    used.append(int((task / "schedstat").read_text().split()[0]))
        if not used:
            raise Problem(f"{self.name} has no thread {thread}")
        return sum(used) / 1e9

    def exact_cpu_seconds(self) -> float:
        """The time of all its threads that run now, to a nanosecond."""
        used = 0
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):  # the thread has ended
                used += int((task / "schedstat").read_text().split()[0])
        return used / 1e9

    def rss_mib(self) -> float:
        """Its resident memory."""
        return self._memory("VmRSS:")

    def own_mib(self) -> float:
        """Its resident memory that no file backs: what it has allocated and changed.

        A proxy that has started unmaps pages of its programs, which it maps again when it runs
        them, so its whole resident memory grows at first.
        """
        return self._memory("RssAnon:")

    def peak_rss_mib(self) -> float:
        """The largest resident memory since the start or the last reset_peak_rss()."""
        return self._memory("VmHWM:")

    def _memory(self, field: str) -> float:
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) / 1024
        raise Problem(f"{self.name}: the kernel does not report its memory")

    def pin(self, cpus: Collection[int]) -> None:
        """From now on it runs on these processors only, and so do the threads that it makes."""
        for _ in range(2):  # a thread may begin meanwhile
            for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
                with contextlib.suppress(ProcessLookupError):  # the thread has ended
                    os.sched_setaffinity(int(task.name), cpus)

    def preemptions(self) -> int:
        """How often its threads that run now had to leave a processor to another."""
        found = 0
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):  # the thread has ended
                text = (task / "status").read_text()
                found += int(text.rpartition("nonvoluntary_ctxt_switches:")[2].split()[0])
        return found

    def open_files(self) -> int:
        return len(list(pathlib.Path(f"/proc/{self.pid}/fd").iterdir()))

    def reset_peak_rss(self) -> None:
        pathlib.Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        """The exit code of a program that ends by itself, however long that takes."""
        return self._process.wait()

    def wait_until_ended(self) -> None:
        try:
            self._process.wait(STOP_PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise Problem(f"{self.name} did not end:\n{self.last_lines()}") from error

    def stop(self) -> None:
        if self.running():
            self._process.terminate()
            self._process.send_signal(signal.SIGCONT)  # in case that it was stopped
            try:
                self._process.wait(STOP_PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()


class Programs:
    """All programs of one run. Leaving the context stops them, in reverse order."""

    def __init__(self, binaries: pathlib.Path, work: pathlib.Path) -> None:
        self.binaries = binaries.resolve()
        self.work = work.resolve()
        self._exit = contextlib.ExitStack()
        work.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> Programs:
        return self

    def __exit__(self, *_: object) -> None:
        self._exit.close()

    def reserve_port(self) -> int:
        reservation = PortReservation()
        self._exit.callback(reservation.close)
        return reservation.port

    def start(self, name: str, *command: str) -> Program:
        """Starts a program: one of vpfs by its bare name, or any other one."""
        own = self.binaries / command[0]
        program = Program(
            [str(own) if own.exists() else command[0], *command[1:]],
            self.work / f"{name}.log",
            self.work,
        )
        self._exit.callback(program.stop)
        return program


@contextlib.contextmanager
def stops_cleanly() -> Iterator[None]:
    """Makes SIGTERM and SIGHUP end this program normally, so that all programs are stopped."""

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_main(main: Callable[[], int]) -> None:
    """Runs a script's main; a Problem or Ctrl-C becomes one line and an exit code."""
    try:
        with stops_cleanly():
            code = main()
    except Problem as problem:
        print(f"{pathlib.Path(sys.argv[0]).name}: {problem}", file=sys.stderr)
        code = 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)


def require_programs(binaries: pathlib.Path, names: Sequence[str]) -> None:
    missing = [name for name in names if not (binaries / name).exists()]
    if missing:
        raise Problem(f"not built: {', '.join(missing)} (looked in {binaries})")


@dataclasses.dataclass(frozen=True)
class ProcessorTimes:
    """Seconds of all processors since the machine began."""

    busy: float
    idle: float
    stolen: float  # by the host of a virtual machine

    def since(self, before: ProcessorTimes) -> ProcessorTimes:
        return ProcessorTimes(
            self.busy - before.busy, self.idle - before.idle, self.stolen - before.stolen
        )


def processor_times() -> ProcessorTimes:
    first = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0]
    fields = [int(field) / CLOCK_TICKS for field in first.split()[1:9]]
    idle, stolen = fields[3] + fields[4], fields[7]
    return ProcessorTimes(sum(fields) - idle - stolen, idle, stolen)


def busy_share(seconds: float = 1.0) -> float:
    """The part of all processors that other programs use now, 0 to 1."""
    before = processor_times()
    time.sleep(seconds)
    passed = processor_times().since(before)
    used = passed.busy + passed.stolen
    return used / (used + passed.idle) if used + passed.idle else 0.0


def machine_settings() -> dict[str, object]:
    """What a reader needs to know about the machine of a measurement."""
    control = pathlib.Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    model = [
        line.partition(":")[2].strip()
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "kernel": platform.release(),
        "processors": os.cpu_count(),
        "processor": model[0] if model else platform.machine(),
        "congestion_control": control,
        "pinning": "none",
    }


class Ticker(threading.Thread):
    """Calls `tick` every `interval` seconds until stopped."""

    def __init__(self, interval: float, tick: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._interval, self._tick, self._done = interval, tick, threading.Event()

    def run(self) -> None:
        while not self._done.wait(self._interval):
            self._tick()

    def stop(self) -> None:
        self._done.set()
        self.join()


def median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else float("nan")


def geometric_mean(values: Sequence[float]) -> float:
    return statistics.geometric_mean(values) if values else float("nan")
