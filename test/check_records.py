#!/usr/bin/env python3
"""Fails when a document has a figure that no record has. Run from the repository root.

A passage between <!-- record: ... --> and <!-- end --> is what bench/records/ gives
(lab/record/passages.py); `script/bench record --tables` writes it anew.

The pages below say what was measured. There a number that is a ratio, a rate, a time or resident
memory is in such a passage. A number in a code span or in code is a setting, a target, or follows from these.
"""
from __future__ import annotations

import json
import pathlib
import re
import sys
from collections.abc import Iterator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from lab.record.passages import PASSAGE, loose_markers, passages  # noqa: E402
from lab.record.record import FOLDER, RecordError, load  # noqa: E402

MEASURED = ("README.md", "docs/benchmarks.md", "docs/mount.md", "docs/mount-orangefs.md", "docs/tools.md",
            "docs/simulator.md",
            "docs/admin/README.md", "docs/admin/anticipation.md")
NUMBER = r"\d[\d,]*(?:\.\d+)?"
# A decimal behind one of these words, or behind "and" or "or" and another version, is a version.
VERSIONED = r"(?:OrangeFS|BeeGFS|\(PVFS2\)|Linux|Debian|Ubuntu|libfuse|CMake|Python|TLS|GCC)"
VERSION = re.compile(rf"{VERSIONED} \d+(?:\.\d+)+(?:(?:,| and| or|, from| \(from) \d+(?:\.\d+)*)*|Apache-2\.0|\(from \d\.\d\)")
FIGURES = {
    "a ratio": re.compile(r"(?<![\w.:/])\d+\.\d+(?![\w.])"),
    "a rate": re.compile(rf"{NUMBER} (?:[KMG]i?B/s|(?:op|request|event|cycle)s?(?:/s| (?:per|a) second))"),
    "a time": re.compile(rf"{NUMBER} (?:ns|us)\b"),
    "a multiple": re.compile(rf"{NUMBER} times (?:as|the|faster|slower|more|less|of)\b"),
    "memory": re.compile(rf"{NUMBER} [KMG]iB of resident|resident[^.|]{{0,40}} {NUMBER} [KMG]iB"),
}


def blanked(text: str, pattern: re.Pattern[str] | str) -> str:
    """The text with as many lines, without what matches."""
    return re.sub(pattern, lambda found: "\n" * found[0].count("\n"), text)


def prose(text: str) -> str:
    """A document without passages of records, code, comments, targets of links and versions."""
    text = blanked(text, PASSAGE)
    text = blanked(text, re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE))
    text = blanked(text, re.compile(r"(?<=\n\n)(?: {4}.*\n|\n)+", re.MULTILINE))
    text = blanked(text, re.compile(r"<!--.*?-->|`[^`]+`|\]\([^)]+\)", re.DOTALL))
    return blanked(text, VERSION)


def check_passages(page: pathlib.Path) -> Iterator[str]:
    text = page.read_text()
    if loose_markers(text):
        yield f"{page}: a marker of a record has no beginning or no end"
    for passage in passages(text):
        try:
            wanted = passage.wanted()
        except RecordError as error:
            yield f"{page}:{passage.line}: {error}"
            continue
        if passage.text != wanted:
            yield (f"{page}:{passage.line}: {passage.title()} is not what the record gives"
                   " (script/bench record --tables writes it)")


def figures_without_record(text: str) -> Iterator[tuple[int, str]]:
    """The line of each figure, and what it is."""
    for number, line in enumerate(prose(text).splitlines(), 1):
        for kind, pattern in FIGURES.items():
            for found in pattern.finditer(line):
                yield number, f"'{found[0]}' is {kind}"


def check_figures(page: pathlib.Path) -> Iterator[str]:
    for number, what in figures_without_record(page.read_text()):
        yield f"{page}:{number}: {what} that no record has: put it between markers, or in a code span if it is a setting"


def check_files(folder: pathlib.Path = FOLDER) -> Iterator[str]:
    """Every record can be read, and no quick run is among them."""
    for file in sorted(folder.glob("*")):
        try:
            if file.suffix != ".json" or load(file.stem, folder) is None:
                yield f"{file}: is not a record"
        except (RecordError, json.JSONDecodeError) as error:
            yield str(error)


def main() -> int:
    pages = [pathlib.Path("README.md"), *sorted(pathlib.Path("docs").rglob("*.md"))]
    problems = list(check_files())
    for page in pages:
        problems += check_passages(page)
    for name in MEASURED:
        problems += check_figures(pathlib.Path(name))
    print("\n".join(problems) or "records: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
