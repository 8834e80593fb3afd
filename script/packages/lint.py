"""lintian and rpmlint, with the exceptions of packaging/lint/ and their reasons."""

from __future__ import annotations

import pathlib
import subprocess

from .build import require
from .sources import ROOT

EXCEPTIONS = ROOT / "packaging/lint"


def lintian(packages: list[pathlib.Path]) -> list[str]:
    """What lintian finds in packages; each line has a tag that packaging/lint/ does not except."""
    require("lintian")
    tags = [
        line.split()[0]
        for line in (EXCEPTIONS / "lintian.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    suppress = ["--suppress-tags", ",".join(tags)] if tags else []
    found = subprocess.run(
        ["lintian", "--allow-root", "--fail-on", "none", "--display-info", *suppress, *packages],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [line for line in found.splitlines() if line and not line.startswith("N:")]


def rpmlint(packages: list[pathlib.Path]) -> list[str]:
    require("rpmlint")
    found = subprocess.run(
        ["rpmlint", "--config", EXCEPTIONS / "rpmlint.toml", *packages],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return [line for line in found.splitlines() if ": E: " in line or ": W: " in line]
