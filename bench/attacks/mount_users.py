"""What the users of a mount do in an attack: one process of one user each.

An attacker prints READY once it has begun, and goes on until it is killed. A victim works for a
given time and prints its results as JSON. The user's number is set after the start, so the user
needs no right to read this program.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import pathlib
import sys
import threading
import time
from collections.abc import Callable

SMALL = bytes(4096)
LARGE = 1 << 20
STACK = 128 << 10  # of a thread
FOREVER = 3600.0
FILES = 64  # that a user works on in turn


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Runs `work` in so many threads, again and again."""
    threading.stack_size(STACK)

    def run(number: int) -> None:
        while True:
            try:
                work(number)
            except OSError:
                time.sleep(0.01)

    for number in range(count):
        threading.Thread(target=run, args=(number,), daemon=True).start()
    print("READY", flush=True)
    time.sleep(FOREVER)


def synchronize(directory: pathlib.Path, threads: int) -> None:
    """fio: each thread writes to a file of its own and waits until that is on the disk."""
    print("READY", flush=True)
    os.chdir(directory)
    os.execvp(
        "fio",
        [
            "fio",
            "--name=sync",
            f"--directory={directory}",
            "--rw=write",
            f"--bs={len(SMALL)}",
            "--size=1m",
            "--fsync=1",
            "--thread",
            f"--numjobs={threads}",
            "--time_based",
            f"--runtime={FOREVER:.0f}",
            "--ioengine=psync",
            "--fallocate=none",
            "--group_reporting",
        ],
    )


def open_leased(directory: pathlib.Path, threads: int) -> None:
    """Opens a file on which a program has a lease in the directory below."""
    in_threads(threads, lambda _: os.close(os.open(directory / "leased", os.O_RDONLY)))


def walk(directory: pathlib.Path, threads: int) -> None:
    """Asks for the attributes of many files."""
    names = [directory / "many" / name for name in os.listdir(directory / "many")]

    def work(number: int) -> None:
        for name in names[number::threads]:
            os.stat(name)

    in_threads(threads, work)


def write_direct(directory: pathlib.Path, threads: int) -> None:
    """Writes large requests, past the page cache."""

    def work(number: int) -> None:
        file = os.open(
            directory / f"large-{number}-{os.getpid()}",
            os.O_CREAT | os.O_WRONLY | os.O_DIRECT,
            0o600,
        )
        try:
            while True:
                os.pwrite(file, mmap.mmap(-1, LARGE), 0)
        finally:
            os.close(file)

    in_threads(threads, work)


def read_ahead(directory: pathlib.Path, threads: int) -> None:
    """Has the kernel read ahead, which makes asynchronous reads."""

    def work(number: int) -> None:
        file = os.open(directory / f"read-{number % FILES}", os.O_RDONLY)
        try:
            size = os.fstat(file).st_size
            start = size * (number // FILES) * FILES // max(FILES, threads)
            os.posix_fadvise(file, start, size // max(1, threads // FILES), os.POSIX_FADV_WILLNEED)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)

    in_threads(threads, work)


class Files:
    """A victim that makes small files, writes and removes them."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory, self._number = directory, 0

    def act(self) -> None:
        self._number += 1
        name = self._directory / f"small-{self._number % FILES}"
        file = os.open(name, os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            if os.write(file, SMALL) != len(SMALL):
                raise OSError(f"{name}: a short write")
        finally:
            os.close(file)
        os.unlink(name)


class Writer:
    """A victim that writes large requests past the page cache."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._file = os.open(
            directory / f"mine-{threading.get_native_id()}",
            os.O_CREAT | os.O_WRONLY | os.O_DIRECT,
            0o600,
        )
        self._data = mmap.mmap(-1, LARGE)

    def act(self) -> None:
        if os.pwrite(self._file, self._data, 0) != LARGE:
            raise OSError("a short write")


class Reader:
    """A victim that reads a file which is not in the page cache, in order."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._file = os.open(directory / "read-0", os.O_RDONLY)
        self._size, self._at = os.fstat(self._file).st_size, 0

    def act(self) -> None:
        if self._at == 0:
            os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_DONTNEED)
        if len(os.pread(self._file, LARGE, self._at)) != LARGE:
            raise OSError("a short read")
        self._at = (self._at + LARGE) % self._size


def suffer(
    victim: Callable[[pathlib.Path], Files | Writer | Reader],
    directory: pathlib.Path,
    threads: int,
    seconds: float,
    interval: float,
) -> None:
    """Prints how much the victim does in each interval. What took long counts where it ended."""
    bins = round(seconds / interval)
    counts = [[0] * bins for _ in range(threads)]
    failed = [0] * threads
    begin = time.monotonic()

    def run(thread: int) -> None:
        acts = victim(directory)
        while True:
            try:
                acts.act()
            except OSError as error:
                print(error, file=sys.stderr)
                failed[thread] += 1
            at = int((time.monotonic() - begin) / interval)
            if at >= bins:
                return
            counts[thread][at] += 1

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for each in running:
        each.start()
    for each in running:
        each.join()
    print(
        json.dumps({"counts": [sum(bin_) for bin_ in zip(*counts)], "failed": sum(failed)}),
        flush=True,
    )


ATTACKS = {
    each.__name__: each for each in (synchronize, open_leased, walk, write_direct, read_ahead)
}
VICTIMS = {each.__name__: each for each in (Files, Writer, Reader)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--uid", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--interval", type=float, default=0.25)
    parser.add_argument("act", choices=[*ATTACKS, *VICTIMS])
    parser.add_argument("directory", type=pathlib.Path)
    options = parser.parse_args()
    os.setgroups([])
    os.setresgid(options.uid, options.uid, options.uid)
    os.setresuid(options.uid, options.uid, options.uid)
    if options.act in ATTACKS:
        ATTACKS[options.act](options.directory, options.threads)
    else:
        suffer(
            VICTIMS[options.act],
            options.directory,
            options.threads,
            options.seconds,
            options.interval,
        )


if __name__ == "__main__":
    main()
