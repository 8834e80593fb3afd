#!/usr/bin/env python3
"""What zsh and fish propose for a command line that is not complete. completion_test.cc asks bash.

    shells_test.py BUILD
"""
from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD: list[pathlib.Path] = []
PROGRAMS = ["vpfs-coordinator", "vpfs-load", "vpfs-proxy", "vpfs-sim", "vpfsctl"]
# The functions of zsh's completion system print what they are given.
ZSH = """
local file=$1; shift
words=("$@"); CURRENT=${#words}
_describe() { [[ $1 == -o ]] && shift; print -rl -- ${(P)2}; }
compadd() { [[ $1 == -- ]] && shift; print -rl -- "$@"; }
_files() { print FILES; }
complete() { source $file; }
complete
"""


def run(*command: str) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="vpfs") as home:  # fish writes into it
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30,
                              env={"PATH": f"{BUILD[0]}/bin:/usr/bin:/bin", "HOME": home, "TERM": "dumb"})
    if done.stderr:
        raise AssertionError(f"{command}: {done.stderr}")
    return done.stdout.splitlines()


@unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
class ZshTest(unittest.TestCase):
    def propose(self, *words: str) -> list[str]:
        """Words, without their descriptions. Those that do not fit what is typed are among them: zsh leaves them out."""
        file = BUILD[0] / "completions" / f"_{words[0]}"
        return [line.partition(":")[0] for line in run("zsh", "-f", "-c", ZSH, "zsh", str(file), *words)]

    def test_each_program_has_a_file_that_zsh_understands(self) -> None:
        for program in PROGRAMS:
            run("zsh", "-n", str(BUILD[0] / "completions" / f"_{program}"))
            self.assertIn("--help", self.propose(program, "-"))

    def test_commands_and_their_commands(self) -> None:
        self.assertIn("rule", self.propose("vpfsctl", ""))
        self.assertNotIn("start", self.propose("vpfsctl", ""))
        self.assertIn("start", self.propose("vpfsctl", "--json", "--proxy", "/a.sock", "rule", ""))

    def test_options_of_the_command_and_of_the_program(self) -> None:
        words = self.propose("vpfsctl", "rule", "apply", "--")
        self.assertLessEqual({"--dry-run", "--confirm", "--file", "--proxy", "--json"}, set(words))
        self.assertNotIn("--best-effort", words)

    def test_files_and_choices(self) -> None:
        self.assertEqual(self.propose("vpfsctl", "rule", "apply", "-f", ""), ["FILES"])
        self.assertEqual(self.propose("vpfsctl", "stat", "--sort", ""), ["bytes", "iops", "queue", "wait", "share", "name"])
        self.assertEqual(self.propose("vpfsctl", "bypass", ""), ["on", "off"])
        self.assertEqual(self.propose("vpfsctl", "top", "--period", ""), [])

    def test_a_proxy_that_is_not_there_gives_no_words(self) -> None:
        self.assertEqual([word for word in self.propose("vpfsctl", "--proxy", "/no.sock", "rule", "stop", "") if word], [])


@unittest.skipUnless(shutil.which("fish"), "fish is not installed")
class FishTest(unittest.TestCase):
    def propose(self, program: str, words: str) -> list[str]:
        file = BUILD[0] / "completions" / f"{program}.fish"
        lines = run("fish", "--no-config", "-c", f"source '{file}'; complete -C '{program} {words}'")
        return [line.partition("\t")[0] for line in lines]

    def test_each_program_has_a_file_that_fish_understands(self) -> None:
        for program in PROGRAMS:
            self.assertIn("--help", self.propose(program, "--he"))

    def test_commands_and_their_commands(self) -> None:
        self.assertEqual(self.propose("vpfsctl", "ru"), ["rule"])
        self.assertEqual(self.propose("vpfsctl", "job st"), ["start", "stop"])
        self.assertEqual(self.propose("vpfsctl", "--json --proxy /a.sock rule ch"), ["change"])

    def test_options_of_the_command_and_of_the_program(self) -> None:
        words = self.propose("vpfsctl", "rule apply --")
        self.assertLessEqual({"--dry-run", "--confirm", "--file", "--proxy", "--json"}, set(words))
        self.assertNotIn("--best-effort", words)

    def test_choices(self) -> None:
        self.assertEqual(sorted(self.propose("vpfsctl", "stat --sort ")),
                         ["bytes", "iops", "name", "queue", "share", "wait"])
        self.assertEqual(sorted(self.propose("vpfsctl", "bypass ")), ["off", "on"])
        self.assertEqual(self.propose("vpfsctl", "top --period "), [])

    def test_a_proxy_that_is_not_there_gives_no_words(self) -> None:
        self.assertEqual(self.propose("vpfsctl", "--proxy /no.sock rule stop "), [])


if __name__ == "__main__":
    BUILD.append(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
