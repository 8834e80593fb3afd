"""Runs cases in turn, several times each, and takes the medians of their results."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from lab.harness import median
from lab.numbers import above_zero, one_or_more
from lab.report import Row

STATISTIC = "medians of interleaved runs"
Facts = Mapping[str, float | None]
Case = TypeVar("Case", bound=Hashable)


@dataclasses.dataclass(frozen=True)
class Rounds:
    """The length of each run, and the number of runs of each case."""

    seconds: float
    runs: int

    def add_options(self, parser: argparse.ArgumentParser, quick: Rounds) -> None:
        parser.add_argument(
            "--seconds",
            type=above_zero,
            help=f"length of each run (default {self.seconds:g}; {quick.seconds:g} with --quick)",
        )
        parser.add_argument(
            "--runs",
            type=one_or_more,
            help=f"interleaved runs of each row (default {self.runs}; {quick.runs} with --quick)",
        )

    def asked(self, options: argparse.Namespace) -> Rounds:
        return Rounds(options.seconds or self.seconds, options.runs or self.runs)

    def rows(
        self,
        cases: Iterable[Case],
        once: Callable[[Case], Facts],
        fields: Callable[[Case], Row],
        numbers: Sequence[str],
    ) -> list[Row]:
        """One row per case: its fields, and medians over the runs that have the number."""
        seen: dict[Case, list[Facts]] = {case: [] for case in cases}
        for _ in range(self.runs):
            for case, results in seen.items():
                results.append(once(case))
        return [{**fields(case), **medians(results, numbers)} for case, results in seen.items()]


def medians(runs: Sequence[Facts], numbers: Sequence[str]) -> dict[str, float | None]:
    found = {
        name: [value for run in runs if (value := run.get(name)) is not None] for name in numbers
    }
    return {name: median(values) if values else None for name, values in found.items()}
