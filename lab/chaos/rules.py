"""Administrators that change rules while the site is in trouble, and note the answers."""

from __future__ import annotations

import json
import pathlib
import queue
import random
import subprocess
import threading
import time
from collections.abc import Sequence

from lab.chaos.history import CHANGE, READ, START, STOP, Book, Operation
from lab.harness import Problem

ADMINISTRATORS = 2
CHANGES, PAUSE = 6, 0.5  # for each wish, and between two of them
MOST_RULES = 8
TIMEOUT = "6s"  # longer than a coordinator waits for its store
PATIENCE = 20.0
# What vpfsctl says when nothing was changed for certain. With any other error something may be.
WITHOUT_EFFECT = (
    "none of them leads",
    "nothing was changed",
    "there is a rule",
    "there is no rule",
)
MAY_BE_OLD = "recent changes may be missing"


def is_without_effect(errors: str) -> bool:
    return any(words in errors for words in WITHOUT_EFFECT) and "not known" not in errors


def book_in(text: str) -> Book | None:
    """The live rules in what `vpfsctl --json rule list` prints. None: it says they may be old."""
    list_of_rules = json.loads(text)["proxies"][0]["data"]
    if any(MAY_BE_OLD in warning for warning in list_of_rules.get("warnings", ())):
        return None
    rules = list_of_rules["rules"]
    return tuple(
        (rule["name"], " ".join(rule["words"]))
        for rule in rules
        if rule["origin"] == "administrator"
    )


class Administrators:
    """Each is a thread with one command at a time."""

    def __init__(self, vpfsctl: pathlib.Path, coordinators: str) -> None:
        self._vpfsctl, self._coordinators = vpfsctl, coordinators
        self._wishes: queue.Queue[int | None] = queue.Queue()
        self._lock = threading.Lock()
        self._operations: list[Operation] = []
        self._names: list[str] = []  # of rules that are there, or may be
        self._number = 0
        self._closing = threading.Event()
        self.refused = self.uncertain = 0
        self.failure: Exception | None = None
        self._threads = [
            threading.Thread(target=self._work, daemon=True) for _ in range(ADMINISTRATORS)
        ]
        for thread in self._threads:
            thread.start()

    def wish(self, choice: int) -> None:
        """One of them makes some changes, as soon as it may."""
        self._wishes.put(choice)

    def stop(self) -> None:
        self._closing.set()
        for _ in self._threads:
            self._wishes.put(None)
        for thread in self._threads:
            thread.join()

    def operations(self) -> list[Operation]:
        with self._lock:
            return list(self._operations)

    def _work(self) -> None:
        try:
            while (choice := self._wishes.get()) is not None:
                source = random.Random(choice)
                for _ in range(0 if self._closing.is_set() else CHANGES):
                    self.run(*self._chosen(source))
                    self.run(READ)
                    self._closing.wait(PAUSE)
        except Exception as error:
            self.failure = error

    def _chosen(self, source: random.Random) -> tuple[str, str, str]:
        with self._lock:
            self._number += 1
            words = f"weight={self._number}"  # each once
            first = source.random()
            if self._names and (len(self._names) >= MOST_RULES or first < 0.2):
                return STOP, self._names.pop(source.randrange(len(self._names))), ""
            if self._names and first < 0.45:
                return CHANGE, source.choice(self._names), words
            name = f"r{self._number}"
            return START, name, words

    def _command(self, action: str, name: str, words: str) -> Sequence[str]:
        command = [str(self._vpfsctl), "--coordinator", self._coordinators, "--timeout", TIMEOUT]
        if action == READ:
            return [*command, "--json", "rule", "list"]
        condition = [f"jobid={name}"] if action == START else []
        return [*command, "rule", action, name, *condition, *words.split()]

    def run(self, action: str, name: str = "", words: str = "") -> Operation | None:
        """Carries it out and notes it.

        None: it was refused without an effect, or the list may be old and says so.
        """
        called_at = time.monotonic()
        try:
            done = subprocess.run(
                self._command(action, name, words),
                check=False,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            raise Problem(f"vpfsctl rule {action} did not end within {PATIENCE:.0f} s") from None
        answered_at = time.monotonic()
        operation = Operation(called_at, action, name, words)
        if done.returncode == 0:
            seen = book_in(done.stdout) if action == READ else ()
            if seen is None:
                with self._lock:
                    self.uncertain += 1
                return None
            operation = Operation(called_at, action, name, words, seen, answered_at)
        elif action == READ or is_without_effect(done.stderr):
            with self._lock:
                self.refused += 1
                if action == STOP and "there is no rule" not in done.stderr:
                    self._names.append(name)
            return None
        with self._lock:
            self._operations.append(operation)
            if action == START:
                self._names.append(name)
        return operation

    def read_at_last(self, patience: float) -> Operation:
        until = time.monotonic() + patience
        while (reading := self.run(READ)) is None:
            if time.monotonic() > until:
                raise Problem(f"no coordinator has listed the rules within {patience:.0f} s")
            time.sleep(0.2)
        return reading
