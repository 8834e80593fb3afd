"""Tables for people, JSON for programs."""
from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping, Sequence

Row = Mapping[str, object]


def cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
        return f"{value:.{digits}f}"
    return str(value)


def table(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Right-aligned columns under their names."""
    lines = [list(columns)] + [[cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return "\n".join("  ".join(text.rjust(width) for text, width in zip(line, widths)) for line in lines)


def print_settings(settings: Mapping[str, object]) -> None:
    width = max(len(name) for name in settings)
    for name, value in settings.items():
        print(f"  {name.ljust(width)}  {json.dumps(value) if isinstance(value, (dict, list)) else value}")


def write_json(file: pathlib.Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1) + "\n")


def result_name(benchmark: str, protocol: str) -> str:
    """Of the files that a benchmark writes for a protocol."""
    return benchmark if protocol == "orangefs" else f"{benchmark}-{protocol}"


def size_name(size: int) -> str:
    """65536 -> "64 KiB"."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"
