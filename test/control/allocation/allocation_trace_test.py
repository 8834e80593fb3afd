#!/usr/bin/env python3
"""The caps of PSFA: small cases by hand, random traces against psfa_reference.py, invariants, and bad input.

    allocation_trace_test.py PROGRAM
"""
from __future__ import annotations

import dataclasses
import itertools
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator, Sequence

from psfa_reference import Psfa, Row, ZeroFloor, ceil_div

HEADER = "cycle,job,stage,weight,max,arrived,limited_us"
CAPS_HEADER = "cycle,job,stage,cap"
SECOND = 1_000_000
TIMEOUT = 60  # seconds, of one run

PROGRAM: list[pathlib.Path] = []


@dataclasses.dataclass(frozen=True)
class Settings:
    capacity: int = 1600
    cycle_us: int = SECOND
    floor: int = 10

    def options(self) -> list[str]:
        return ["--policy", "psfa", "--capacity", str(self.capacity), "--cycle-us", str(self.cycle_us),
                "--floor", str(self.floor)]


@dataclasses.dataclass(frozen=True)
class Outcome:
    code: int
    output: str
    errors: str


def run(settings: Settings, file: str, standard_input: str = "") -> Outcome:
    done = subprocess.run([PROGRAM[0], *settings.options(), file], input=standard_input.encode(), capture_output=True,
                          timeout=TIMEOUT, check=False)
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def run_text(settings: Settings, text: str) -> Outcome:
    return run(settings, "-", text)


def text_of(lines: Sequence[str], header: str = HEADER) -> str:
    return "".join(line + "\n" for line in [header, *lines])


def cycles_of(lines: Sequence[str]) -> dict[int, list[Row]]:
    """The rows of each cycle that has some, in the order of the lines."""
    cycles: dict[int, list[Row]] = {}
    for line in lines:
        cycle, job, stage, *numbers = line.split(",")
        weight, maximum, arrived, limited = map(int, numbers)
        cycles.setdefault(int(cycle), []).append(Row(job, stage, weight, maximum, arrived, limited))
    return cycles


def reference_caps(settings: Settings, lines: Sequence[str]) -> list[str]:
    """The lines of the output after its header."""
    psfa = Psfa(settings.capacity, settings.cycle_us, settings.floor)
    result = []
    previous = -1
    for cycle, rows in cycles_of(lines).items():
        if cycle != previous + 1:
            psfa.cycle([])
        previous = cycle
        result += [f"{cycle},{job},{stage},{cap}" for (job, stage), cap in sorted(psfa.cycle(rows).items())]
    return result


# R is what the floors leave, d a demand beyond the floors. Unless a case says otherwise: a capacity of 1600,
# cycles of a second, and floors of 10. So arrivals are rates, 100000 us are limited, and two floors leave R = 1580.
class HandWorkedTest(unittest.TestCase):
    def expect(self, lines: Sequence[str], caps: Sequence[str], settings: Settings = Settings()) -> None:
        self.assertEqual(reference_caps(settings, lines), list(caps), "the reference")
        self.assertEqual(run_text(settings, text_of(lines)), Outcome(0, text_of(caps, CAPS_HEADER), ""))

    def test_two_limited_jobs_share_by_weight(self) -> None:
        # a: 1580 2/3 = 1053 rest 1; b: 1580 1/3 = 526 rest 2. One unit is missing, and b has the larger rest.
        self.expect(["1,a,s,2,0,0,100000", "1,b,s,1,0,0,100000"], ["1,a,s,1063", "1,b,s,537"])

    def test_what_a_bounded_job_leaves_goes_to_the_other(self) -> None:
        # a: 80 + 20 = 100, d = 90 < 790. b: 1580 - 90 = 1490.
        self.expect(["1,a,s,1,0,80,0", "1,b,s,1,0,0,100000"], ["1,a,s,100", "1,b,s,1500"])

    def test_what_all_leave_is_headroom_by_weight(self) -> None:
        # a: 100, d = 90. b: 160 + 40 = 200, d = 190. From the 1300 left, a gets 325 and b gets 975.
        self.expect(["1,a,s,1,0,80,0", "1,b,s,3,0,160,0"], ["1,a,s,425", "1,b,s,1175"])

    def test_jobs_are_satisfied_in_the_order_of_demand_by_weight(self) -> None:
        # Three floors: R = 1570. a: 320 + 80 = 400, d = 390. b: 640 + 160 = 800, d = 790, and 790/4 comes before 390.
        # b: 790 * 6 <= 1570 * 4. R = 780. a: 390 * 2 <= 780. c: the last 390.
        self.expect(["1,a,s,1,0,320,0", "1,b,s,4,0,640,0", "1,c,s,1,0,0,100000"],
                    ["1,a,s,400", "1,b,s,800", "1,c,s,400"])

    def test_a_maximum_bounds_a_limited_job(self) -> None:
        # a: d = 300 - 10 = 290. b: 1290.
        self.expect(["1,a,s,1,300,0,100000", "1,b,s,1,0,0,100000"], ["1,a,s,300", "1,b,s,1300"])

    def test_a_maximum_bounds_headroom(self) -> None:
        # a: d = 90, b: d = 190, 1300 are left. a may have 300 - 10 - 90 = 200 of them, b gets 1100.
        self.expect(["1,a,s,1,300,80,0", "1,b,s,1,0,160,0"], ["1,a,s,300", "1,b,s,1300"])

    def test_maxima_of_all_jobs_leave_capacity_unused(self) -> None:
        self.expect(["1,a,s,1,300,0,100000", "1,b,s,1,400,0,0"], ["1,a,s,300", "1,b,s,400"])

    def test_a_maximum_is_of_the_job_on_all_stages(self) -> None:
        # Three floors: R = 1570. a: d = 300 - 20 = 280, halves of 140. b: 1290.
        self.expect(["1,a,s,1,300,0,100000", "1,a,t,1,300,0,100000", "1,b,s,1,0,0,100000"],
                    ["1,a,s,150", "1,a,t,150", "1,b,s,1300"])

    def test_a_limited_pair_is_unbounded_for_three_more_cycles(self) -> None:
        # Both unbounded: 790 each. In cycle 5 a has d = 0, and b gets 1580.
        lines = ["1,a,s,1,0,0,100000"] + [f"{cycle},a,s,1,0,0,0" for cycle in range(2, 6)]
        lines = [line for cycle, line in enumerate(lines, 1) for line in (line, f"{cycle},b,s,1,0,0,100000")]
        self.expect(lines, [f"{cycle},{job},s,800" for cycle in range(1, 5) for job in "ab"] +
                    ["5,a,s,10", "5,b,s,1590"])

    def test_the_largest_demand_of_four_cycles_counts(self) -> None:
        # a: 400 + 100 = 500, d = 490, b: 1090. In cycle 5 the 400 are forgotten and 200 count: 250, d = 240, b: 1340.
        arrived = [400, 0, 200, 0, 0]
        lines = [line for cycle, count in enumerate(arrived, 1)
                 for line in (f"{cycle},a,s,1,0,{count},0", f"{cycle},b,s,1,0,0,100000")]
        self.expect(lines, [f"{cycle},{cap}" for cycle in range(1, 5) for cap in ("a,s,500", "b,s,1100")] +
                    ["5,a,s,250", "5,b,s,1350"])

    def test_a_pair_without_a_row_is_forgotten(self) -> None:
        # In cycle 2 b is alone. In cycle 3 a has d = 0 again.
        self.expect(["1,a,s,1,0,0,100000", "1,b,s,1,0,0,100000", "2,b,s,1,0,0,100000", "3,a,s,1,0,0,0",
                     "3,b,s,1,0,0,100000"],
                    ["1,a,s,800", "1,b,s,800", "2,b,s,1600", "3,a,s,10", "3,b,s,1590"])

    def test_a_cycle_without_rows_forgets_all_pairs(self) -> None:
        # The number of cycles without rows does not matter.
        for cycle in (3, 1_000_000_000_000):
            with self.subTest(cycle=cycle):
                self.expect(["1,a,s,1,0,0,100000", "1,b,s,1,0,400,0", f"{cycle},a,s,1,0,80,0",
                             f"{cycle},b,s,1,0,0,100000"],
                            ["1,a,s,1100", "1,b,s,500", f"{cycle},a,s,100", f"{cycle},b,s,1500"])

    def test_a_pair_is_remembered_by_job_and_stage(self) -> None:
        # a on bc is not ab on c: ab has d = 0.
        self.expect(["1,a,bc,1,0,0,100000", "2,ab,c,1,0,0,0", "2,b,s,1,0,0,100000"],
                    ["1,a,bc,1600", "2,ab,c,10", "2,b,s,1590"])

    def test_a_tenth_of_a_cycle_is_limited(self) -> None:
        # a: 99999 us are less, d = 0.
        self.expect(["1,a,s,1,0,0,99999", "1,b,s,1,0,0,100000"], ["1,a,s,10", "1,b,s,1590"])

    def test_a_tenth_of_a_cycle_is_not_rounded_down(self) -> None:
        # A cycle of 15 us: a has 1 us, less than 1.5, and d = 0. b has 2.
        self.expect(["1,a,s,1,0,0,1", "1,b,s,1,0,0,2"], ["1,a,s,10", "1,b,s,1590"], Settings(cycle_us=15))

    def test_demands_are_rounded_up(self) -> None:
        # Cycles of 3 s. a: 100/3 s = 34/s, and 34/4 = 9 more. d = 33. b: 1547.
        self.expect(["1,a,s,1,0,100,299999", "1,b,s,1,0,0,300000"], ["1,a,s,43", "1,b,s,1557"],
                    Settings(cycle_us=3 * SECOND))

    def test_a_unit_that_is_missing_goes_to_the_smaller_id_as_text(self) -> None:
        # R = 1581: 790 each, rest 1 each.
        self.expect(["1,9,s,1,0,0,100000", "1,10,s,1,0,0,100000"], ["1,10,s,801", "1,9,s,800"], Settings(1601))

    def test_units_are_missing_within_a_job_too(self) -> None:
        self.expect(["1,a,9,1,0,0,100000", "1,a,10,1,0,0,100000"], ["1,a,10,801", "1,a,9,800"], Settings(1601))

    def test_two_units_that_are_missing_go_to_two_ids(self) -> None:
        # R = 1571: 523 each, rest 2 each.
        self.expect(["1,c,s,1,0,0,100000", "1,b,s,1,0,0,100000", "1,a,s,1,0,0,100000"],
                    ["1,a,s,534", "1,b,s,534", "1,c,s,533"], Settings(1601))

    def test_floors_take_a_sixteenth_of_the_capacity_at_most(self) -> None:
        # 64 / (16 * 4) = 1 is the floor, R = 60. a: d = 0. b: 60, 30 on each stage.
        self.expect(["1,a,s,1,0,0,0", "1,a,t,1,0,0,0", "1,b,s,1,0,0,100000", "1,b,t,1,0,0,100000"],
                    ["1,a,s,1", "1,a,t,1", "1,b,s,31", "1,b,t,31"], Settings(64))

    def test_floors_of_a_job_keep_its_maximum(self) -> None:
        # a: 5/2 = 2 is the floor. R = 1600 - 4 - 10 = 1586. a: d = 5 - 4 = 1, on the first stage. b: 1585.
        self.expect(["1,a,s,1,5,0,100000", "1,a,t,1,5,0,100000", "1,b,s,1,0,0,100000"],
                    ["1,a,s,3", "1,a,t,2", "1,b,s,1595"])

    def test_a_limited_stage_takes_what_the_others_leave(self) -> None:
        # R = 1570, 785 each. a: 100 on s, d = 90; 695 on t.
        self.expect(["1,a,s,1,0,80,0", "1,a,t,1,0,0,100000", "1,b,s,1,0,0,100000"],
                    ["1,a,s,100", "1,a,t,705", "1,b,s,795"])

    def test_headroom_within_a_job_is_even(self) -> None:
        # R = 1580. s: d = 90, t: d = 190. 1300 are left: 650 each.
        self.expect(["1,a,s,1,0,80,0", "1,a,t,1,0,160,0"], ["1,a,s,750", "1,a,t,850"])

    def test_the_floor_of_an_idle_stage_counts_for_the_job(self) -> None:
        # R = 1570. a: 0 on s and 100 on t less two floors, d = 80. All 80 go to t, whose d is 90. b: 1490.
        self.expect(["1,a,s,1,0,0,0", "1,a,t,1,0,80,0", "1,b,s,1,0,0,100000"],
                    ["1,a,s,10", "1,a,t,90", "1,b,s,1500"])

    def test_caps_are_sorted_by_the_number_of_the_cycle_and_by_the_text_of_ids(self) -> None:
        # 1580/4 = 395 each.
        names = [("b", "s"), ("a", "9"), ("a", "10"), ("B", "s")]
        self.expect([f"{cycle},{job},{stage},1,0,0,100000" for cycle in (9, 10) for job, stage in names],
                    [f"{cycle},{cap}" for cycle in (9, 10) for cap in ("B,s,530", "a,10,270", "a,9,270", "b,s,530")])

    def test_a_trace_without_rows_has_no_caps(self) -> None:
        self.expect([], [])


SETTINGS = [
    Settings(16, SECOND, 1), Settings(17, 1000, 5), Settings(48, 999, 1), Settings(100, 100_000, 3),
    Settings(333, 10 * SECOND, 1), Settings(1000, 333_333, 2), Settings(1601, SECOND, 10), Settings(4096, 15, 1 << 62),
    Settings(12_345, 7, 7), Settings(99_991, 60 * SECOND, 100), Settings(10**6, SECOND, 1000),
    Settings(10**9, 100_000, 1 << 20), Settings(10**9 + 7, 100_003, 1), Settings((1 << 40) + 1, 100_000, 1 << 20),
    Settings(1 << 50, SECOND, 1 << 62), Settings((1 << 50) - 1, 250_000, 4096),
    Settings((1 << 62) - 1, 100_000, 1 << 20), Settings(1 << 62, 1000, 1 << 62), Settings((1 << 62) - 57, 33, 1),
    Settings(1 << 62, 1, 1 << 40),
]
TRACES = 15  # for each settings
CYCLES = 14  # of a trace
JOBS = ["10", "9", "1", "01", "100", "a", "aa", "B", "b", "job 2", "job10", "z\u00e9"]
STAGES = ["10", "9", "b", "ab", "a", "2"]
HUGE_WEIGHT = 1 << 40
MOST_ARRIVALS = 1 << 50


class RandomTrace:
    """Makes the cycles of a trace. What all have in common is drawn once, so traces differ in kind."""

    def __init__(self, settings: Settings, chance: random.Random) -> None:
        self._settings = settings
        self._chance = chance
        self._jobs = chance.sample(JOBS, chance.randint(1, 6))
        self._stages = chance.sample(STAGES, chance.randint(1, 4))
        self._weights = chance.choice([[1], [1, 2, 3, 4, 5], [HUGE_WEIGHT], [1, 3, HUGE_WEIGHT - 1, HUGE_WEIGHT]])
        self._bounded = chance.choice([0, 0, 0.5, 1])  # how many jobs have a maximum
        self._limited = chance.choice([0, 0.05, 0.05, 0.3, 1])
        self._alive = chance.choice([0.4, 0.9, 1])
        self._arrivals = self._some_arrivals()
        self._terms = {job: self._some_terms() for job in self._jobs}

    def cycle(self) -> list[Row]:
        """None in a cycle that has no rows."""
        chance = self._chance
        for job in self._jobs:
            if chance.random() < 0.05:
                self._terms[job] = self._some_terms()
        pairs = [pair for pair in itertools.product(self._jobs, self._stages) if chance.random() < self._alive]
        chance.shuffle(pairs)
        if chance.random() < 0.04:
            pairs = []
        return [Row(job, stage, *self._terms[job], chance.choice(self._arrivals), self._some_time())
                for job, stage in pairs[:self._settings.capacity // 16]]

    def _some_arrivals(self) -> list[int]:
        """Few different ones. Many give demands about an even share of the capacity."""
        chance = self._chance
        share = self._settings.capacity // chance.choice([1, len(self._jobs), len(self._jobs) * len(self._stages)])
        even = share * 4 // 5 * self._settings.cycle_us // SECOND
        pool = [0, 0, 1, even, even + 1, even // 2, even * 2, chance.randint(0, even + 5), chance.randint(0, even + 5),
                MOST_ARRIVALS - chance.randint(0, 5), *(chance.randint(0, MOST_ARRIVALS) for _ in range(3))]
        return [min(count, MOST_ARRIVALS) for count in chance.sample(pool, chance.randint(1, 6))]

    def _some_terms(self) -> tuple[int, int]:
        """A weight and a maximum. The maximum allows a floor on every stage."""
        chance = self._chance
        capacity, stages = self._settings.capacity, len(self._stages)
        maximum = 0
        if chance.random() < self._bounded:
            maximum = max(stages, chance.choice([stages, 2 * stages + 1, capacity // 8, capacity // len(self._jobs),
                                                 capacity, capacity + 5, chance.randint(1, capacity)]))
        return chance.choice(self._weights), maximum

    def _some_time(self) -> int:
        cycle_us = self._settings.cycle_us
        tenth = ceil_div(cycle_us, 10)
        if self._chance.random() < self._limited:
            return self._chance.choice([tenth, tenth + 1, cycle_us])
        return self._chance.choice([0, tenth - 1])


def random_lines(settings: Settings, seed: int) -> list[str]:
    """Many traces in one file, with cycles without rows between them."""
    chance = random.Random(seed)
    lines = []
    cycle = chance.randint(0, 12)
    for _ in range(TRACES):
        trace = RandomTrace(settings, chance)
        for _ in range(CYCLES):
            lines += [f"{cycle},{row.job},{row.stage},{row.weight},{row.maximum},{row.arrived},{row.limited}"
                      for row in trace.cycle()]
            cycle += 1
        cycle += 1
    return lines


def first_difference(lines: Sequence[str], caps: Sequence[str], wanted: Sequence[str]) -> str:
    """The first wrong line, and the rows that it may depend on. Empty if all are right."""
    for cap, right in itertools.zip_longest(caps, wanted):
        if cap == right:
            continue
        cycle = int((right or cap).split(",")[0])
        rows = [line for line in lines if cycle - 7 < int(line.split(",")[0]) <= cycle]
        return "\n".join([f"{cap} instead of {right}, after", HEADER, *rows])
    return ""


@dataclasses.dataclass(frozen=True)
class RandomFile:
    settings: Settings
    seed: int
    lines: Sequence[str]
    caps: Sequence[str]  # of the program

    def caps_by_cycle(self) -> Iterator[tuple[int, list[Row], dict[tuple[str, str], int]]]:
        caps: dict[int, dict[tuple[str, str], int]] = {}
        for line in self.caps:
            cycle, job, stage, cap = line.split(",")
            caps.setdefault(int(cycle), {})[job, stage] = int(cap)
        for number, rows in cycles_of(self.lines).items():
            yield number, rows, caps.get(number, {})


class RandomTraceTest(unittest.TestCase):
    files: list[RandomFile]

    @classmethod
    def setUpClass(cls) -> None:
        cls.files = []
        for seed, settings in enumerate(SETTINGS):
            lines = random_lines(settings, seed)
            cls.files.append(RandomFile(settings, seed, lines, cls.caps_of(settings, lines)))

    @staticmethod
    def caps_of(settings: Settings, lines: Sequence[str]) -> list[str]:
        outcome = run_text(settings, text_of(lines))
        if (outcome.code, outcome.errors) != (0, "") or not outcome.output.startswith(CAPS_HEADER + "\n"):
            raise AssertionError(f"{settings}: {outcome.code} {outcome.errors or outcome.output[:200]}")
        return outcome.output.split("\n")[1:-1]

    def test_the_caps_are_those_of_the_reference(self) -> None:
        for file in self.files:
            with self.subTest(file.settings, seed=file.seed):
                wanted = reference_caps(file.settings, file.lines)
                self.assertEqual(first_difference(file.lines, file.caps, wanted), "")

    def test_rows_in_another_order_give_the_same_caps(self) -> None:
        for file in self.files:
            with self.subTest(file.settings, seed=file.seed):
                chance = random.Random(file.seed + 1000)
                lines = sorted(chance.sample(file.lines, len(file.lines)), key=lambda line: int(line.split(",")[0]))
                self.assertEqual(first_difference(lines, self.caps_of(file.settings, lines), file.caps), "")

    def test_each_row_has_a_cap_and_no_cap_is_zero(self) -> None:
        for file in self.files:
            for cycle, rows, caps in file.caps_by_cycle():
                self.assertEqual(caps.keys(), {row.pair for row in rows}, (file.settings, cycle))
                self.assertGreater(min(caps.values()), 0, (file.settings, cycle))

    def test_caps_reach_the_capacity_unless_all_jobs_have_a_maximum(self) -> None:
        for file in self.files:
            for cycle, rows, caps in file.caps_by_cycle():
                maxima = {row.job: row.maximum for row in rows}.values()
                most = min(sum(maxima), file.settings.capacity) if all(maxima) else file.settings.capacity
                self.assertEqual(sum(caps.values()), most, (file.settings, cycle))

    def test_caps_of_a_job_keep_its_maximum(self) -> None:
        for file in self.files:
            for cycle, rows, caps in file.caps_by_cycle():
                for job, maximum in {row.job: row.maximum for row in rows}.items():
                    if maximum:
                        self.assertLessEqual(job_cap(caps, job), maximum, (file.settings, cycle, job))

    def test_a_limited_job_has_its_floors_and_its_share_of_the_rest(self) -> None:
        for file in self.files:
            for cycle, rows, caps in file.caps_by_cycle():
                for job, least in limited_jobs(file.settings, rows).items():
                    self.assertGreaterEqual(job_cap(caps, job), least, (file.settings, cycle, job))


def job_cap(caps: dict[tuple[str, str], int], job: str) -> int:
    return sum(cap for pair, cap in caps.items() if pair[0] == job)


def limited_jobs(settings: Settings, rows: Sequence[Row]) -> dict[str, int]:
    """Those that are limited in this very cycle, and the least that is theirs."""
    floor = min(settings.floor, settings.capacity // (16 * len(rows)))
    floors: dict[str, int] = {}
    for row in rows:
        pairs = sum(1 for other in rows if other.job == row.job)
        floors[row.job] = pairs * (min(floor, row.maximum // pairs) if row.maximum else floor)
    rest = settings.capacity - sum(floors.values())
    weights = sum({row.job: row.weight for row in rows}.values())
    least = {}
    for row in rows:
        if row.limited * 10 >= settings.cycle_us:
            share = floors[row.job] + rest * row.weight // weights
            least[row.job] = min(share, row.maximum) if row.maximum else share
    return least


class BadInputTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "trace.csv"

    def expect_line(self, text: str, line: int) -> None:
        with self.subTest(text):
            self.file.write_text(text, encoding="utf-8")
            outcome = run(Settings(), str(self.file))
            self.assertEqual((outcome.code, outcome.output), (2, ""))
            self.assertRegex(outcome.errors, rf"\A{self.file}:{line}: [^\n]+\n\Z")

    def expect_row(self, line: int, *lines: str) -> None:
        self.expect_line(text_of(lines), line)

    def test_a_file_with_good_rows_is_read(self) -> None:
        self.file.write_text(text_of(["1,a,s,1,0,0,0"]), encoding="utf-8")
        self.assertEqual(run(Settings(), str(self.file)), Outcome(0, text_of(["1,a,s,1600"], CAPS_HEADER), ""))

    def test_a_wrong_header(self) -> None:
        row = ["1,a,s,1,0,0,0"]
        self.expect_line("", 1)
        self.expect_line(row[0] + "\n", 1)
        self.expect_line(text_of(row, HEADER + ","), 1)
        self.expect_line(text_of(row, HEADER.replace("job,stage", "stage,job")), 1)
        self.expect_line(text_of(row, HEADER.replace(",limited_us", "")), 1)

    def test_a_wrong_number_of_fields(self) -> None:
        self.expect_row(2, "")
        self.expect_row(2, "1,a,s,1,0,0", "1,b,s,1,0,0,0")
        self.expect_row(3, "1,a,s,1,0,0,0", "1,b,s,1,0,0,0,0")

    def test_what_is_not_a_number(self) -> None:
        for column in (0, 3, 4, 5, 6):
            for wrong in ("x", "", "-1", "2.5", "1x", "9" * 23):
                fields = ["1", "b", "s", "1", "0", "0", "0"]
                fields[column] = wrong
                self.expect_row(3, "1,a,s,1,0,0,0", ",".join(fields))

    def test_a_weight_of_zero(self) -> None:
        self.expect_row(3, "1,a,s,1,0,0,0", "1,b,s,0,0,0,0")

    def test_a_job_twice_on_a_stage(self) -> None:
        self.expect_row(4, "1,a,s,1,0,0,0", "1,b,s,1,0,0,0", "1,a,s,1,0,0,0", "1,c,s,1,0,0,0")
        self.expect_row(5, "1,a,s,1,0,0,0", "2,a,s,1,0,0,0", "2,b,s,1,0,0,0", "2,a,s,1,0,5,0")

    def test_a_job_with_two_weights(self) -> None:
        self.expect_row(4, "1,a,s,1,0,0,0", "1,b,s,2,0,0,0", "1,a,t,2,0,0,0", "1,c,s,1,0,0,0")

    def test_a_job_with_two_maxima(self) -> None:
        self.expect_row(4, "1,a,s,1,300,0,0", "1,b,s,1,0,0,0", "1,a,t,1,301,0,0", "1,c,s,1,0,0,0")
        self.expect_row(3, "1,a,s,1,300,0,0", "1,a,t,1,0,0,0")

    def test_cycles_that_go_backwards(self) -> None:
        self.expect_row(4, "1,a,s,1,0,0,0", "10,a,s,1,0,0,0", "9,a,s,1,0,0,0", "11,a,s,1,0,0,0")

    def test_standard_input_has_a_name_too(self) -> None:
        outcome = run_text(Settings(), text_of(["1,a,s,1,0,0"]))
        self.assertEqual(outcome.code, 2)
        self.assertRegex(outcome.errors, r"\A-:2: [^\n]+\n\Z")


class ZeroFloorTest(unittest.TestCase):
    def expect_cycle(self, cycle: int, lines: Sequence[str], settings: Settings = Settings()) -> None:
        with self.assertRaises(ZeroFloor):
            reference_caps(settings, lines)
        outcome = run_text(settings, text_of(lines))
        self.assertEqual(outcome.code, 1)
        self.assertRegex(outcome.errors, r"\A[^\n]+\n\Z")
        self.assertRegex(outcome.errors, rf"\b{cycle}\b")

    def test_a_capacity_below_sixteen_for_each_pair(self) -> None:
        lines = ["4710,a,s,1,0,0,0", "4711,a,s,1,0,0,0", "4711,b,s,1,0,0,0", "4712,b,s,1,0,0,0"]
        self.expect_cycle(4711, lines, Settings(31))
        self.assertEqual(run_text(Settings(32), text_of(lines)).code, 0)

    def test_a_maximum_below_one_for_each_stage(self) -> None:
        self.expect_cycle(4711, ["4711,a,s,1,1,0,0", "4711,a,t,1,1,0,0", "4711,b,s,1,0,0,0"])


if __name__ == "__main__":
    PROGRAM.append(pathlib.Path(sys.argv.pop(1)))
    unittest.main()
