"""Verified load on a directory: blocks say what they are, and are read again.

A program of its own: `python3 -m lab.chaos.mount_load DIRECTORY SEED`. It prints a line each second
and one at the end, after SIGTERM. A wrong block or a failed call is a line, and the exit code 1.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import random
import signal
import struct
import sys
import time

FILES, BLOCKS, BLOCK = 4, 32, 32768
HEAD = struct.Struct("=QQQ")  # file, block, generation
PAUSE = 0.03


def content(file: int, block: int, generation: int) -> bytes:
    """A block that no other place and no other time has."""
    head = HEAD.pack(file, block, generation)
    return head + hashlib.shake_128(head).digest(BLOCK - HEAD.size)


class Load:
    def __init__(self, folder: pathlib.Path, seed: int) -> None:
        self._random = random.Random(seed)
        self._files = [
            os.open(folder / f"file{index}", os.O_RDWR | os.O_CREAT, 0o644)
            for index in range(FILES)
        ]
        self._generations: dict[tuple[int, int], int] = {}
        self.written = self.verified = self.wrong = self.failed = 0

    def step(self) -> None:
        place = self._random.randrange(FILES), self._random.randrange(BLOCKS)
        try:
            if place in self._generations and self._random.random() < 0.5:
                self._verify(place)
            else:
                self._write(place)
        except OSError as error:
            self.failed += 1
            print(f"failed: file {place[0]}, block {place[1]}: {error}", flush=True)

    def _write(self, place: tuple[int, int]) -> None:
        file, block = place
        generation = self._generations.get(place, 0) + 1
        done = os.pwrite(self._files[file], content(file, block, generation), block * BLOCK)
        if done != BLOCK:
            raise OSError(0, f"{done} bytes were written")
        self._generations[place] = generation
        self.written += 1

    def _verify(self, place: tuple[int, int]) -> None:
        file, block = place
        # Not from the kernel's cache of the mount.
        os.posix_fadvise(self._files[file], 0, 0, os.POSIX_FADV_DONTNEED)
        got = os.pread(self._files[file], BLOCK, block * BLOCK)
        self.verified += 1
        if got != content(file, block, self._generations[place]):
            self.wrong += 1
            head = HEAD.unpack(got[: HEAD.size]) if len(got) >= HEAD.size else "no head"
            print(
                f"wrong: file {file}, block {block}, generation {self._generations[place]}: "
                f"{len(got)} bytes, {head}",
                flush=True,
            )

    def line(self) -> str:
        return (
            f"written {self.written} verified {self.verified} "
            f"wrong {self.wrong} failed {self.failed}"
        )


def main() -> int:
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    load = Load(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
    next_line = time.monotonic() + 1
    while not ended:
        load.step()
        time.sleep(PAUSE)
        if time.monotonic() > next_line:
            next_line += 1
            print(load.line(), flush=True)
    print(f"ended {load.line()}", flush=True)
    return int(load.wrong + load.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
