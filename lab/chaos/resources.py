"""What programs hold: memory, open files and threads, before the chaos and after it."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterable, Mapping

from lab.chaos.schedule import MOUNT
from lab.harness import Program

# What one program may have more than any of its kind had before: connections of others that have
# not ended yet, arenas and buffers that were used once.
MORE_FILES, MORE_THREADS = 10, 2
MOUNT_THREADS = 4  # of each of its two pools, which keep what they have started
MORE_MEMORY, MEMORY_FACTOR = 16.0, 1.5  # MiB


@dataclasses.dataclass(frozen=True)
class Held:
    memory: float  # MiB that no file backs
    files: int
    threads: int

    def text(self) -> str:
        return f"{self.memory:.0f} MiB, {self.files} files, {self.threads} threads"


def held_by(program: Program) -> Held:
    threads = len(list(pathlib.Path(f"/proc/{program.pid}/task").iterdir()))
    return Held(program.own_mib(), program.open_files(), threads)


def kind_of(name: str) -> str:
    """Coordinators, aggregators, proxies and mounts have each what others of them have."""
    return name.rstrip("0123456789")


def most_of(held: Mapping[str, Held]) -> dict[str, Held]:
    """The most that one of each kind holds."""
    most: dict[str, Held] = {}
    for name, each in held.items():
        before = most.get(kind_of(name), each)
        most[kind_of(name)] = Held(
            max(before.memory, each.memory),
            max(before.files, each.files),
            max(before.threads, each.threads),
        )
    return most


def growths(before: Mapping[str, Held], after: Mapping[str, Held]) -> Iterable[str]:
    """What did not come back, in words."""
    bounds = most_of(before)
    for name, each in after.items():
        bound = bounds[kind_of(name)]
        if each.files > bound.files + MORE_FILES:
            yield f"{name} has {each.files} open files, {bound.files} before"
        more = 2 * MOUNT_THREADS if name == MOUNT else MORE_THREADS
        if each.threads > bound.threads + more:
            yield f"{name} has {each.threads} threads, {bound.threads} before"
        if each.memory > bound.memory * MEMORY_FACTOR + MORE_MEMORY:
            yield f"{name} takes {each.memory:.0f} MiB, {bound.memory:.0f} before"
