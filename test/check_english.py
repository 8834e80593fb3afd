#!/usr/bin/env python3
"""Fails on turns of phrase that this code base had too often. Run from the repository root.

It reads documents, man pages, comments (C++, Python, CMake, shell, YAML), literals of more than one
word (C++, Python, shell) and the names of tests. RULES has what it looks for, and what to write
instead. Code spans and code blocks of documents are not looked at. EXCEPTIONS has what is right where
it is.
"""
from __future__ import annotations

import bisect
import dataclasses
import pathlib
import re
import sys
from collections.abc import Iterator

from check_documents import files, text_of, without_code_blocks

# They contain examples of what is wrong.
EXAMPLES = {"check_english.py", "check_english_test.py"}

PERSON = (r"\b(?:administrators?|anybody|anyone|attackers?|authors?|colleagues?|developers?|everybody|everyone|humans?"
          r"|members?|operators?|people|persons?|readers?|someone|those|users?)")
PLACES = ("above|after|ahead|apart|at|before|behind|below|beside|between|beyond|elsewhere|here|idle|in|inside|near|next|on"
          "|outside|over|still|there|together|under|unused|with|within|around|along|beneath")


@dataclasses.dataclass(frozen=True)
class Rule:
    pattern: re.Pattern[str]  # of what is wrong
    advice: str
    fine: re.Pattern[str] | None = None  # of what is right although it contains a match of `pattern`


RULES = (
    Rule(re.compile(r"(?<![\"`'\\])\bwhom?\b(?![\"`'])", re.IGNORECASE), "say which user, client or program",
         re.compile(PERSON + r"(?: +[\w'-]+){0,4},? +who\b|\bWho\b[^.?]*\?", re.IGNORECASE)),
    # A list item, a cell of a table and a string begin a sentence, too.
    Rule(re.compile(r"(?:^|(?<=[.!?:;] ))\W*Of\b"), "begin with the subject"),
    Rule(re.compile(r"\bbut for\b"), "except"),
    Rule(re.compile(r"\b(?:he|his|him|she|her|hers|somebody|nobody|everybody|anybody)\b", re.IGNORECASE),
         "say which user, client or program, or: it, one, none, each, any"),
    Rule(re.compile(r"\b(?:is|are|was|were) no\b(?! +(?:longer|more|less|better|worse|\w+er than)\b)"), "is not a",
         re.compile(r"\bthere (?:is|are|was|were) no\b", re.IGNORECASE)),
    Rule(re.compile(r"\b(?:stands?|stood)\b(?! +(?:for|in for)\b)(?!-)", re.IGNORECASE), "is"),
    Rule(re.compile(rf"\b(?:lies?|lay)\b(?= +(?:{PLACES})\b)|\bwhere\b[^.,:;]*\b(?:lies?|lay)\b", re.IGNORECASE), "is"),
)

# File, phrase, and why it is right there.
EXCEPTIONS: tuple[tuple[str, str, str], ...] = ()


@dataclasses.dataclass
class Piece:
    """Text that belongs together: a paragraph, a comment, or a string."""

    lines: list[tuple[int, str]]  # their numbers in the file

    def text(self) -> str:
        return " ".join(line for _, line in self.lines)

    def line_at(self, offset: int) -> int:
        begins, begin = [], 0
        for _, line in self.lines:
            begins.append(begin)
            begin += len(line) + 1
        return self.lines[bisect.bisect_right(begins, offset) - 1][0]


CPP = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(?P<end>[^(\s"]*)\((?P<raw>.*?)\)(?P=end)"|"(?P<string>(?:[^"\\\n]|\\.)*)\""""
                 r"""|(?<![\da-fA-F])'(?:[^'\\\n]|\\.){1,4}'""", re.DOTALL)
PYTHON = re.compile(r'''#[^\n]*|(?P<regex>\b[bf]?r[bf]?)?(?:"""(?P<raw>.*?)"""|"(?P<string>(?:[^"\\\n]|\\.)*)"'''
                    r"""|'(?P<single>(?:[^'\\\n]|\\.)*)')""", re.DOTALL | re.IGNORECASE)
TEST_NAME = re.compile(r"^(?:TEST(?:_F|_P)?\(\w+,\s*(\w+)\)|\s*def test_(\w+)\()", re.MULTILINE)
HASH = re.compile(r"(?:^|(?<=\s))#[^\n]*")
SHELL = re.compile(HASH.pattern + r'|"(?P<string>(?:[^"\\\n]|\\.)*)"')
MARK = re.compile(r"^\s*(?:///?<?|#+!?|/\*+|\*+/?)\s?")  # of a comment
LITERAL_DISPLAY = re.compile(r"^\.Bd -literal.*?^\.Ed$", re.DOTALL | re.MULTILINE)  # of a man page
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")  # of a list


def pieces_of_code(text: str, tokens: re.Pattern[str]) -> Iterator[Piece]:
    begins = [0, *(match.end() for match in re.finditer("\n", text))]
    comment: list[tuple[int, str]] = []
    strings: list[tuple[int, str]] = []
    string_end = comment_column = 0
    for token in tokens.finditer(text):
        number = bisect.bisect_right(begins, token.start())
        column = token.start() - begins[number - 1]
        named = token.groupdict()
        literal = next((named[name] for name in ("raw", "string", "single") if named.get(name) is not None), None)
        if literal is not None:
            if text[string_end:token.start()].strip() and strings:
                yield Piece(strings)
                strings = []
            string_end = token.end()
            if not named.get("regex"):
                strings += [(number + index, line) for index, line in enumerate(literal.replace("\\n", "  ").split("\n"))]
            continue
        if token[0].startswith(("'", "#!")):
            continue
        if token[0].startswith("/*"):
            yield Piece([(number + index, MARK.sub("", line)) for index, line in enumerate(token[0].split("\n"))])
            continue
        is_whole = not text[begins[number - 1]:token.start()].strip()
        follows = bool(comment) and comment[-1][0] == number - 1 and is_whole and column == comment_column
        said = MARK.sub("", token[0])
        if comment and (not follows or not said.strip() or ITEM.match(said)):
            yield Piece(comment)
            comment = []
        if said.strip():
            comment.append((number, said.strip()))
            comment_column = column
    yield from (Piece(rest) for rest in (comment, strings) if rest)


def pieces_of_test_names(text: str) -> Iterator[Piece]:
    for name in TEST_NAME.finditer(text):
        words = re.sub(r"_|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name[1] or name[2]).lower()
        yield Piece([(text.count("\n", 0, name.end()) + 1, words)])


def pieces_of_document(text: str) -> Iterator[Piece]:
    text = without_code_blocks(text)
    text = LITERAL_DISPLAY.sub(lambda block: re.sub(r"[^\n]", "", block[0]), text)
    text = re.sub(r"`[^`]+`|\]\([^)]*\)", lambda span: re.sub(r"[^\n`)]", "x", span[0]), text)
    paragraph: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        is_alone = line.startswith(("#", "|", "."))
        if paragraph and (not line.strip() or ITEM.match(line) or is_alone):
            yield Piece(paragraph)
            paragraph = []
        if line.startswith("|"):
            yield from (Piece([(number, cell.strip())]) for cell in line.split("|") if cell.strip())
        elif is_alone:  # a heading, or a line of a man page that begins with a macro
            yield Piece([(number, re.sub(r"^(?:#+|\.\w+) ?", "", line))])
        elif line.strip():
            paragraph.append((number, ITEM.sub("", line).strip()))
    if paragraph:
        yield Piece(paragraph)


def pieces_of(file: pathlib.Path, text: str) -> Iterator[Piece]:
    if file.suffix == ".md" or (file.suffix == ".in" and "man" in file.parts):
        yield from pieces_of_document(text)
    elif file.suffix in {".cc", ".h", ".c", ".proto"}:
        yield from pieces_of_code(text, CPP)
        yield from pieces_of_test_names(text)
    elif file.suffix == ".py":
        yield from pieces_of_code(text, PYTHON)
        yield from pieces_of_test_names(text)
    elif file.suffix == ".sh" or text.startswith("#!"):
        yield from pieces_of_code(text, SHELL)
    elif file.suffix in {".yaml", ".yml", ".cmake"} or file.name == "CMakeLists.txt":
        yield from pieces_of_code(text, HASH)


def wrong_in(text: str) -> Iterator[tuple[int, str, str]]:
    """Where it begins, what it is, and the advice."""
    for rule in RULES:
        fine = [match.span() for match in rule.fine.finditer(text)] if rule.fine else []
        for match in rule.pattern.finditer(text):
            if not any(begin <= match.start() and match.end() <= end for begin, end in fine):
                yield match.start(), match[0], rule.advice


def problems_of(file: pathlib.Path, text: str, used: set[int]) -> Iterator[str]:
    for piece in pieces_of(file, text):
        said = piece.text()
        if " " not in said.strip():
            continue  # a name
        for begin, _, advice in wrong_in(said):
            around = said[max(0, begin - 40):begin + 60]
            excused = {index for index, (where, phrase, _) in enumerate(EXCEPTIONS)
                       if where == file.as_posix() and phrase in around}
            used |= excused
            if not excused:
                yield f"{file}:{piece.line_at(begin)}: \"...{around.strip()}...\": {advice}"


def main() -> int:
    problems: list[str] = []
    used: set[int] = set()
    for file in files():
        if file.name not in EXAMPLES:
            problems += problems_of(file, text_of(file), used)
    problems += [f"test/check_english.py: the exception \"{phrase}\" of {where} is not needed: take it out"
                 for index, (where, phrase, _) in enumerate(EXCEPTIONS) if index not in used]
    print("\n".join(problems) or "english: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
