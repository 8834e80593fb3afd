"""Tables for people and JSON for programs."""

from __future__ import annotations

import json
import pathlib
import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import tabulate

from lab.files import write_whole

tabulate.MIN_PADDING = 0  # lets columns be as narrow as their headings

Row = Mapping[str, Any]
Json = dict[str, Any]  # an object of JSON, such as a program's result
Cells = list[list[str]]

LINE = 100  # columns of a terminal
NARROWEST = 16  # width of a column whose text is wrapped
UNITS = {
    "mib_per_s": "MiB/s",
    "mb_per_s": "MB/s",
    "ops_per_s": "op/s",
    "s_per_gib": "s/GiB",
    "per_s": "/s",
    "percent": "%",
    "mib": "MiB",
    "gb": "GB",
    "cpu": "CPU",
    "rss": "RSS",
}
UNIT = re.compile(r"(?<![a-z])(" + "|".join(UNITS) + r")(?![a-z])")


def cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        digits = (
            0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
        )
        return f"{value:.{digits}f}"
    return str(value)


def heading(column: str) -> str:
    """The name of a field for people: "cpu_s_per_gib" -> "CPU s/GiB"."""
    return UNIT.sub(lambda match: UNITS[match[1]], column).replace("_", " ").replace(" /s", "/s")


def wrapped(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False))


def widths_of(cells: Cells, headings: Sequence[str]) -> list[int]:
    """The width of each column: its widest cell, or the longest word of its heading."""
    return [
        max([*(len(line[index]) for line in cells), *map(len, name.split())], default=0)
        for index, name in enumerate(headings)
    ]


def fit(widths: Sequence[int], texts: Sequence[bool]) -> list[int]:
    """Narrows the columns of text, the widest first, until the table fits into a line."""
    found = list(widths)
    while sum(found) + 2 * (len(found) - 1) > LINE:
        widest = max(
            (index for index, text in enumerate(texts) if text),
            key=lambda index: found[index],
            default=None,
        )
        if widest is None or found[widest] <= NARROWEST:
            break
        found[widest] -= 1
    return found


def table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Text is left-aligned, and wrapped if the table would be too wide.

    Everything else is right-aligned.
    """
    cells = [[cell(row.get(column)) for column in columns] for row in rows]
    texts = [all(isinstance(row.get(column, ""), str) for row in rows) for column in columns]
    headings = [heading(column) for column in columns]
    widths = fit(widths_of(cells, headings), texts)
    return tabulate.tabulate(
        [
            [
                wrapped(text, width) if is_text else text
                for text, width, is_text in zip(line, widths, texts)
            ]
            for line in cells
        ],
        [wrapped(name, width) for name, width in zip(headings, widths)],
        tablefmt="simple",
        disable_numparse=True,
        colalign=["left" if text else "right" for text in texts] if rows else None,
    )


def print_settings(settings: Mapping[str, object]) -> None:
    room = LINE - max(len(name) for name in settings) - 4
    pairs = [
        (name, wrapped(json.dumps(value) if isinstance(value, (dict, list)) else str(value), room))
        for name, value in settings.items()
    ]
    print(textwrap.indent(tabulate.tabulate(pairs, tablefmt="plain", disable_numparse=True), "  "))


def write_json(file: pathlib.Path, content: object) -> None:
    write_whole(file, json.dumps(content, indent=1) + "\n")


def result_name(benchmark: str, protocol: str) -> str:
    """The base name of the files that a benchmark writes for a protocol."""
    return benchmark if protocol == "orangefs" else f"{benchmark}-{protocol}"


def size_name(size: int) -> str:
    """65536 -> "64 KiB"."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"
