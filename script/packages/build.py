"""Builds .deb and .rpm packages from the sources of the last commit."""

from __future__ import annotations

import hashlib
import pathlib
import shutil
import subprocess

from .sources import MAINTAINER, ROOT, Commit, Failure, export, run

LOGS = ROOT / "build/logs"
NEEDED = {
    "dpkg-buildpackage": "dpkg-dev",
    "dh": "debhelper",
    "rpmbuild": "rpm",
    "lintian": "lintian",
    "rpmlint": "rpmlint",
    "mmdebstrap": "mmdebstrap",
}


def require(*programs: str) -> None:
    missing = sorted({NEEDED[name] for name in programs if shutil.which(name) is None})
    if missing:
        raise Failure(f"missing programs: apt-get install {' '.join(missing)}")


def packages_in(folder: pathlib.Path, ending: str) -> list[pathlib.Path]:
    return sorted(folder.glob(f"*.{ending}"))


def build_deb(
    commit: Commit, folder: pathlib.Path, output: pathlib.Path, cached: bool
) -> list[pathlib.Path]:
    """`folder` gets the sources and the build."""
    require("dpkg-buildpackage", "dh")
    export(commit, folder)
    environment = commit.environment() | {
        "VPFS_CMAKE": "-DVPFS_CCACHE=ON" if cached else "-DVPFS_CCACHE=OFF",
        "DEB_BUILD_OPTIONS": "nocheck",
    }
    for old in folder.parent.glob("vpfs*_*"):
        old.unlink()
    run(
        [
            "dpkg-buildpackage",
            "--build=binary",
            "--no-sign",
            "--no-check-builddeps",
            "--no-pre-clean",
        ],
        LOGS / f"package-deb-{folder.parent.name}.log",
        folder,
        environment,
    )
    output.mkdir(parents=True, exist_ok=True)
    for old in output.glob("vpfs*"):
        old.unlink()
    for made in folder.parent.glob("vpfs*_*"):
        made.rename(output / made.name)
    return packages_in(output, "deb")


def build_rpm(commit: Commit, folder: pathlib.Path, output: pathlib.Path) -> list[pathlib.Path]:
    """From the programs that build_deb() has left in `folder`."""
    require("rpmbuild")
    spec = folder / "vpfs.spec"
    text = (folder / "packaging/rpm/vpfs.spec.in").read_text()
    for name, value in {
        "VERSION": commit.version,
        "DATE": f"{commit.date:%a %b %d %Y}",
        "MAINTAINER": MAINTAINER,
    }.items():
        text = text.replace(f"@{name}@", value)
    spec.write_text(text)
    top = folder.parent / "rpm"
    shutil.rmtree(top, ignore_errors=True)
    definitions = {
        "_topdir": top,
        "vpfs_built": 1,
        "_rpmdir": top / "made",
        "_build_id_links": "none",
    }
    defines = [
        word for name, value in definitions.items() for word in ("--define", f"{name} {value}")
    ]
    run(
        ["rpmbuild", "-bb", "--build-in-place", "--nodeps", *defines, spec],
        LOGS / f"package-rpm-{folder.parent.name}.log",
        folder,
        commit.environment(),
    )
    output.mkdir(parents=True, exist_ok=True)
    for old in packages_in(output, "rpm"):
        old.unlink()
    for made in (top / "made").rglob("*.rpm"):
        made.rename(output / made.name)
    return packages_in(output, "rpm")


def digest(file: pathlib.Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def differences(one: list[pathlib.Path], other: list[pathlib.Path]) -> list[str]:
    first = {file.name: digest(file) for file in one}
    second = {file.name: digest(file) for file in other}
    return sorted(name for name in first | second if first.get(name) != second.get(name))


def hardening_problems(package: pathlib.Path, scratch: pathlib.Path) -> list[str]:
    """What readelf says of the programs of a .deb."""
    content = scratch / package.stem
    subprocess.run(["dpkg-deb", "--extract", package, content], check=True)
    problems = []
    for program in sorted((content / "usr/bin").glob("*")):
        text = subprocess.run(
            [
                "readelf",
                "--wide",
                "--file-header",
                "--program-headers",
                "--dynamic",
                "--dyn-syms",
                program,
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        wanted = {
            "a position-independent program": "DYN (Position-Independent",
            "RELRO": "GNU_RELRO",
            "immediate binding": "BIND_NOW",
            "the stack protector": "__stack_chk_fail",
            "fortified calls": "_chk@GLIBC",
        }
        problems += [
            f"{program.name}: no sign of {what}"
            for what, sign in wanted.items()
            if sign not in text
        ]
        if " RWE " in text:
            problems.append(f"{program.name}: a segment is writable and executable")
    return problems
