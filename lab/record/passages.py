"""Passages of documents that records fill.

A table is between <!-- record: NAME TABLE --> and <!-- end -->, in lines of their own. A number of
a sentence is between <!-- record: NAME TABLE; ROW; COLUMN --> and <!-- end -->. ROW is the text of
the first column, or of all columns before the first number with commas between. A marker behind a
backquote is an example.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import textwrap
from collections.abc import Iterator

from lab.record.record import FOLDER, NOT_RUN, Record, RecordError, load, middle_of, text_of

COLUMNS = 100
QUIET = 0.05  # what other programs use of a machine whose record says nothing of them
NO_ROWS = "What these rows need was not installed."
PASSAGE = re.compile(
    r"(?<!`)<!--\s+record:\s+(?P<name>[\w-]+)\s+(?P<table>[\w-]+)"
    r"(?:;\s+(?P<row>[^;>]+);\s+(?P<column>[^;>]+?))?\s+-->(?P<text>.*?)(?<!`)<!--\s+end\s+-->",
    re.DOTALL,
)
MARKER = re.compile(r"(?<!`)<!--\s+(?:record:|end\s+-->)")


@dataclasses.dataclass(frozen=True)
class Passage:
    name: str
    table: str
    row: str
    column: str
    text: str
    line: int
    span: tuple[int, int]  # of the text in the document

    def title(self) -> str:
        cell = f"; {self.row}; {self.column}" if self.row else ""
        return f"{self.name} {self.table}{cell}"

    def wanted(self, folder: pathlib.Path = FOLDER) -> str:
        """The text that the record gives."""
        record = load(self.name, folder)
        if self.row:
            if record is None:
                raise RecordError(f"there is no record {self.name}")
            return middle_of(record.cell(self.table, self.row, self.column))
        is_there = record and not (record.older and self.table not in record.tables)
        return f"\n{table_text(record, self.table) if record and is_there else NOT_RUN}\n"


def passages(text: str) -> Iterator[Passage]:
    for found in PASSAGE.finditer(text):
        row, column = (" ".join((found[key] or "").split()) for key in ("row", "column"))
        yield Passage(
            found["name"],
            found["table"],
            row,
            column,
            found["text"],
            text.count("\n", 0, found.start()) + 1,
            found.span("text"),
        )


def loose_markers(text: str) -> int:
    """Markers that belong to no passage."""
    return len(MARKER.findall(text)) - 2 * sum(1 for _ in PASSAGE.finditer(text))


def rewritten(text: str, folder: pathlib.Path = FOLDER) -> str:
    for passage in reversed(list(passages(text))):
        begin, end = passage.span
        text = text[:begin] + passage.wanted(folder) + text[end:]
    return text


def table_text(record: Record, table: str) -> str:
    """The table in Markdown, and where its numbers are from."""
    rows = record.rows(table)
    if not rows:
        return "\n".join(textwrap.wrap(f"{NO_ROWS} {origin(record)}", COLUMNS))
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = [columns, ["---"] * len(columns)]
    lines += [[text_of(row.get(column)) for column in columns] for row in rows]
    texts = ["|" + "|".join(cells) + "|" for cells in lines]
    texts = [text if "---" in text else text.replace("|", " | ").strip() for text in texts]
    wide = [text for text in texts if len(text) > COLUMNS]
    if wide:
        raise RecordError(f"{record.record} {table}: {len(wide[0])} columns: {wide[0]}")
    return "\n".join([*texts, "", *textwrap.wrap(origin(record), COLUMNS)])


def origin(record: Record) -> str:
    of = f"commit `{record.commit[:8]}`, {record.date}"
    if record.older:
        return f"An older record, of the page of {of}: {record.older}. {NOT_RUN}"
    of += f", {record.machine}."
    if record.busy is not None and record.busy > QUIET:
        of += f" When a run began, other programs used up to {record.busy:.0%} of the processors."
    if record.quick:
        return f"Quick runs, which are not a record: {of}"
    if record.runs == 1:
        return f"One run; {of}"
    return f"Medians of {record.runs} runs (smallest-largest); {of}"
