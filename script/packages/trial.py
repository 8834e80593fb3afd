"""Installs, upgrades, removes and purges packages in a root file system made for it."""

from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import tempfile
import time

from .build import LOGS, require
from .sources import ROOT, Failure, run

WANTED_RATIO = 2.0
TOLERANCE = 0.1
SHARE = ROOT / "packaging/trial/share.sh"
# Everything ends with the command: processes, mounts and the network of the name spaces.
ENTER = """
set -e
mount -t proc proc "$0/proc"
mount -t tmpfs tmpfs "$0/run"
mount --rbind /dev "$0/dev"
mkdir -p "$0/run/lock"
exec chroot "$0" "$@"
"""
ALONE = "ip link set lo up\n"
CONFFILE = "etc/logrotate.d/vpfs"
OURS = "# an administrator has changed this\n"


class Root:
    """A root file system with nothing but apt."""

    def __init__(self, suite: str, archive: pathlib.Path | None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="vpfs-root-")
        self.path = pathlib.Path(self._folder.name) / "root"
        self._logs = 0
        if archive is not None:
            self.path.mkdir()
            run(["tar", "-x", "-C", self.path, "-f", archive], LOGS / "package-root.log")
            return
        require("mmdebstrap")
        command = [
            "mmdebstrap",
            "--mode=root",
            "--variant=apt",
            "--skip=cleanup/apt/lists",
            suite,
            str(self.path),
        ]
        for attempt in range(3):  # downloads may fail
            try:
                run(command, LOGS / "package-root.log")
                break
            except Failure:
                if attempt == 2:
                    raise
                shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> Root:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def run(self, *command: str, alone: bool = False) -> str:
        """The output of a command in it; `alone`: without a network but the loopback."""
        self._logs += 1
        log = LOGS / f"package-trial-{self._logs}.log"
        spaces = [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            *(["--net"] if alone else []),
        ]
        enter = (ALONE if alone else "") + ENTER
        environment = {
            "DEBIAN_FRONTEND": "noninteractive",
            "LC_ALL": "C.UTF-8",
            "TMPDIR": "/tmp",
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        }
        run([*spaces, "bash", "-c", enter, self.path, *command], log, environment=environment)
        return log.read_text()

    def put(self, files: list[pathlib.Path], folder: str) -> list[str]:
        (self.path / folder).mkdir(exist_ok=True)
        return [
            f"/{folder}/{pathlib.Path(shutil.copy(file, self.path / folder)).name}"
            for file in files
        ]

    def names(self) -> set[str]:
        """All paths with vpfs in their names, apart from what this test has put there."""
        found = subprocess.run(
            ["find", self.path, "-xdev", "-name", "*vpfs*", "-printf", "/%P\n"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        return {
            name for name in found if not name.startswith(("/packages", "/tmp", "/var/cache/apt"))
        }


def next_version(package: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The same package as the one after it."""
    content = folder / "content"
    shutil.rmtree(content, ignore_errors=True)
    subprocess.run(["dpkg-deb", "--raw-extract", package, content], check=True)
    control = content / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*$", r"\g<0>+next", control.read_text()))
    made = folder / f"next-{package.name}"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Znone", "--build", content, made],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return made


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise Failure(f"not so: {what}")
    print(f"  {what}")


def ratios(output: str) -> list[float]:
    return [float(each) for each in re.findall(r"^ratio ([0-9.]+)$", output, re.MULTILINE)]


def check_ratios(found: list[float], count: int) -> None:
    good = len(found) == count and all(abs(each / WANTED_RATIO - 1) < TOLERANCE for each in found)
    expect(good, f"shares of 2:1 are {', '.join(f'{each:.2f}' for each in found)}")


def trial(packages: list[pathlib.Path], suite: str, archive: pathlib.Path | None) -> None:
    packages = [each for each in packages if "dbgsym" not in each.name]
    with Root(suite, archive) as root, tempfile.TemporaryDirectory(prefix="vpfs-next-") as scratch:
        before = root.names()
        inside = root.put(packages, "packages")
        later = root.put(
            [next_version(each, pathlib.Path(scratch)) for each in packages], "packages"
        )
        root.put([SHARE], "packages")
        begin = time.time()
        root.run("apt-get", "--yes", "--no-install-recommends", "install", *inside)
        installed = time.time()
        output = root.run("/packages/share.sh", alone=True)
        shared = float(re.findall(r"^shared ([0-9.]+)$", output, re.MULTILINE)[0])
        print(
            f"  apt-get install: {installed - begin:.1f} s with downloads; a share works after "
            f"{shared - begin:.1f} s"
        )
        expect(shared - begin < 60, "that is less than a minute")
        check_ratios(ratios(output), 1)
        check_user(root)
        changed = root.path / CONFFILE
        changed.write_text(changed.read_text() + OURS)
        output = root.run("/packages/share.sh", *later, alone=True)
        check_ratios(ratios(output), 3)
        expect(
            output.count("has taken over") == 2,
            "an upgrade leaves proxies running; new ones take over",
        )
        expect(
            changed.read_text().endswith(OURS),
            f"what is changed in /{CONFFILE} outlives an upgrade",
        )
        names = [each.name.split("_")[0] for each in packages]
        root.run("apt-get", "--yes", "remove", *names, alone=True)
        left = root.names() - before
        expect(
            not any(name.startswith("/usr/bin") for name in left),
            "after `remove` no program is there",
        )
        expect("/etc/vpfs" in left and "/var/lib/vpfs" in left, "configurations and state stay")
        for file in (root.path / "etc/vpfs").iterdir():
            file.unlink()
        root.run("dpkg", "--purge", *names, alone=True)
        left = root.names() - before
        expect(not left, f"after `purge` nothing is left {sorted(left) or ''}".rstrip())


def check_user(root: Root) -> None:
    user = root.run("getent", "passwd", "vpfs")
    expect("nologin" in user, "the user vpfs is there")
