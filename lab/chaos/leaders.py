"""Which process has said that it leads with which term: each term has one."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterable

READY = re.compile(r"ready, policy \w+, term (\d+)")


class Leaders:
    def __init__(self) -> None:
        self._read: dict[pathlib.Path, int] = {}
        self.by_term: dict[int, str] = {}

    def look(self, logs: Iterable[pathlib.Path]) -> list[str]:
        """What cannot be, of what was logged since the last look."""
        problems = []
        for log in logs:
            with log.open("rb") as file:
                file.seek(self._read.get(log, 0))
                text = file.read()
            whole = text.rfind(b"\n") + 1
            self._read[log] = self._read.get(log, 0) + whole
            for term in READY.findall(text[:whole].decode(errors="replace")):
                first = self.by_term.setdefault(int(term), log.stem)
                if first != log.stem:
                    problems.append(f"{first} and {log.stem} both lead with term {term}")
        return problems
