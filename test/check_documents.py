#!/usr/bin/env python3
"""Fails when a document says too little, points nowhere or is too wide. Run from the repository root.

What programs read and print is explained: every word of a configuration and every field of a result
stands in a code span of its page, every key in the first column of a page's tables is one that the
program knows, and find-out-why.md has every reason for which a request waits.

Links lead to files and headings that exist. So do documents and example configurations that sources
name ("docs/x.md", and "section 4" behind it).

Lines have at most 100 columns. Only two kinds may have more, since Markdown cannot break them: a
line with a single word, such as a URL, and the row of a table, which may have up to 160.
"""
from __future__ import annotations

import dataclasses
import pathlib
import re
import sys
from collections.abc import Iterator

COLUMNS = 100
ROW_COLUMNS = 160
NOT_OURS = {"build", ".git", "bench-out", "demo-out"}
SOURCES = {".cc", ".h", ".c", ".py", ".sh", ".yaml", ".yml", ".txt", ".cmake", ".json", ".in", ""}
WORD = re.compile(r"[a-z][a-z0-9_]*")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
CODE_SPAN = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAMED = re.compile(r"\b((?:docs|conf)/[\w./-]*\w\.(?:md|yaml))(?:(?:,| |:)+section (\d+))?")


@dataclasses.dataclass(frozen=True)
class Page:
    """Sources whose lower-case words a page explains, as keys, choices or fields."""

    page: str
    sources: tuple[str, ...]  # ends of paths: folders may move
    least: int  # words that must be found: else the sources are not read as they are written
    only_keys: bool  # whether the first column of its tables has nothing but such words


CONFIGURE = Page("docs/admin/configure.md",
                 ("proxy/config.cc", "stage/config.cc", "stage/job_config.cc", "stage/rule_config.cc",
                  "stage/scheduler_config.cc"), 90, True)
NUMBERS = Page("docs/admin/numbers.md", ("proxy/status.cc",), 70, True)
TOOLS = Page("docs/tools.md", ("load/settings.cc", "load/report.cc", "dataserver/server_config.cc"), 70, True)
# The names of policies and protocols are registered where they are made.
NAMES = Page("docs/admin/configure.md", ("schedulers/registry.cc", "protocols/registry.cc"), 7, False)
PAGES = (CONFIGURE, NUMBERS, TOOLS, NAMES)

REASONS = "docs/admin/find-out-why.md"
REASON_SOURCES = ("schedulers/adaptbf.cc", "schedulers/depth_gate.cc", "schedulers/edf.cc", "schedulers/fifo.cc",
                  "schedulers/policy.h", "schedulers/scheduler.cc", "schedulers/sfq.cc", "schedulers/tbf.cc",
                  "proxy/status_snapshot.cc")
LEAST_REASONS = 15


def files() -> Iterator[pathlib.Path]:
    for file in sorted(pathlib.Path(".").rglob("*")):
        if file.is_file() and file.parts[0] not in NOT_OURS and "data" not in file.parts:
            yield file


def text_of(file: pathlib.Path) -> str:
    return file.read_text(encoding="utf-8")


def source(end: str) -> pathlib.Path:
    """The file with this end of its path."""
    found = [file for file in files() if file.as_posix() == end or file.as_posix().endswith(f"/{end}")]
    if len(found) != 1:
        raise SystemExit(f"test/check_documents.py: {len(found)} files end in {end}: say which one is meant")
    return found[0]


def literals(end: str) -> list[str]:
    """The texts in a source; of its code, not of its comments and includes."""
    code = [line for line in text_of(source(end)).splitlines() if not re.match(r"\s*(//|#\s*include)", line)]
    # Literals that stand side by side are one.
    return LITERAL.findall(re.sub(r'"\s*\n\s*"', "", "\n".join(code)))


def without_code_blocks(text: str) -> str:
    """The same lines; those of fenced code and of indented code that follows a blank line are empty."""
    lines, fenced, before, indented = [], False, "", False
    for line in text.splitlines():
        is_fence = line.lstrip().startswith("```")
        fenced ^= is_fence
        indented = line.startswith("    ") and (indented or not before.strip())
        lines.append("" if fenced or is_fence or indented else line)
        before = line
    return "\n".join(lines)


def explained(text: str) -> set[str]:
    return {word for span in CODE_SPAN.findall(text) for word in WORD.findall(span)}


def first_cells(text: str) -> Iterator[str]:
    """Each code span in the first column of a table."""
    for line in text.splitlines():
        if line.startswith("|"):
            yield from CODE_SPAN.findall(line.split("|")[1])


def check_words() -> Iterator[str]:
    known: dict[str, set[str]] = {}
    for page in PAGES:
        words = {text for end in page.sources for text in literals(end) if WORD.fullmatch(text)}
        if len(words) < page.least:
            yield f"{', '.join(page.sources)}: {len(words)} words found, {page.least} expected: look how they are read"
        known.setdefault(page.page, set()).update(words)
        said = explained(text_of(pathlib.Path(page.page)))
        for word in sorted(words - said):
            # The code makes some names of two parts.
            if not (word.endswith("_") and any(each.startswith(word) for each in said)):
                yield f"{page.page}: does not explain `{word}` of {', '.join(page.sources)}"
    for page in (page for page in PAGES if page.only_keys):
        parts = [word for word in known[page.page] if word.endswith("_")]
        for cell in first_cells(text_of(pathlib.Path(page.page))):
            for word in WORD.findall(cell):
                if word not in known[page.page] and not any(word.startswith(part) for part in parts):
                    yield f"{page.page}: explains `{cell}`, but no source knows `{word}`"


def check_reasons() -> Iterator[str]:
    reasons = set()
    for end in REASON_SOURCES:
        # A reason is a sentence; other texts of these files are names.
        reasons |= {text for text in literals(end) if text.count(" ") >= 2 and "{" not in text and text[-1].isalpha()
                    and not text.endswith("first:")}
    if len(reasons) < LEAST_REASONS:
        yield f"{', '.join(REASON_SOURCES)}: {len(reasons)} reasons found, {LEAST_REASONS} expected"
    told = set(CODE_SPAN.findall(text_of(pathlib.Path(REASONS))))
    for reason in sorted(reasons - told):
        yield f"{REASONS}: does not explain `{reason}`"


def anchors(text: str) -> set[str]:
    """As GitHub makes them from headings."""
    found: dict[str, int] = {}
    made = set()
    for title in re.findall(r"^#+ +(.*)$", without_code_blocks(text), re.MULTILINE):
        title = LINK.sub(lambda link: link[0][1:link[0].index("]")], title)
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        number = found.get(anchor, 0)
        found[anchor] = number + 1
        made.add(f"{anchor}-{number}" if number else anchor)
    return made


def check_links(file: pathlib.Path) -> Iterator[str]:
    # A link may go over the end of a line.
    for link in LINK.finditer(without_code_blocks(text_of(file))):
        target, _, anchor = link[1].partition("#")
        if re.match(r"[a-z]+:", target):
            continue  # another site's
        there = pathlib.Path((file.parent / target).resolve()) if target else file.resolve()
        if not there.exists():
            yield f"{file}: links to {target}, which does not exist"
        elif anchor and anchor not in anchors(text_of(there)):
            yield f"{file}: {link[1]}: there is no such heading"


def check_names(file: pathlib.Path) -> Iterator[str]:
    text = re.sub(r"\n\s*(//|#|\*)?\s*", " ", text_of(file))  # a name and its section may stand on two lines
    for name, section in set(NAMED.findall(text)):
        there = pathlib.Path(name)
        if not there.is_file():
            yield f"{file}: names {name}, which does not exist"
        elif section and not re.search(rf"^## {section}\. ", text_of(there), re.MULTILINE):
            yield f"{file}: names section {section} of {name}, which has none"


def check_columns(file: pathlib.Path) -> Iterator[str]:
    for number, line in enumerate(text_of(file).splitlines(), 1):
        if len(line) <= COLUMNS or (file.suffix == ".md" and len(line.lstrip("-*# ").split()) == 1):
            continue
        most = ROW_COLUMNS if file.suffix == ".md" and line.startswith("|") else COLUMNS
        if len(line) > most:
            yield f"{file}:{number}: {len(line)} columns, at most {most}"


def main() -> int:
    problems = [*check_words(), *check_reasons()]
    for file in files():
        is_document = file.suffix == ".md"
        if is_document:
            problems += check_links(file)
        if is_document or file.parts[0] == "conf":
            problems += check_columns(file)
        if is_document or (file.suffix in SOURCES and file.name != pathlib.Path(__file__).name):
            problems += check_names(file)
    print("\n".join(problems) or "documents: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
