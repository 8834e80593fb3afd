"""Which Python a script ends up in, with stand-ins for the distribution's."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab import interpreter  # noqa: E402


class InterpreterTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def distribution(self, *missing: str) -> str:
        """An interpreter that answers that it lacks these packages, and says how it was called
        otherwise.
        """
        file = self.folder / "python3"
        file.write_text(
            f'#!/bin/sh\nif [ "$1" = -c ]; then echo {" ".join(missing)}; else echo "$0 $*"; fi\n'
        )
        file.chmod(0o755)
        return str(file)

    def best(self, here: list[str], distribution: str) -> str:
        with (
            mock.patch.object(interpreter, "lacking_here", return_value=here),
            mock.patch.object(interpreter, "DISTRIBUTION", distribution),
        ):
            return interpreter.best()

    def run_script(self, distribution: str) -> subprocess.CompletedProcess[str]:
        """A script as those of script/ are, by this interpreter without any of its packages."""
        script = self.folder / "run_it.py"
        script.write_text(
            f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom lab import interpreter\n"
            "interpreter.DISTRIBUTION = "
            f"{distribution!r}\ninterpreter.with_packages()\nprint('went on')\n"
        )
        # Neither site packages nor those of PYTHONPATH.
        return subprocess.run(
            [sys.executable, "-I", "-S", "-B", script, "--quick"],
            capture_output=True,
            text=True,
            env=os.environ | {"LC_ALL": "C"},
        )

    def test_an_interpreter_with_all_packages_stays(self) -> None:
        self.assertEqual(self.best([], self.distribution()), sys.executable)

    def test_the_distributions_interpreter_is_taken_only_if_it_has_more(self) -> None:
        everything, half = list(interpreter.PACKAGES), ["matplotlib"]
        self.assertEqual(
            self.best(everything, self.distribution("matplotlib")), str(self.folder / "python3")
        )
        self.assertEqual(self.best(half, self.distribution("matplotlib")), sys.executable)
        self.assertEqual(self.best(half, "/no/such/python3"), sys.executable)

    def test_what_an_interpreter_lacks_is_what_it_cannot_import(self) -> None:
        with mock.patch.object(interpreter, "PACKAGES", {"json": "", "no_such_package": ""}):
            self.assertEqual(interpreter.lacking(sys.executable), ["no_such_package"])
            self.assertEqual(interpreter.lacking("/no/such/python3"), ["json", "no_such_package"])

    def test_a_script_starts_again_with_its_arguments_where_the_packages_are(self) -> None:
        done = self.run_script(self.distribution())
        self.assertEqual(
            done.stdout, f"{self.folder}/python3 {self.folder}/run_it.py --quick\n", done.stderr
        )

    def test_a_script_that_no_interpreter_can_run_says_in_one_line_what_to_install(self) -> None:
        done = self.run_script("/no/such/python3")
        self.assertEqual((done.returncode, done.stdout, len(done.stderr.splitlines())), (1, "", 1))
        self.assertRegex(
            done.stderr, "run_it.py: .*tabulate.*install python3-tabulate.*script/bootstrap"
        )

    def test_without_matplotlib_alone_a_script_goes_on(self) -> None:
        (self.folder / "tabulate.py").touch()
        done = subprocess.run(
            [
                sys.executable,
                "-S",
                "-B",
                "-c",
                "import sys; sys.path[:0] = sys.argv[1:]; from lab import interpreter; "
                "interpreter.DISTRIBUTION = '/no/such/python3'; interpreter.with_packages(); "
                "print('went on')",
                str(self.folder),
                str(ROOT),
            ],
            capture_output=True,
            text=True,
            cwd=self.folder,
        )
        self.assertEqual(done.stdout, "went on\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
