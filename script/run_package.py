#!/usr/bin/env python3
"""Makes packages of the last commit: .deb for the Debian or Ubuntu that this runs on, and .rpm.

They are written to build/packages/. An .rpm has the programs of this system, so it is for a look at
the package; the one to install is built on its own distribution, from packaging/rpm/vpfs.spec.in.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile

from packages.build import build_deb, build_rpm, differences, hardening_problems
from packages.lint import lintian, rpmlint
from packages.sources import ROOT, Failure, last_commit
from packages.trial import trial

WORK = ROOT / "build/package-work"
OUTPUT = ROOT / "build/packages"


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="script/package", description=__doc__)
    options.add_argument("--deb", action="store_true", help="only .deb packages")
    options.add_argument(
        "--check", action="store_true", help="also lintian, rpmlint and the flags of programs"
    )
    options.add_argument(
        "--test",
        action="store_true",
        help="also installs, upgrades, removes and purges them in a root file system (as root)",
    )
    options.add_argument(
        "--ccache",
        action="store_true",
        help="compiles through ccache: other bytes, since paths in debug symbols are then relative",
    )
    options.add_argument(
        "--suite", default="bookworm", help="of that root file system; default: bookworm"
    )
    options.add_argument(
        "--root", type=pathlib.Path, metavar="TAR", help="an archive of that root file system"
    )
    options.add_argument(
        "--reproduce",
        action="store_true",
        help="also builds all a second time in another folder, and compares (takes long)",
    )
    return options


def complain(problems: list[str], what: str) -> bool:
    for problem in problems:
        print(f"  {problem}")
    print(f"{what}: {'ok' if not problems else f'{len(problems)} problems'}")
    return not problems


def main() -> int:
    options = parser().parse_args()
    commit = last_commit()
    print(f"packages of {commit.version}")
    debs = build_deb(commit, WORK / "first/vpfs", OUTPUT, cached=options.ccache)
    rpms = [] if options.deb else build_rpm(commit, WORK / "first/vpfs", OUTPUT)
    for package in debs + rpms:
        print(f"  {package.relative_to(ROOT)}  {package.stat().st_size / 1024:,.0f} KiB")
    good = True
    if options.check:
        with tempfile.TemporaryDirectory() as scratch:
            problems = [
                problem
                for package in debs
                for problem in hardening_problems(package, pathlib.Path(scratch))
            ]
        good &= complain(problems, "hardening")
        good &= complain(lintian(debs), "lintian")
        if rpms:
            good &= complain(rpmlint(rpms), "rpmlint")
    if options.reproduce:
        again = WORK / "second/vpfs"
        other = build_deb(commit, again, WORK / "second/packages", cached=options.ccache)
        others = [] if options.deb else build_rpm(commit, again, WORK / "second/packages")
        good &= complain(differences(debs + rpms, other + others), "two builds are equal")
    if options.test:
        trial(debs, options.suite, options.root)
        print("installation: ok")
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"package: {failure}")
