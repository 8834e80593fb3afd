"""Pages whose examples are run: configurations, other files and commands of vpfsctl, with what these print.

A code block that begins with a comment `# NAME` is the file NAME. `vpfs-proxy.yaml` is a proxy's configuration. In
blocks that begin with one of COMMANDS each line `$ ...` is a command, and the lines behind it are its output. Blocks
that begin otherwise are not looked at. A section is the text between two headings of the second level.
"""
from __future__ import annotations

import dataclasses
import pathlib
import re
import shlex
from collections.abc import Iterator

PROMPT = "$ "
COMMANDS = ("vpfsctl", "script/certificates")
CONFIG = "vpfs-proxy.yaml"
FILE_NAME = re.compile(r"# ([\w./-]+\.yaml)$")
REASONS = "docs/admin/find-out-why.md"


@dataclasses.dataclass
class Command:
    text: str  # as it is typed, without the prompt
    output: list[str]

    def words(self) -> list[str]:
        return shlex.split(self.text)


@dataclasses.dataclass
class Section:
    title: str
    steps: list[Command | tuple[str, str]]  # commands, and files with their names, in order


def code_blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """The heading above each indented code block, and its lines without the indentation.

    Commands or another file behind an empty line are a block of their own.
    """
    title, block, before = "", [], ""
    for line in [*text.splitlines(), "end"]:
        if line.startswith("    ") and (block or not before.strip()):
            if block and not before.strip() and (line[4:].startswith(PROMPT) or FILE_NAME.match(line[4:])):
                yield title, trimmed(block)
                block = []
            block.append(line[4:])
        elif block and not line.strip():
            block.append("")
        else:
            if block:
                yield title, trimmed(block)
            block = []
            if line.startswith("## "):
                title = line[3:]
        before = line


def trimmed(block: list[str]) -> list[str]:
    return "\n".join(block).strip("\n").split("\n")


def commands_of(block: list[str]) -> Iterator[Command]:
    command: Command | None = None
    for line in block:
        if line.startswith(PROMPT):
            if command is not None:
                yield command
            command = Command(line[len(PROMPT):], [])
        elif command is not None and command.text.endswith("\\"):
            command.text = command.text[:-1].rstrip() + " " + line.strip()
        elif command is not None:
            command.output.append(line)
    if command is not None:
        yield command


def sections(page: pathlib.Path) -> list[Section]:
    """Those that have something to run."""
    found: dict[str, Section] = {}
    for title, block in code_blocks(page.read_text(encoding="utf-8")):
        section = found.setdefault(title, Section(title, []))
        if name := FILE_NAME.match(block[0]):
            section.steps.append((name[1], "\n".join(block) + "\n"))
        elif block[0].startswith(tuple(PROMPT + command for command in COMMANDS)):
            section.steps += commands_of(block)
    return [section for section in found.values() if section.steps]


class Mask:
    """What differs between two runs of the same command becomes the same."""

    def __init__(self, root: pathlib.Path) -> None:
        told = re.findall(r"^\| `([^`]+)` \|", (root / REASONS).read_text(encoding="utf-8"), re.MULTILINE)
        reasons = sorted((reason for reason in told if " " in reason), key=len, reverse=True)
        self._reasons = re.compile("|".join(re.escape(reason) for reason in reasons))

    def __call__(self, line: str) -> str:
        line = self._reasons.sub("REASON", line)
        line = re.sub(r"\b(share|depth)( +\S+)?$", r"REASON\2", line)
        line = re.sub(r"(\S+ \()?uid \d+\)?", "WHO", line)
        line = re.sub(r"\b(uid|fs)=\d+", r"\1=N", line)
        # Numbers within words are names: job-4711, weight=4.
        line = re.sub(r"(?<![\w=./-])\d[\d.:-]*(?![\w/])", "N", line)
        line = re.sub(r"(?<!\S)-(?!\S)", "N", line)  # a cell without a number
        return " ".join(line.split())

    def lines(self, text: str | list[str]) -> list[str]:
        """Sorted: rows of tables are ordered by numbers."""
        lines = text.splitlines() if isinstance(text, str) else text
        return sorted(self(line) for line in lines if line.strip())
