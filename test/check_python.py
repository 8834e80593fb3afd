#!/usr/bin/env python3
"""Checks the Python of lab/, bench/ and script/ with ruff and mypy. Run from the repository root.

pyproject.toml has their versions and settings. The tools are for development only and come from
Python's package index, so script/bootstrap does not install them. If one is not on PATH or has
another version, the reason is printed and the exit code is 77.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

FOLDERS = ["lab", "bench", "script"]
SKIPPED = 77
PINNED = re.compile(r"([\w-]+)==([\w.]+)")


def pins() -> dict[str, str]:
    """The version of each tool."""
    project = tomllib.loads(pathlib.Path("pyproject.toml").read_text())
    return dict(PINNED.fullmatch(text).groups() for text in project["dependency-groups"]["check"])


def version_of(tool: str) -> str | None:
    """The version of the tool on PATH; None: it is not there."""
    if shutil.which(tool) is None:
        return None
    done = subprocess.run([tool, "--version"], check=False, capture_output=True, text=True)
    found = re.search(r"\d+(\.\d+)+", done.stdout)
    return found[0] if found else None


def why_not(wanted: dict[str, str]) -> str | None:
    """Why the checks cannot run; None: they can."""
    for tool, version in wanted.items():
        if (found := version_of(tool)) != version:
            state = f"{tool} is {found}, not {version}" if found else f"{tool} is not installed"
            packages = " ".join(f"{name}=={pinned}" for name, pinned in wanted.items())
            return f"{state}; in a virtual environment on PATH: pip install {packages}"
    return None


def main() -> int:
    if reason := why_not(pins()):
        print(f"skipped: {reason}")
        return SKIPPED
    checks = [["ruff", "check", "--quiet"], ["ruff", "format", "--quiet", "--check"], ["mypy", "--no-error-summary"]]
    codes = [subprocess.run([*check, *FOLDERS], check=False).returncode for check in checks]
    if not any(codes):
        print("python: ok")
    return 1 if any(codes) else 0


if __name__ == "__main__":
    sys.exit(main())
