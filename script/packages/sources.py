"""The sources that packages are built from: those of the last commit, with its time."""

from __future__ import annotations

import dataclasses
import datetime
import os
import pathlib
import re
import shutil
import subprocess
from collections.abc import Sequence

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Debian's tools take them from the same variables.
MAINTAINER = (
    f"{os.environ.get('DEBFULLNAME', 'vpfs maintainers')} "
    f"<{os.environ.get('DEBEMAIL', 'vpfs@localhost.localdomain')}>"
)


class Failure(Exception):
    """What a person is told, without a trace."""


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


def run(
    command: Sequence[str | pathlib.Path],
    log: pathlib.Path,
    folder: pathlib.Path = ROOT,
    environment: dict[str, str] | None = None,
) -> None:
    """Runs a command with its output in a log, whose end is shown if it fails."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        code = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | (environment or {}),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        ).returncode
    if code != 0:
        end = "\n".join(log.read_text(errors="replace").splitlines()[-30:])
        raise Failure(f"{end}\nfailed: {' '.join(map(str, command))}; complete output: {log}")


@dataclasses.dataclass(frozen=True)
class Commit:
    """What the version and the times of packages come from."""

    number: str  # abbreviated
    time: int
    version: str

    @property
    def date(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self.time, datetime.UTC)

    def environment(self) -> dict[str, str]:
        return {"SOURCE_DATE_EPOCH": str(self.time), "TZ": "UTC", "LC_ALL": "C.UTF-8"}


def last_commit() -> Commit:
    """A commit with a tag is a release; any other comes before the next release."""
    text = (ROOT / "CMakeLists.txt").read_text()
    found = re.search(r"project\(vpfs VERSION ([0-9.]+)", text)
    if found is None:
        raise Failure("CMakeLists.txt: no version of the project")
    version = found[1]
    number = git("rev-parse", "--short=12", "HEAD")
    time = int(git("log", "-1", "--format=%ct"))
    if f"v{version}" not in git("tag", "--points-at", "HEAD").split():
        date = datetime.datetime.fromtimestamp(time, datetime.UTC)
        version += f"~git{date:%Y%m%d%H%M%S}.{number}"
    return Commit(number, time, version)


def export(commit: Commit, folder: pathlib.Path) -> None:
    """Writes the sources of the commit into a folder, in place of those of another. Its builds
    stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        if old.name == "build":
            continue
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink()
    archive = subprocess.run(
        ["git", "-C", ROOT, "-c", "core.abbrev=12", "archive", "HEAD"],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    add_debian(commit, folder)


def add_debian(commit: Commit, folder: pathlib.Path) -> None:
    """dpkg-buildpackage looks for the folder at the top."""
    debian = folder / "debian"
    shutil.copytree(folder / "packaging/debian", debian)
    control = debian / "control"
    control.write_text(control.read_text().replace("@MAINTAINER@", MAINTAINER))
    (debian / "changelog").write_text(
        f"vpfs ({commit.version}) unstable; urgency=medium\n\n"
        "  * /usr/share/doc/vpfs/CHANGELOG.md has the changes.\n\n"
        f" -- {MAINTAINER}  {commit.date:%a, %d %b %Y %H:%M:%S} +0000\n"
    )
