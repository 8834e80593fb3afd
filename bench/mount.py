"""Programs that mount an OrangeFS, and directories that are left unmounted whatever happens."""
from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator, Sequence

from bench.harness import Problem, Program, Programs
from bench.mounted import why_not

UNMOUNT_PATIENCE = 10.0


def require_mounts() -> None:
    if why := why_not():
        raise Problem(f"this mounts file systems and runs fio: {why}")
    if os.geteuid() != 0:
        raise Problem("this must be root: it looks at the environment of other processes")


def is_mounted(place: pathlib.Path) -> bool:
    """Asks the kernel's list, not the file system, which might not answer."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return any(line.split()[4] == str(place) for line in lines)


@contextlib.contextmanager
def mounted(programs: Programs, name: str, command: Sequence[str], place: pathlib.Path) -> Iterator[Program]:
    """Runs a program that mounts at `place`, in the foreground, until the context is left."""
    place.mkdir(exist_ok=True)
    program = programs.start(name, *command)
    try:
        program.wait_until(lambda: is_mounted(place), "mounted")
        yield program
    finally:
        unmount(place)
        program.stop()
        if is_mounted(place):  # it did not unmount, and was killed
            unmount(place, "-z")


def unmount(place: pathlib.Path, *options: str) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(["fusermount3", "-u", *options, str(place)], capture_output=True, timeout=UNMOUNT_PATIENCE)


def vpfs_mount(source: str, place: pathlib.Path, options: Sequence[str] = ()) -> list[str]:
    extra = ["-o", ",".join(options)] if options else []
    return ["vpfs-mount", source, str(place), "-f", *extra]


def in_prefix(variable: str, program: str) -> str | None:
    """A program of others, where somebody has built it."""
    prefix = os.environ.get(variable)
    return shutil.which(program, path=f"{prefix}/bin:{prefix}/sbin") if prefix else None
