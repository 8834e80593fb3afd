"""What script/chaos judges by: the history of rules, the sum of limits, the sequence of faults."""

from __future__ import annotations

import itertools
import os
import pathlib
import random
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab.chaos import history, wire  # noqa: E402
from lab.chaos.history import CHANGE, READ, START, STOP, Operation  # noqa: E402
from lab.chaos.leaders import Leaders  # noqa: E402
from lab.chaos.resources import Held, growths  # noqa: E402
from lab.chaos.rules import book_in, is_without_effect  # noqa: E402
from lab.chaos.schedule import BETWEEN, ETCD, KINDS, control_pairs, schedule  # noqa: E402
from lab.chaos.watch import Progress, Round, in_force_between  # noqa: E402
from lab.chaos.wire import Epoch, Reading  # noqa: E402
from lab.network import PREFIX, is_left_behind, owner_of  # noqa: E402


def start(name: str, called: float, answered: float = float("inf"), words: str = "w") -> Operation:
    return Operation(called, START, name, words, answered_at=answered)


def read(called: float, *names: str, words: str = "w") -> Operation:
    return Operation(
        called, READ, seen=tuple((name, words) for name in names), answered_at=called + 0.5
    )


class HistoryTest(unittest.TestCase):
    def assert_holds(self, *operations: Operation) -> None:
        self.assertEqual(history.check(operations).problem, "")

    def assert_broken(self, words: str, *operations: Operation) -> None:
        self.assertIn(words, history.check(operations).problem)

    def test_the_newest_rule_is_first(self) -> None:
        self.assert_holds(start("a", 0, 1), start("b", 2, 3), read(4, "b", "a"))
        self.assert_broken("cannot be", start("a", 0, 1), start("b", 2, 3), read(4, "a", "b"))

    def test_rules_that_are_started_together_may_be_in_either_order(self) -> None:
        for order in (("a", "b"), ("b", "a")):
            self.assert_holds(start("a", 0, 3), start("b", 1, 2), read(4, *order))

    def test_what_was_answered_must_be_there(self) -> None:
        self.assert_broken("list showed nothing", start("a", 0, 1), read(2))

    def test_what_has_no_answer_may_be_there_at_any_time_or_never(self) -> None:
        self.assert_holds(start("a", 0), read(1))
        self.assert_holds(start("a", 0), read(1, "a"))
        self.assert_holds(start("a", 0), start("b", 1, 2), read(3, "b"), read(4, "a", "b"))
        self.assert_holds(start("a", 0), start("b", 1, 2), read(3, "b", "a"))

    def test_what_was_there_does_not_go(self) -> None:
        self.assert_broken("list showed nothing", start("a", 0), read(1, "a"), read(2))

    def test_nothing_is_there_before_it_was_asked_for(self) -> None:
        self.assert_broken("list showed a", read(0, "a"), start("a", 2, 3))

    def test_a_stop_without_an_answer_happens_at_most_once(self) -> None:
        stop = Operation(2, STOP, "a")
        self.assert_holds(start("a", 0, 1), stop, read(3, "a"), read(4))
        self.assert_broken("list showed a", start("a", 0, 1), stop, read(3), read(4, "a"))

    def test_a_change_keeps_the_place_and_is_not_undone(self) -> None:
        before = [start("a", 0, 1), start("b", 2, 3, words="v")]
        change = Operation(4, CHANGE, "a", "v", answered_at=5)
        self.assert_holds(*before, change, read(6, "b", "a", words="v"))
        late = Operation(6, READ, seen=(("b", "v"), ("a", "w")), answered_at=7)
        self.assert_broken("cannot be", *before, change, late)

    def test_an_answer_that_no_book_gives_is_a_violation(self) -> None:
        stop = Operation(0, STOP, "a", answered_at=1)
        self.assert_broken("rule stop a", stop)
        self.assert_broken("rule start a", start("a", 0, 1), start("a", 2, 3))

    def test_many_lost_outcomes_cost_little(self) -> None:
        lost = [start(f"l{index}", index) for index in range(200)]
        seen = [start(f"s{index}", 200 + index, 200.5 + index) for index in range(20)]
        names = [each.name for each in reversed(seen)]
        verdict = history.check([*lost, *seen, read(300, *names)])
        self.assertEqual((verdict.problem, verdict.undecided), ("", False))
        self.assertLess(verdict.states, 10)

    def test_many_lost_stops_of_rules_that_stay_cost_little(self) -> None:
        names = [f"s{index}" for index in range(30)]
        seen = [start(name, index, index + 0.5) for index, name in enumerate(names)]
        lost = [Operation(40 + index, STOP, name) for index, name in enumerate(names)]
        names.reverse()
        at = [read(100 + index, *names) for index in range(5)]
        later = [start("last", 200, 201), read(202, "last", *names[:-1])]
        verdict = history.check([*seen, *lost, *at, *later])
        self.assertEqual((verdict.problem, verdict.undecided), ("", False))
        self.assertLess(verdict.states, 10)
        self.assert_broken("list showed", *seen, *lost, read(202, *names[:-1]), read(204, *names))

    def test_it_agrees_with_trying_all_orders(self) -> None:
        source = random.Random(5)
        answers = set()
        for _ in range(400):
            operations = random_history(source)
            by_search = history.check(operations).problem == ""
            self.assertEqual(by_search, some_order_fits(operations), operations)
            answers.add(by_search)
        self.assertEqual(answers, {True, False})


def random_history(source: random.Random) -> list[Operation]:
    """Five operations at most. Most of them are what a real book answered."""
    book: history.Book = ()
    operations = []
    for index in range(5):
        begin = index + source.uniform(-1.5, 0)
        end = index + source.uniform(0, 1.5) if source.random() < 0.8 else float("inf")
        action = source.choice([START, CHANGE, STOP, READ])
        name, words = source.choice("ab"), source.choice("xy")
        seen = book if action == READ else ()
        if action == READ and end == float("inf"):
            end = begin + 1
        operation = Operation(begin, action, name, words, seen, end)
        after = history.outcome_of(operation, book)
        if after is None and source.random() < 0.7:
            continue
        book = book if after is None else after
        operations.append(operation)
    return operations


def some_order_fits(operations: list[Operation]) -> bool:
    known = [index for index, each in enumerate(operations) if each.known()]
    unknown = [index for index, each in enumerate(operations) if not each.known()]
    for count in range(len(unknown) + 1):
        for chosen in itertools.combinations(unknown, count):
            for order in itertools.permutations([*known, *chosen]):
                if fits([operations[index] for index in order]):
                    return True
    return False


def fits(order: list[Operation]) -> bool:
    for before, after in itertools.combinations(order, 2):
        if after.answered_at < before.called_at:
            return False
    book: history.Book = ()
    for each in order:
        next_book = history.outcome_of(each, book)
        if next_book is None:
            return False
        book = next_book
    return True


class ScheduleTest(unittest.TestCase):
    def test_the_seed_decides_everything(self) -> None:
        self.assertEqual(schedule(7, 300), schedule(7, 300))
        self.assertNotEqual(schedule(7, 300), schedule(8, 300))

    def test_a_longer_run_begins_as_a_shorter_one(self) -> None:
        self.assertEqual(schedule(7, 300)[:100], schedule(7, 600)[:100])

    def test_nothing_is_hit_twice_at_a_time_and_two_etcd_nodes_are_away_at_most(self) -> None:
        for seed in range(20):
            free: dict[str, float] = {}
            away = -1.0
            for fault in schedule(seed, 300):
                if fault.kind == "rule":
                    continue
                together = fault.kind in BETWEEN
                keys = [" ".join(fault.targets)] if together else list(fault.targets)
                for key in keys:
                    self.assertGreater(fault.at, free.get(key, -1.0), fault)
                    free[key] = fault.until
                if not together and fault.targets[0] in ETCD:
                    self.assertGreater(fault.at, away, fault)
                    away = fault.until

    def test_five_minutes_have_faults_of_all_kinds_nearly_each_second(self) -> None:
        for seed in range(20):
            faults = schedule(seed, 300)
            self.assertGreater(len(faults), 240)
            self.assertEqual({fault.kind for fault in faults}, set(KINDS))

    def test_data_is_not_cut(self) -> None:
        for one, other in control_pairs():
            self.assertNotIn("l", (one, other))
            self.assertFalse(one[0] == other[0] == "p")


def reading(sequence: int, limit: int, *, led: bool = True, incarnation: int = 1) -> Reading:
    return Reading(incarnation, Epoch(3, sequence), led, {"a": limit}, 0, 0)


class SumTest(unittest.TestCase):
    def sums(self, one: dict[str, Reading], other: dict[str, Reading]) -> dict[str, int]:
        return in_force_between(Round(one, 0, 1), Round(other, 2, 3))

    def test_limits_of_one_cycle_add_up(self) -> None:
        both = {"p0": reading(5, 10), "p1": reading(4, 20)}
        self.assertEqual(self.sums(both, both), {"p0": 10, "p1": 20})

    def test_a_limit_that_may_have_changed_does_not_count(self) -> None:
        one = {"p0": reading(5, 10)}
        self.assertEqual(self.sums(one, {"p0": reading(6, 10)}), {})
        self.assertEqual(self.sums(one, {"p0": reading(5, 10, incarnation=2)}), {})
        self.assertEqual(self.sums(one, {"p0": reading(5, 10, led=False)}), {})
        self.assertEqual(self.sums(one, {}), {})

    def test_a_cycle_of_a_former_leader_is_noticed_and_a_new_process_begins_anew(self) -> None:
        progress = Progress()
        self.assertEqual(progress.note("p0", reading(5, 1)), "")
        self.assertEqual(progress.note("p0", reading(5, 1)), "")
        self.assertEqual(progress.note("p0", reading(1, 1, incarnation=2)), "")
        older = Reading(2, Epoch(2, 900), True, {}, 0, 0)
        self.assertIn("cycle 900 of term 2 after cycle 1 of term 3", progress.note("p0", older))


class LeadersTest(unittest.TestCase):
    def test_two_processes_with_one_term_are_noticed_and_each_line_counts_once(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            one, other = pathlib.Path(folder) / "c0-1.log", pathlib.Path(folder) / "c1-1.log"
            one.write_text("vpfs-coordinator: ready, standby, policy psfa, pid 7\n")
            other.write_text("vpfs-coordinator: ready, policy psfa, term 3, pid 8\nvpfs-coo")
            leaders = Leaders()
            self.assertEqual(leaders.look([one, other]), [])
            with other.open("a") as file:
                file.write("rdinator: ready, policy psfa, term 4, pid 8\n")
            self.assertEqual(leaders.look([one, other]), [])
            self.assertEqual(leaders.by_term, {3: "c1-1", 4: "c1-1"})
            one.write_text(one.read_text() + "ready, policy psfa, term 4, pid 7\n")
            self.assertEqual(leaders.look([one, other]), ["c1-1 and c0-1 both lead with term 4"])
            self.assertEqual(leaders.look([one, other]), [])


class WireTest(unittest.TestCase):
    def test_what_a_stage_says_is_read(self) -> None:
        limited = wire.nested(3, b"a") + wire.number(4, 7) + wire.number(17, 1 << 40)
        free = wire.nested(3, b"b")
        stats = wire.number(14, 9) + wire.number(15, 300) + wire.number(16, 1)
        stats += wire.nested(9, limited) + wire.nested(9, free)
        self.assertEqual(wire.decode_stats(stats), (Epoch(9, 300), True, {"a": 1 << 40}))

    def test_damage_is_an_error(self) -> None:
        stats = wire.number(14, 300) + wire.nested(9, b"\x1a\x01a")
        whole = list(wire.fields(stats))
        self.assertEqual(len(whole), 2)
        for size in (1, 2, 4, 5, len(stats) - 1):
            with self.assertRaises(ValueError):
                list(wire.fields(stats[:size]))


class JudgingTest(unittest.TestCase):
    def test_what_did_not_come_back_is_named(self) -> None:
        before = {"p0": Held(20, 30, 4), "p1": Held(22, 32, 4)}
        self.assertEqual(list(growths(before, {"p0": Held(40, 40, 5)})), [])
        grown = list(growths(before, {"p0": Held(60, 50, 9)}))
        self.assertEqual(len(grown), 3)
        self.assertTrue(all(each.startswith("p0 ") for each in grown))

    def test_only_words_that_are_certain_count_as_no_effect(self) -> None:
        self.assertTrue(is_without_effect("main: refused: NAME: there is no rule 'y'"))
        self.assertTrue(is_without_effect("leads no more; nothing was changed"))
        self.assertFalse(is_without_effect("no answer within 6 s"))
        self.assertFalse(is_without_effect("it is not known whether; nothing was changed"))

    def test_only_live_rules_are_the_book(self) -> None:
        rules = (
            '{"name": "r1", "words": ["weight=3"], "origin": "administrator"},'
            '{"name": "default", "words": [], "origin": "file"}'
        )
        text = '{"proxies": [{"data": {"rules": [' + rules + "]}}]}"
        self.assertEqual(book_in(text), (("r1", "weight=3"),))

    def test_a_list_that_may_be_old_is_not_a_reading(self) -> None:
        warnings = '["p0: cannot be reached: its rules and hits are not counted"]'
        data = '{"proxies": [{"data": {"rules": [], "warnings": ' + warnings + "}}]}"
        self.assertEqual(book_in(data), ())
        old = "that this coordinator still leads: recent changes may be missing here"
        self.assertIsNone(book_in(data.replace("cannot be reached", old)))

    def test_only_what_a_dead_run_left_is_removed(self) -> None:
        self.assertEqual(owner_of(f"{PREFIX}77-c0"), 77)
        self.assertIsNone(owner_of("others-77-c0"))
        self.assertFalse(is_left_behind(f"{PREFIX}{os.getpid()}-c0"))
        self.assertTrue(is_left_behind(f"{PREFIX}{1 << 30}-c0"))


if __name__ == "__main__":
    unittest.main()
