"""Programs that mount file systems, and directories that are unmounted again whatever happens."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence

from lab.harness import Problem, Program, Programs

UNMOUNT_PATIENCE = 10.0
MNT_DETACH = 2


def why_not() -> str:
    """Why this machine cannot show it; empty if it can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "there is no /dev/fuse that may be used"
    for program in ["fusermount3", "fio"]:
        if not shutil.which(program):
            return f"{program} is not installed"
    return why_mounting_is_refused()


def why_mounting_is_refused() -> str:
    """A container may have /dev/fuse and still refuse.

    For users fusermount3 decides, when the act begins.
    """
    if os.geteuid() != 0:
        return ""
    libc = ctypes.CDLL(None, use_errno=True)
    with tempfile.TemporaryDirectory() as place, open("/dev/fuse", "rb+", buffering=0) as device:
        options = f"fd={device.fileno()},rootmode=40000,user_id=0,group_id=0"
        if libc.mount(b"probe", place.encode(), b"fuse", 0, options.encode()) != 0:
            return f"nothing can be mounted here: {os.strerror(ctypes.get_errno())}"
        libc.umount2(place.encode(), MNT_DETACH)
    return ""


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
def mounted(
    programs: Programs, name: str, command: Sequence[str], place: pathlib.Path
) -> Iterator[Program]:
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


@contextlib.contextmanager
def directory_mounted(
    programs: Programs, name: str, config: str, below: pathlib.Path
) -> Iterator[tuple[Program, pathlib.Path]]:
    """Runs a vpfs-mount of the directory `below` until the context is left.

    It mounts in the programs' folder. `config` is its configuration. The context's value is the
    program and the place of the mount.
    """
    place = programs.work / name
    place.mkdir(exist_ok=True)  # a run that was killed may have left it
    (programs.work / f"{name}.yaml").write_text(config)
    program = programs.start(
        f"mount-{name}",
        "vpfs-mount",
        f"posix:{below}",
        str(place),
        "-f",
        "-o",
        f"config={programs.work / name}.yaml",
    )
    program.wait_for_line("ready at")
    try:
        yield program, place
    finally:
        program.stop()


def unmount(place: pathlib.Path, *options: str) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            ["fusermount3", "-u", *options, str(place)],
            check=False,
            capture_output=True,
            timeout=UNMOUNT_PATIENCE,
        )


def vpfs_mount(source: str, place: pathlib.Path, options: Sequence[str] = ()) -> list[str]:
    extra = ["-o", ",".join(options)] if options else []
    return ["vpfs-mount", source, str(place), "-f", *extra]


def in_prefix(variable: str, program: str) -> str | None:
    """A program of others, in the prefix that the variable names. None: it is not there."""
    prefix = os.environ.get(variable)
    return shutil.which(program, path=f"{prefix}/bin:{prefix}/sbin") if prefix else None
