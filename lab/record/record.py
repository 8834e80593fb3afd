"""A record: what several rounds of a benchmark gave, with the commit and the machine.

bench/records/NAME.json has one. Its tables are lists of rows. A cell is a text, a number that all
rounds agree on, or [median, smallest, largest] of the rounds.
"""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lab.files import write_whole

Cell = str | float | list[float] | None
Row = dict[str, Cell]
FOLDER = pathlib.Path("bench/records")
DIGITS = 4  # of numbers in a file
NOT_RUN = "The set of record has not been run on this version."


class RecordError(Exception):
    """A record that is not there, or not as it must be."""


@dataclasses.dataclass(frozen=True)
class Record:
    record: str
    commit: str
    date: str
    runs: int
    machine: str
    commands: list[str]
    settings: dict[str, Any]
    tables: dict[str, list[Row]]
    quick: bool = False
    # Not empty: the numbers are from a page of that commit, this is what it says of them, and the
    # set of record has not been run since. 0 runs: it does not say how many there were.
    older: str = ""
    # The most that other programs used of the processors when a run began, those at idle priority
    # as well. None: it was not measured.
    busy: float | None = None

    def cell(self, table: str, row: str, column: str) -> Cell:
        for each in self.rows(table):
            if label_of(each) == row and column in each:
                return each[column]
        raise RecordError(f"{self.record} {table} has no cell '{row}; {column}'")

    def rows(self, table: str) -> list[Row]:
        if table not in self.tables:
            raise RecordError(f"{self.record} has no table {table}")
        return self.tables[table]

    def write(self, folder: pathlib.Path) -> pathlib.Path:
        """One line for each row, so that a change of the file shows which rows are new."""
        fields = dataclasses.asdict(self)
        tables = fields.pop("tables")
        texts = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items()]
        texts.append(' "tables": {\n' + ",\n".join(table_texts(tables)) + "\n }")
        file = folder / f"{self.record}.json"
        write_whole(file, "{\n" + ",\n".join(texts) + "\n}\n")
        return file


def table_texts(tables: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    for name, rows in tables.items():
        lines = ",\n".join(f"   {json.dumps(row, ensure_ascii=False)}" for row in rows)
        yield f"  {json.dumps(name)}: [\n{lines}\n  ]"


def load(name: str, folder: pathlib.Path = FOLDER) -> Record | None:
    """The record of this name; None: there is none."""
    file = folder / f"{name}.json"
    if not file.exists():
        return None
    try:
        found = Record(**json.loads(file.read_text()))
    except (TypeError, ValueError) as error:
        raise RecordError(f"{file}: {error}") from error
    if found.record != name:
        raise RecordError(f"{file}: is the record {found.record}")
    if found.quick:
        raise RecordError(f"{file}: a quick run is not a record")
    return found


def label_of(row: Row) -> str:
    """The texts before the first number."""
    texts = []
    for value in row.values():
        if not isinstance(value, str):
            break
        texts.append(value)
    return ", ".join(texts)


def rounded(value: float) -> float:
    return value if isinstance(value, int) else float(f"{value:.{DIGITS}g}")


def merged_cell(values: Sequence[Cell]) -> Cell:
    numbers = [value for value in values if isinstance(value, (int, float))]
    if not numbers:
        return next((value for value in values if value is not None), None)
    if len(numbers) < len(values) or not all(map(math.isfinite, numbers)):
        raise RecordError(f"a number is missing in a round: {list(values)}")
    least, most = min(numbers), max(numbers)
    if least == most:
        return rounded(least)
    return [rounded(number) for number in (statistics.median(numbers), least, most)]


def merged(rounds: Sequence[Sequence[Row]]) -> list[Row]:
    """One table of those that the rounds gave, which have the same rows."""
    labels = [[label_of(row) for row in rows] for rows in rounds]
    if any(each != labels[0] for each in labels):
        raise RecordError("the rounds have different rows")
    return [{column: merged_at(rows, column) for column in rows[0]} for rows in zip(*rounds)]


def merged_at(rows: Sequence[Row], column: str) -> Cell:
    try:
        return merged_cell([row.get(column) for row in rows])
    except RecordError as error:
        raise RecordError(f"'{label_of(rows[0])}; {column}': {error}") from error


def figure(number: float) -> str:
    """A number for people: 0.963, 1.55, 13.2, 126, 1,250."""
    if isinstance(number, int):
        return f"{number:,}"
    size = abs(number)
    return f"{number:,.{0 if size >= 100 else 1 if size >= 10 else 2}f}"


def text_of(cell: Cell) -> str:
    """With its spread, if there is one."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, list):
        middle, least, most = map(figure, cell)
        until = " to " if cell[1] < 0 else "-"
        return middle if least == most else f"{middle} ({least}{until}{most})"
    return figure(cell)


def middle_of(cell: Cell) -> str:
    """Without its spread, for a sentence."""
    return figure(cell[0]) if isinstance(cell, list) else text_of(cell)
