#!/usr/bin/env python3
"""Builds the programs of the release before, once, for the tests of upgrades.

    build_previous.py [-j JOBS]

`previous_release` names its commit. The programs land in build/previous/COMMIT/bin, and those of other commits are
removed. Exits with 77 and the reason if they cannot be built here. VPFS_PREVIOUS_PROGRAMS names a directory of such
programs that are built already, of whatever release.
"""
from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE_FILE = pathlib.Path(__file__).resolve().parent / "previous_release"
PLACE = ROOT / "build/previous"
PROGRAMS = ["vpfs-proxy", "vpfs-coordinator", "vpfs-mount", "vpfsctl"]
# What compiles fastest: nothing is optimized that the preset does not need to, and a stack trace has no lines.
OPTIONS = ["--preset", "dev", "-DVPFS_TESTS=OFF", "-DVPFS_BENCHMARKS=OFF", "-DVPFS_WERROR=OFF", "-DCMAKE_CXX_FLAGS_DEBUG=-g0"]
LINES_SHOWN = 40
SKIPPED = 77


class Missing(Exception):
    """The release before cannot be had here: the reason."""


class Failed(Exception):
    """Its programs should build and do not."""


def commit() -> str:
    text = RELEASE_FILE.read_text(encoding="ascii").strip()
    if not re.fullmatch("[0-9a-f]{40}", text):
        raise Failed(f"{RELEASE_FILE.relative_to(ROOT)} has to be the whole name of a commit, 40 digits: it is {text!r}")
    return text


def binaries() -> pathlib.Path:
    """The directory of its programs. They are there once build() has returned."""
    named = os.environ.get("VPFS_PREVIOUS_PROGRAMS")
    return pathlib.Path(named).resolve() if named else PLACE / commit() / "bin"


def build(jobs: int) -> pathlib.Path:
    if (found := binaries()).exists():
        return found
    if os.environ.get("VPFS_PREVIOUS_PROGRAMS"):
        raise Failed(f"VPFS_PREVIOUS_PROGRAMS: there is no {found}")
    require_commit()
    with alone():
        if not found.exists():
            for other in PLACE.iterdir():
                if other.is_dir():
                    shutil.rmtree(other)
            build_below(found.parent, jobs)
    return found


def require_commit() -> None:
    if not shutil.which("git"):
        raise Missing("git is not installed")
    if not (ROOT / ".git").exists():
        raise Missing("this is not a clone: the release before comes from its history")
    # The whole name of an object that is not there passes for one, without ^{commit}.
    asked = git("cat-file", "-e", f"{commit()}^{{commit}}")
    if asked.returncode != 0:
        told = asked.stderr.decode(errors="replace").splitlines()
        raise Missing(f"the commit {commit()[:12]} is not in this clone, which may be shallow ({' '.join(told[:1])})")


def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=False, capture_output=True)


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Whoever else builds it meanwhile waits."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_below(folder: pathlib.Path, jobs: int) -> None:
    """Only the programs stay, and `bin` is there only once it has all of them."""
    source = folder / "source"
    source.mkdir(parents=True)
    archive = git("archive", commit())
    if archive.returncode != 0:
        raise Failed(f"git archive: {archive.stderr.decode(errors='replace')}")
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive.stdout, check=True)
    log = folder / "build.log"
    tree = source / "build/dev"
    run(["script/bootstrap"], source, log)  # it may need packages that this release does without
    run(["cmake", *OPTIONS], source, log)
    run(["cmake", "--build", str(tree), "-j", str(jobs), "--target", *PROGRAMS], source, log)
    (tree / "bin").rename(folder / "bin")
    shutil.rmtree(source)


def run(command: Sequence[str], source: pathlib.Path, log: pathlib.Path) -> None:
    with log.open("ab") as out:
        # Tests that run meanwhile go before it.
        code = subprocess.run(["nice", *command], check=False, cwd=source, stdin=subprocess.DEVNULL, stdout=out,
                              stderr=out).returncode
    if code != 0:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-LINES_SHOWN:])
        raise Failed(f"{end}\n{command[0]} exited with {code}; complete output: {log}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the programs of the release before.")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 2)
    options = parser.parse_args()
    try:
        print(build(options.jobs))
    except Missing as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    except Failed as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
