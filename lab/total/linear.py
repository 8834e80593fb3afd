"""Linear programs in exact fractions, for the few variables that the set-ups of benchmarks have."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction

Terms = Mapping[str, Fraction | int]  # coefficients by variable


class Infeasible(Exception):
    """No values satisfy all constraints."""


class Unbounded(Exception):
    """The objective has no largest value."""


@dataclasses.dataclass(frozen=True)
class AtMost:
    """The sum of the terms is at most `bound`."""

    terms: Terms
    bound: Fraction | int


def at_least(terms: Terms, bound: Fraction | int) -> AtMost:
    return AtMost({name: -factor for name, factor in terms.items()}, -bound)


def maximum(objective: Terms, constraints: Sequence[AtMost]) -> Fraction:
    """The largest value of the objective. No variable is negative.

    The simplex method in two phases. Bland's rule chooses, so it ends.
    """
    names = sorted({name for each in constraints for name in each.terms} | set(objective))
    tableau = _Tableau(names, constraints)
    tableau.become_feasible()
    return tableau.maximise([Fraction(objective.get(name, 0)) for name in names])


class _Tableau:
    """Rows [coefficients of all columns, right side]. A basic variable has its own row.

    Columns: the variables, one slack for each constraint, and one artificial variable for each
    constraint whose right side is negative.
    """

    def __init__(self, names: Sequence[str], constraints: Sequence[AtMost]) -> None:
        negative = [index for index, each in enumerate(constraints) if each.bound < 0]
        self._real = len(names) + len(constraints)
        self._columns = self._real + len(negative)
        self._rows: list[list[Fraction]] = []
        self._basis: list[int] = []
        for index, each in enumerate(constraints):
            row = [Fraction(0)] * (self._columns + 1)
            for name, factor in each.terms.items():
                row[names.index(name)] = Fraction(factor)
            row[len(names) + index] = Fraction(1)
            row[-1] = Fraction(each.bound)
            if each.bound < 0:
                artificial = self._real + negative.index(index)
                row = [-value for value in row]
                row[artificial] = Fraction(1)
                self._basis.append(artificial)
            else:
                self._basis.append(len(names) + index)
            self._rows.append(row)

    def become_feasible(self) -> None:
        if self._columns == self._real:
            return
        goal = [Fraction(0)] * self._real + [Fraction(-1)] * (self._columns - self._real)
        if self.maximise(goal) < 0:
            raise Infeasible
        for index, basic in enumerate(self._basis):
            if basic >= self._real:  # at zero: any real column may take its place
                column = next(
                    (column for column in range(self._real) if self._rows[index][column] != 0), None
                )
                if column is not None:
                    self._pivot(index, column)
        for row in self._rows:
            row[self._real : self._columns] = [Fraction(0)] * (self._columns - self._real)

    def maximise(self, goal: Sequence[Fraction]) -> Fraction:
        goal = [*goal, *[Fraction(0)] * (self._columns - len(goal))]
        while True:
            column = next(
                (column for column in range(self._columns) if self._gain(goal, column) > 0), None
            )
            if column is None:
                return sum(
                    (goal[basic] * row[-1] for basic, row in zip(self._basis, self._rows)),
                    Fraction(0),
                )
            limits = [
                (row[-1] / row[column], self._basis[index], index)
                for index, row in enumerate(self._rows)
                if row[column] > 0
            ]
            if not limits:
                raise Unbounded
            self._pivot(min(limits)[2], column)

    def _gain(self, goal: Sequence[Fraction], column: int) -> Fraction:
        """What a unit of the column's variable adds to the objective."""
        if column in self._basis:
            return Fraction(0)
        return goal[column] - sum(
            (goal[basic] * row[column] for basic, row in zip(self._basis, self._rows)), Fraction(0)
        )

    def _pivot(self, index: int, column: int) -> None:
        pivot = self._rows[index][column]
        self._rows[index] = [value / pivot for value in self._rows[index]]
        for other, row in enumerate(self._rows):
            if other != index and row[column] != 0:
                factor = row[column]
                self._rows[other] = [
                    value - factor * own for value, own in zip(row, self._rows[index])
                ]
        self._basis[index] = column
