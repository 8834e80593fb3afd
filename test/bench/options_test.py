"""Every option that chooses rows of a benchmark: the rows, their tables and their figures."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "script"), str(ROOT / "test/bench")]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from recorded import RECORDED, Option, Recorded  # noqa: E402

from lab import numbers, plot  # noqa: E402
from lab.harness import Problem  # noqa: E402
from lab.plot_style import style  # noqa: E402
from lab.report import Json  # noqa: E402
from run_bench import BENCHMARKS  # noqa: E402

if TYPE_CHECKING:
    import argparse

    from matplotlib.figure import Figure

# They say how long and how often something is measured, or on how many nodes; all rows are there.
OF_ALL = {"-h", "--help", "--seconds", "--runs"}
WITHOUT_ROWS = {"ior": {"--processes", "--servers", "--mounts"}}


def actions(name: str) -> list[argparse.Action]:
    benchmark = BENCHMARKS[name].load()
    return benchmark.option_parser()._actions if hasattr(benchmark, "option_parser") else []


class OptionsTest(unittest.TestCase):
    def setUp(self) -> None:
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.drawn: list[str] = []
        self.draws_rows = True
        self.lays_out = False  # which takes long

    def draw(self, file: pathlib.Path, make: Callable[[], Figure]) -> None:
        """Makes the figure as plot.save() does, but no files, which take long."""
        if plot.available() and (self.draws_rows or file.name not in self.drawn):
            with style():
                figure = make()
                if self.lays_out:
                    figure.draw_without_rendering()
        self.drawn.append(file.name)

    def run_benchmark(self, name: str, arguments: Sequence[str], quick: bool = False) -> Json:
        """What the benchmark writes. Its output is lost."""
        benchmark, it = BENCHMARKS[name].load(), RECORDED[name]
        for file in self.out.glob("*.json"):
            file.unlink()
        with contextlib.ExitStack() as stack:
            for what, replacement in {"lab.plot.save": self.draw, **it.replaced}.items():
                stack.enter_context(mock.patch(what, replacement))
            if hasattr(benchmark, "require_programs"):
                stack.enter_context(mock.patch.object(benchmark, "require_programs"))
            stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
            options = benchmark.option_parser().parse_args(list(arguments))
            self.assertEqual(benchmark.run(self.out, self.out, quick, options), 0)
        (file,) = self.out.glob("*.json")
        return json.loads(file.read_text())

    def check_benchmark(self, name: str) -> None:
        it = RECORDED[name]
        self.draws_rows = it.draws_rows
        for quick in (False, True):
            with self.subTest(quick=quick):
                self.assertTrue(it.rows(self.run_benchmark(name, [], quick)))
        for turn, arguments in enumerate(it.together):
            self.lays_out = turn == 0
            with self.subTest(arguments=arguments):
                self.run_benchmark(name, arguments)
        self.lays_out = False
        for action in actions(name):
            for text in action.option_strings:
                if text in it.options:
                    self.check_option(name, it, text, it.options[text], action.choices or ())

    def check_option(
        self, name: str, it: Recorded, text: str, option: Option, choices: Sequence[object]
    ) -> None:
        values = option.values or [str(choice) for choice in choices]
        self.assertTrue(values, f"{text} has no values to try")
        for value in values:
            with self.subTest(option=text, value=value):
                rows = it.rows(self.run_benchmark(name, [*it.base, text, value]))
                self.assertTrue(rows)
                self.assertEqual([row for row in rows if not option.holds(row, value)], [])

    def test_no_option_of_a_benchmark_is_forgotten(self) -> None:
        for name in BENCHMARKS:
            it = RECORDED.get(name)
            known = OF_ALL | (set(it.options) | it.others if it else WITHOUT_ROWS.get(name, set()))
            there = {text for action in actions(name) for text in action.option_strings}
            with self.subTest(name):
                self.assertEqual(there - known, set())

    def test_numbers_that_make_no_sense_are_refused(self) -> None:
        for name in BENCHMARKS:
            for action in actions(name):
                if action.type not in (int, float, *vars(numbers).values()):
                    continue
                for value in ("-1", "nan", "x"):
                    with (
                        self.subTest(name, option=action.option_strings[-1], value=value),
                        contextlib.redirect_stderr(io.StringIO()) as errors,
                        self.assertRaises(SystemExit),
                    ):
                        parser = BENCHMARKS[name].load().option_parser()
                        parser.parse_args([f"{action.option_strings[-1]}={value}"])
                    self.assertIn(f"argument {action.option_strings[-1]}: ", errors.getvalue())

    def test_rows_of_totals_that_are_not_there_are_a_problem(self) -> None:
        with self.assertRaisesRegex(Problem, "--rows: no case has a title with 'no such case'"):
            self.run_benchmark("total", ["--rows", "no such case"])

    def test_cycles_that_no_row_has_are_a_problem_and_no_figure(self) -> None:
        with self.assertRaisesRegex(Problem, "no row"):
            self.run_benchmark("control", ["--stages", "7"])
        self.assertEqual(self.drawn, [])


def add_test(name: str) -> None:
    """One test for each benchmark, so that a report names it."""
    setattr(
        OptionsTest,
        f"test_{name}_with_each_of_its_options",
        lambda self: self.check_benchmark(name),
    )


for each in RECORDED:
    add_test(each)

if __name__ == "__main__":
    unittest.main()
