#!/usr/bin/env python3
"""What check_english.py finds in each kind of file, and what it leaves."""
from __future__ import annotations

import pathlib
import unittest
from unittest import mock

import check_english

# For each rule: what is wrong by it, and what is right.
RULES = {
    "who": (
        ["It refuses who is no stage.", "Who has a rate waits.", "a flow who comes late", "to whom it sends"],
        ["users who wait", "an administrator of the site who asks", "those who may write", "whoever pauses, whose slot",
         "Who may change rules, and who may look?", "the key \"who\" of a line", "read 'who' there"]),
    "Of": (
        ["Of the others, some wait.", "It waits. Of the rest nothing is known.", "two: Of each one half"],
        ["A part of it waits.", "It is of the last cycle.", "Off by one.", "// Often it waits."]),
    "but for": (["All pass but for the last one."], ["not once but forever", "It waits, but force ends it."]),
    "he": (
        ["Somebody has moved the file.", "the client and his share", "nobody waits", "if he asks", "anybody may call it",
         "it stops everybody"],
        ["the history of this", "the theme", "nobodies", "No client waits, and each is served."]),
    "is no": (
        ["it is no stage", "these are no faults", "that was no error", "It is no member"],
        ["it is not a stage", "it is no longer there", "it is no more than that", "there is no stage",
         "There are no revocation lists.", "The fast way is no faster than that", "it is no less"]),
    "stands": (
        ["It stands in front of a server.", "options may stand there", "a clock that stood still"],
        ["It stands for a host.", "It stands in for another.", "a stand-in", "it withstands that", "the standard"]),
    "lies": (
        ["The file lies on two servers.", "bytes that lie together", "where its data lie", "Where should a job's data lie: here?"],
        ["A server that lies is found out.", "each lie is counted", "the flow lies about its counters", "a layer"]),
}


def found(text: str, name: str = "x.md") -> list[str]:
    """The problems of a file with this text."""
    return list(check_english.problems_of(pathlib.Path(name), text, set()))


def lines_of(text: str, name: str) -> list[int]:
    return sorted(int(problem.split(":")[1]) for problem in found(text, name))


class Rules(unittest.TestCase):
    def test_each_finds_what_is_wrong(self) -> None:
        for rule, (wrong, _) in RULES.items():
            for text in wrong:
                with self.subTest(rule, text=text):
                    self.assertTrue(found(text))

    def test_each_leaves_what_is_right(self) -> None:
        for rule, (_, right) in RULES.items():
            for text in right:
                with self.subTest(rule, text=text):
                    self.assertEqual(found(text), [])

    def test_there_are_examples_for_all(self) -> None:
        self.assertEqual(len(RULES), len(check_english.RULES))

    def test_a_phrase_may_go_over_the_end_of_a_line(self) -> None:
        self.assertEqual(lines_of("All of them pass, but\nfor the last one.\n", "x.md"), [1])
        self.assertEqual(lines_of("// One passes. It is\n// no stage.\n", "x.cc"), [1])


class Documents(unittest.TestCase):
    def test_paragraphs_items_headings_and_cells_are_read(self) -> None:
        self.assertEqual(lines_of("# Who waits\n\nText.\nIt is no stage.\n\n- Of all\n- fine\n  Nobody else\n"
                                  "\n| a | Of both |\n|---|---|\n| it stands there | b |\n", "x.md"), [1, 4, 6, 8, 10, 12])

    def test_code_and_targets_of_links_are_not(self) -> None:
        self.assertEqual(found("Text `vpfsctl who is` and `who`\nand [it](x.md#who-waits).\n\n    $ who waits for nobody\n"
                               "\n```\nOf all nobody waits\n```\n"), [])

    def test_a_man_page_is_read_without_its_macros_and_examples(self) -> None:
        self.assertEqual(lines_of(".Sh DESCRIPTION\n.Nm\nstands before a server.\n.It Of all\n.Bd -literal -offset indent\n"
                                  "vpfsctl who waits\n.Ed\nIt is no proxy.\n", "docs/man/x.8.in"), [3, 4, 8])


class Code(unittest.TestCase):
    def test_comments_and_literals_of_cpp_are_read(self) -> None:
        self.assertEqual(lines_of("// Fine.\n// Of all.\nint a;  // nobody waits\nint b;  /* it\n   stands there */\n"
                                  "f(\"it is no\"\n  \" stage\");\nR\"(one\nwho waits)\";\n", "x.cc"), [2, 3, 5, 6, 9])

    def test_names_and_characters_of_cpp_are_not(self) -> None:
        self.assertEqual(found("int who = nobody();\nkey(\"who\");\nchar c = '\"'; g(who, is_no, '\"');\n"
                               "int n = 10'000; h(nobody, 1'0);\n", "x.cc"), [])

    def test_a_url_in_a_literal_is_no_comment(self) -> None:
        self.assertEqual(found("f(\"http://x\"); who(nobody);\n", "x.cc"), [])

    def test_a_trailing_comment_goes_on_in_its_column(self) -> None:
        self.assertEqual(lines_of("int a;  // it is\n        // no stage\nint b;  // it is\n// no stage\n", "x.cc"), [1])

    def test_comments_and_literals_of_python_are_read(self) -> None:
        self.assertEqual(lines_of('"""Fine.\n\nNobody waits.\n"""\na = "who waits"  # it is no stage\n'
                                  "b = f'it stands {here}'\n", "x.py"), [3, 5, 5, 6])

    def test_names_and_regular_expressions_of_python_are_not(self) -> None:
        self.assertEqual(found('who = nobody["who"]\nre.compile(r"\\bwho waits")\n', "x.py"), [])

    def test_names_of_tests_are_read(self) -> None:
        self.assertEqual(lines_of("TEST(Who, ASlotThatNobodyWaitsForIsKept) {}\nTEST_F(Sim,\n       ItIsNoMember) {}\n"
                                  "TEST_P(Who, NoClientWaits) {}\n", "x.cc"), [1, 3])
        self.assertEqual(lines_of("def test_who_waits() -> None:\ndef test_a_client_waits() -> None:\n"
                                  "def who_waits() -> None:\n", "x.py"), [1])

    def test_comments_and_quoted_texts_of_shell_scripts_are_read(self) -> None:
        self.assertEqual(lines_of("#!/bin/sh\n# Of all.\nnobody waits ${1#who waits}\necho \"it is no stage\"\n"
                                  "x=\"$y # nobody waits\"\n", "script/x"), [2, 4, 5])
        self.assertEqual(lines_of("echo nobody waits\n# Of all.\n", "x.sh"), [2])

    def test_only_comments_of_settings_are_read(self) -> None:
        for name in ("x.yaml", "x.cmake", "y/CMakeLists.txt"):
            self.assertEqual(lines_of("# Of all.\necho nobody waits $# who\na: b  # it stands there\n", name), [1, 3])
            self.assertEqual(found('set(X "nobody waits # here")\n', name), [])
        self.assertEqual(found("# Of all.\n", "x.txt"), [])


class Exceptions(unittest.TestCase):
    def test_excuse_a_phrase_in_its_file_alone(self) -> None:
        with mock.patch.object(check_english, "EXCEPTIONS", (("x.md", "nobody waits", "a reason"),)):
            self.assertEqual(found("There nobody waits.\n"), [])
            self.assertEqual(len(found("There nobody waits.\n", "y.md")), 1)
            self.assertEqual(len(found("There nobody asks.\n")), 1)

    def test_are_noted_when_they_are_used(self) -> None:
        used: set[int] = set()
        with mock.patch.object(check_english, "EXCEPTIONS", (("y.md", "nobody waits", ""), ("x.md", "nobody waits", ""))):
            list(check_english.problems_of(pathlib.Path("x.md"), "There nobody waits.\n", used))
        self.assertEqual(used, {1})


if __name__ == "__main__":
    unittest.main()
