#!/usr/bin/env python3
"""Fails when a C++ file is not as clang-format 14 writes it, or a line of CMake is too long.

Run from the repository root. The version is fixed because each formats a little differently.
"""
import pathlib
import shutil
import subprocess
import sys

TOOL = "clang-format-14"
NOT_OURS = {"build", ".git", "bench-out", "demo-out"}
WIDTH = 100


def too_long(file: pathlib.Path) -> list[str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return [
        f"{file}:{number}: has {len(line)} columns, at most {WIDTH} are expected"
        for number, line in enumerate(lines, 1)
        if len(line) > WIDTH
    ]


def main() -> int:
    if not shutil.which(TOOL):
        print(f"{TOOL} is not installed: script/bootstrap does that")
        return 1
    # Those of running tests may vanish meanwhile, so folders that are not ours are not entered.
    tops = [top for top in pathlib.Path(".").iterdir() if top.is_dir() and top.name not in NOT_OURS]
    builds = [file for top in tops for ending in ("CMakeLists.txt", "*.cmake") for file in top.rglob(ending)]
    wide = [line for file in sorted(builds) for line in too_long(file)]
    files = sorted(file.as_posix() for top in tops for ending in ("*.h", "*.cc") for file in top.rglob(ending))
    check = subprocess.run([TOOL, "--dry-run", "--Werror", *files], capture_output=True, text=True)
    wrong = sorted({line.split(":")[0] for line in check.stderr.splitlines() if "error: code should be" in line})
    found = wide + [f"{file}: run {TOOL} -i on it" for file in wrong]
    print("\n".join(found) or check.stderr or "format: ok")
    return 1 if wide else check.returncode


if __name__ == "__main__":
    sys.exit(main())
