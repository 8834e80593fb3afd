"""Whether what was done to a rule book, and what was read of it, can have happened in one order.

A history is a list of operations with the times of their calls and answers. It is linearizable if
each operation can be given one instant between its call and its answer so that the answers are
those of a book to which they happened one after the other. An operation whose outcome is not known
may have happened at any time after its call, or never.

The search is that of Wing and Gong, in the form of Lowe ("Testing for linearizability", 2016):
events are taken in the order of time, and all states of the book that are possible so far are kept,
each with the operations that it has had before their answers. Operations that never get an answer
would double the states each. So they are tried only where something may depend on it, and are
forgotten as soon as they can change nothing any more.

Porcupine does the same, in Go, which nothing else here needs; a book of some rules and two
administrators is small enough for Python.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence

Rule = tuple[str, str]  # its name and its words
Book = tuple[Rule, ...]  # in the order in which rules are tried: the newest first
START, CHANGE, STOP, READ = "start", "change", "stop", "list"
MOST_STATES = 50_000


@dataclasses.dataclass(frozen=True)
class Operation:
    called_at: float
    action: str
    name: str = ""
    words: str = ""
    seen: Book = ()  # of a READ that was answered
    answered_at: float = math.inf  # infinite: its outcome is not known

    def known(self) -> bool:
        return self.answered_at != math.inf

    def text(self) -> str:
        what = f"rule {self.action} {self.name} {self.words}".rstrip()
        if self.action == READ:
            what = f"list showed {names_of(self.seen)}"
        end = f"{self.answered_at:.3f}" if self.known() else "no answer"
        return f"{what} ({self.called_at:.3f} to {end})"


def names_of(book: Book) -> str:
    return " ".join(f"{name}[{words}]" for name, words in book) or "nothing"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """`problem` is empty if the history is linearizable; `undecided`: it has too many states."""

    problem: str = ""
    undecided: bool = False
    states: int = 0  # the most that were kept at a time


def outcome_of(operation: Operation, book: Book) -> Book | None:
    """The book after an operation that was carried out; None: it cannot be, with this book."""
    places = [index for index, (name, _) in enumerate(book) if name == operation.name]
    if operation.action == READ:
        return book if book == operation.seen else None
    if operation.action == START:
        return None if places else ((operation.name, operation.words), *book)
    if not places:
        return None
    before, after = book[: places[0]], book[places[0] + 1 :]
    if operation.action == STOP:
        return before + after
    return (*before, (operation.name, operation.words), *after)


def without_effect(operations: Sequence[Operation]) -> set[int]:
    """The indexes of operations of unknown outcome that may be taken as never carried out.

    No answer depends on them: their words are in no reading, and, for a start, nothing else is
    about their name. So if they were carried out, leaving them out is right as well.
    """
    seen = {rule for each in operations for rule in each.seen}
    names = {name for name, _ in seen}
    others: dict[str, int] = {}
    for each in operations:
        others[each.name] = others.get(each.name, 0) + 1
    dropped = set()
    for index, each in enumerate(operations):
        if each.known():
            continue
        alone = others[each.name] == 1
        if (
            each.action == READ
            or (each.action == START and alone and each.name not in names)
            or (each.action == CHANGE and (each.name, each.words) not in seen)
        ):
            dropped.add(index)
    return dropped


def _events(operations: Sequence[Operation], leave_out: set[int]) -> Iterator[tuple[bool, int]]:
    """Calls (True) and answers in the order of time; at one instant calls come first."""
    events = []
    for index, each in enumerate(operations):
        if index in leave_out:
            continue
        events.append((each.called_at, 0, index))
        if each.known():
            events.append((each.answered_at, 1, index))
    for _, kind, index in sorted(events):
        yield kind == 0, index


State = tuple[Book, frozenset[int]]


class _Starts:
    """How many operations that start a rule of a name may still be carried out."""

    def __init__(self, operations: Sequence[Operation], leave_out: set[int]) -> None:
        self._left: dict[str, int] = {}
        for index, each in enumerate(operations):
            if each.action == START and index not in leave_out:
                self._left[each.name] = self._left.get(each.name, 0) + 1

    def is_over(self, operation: Operation) -> None:
        if operation.action == START:
            self._left[operation.name] -= 1

    def may_come(self, name: str) -> bool:
        return self._left.get(name, 0) > 0


def _without_spent(
    operations: Sequence[Operation], states: set[State], pending: set[int], starts: _Starts
) -> set[State]:
    """Takes out of `pending` and of the states what has no answer and no effect any more.

    That is what all states have had, and what would change or stop a rule that is in no state's
    book and cannot come back.
    """
    there = {name for book, _ in states for name, _ in book}
    had_by_all = frozenset.intersection(*(had for _, had in states))
    spent = set()
    for index in pending:
        each = operations[index]
        if each.known():
            continue
        if index in had_by_all:
            starts.is_over(each)
        elif each.action == START or each.name in there or starts.may_come(each.name):
            continue
        spent.add(index)
    if not spent:
        return states
    pending -= spent
    return {(book, had - spent) for book, had in states}


def check(operations: Sequence[Operation], first: Book = ()) -> Verdict:
    """`first`: the book before all of them."""
    states: set[State] = {(first, frozenset())}
    pending: set[int] = set()
    most = 1
    leave_out = without_effect(operations)
    starts = _Starts(operations, leave_out)
    for is_call, index in _events(operations, leave_out):
        if is_call:
            pending.add(index)
            continue
        after = _answered(operations, states, pending, index)
        if after is None:
            return Verdict(undecided=True, states=MOST_STATES)
        if not after:
            possible = sorted({names_of(book) for book, _ in states})[:4]
            return Verdict(
                f"{operations[index].text()} cannot be; before it there were "
                f"{' or '.join(possible)}",
                states=most,
            )
        pending.discard(index)
        starts.is_over(operations[index])
        states = _without_spent(operations, after, pending, starts)
        most = max(most, len(states))
    return Verdict(states=most)


def _worth_trying(operations: Sequence[Operation], waiting: set[int]) -> list[int]:
    """Without those that may as well be carried out later.

    An operation without an answer can wait for ever. Stopping or changing a rule gives the same
    book before and after operations on other rules. So it matters only to those on the same rule,
    and to readings that show it.
    """
    binding = [operations[each] for each in waiting if _is_binding(operations[each])]
    names = {each.name for each in binding}
    readings = [each.seen for each in binding if each.action == READ]
    return [
        each
        for each in waiting
        if _is_binding(operations[each])
        or operations[each].name in names
        or any(_shows(operations[each], seen) for seen in readings)
    ]


def _is_binding(operation: Operation) -> bool:
    """Where it is in the order matters to other rules, or it has to be there by its answer."""
    return operation.known() or operation.action == START


def _shows(operation: Operation, seen: Book) -> bool:
    """Whether a reading may have been after this STOP or CHANGE."""
    if operation.action == CHANGE:
        return (operation.name, operation.words) in seen
    return all(name != operation.name for name, _ in seen)


def _answered(
    operations: Sequence[Operation], states: set[State], pending: set[int], index: int
) -> set[State] | None:
    """The states in which that operation was carried out. None: there are too many."""
    reached: set[State] = set(states)
    open_states = list(states)
    done: set[State] = set()
    while open_states:
        if len(reached) > MOST_STATES:
            return None
        book, had = open_states.pop()
        if index in had:
            done.add((book, had - {index}))
            continue
        for each in _worth_trying(operations, pending - had):
            after = outcome_of(operations[each], book)
            if after is None:
                continue
            state = (after, had | {each})
            if state not in reached:
                reached.add(state)
                open_states.append(state)
    return done
