#!/usr/bin/env python3
"""Fails when a document says too little, points nowhere or is too wide. Run from the repository root.

What programs read and print is explained. Every key of a configuration and every field of the status
is in the first column of a table of its page, or in a heading, and every other word (a choice, a
field of a result) in a code span. The first columns have nothing that the program does not know.
find-out-why.md has every reason for which a request waits.

Links lead to files and headings that exist. So do documents and example configurations that sources
name ("docs/x.md", and "section 4" behind it).

Lines have at most 100 columns, rows of tables and code among them: what does not fit into a row is a
list. Only a line that is a single word, such as a URL, one of JSON, and what a command in an example
prints may have more.
"""
from __future__ import annotations

import dataclasses
import functools
import pathlib
import re
import sys
from collections.abc import Iterator

COLUMNS = 100
NOT_OURS = {"build", ".git", "bench-out", "demo-out"}
SOURCES = {".cc", ".h", ".c", ".py", ".sh", ".yaml", ".yml", ".txt", ".cmake", ".json", ".in", ""}
WORD = re.compile(r"[a-z][a-z0-9_]*")
KEY = re.compile(r'\.(?:get|choose|require|child|for_each|for_each_named)\(\s*"([a-z][a-z0-9_]*)"')
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
CODE_SPAN = re.compile(r"`([^`]+)`")
# What a policy's own file reads of the configuration, and what it says in status.
POLICY_KEY = re.compile(r'(?:\.(?:get|choose|require|child)\(\s*|ShareWord\{\.name = )"([a-z][a-z0-9_]*)"')
POLICY_FIELD = re.compile(r'(?:fields\.add\(\s*\{\s*\.name = |\badd\(|ShareWord\{\.name = )"([a-z][a-z0-9_]*)"')
REGISTERED = re.compile(r'(?:kKind = |Protocol)\{\s*\.name = "([a-z][a-z0-9_]*)"')
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAMED = re.compile(r"\b((?:docs|conf)/[\w./-]*\w\.(?:md|yaml))(?:(?:,| |:)+section (\d+))?")


@dataclasses.dataclass(frozen=True)
class Page:
    """Sources whose lower-case words a page explains, as keys, choices or fields."""

    page: str
    sources: tuple[str, ...]  # ends of paths: folders may move
    least: int  # words that must be found: else the sources are not read as they are written
    columns: bool = True  # whether first columns have nothing but such words
    all_in_columns: bool = False  # whether first columns and headings have all of them
    pattern: re.Pattern[str] = LITERAL  # of the words
    units: tuple[str, ...] = ("",)  # that the program may put behind a word


CONFIGURE = Page("docs/admin/configure.md",
                 ("control/wire/port_config.cc", "control/host/config.cc", "control/handover/restart.cc",
                  "proxy/config/config.cc", "base/log/log_config.cc",
                  "stage/config/config.cc", "stage/config/job_config.cc", "stage/config/rule_config.cc",
                  "stage/config/policy_plugins.cc", "stage/config/rule_words.cc", "stage/config/scheduler_config.cc", "stage/config/share_config.cc",
                  "metrics/http_config.cc"), 90)
COORDINATOR = Page("docs/admin/coordinator-configuration.md", ("coordinator/config/config.cc", "coordinator/config/store_config.cc",
                                                                "base/log/log_config.cc"), 55)
NUMBERS = Page("docs/admin/numbers.md", ("proxy/status.cc", "control/host/status.cc", "control/site/site_status.cc",
                                          "coordinator/members/member.cc"), 110,
               all_in_columns=True)
TOOLS = Page("docs/tools.md", ("load/settings.cc", "load/report.cc", "dataserver/orangefs/server_config.cc"), 70)
METRICS = Page("docs/admin/monitoring.md", ("metrics/metrics.cc", "control/site/site_metrics.cc"), 60, all_in_columns=True,
               pattern=re.compile(r'"(vpfs_[a-z0-9_]*)"'))
# The names of policies and protocols are registered where they are made.
REGISTRY = pathlib.Path("schedulers/policies/registry.cc")
POLICIES = tuple(f"{name}.cc" for name in re.findall(r'#include "(schedulers/policies/(?!registry)\w+)\.h"',
                                                     REGISTRY.read_text()))
NAMES = Page("docs/admin/configure.md", (*POLICIES, "protocols/registry.cc"), 7, columns=False, pattern=REGISTERED)
POLICY_KEYS = Page("docs/admin/configure.md", (*POLICIES, "schedulers/policies/anticipation_settings.cc"), 12,
                   pattern=POLICY_KEY)
POLICY_FIELDS = Page("docs/admin/numbers.md", (*POLICIES, "schedulers/policies/anticipation.cc",
                                                  "schedulers/rate_limits.cc", "schedulers/status_fields.cc"),
                     10, all_in_columns=True, pattern=POLICY_FIELD, units=("", "_us"))
CLUSTERS = Page("docs/simulator.md", tuple(f"sim/cluster/{name}" for name in (
    "application_section.cc", "given_section.cc", "network_section.cc", "scenario.cc", "words.h")), 70, columns=False)
PAGES = (CLUSTERS, CONFIGURE, COORDINATOR, NUMBERS, METRICS, TOOLS, NAMES, POLICY_KEYS, POLICY_FIELDS)

DECISION = re.compile(r"# (\d{4}): .+\n\nDate: \d{4}-\d\d-\d\d\n\nStatus: (?:in force|superseded by (\d{4}))\n")
DECISION_PARTS = ["Question", "Choice", "Why", "Not chosen"]

REASONS = "docs/admin/find-out-why.md"
REASON_SOURCES = (*POLICIES, "schedulers/depth_gate.cc", "schedulers/policy.h", "schedulers/scheduler.cc",
                  "control/admin/stage_snapshot.cc")
LEAST_REASONS = 15


@functools.cache
def files() -> list[pathlib.Path]:
    """All files of the tree, without what is built or captured."""
    tops = [top for top in sorted(pathlib.Path(".").iterdir()) if top.name not in NOT_OURS]
    found = [file for top in tops for file in ([top] if top.is_file() else sorted(top.rglob("*")))]
    return [file for file in found if file.is_file() and "data" not in file.parts]


@functools.cache
def text_of(file: pathlib.Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def source(end: str) -> pathlib.Path:
    """The file with this end of its path."""
    found = [file for file in files() if file.as_posix() == end or file.as_posix().endswith(f"/{end}")]
    if len(found) != 1:
        raise SystemExit(f"test/check_documents.py: {len(found)} files end in {end}: say which one is meant")
    return found[0]


def code_of(end: str) -> str:
    """A source without its comments and includes."""
    lines = [line for line in text_of(source(end)).splitlines() if not re.match(r"\s*(//|#\s*include)", line)]
    return re.sub(r'"\s*\n\s*"', "", "\n".join(lines))  # adjacent literals are one


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


def first_cells(text: str, headings: bool = False) -> Iterator[str]:
    """Each code span in the first column of a table, and in headings if they count as well."""
    for line in text.splitlines():
        if line.startswith("|"):
            yield from CODE_SPAN.findall(line.split("|")[1])
        elif headings and line.startswith("#"):
            yield from CODE_SPAN.findall(line)


def check_words() -> Iterator[str]:
    known: dict[str, set[str]] = {}
    for page in PAGES:
        code = "\n".join(code_of(end) for end in page.sources)
        words = {text for text in page.pattern.findall(code) if WORD.fullmatch(text)}
        if len(words) < page.least:
            yield f"{', '.join(page.sources)}: {len(words)} words found, {page.least} expected: look how they are read"
        known.setdefault(page.page, set()).update(word + unit for word in words for unit in page.units)
        text = text_of(pathlib.Path(page.page))
        rows = {word for cell in first_cells(text, headings=True) for word in WORD.findall(cell)}
        said = rows if page.all_in_columns else explained(text)
        for word in sorted(word for word in words if not any(word + unit in said for unit in page.units)):
            # The code makes some names of two parts.
            if not (word.endswith("_") and any(each.startswith(word) for each in said)):
                yield f"{page.page}: does not explain `{word}` of {', '.join(page.sources)}"
        keys = set() if page.pattern is POLICY_FIELD else set(KEY.findall(code))
        for key in sorted(keys - rows):
            yield f"{page.page}: no table has the key `{key}` of {', '.join(page.sources)}"
    for page in (page for page in PAGES if page.columns):
        parts = [word for word in known[page.page] if word.endswith("_")]
        for cell in first_cells(text_of(pathlib.Path(page.page))):
            for word in WORD.findall(cell):
                if word not in known[page.page] and not any(word.startswith(part) for part in parts):
                    yield f"{page.page}: explains `{cell}`, but no source knows `{word}`"


def check_reasons() -> Iterator[str]:
    reasons = set()
    for end in REASON_SOURCES:
        # A reason is a sentence; other texts of these files are names.
        reasons |= {text for text in LITERAL.findall(code_of(end)) if text.count(" ") >= 2 and "{" not in text and text[-1].isalpha()
                    and not re.match(r"nothing is promised:|promises need", text)
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
    text = re.sub(r"\n\s*(//|#|\*)?\s*", " ", text_of(file))  # a name and its section may be on two lines
    for name, section in set(NAMED.findall(text)):
        there = pathlib.Path(name)
        if not there.is_file():
            yield f"{file}: names {name}, which does not exist"
        elif section and not re.search(rf"^## {section}\. ", text_of(there), re.MULTILINE):
            yield f"{file}: names section {section} of {name}, which has none"


def check_columns(file: pathlib.Path) -> Iterator[str]:
    is_output = False
    for number, line in enumerate(text_of(file).splitlines(), 1):
        is_command = line.startswith("    $ ")
        is_output = line.startswith("    ") and (is_output or is_command)
        if len(line) > COLUMNS and len(line.lstrip("-*# ").split()) > 1 and (is_command or not is_output):
            yield f"{file}:{number}: {len(line)} columns, at most {COLUMNS}"


def check_decision(file: pathlib.Path) -> Iterator[str]:
    number = file.name[:4]
    head = re.match(DECISION, text_of(file))
    if not head or head[1] != number:
        yield f"{file}: expected to begin with '# {number}: TITLE', 'Date: YYYY-MM-DD' and 'Status: ...'"
    elif head[2] and not list(file.parent.glob(f"{head[2]}-*.md")):
        yield f"{file}: is superseded by {head[2]}, which is not there"
    if (parts := re.findall(r"^\*\*(Question|Choice|Why|Not chosen)\.\*\*", text_of(file), re.M)) != DECISION_PARTS:
        yield f"{file}: expected paragraphs {', '.join(DECISION_PARTS)}, in this order, not {', '.join(parts)}"


def main() -> int:
    problems = [*check_words(), *check_reasons()]
    for file in sorted(pathlib.Path("docs/decisions").glob("*.md")):
        problems += check_decision(file)
    for file in files():
        is_document = file.suffix == ".md"
        if is_document:
            problems += check_links(file)
        if is_document or (file.parts[0] == "conf" and file.suffix != ".json"):
            problems += check_columns(file)
        if is_document or (file.suffix in SOURCES and file.name != pathlib.Path(__file__).name):
            problems += check_names(file)
    print("\n".join(problems) or "documents: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
