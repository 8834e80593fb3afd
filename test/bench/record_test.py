"""The set of record: what is kept of each benchmark, files of records, passages of documents, resumed runs."""
from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import pathlib
import sys
import tempfile
import unittest
from typing import Any
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "script"), str(ROOT / "test"), str(ROOT / "test/bench")]

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

import check_records  # noqa: E402
import run_record  # noqa: E402
from options_test import OptionsTest  # noqa: E402
from recorded import RECORDED  # noqa: E402

from bench.simulator.engine import PENDING  # noqa: E402
from lab.harness import Problem  # noqa: E402
from lab.record import overhead, passages, summaries  # noqa: E402
from lab.record.benchmarks import SET, Entry  # noqa: E402
from lab.record.record import NOT_RUN, Record, RecordError, label_of, load, merged, text_of  # noqa: E402
from run_bench import BENCHMARKS  # noqa: E402

# Results of benchmarks that test/bench/recorded/ does not have.
SCHEDULERS = [
    {"policy": policy, "flows": flows, "ns_per_request": 100.0 + flows}
    for policy in ("sfq+think, away", "fifo") for flows in (1, 10, 1000, 100_000)]
RESULTS: dict[str, dict[str, Any]] = {
    "schedulers": {"rows": SCHEDULERS, "settled": SCHEDULERS},
    "engine": {"rows": [{"pending": pending, "cancel_percent": 50, "events_per_second": 9.7e6} for pending in PENDING]},
    "ior": {"rows": [{"test": test, "op": op, "policy": policy, "weight": weight, "share": weight / 4}
                     for test in ("easy", "hard") for op in ("write", "read") for policy in ("fifo", "sfq") for weight in (1, 3)]},
}


def record(**fields: Any) -> Record:
    tables = {"memory": [{"requests": "64 KiB, 64 connections", "resident MiB": [13.2, 12.9, 13.4]},
                         {"requests": "1 MiB, 64 connections", "resident MiB": None}]}
    given = {"record": "overhead", "commit": "0123456789", "date": "2026-11-25", "runs": 5, "machine": "2 processors",
             "commands": [], "settings": {}, "tables": tables}
    return Record(**(given | fields))


class SetTest(OptionsTest):
    """What each entry keeps of recorded results."""

    def contents(self, entry: Entry) -> dict[str, Any]:
        if entry.benchmark in RESULTS:
            return RESULTS[entry.benchmark]
        self.draws_rows = False
        self.drawn += [f"{entry.benchmark}{end}" for end in ("", "-throughput")]
        parts = [self.run_benchmark(entry.benchmark, entry.parts[part]) for part in range(len(entry.parts))]
        return run_record.joined(parts)

    def test_each_table_of_the_set_fits_into_a_page_with_its_spread(self) -> None:
        for entry in SET:
            content = self.contents(entry)
            for name, summary in entry.tables.items():
                with self.subTest(f"{entry.name} {name}"):
                    rows = summary(content)
                    self.assertTrue(rows)
                    labels = [label_of(row) for row in rows]
                    self.assertEqual(len(set(labels)), len(labels), "each row has a label of its own")
                    other = [{key: 1.07 * value if isinstance(value, float) else value for key, value in row.items()}
                             for row in rows]
                    found = record(record=entry.name, tables={name: merged([rows, other])})
                    self.assertGreater(passages.table_text(found, name).count("\n"), len(rows))

    def test_every_entry_is_a_benchmark_with_arguments_that_it_takes(self) -> None:
        for entry in SET:
            benchmark = BENCHMARKS[entry.benchmark].load()
            for arguments in entry.parts:
                with self.subTest(entry.name):
                    if arguments:
                        benchmark.option_parser().parse_args(list(arguments))

    def test_a_benchmark_without_recorded_results_has_some_here(self) -> None:
        self.assertEqual({entry.benchmark for entry in SET} - set(RECORDED), set(RESULTS))


for inherited in [name for name in dir(OptionsTest) if name.startswith("test_")]:
    setattr(SetTest, inherited, None)  # they run in options_test.py
del OptionsTest


class SummariesTest(unittest.TestCase):
    def test_policies_are_beside_a_plain_queue_of_the_same_run(self) -> None:
        rows = [{"policy": policy, "flows": flows, "ns_per_request": time}
                for policy, flows, time in (("sfq", 1, 30.0), ("sfq", 1000, 60.0), ("priority_queue", 1, 20.0),
                                            ("priority_queue", 1000, 40.0))]
        self.assertEqual(summaries.beside_a_plain_queue({"rows": rows}),
                         [{"times a plain priority queue": "sfq", "1 flow": 1.5, "1,000 flows": 1.5}])

    def test_mounts_are_beside_the_directory_below(self) -> None:
        rows = [{"backend": backend, "op": "stat", "size": "-", "jobs": 1, "path": path, "ops_per_s": rate}
                for backend, path, rate in (("posix", "below", 8.0), ("posix", "posix-sfq", 2.0), ("real", "orangefs", 1.0))]
        self.assertEqual(summaries.beside_directory({"rows": rows}),
                         [{"operations/s / the directory's": "stat, jobs: 1", "posix-sfq": 0.25}])

    def test_the_worst_case_beside_haproxy_is_one_of_throughput(self) -> None:
        rows = [{"op": op, "size": "1 MiB", "outstanding": 1, "connections": 1, "path": path, "mib_per_s": rate,
                 "cpu_s_per_gib": 1.0}
                for op, path, rate in (("read", "proxy-sfq", 3.0), ("read", "haproxy", 2.0), ("read", "haproxy-splice", 4.0),
                                       ("write", "proxy-sfq", 6.0), ("write", "haproxy", 2.0), ("write", "haproxy-splice", 2.0))]
        self.assertEqual([row["in the worst case"] for row in overhead.haproxy({"rows": rows})], [1.5, 0.75, 0.75])


class RecordTest(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_a_file_gives_the_record_that_was_written(self) -> None:
        record().write(self.folder)
        self.assertEqual(load("overhead", self.folder), record())
        self.assertIsNone(load("sharing", self.folder))

    def test_a_quick_run_is_not_a_record(self) -> None:
        record(quick=True).write(self.folder)
        with self.assertRaisesRegex(RecordError, "quick"):
            load("overhead", self.folder)
        self.assertEqual(len(list(check_records.check_files(self.folder))), 1)

    def test_rounds_are_merged_to_median_and_spread(self) -> None:
        rounds = [[{"case": "a", "jobs": 4, "ratio": ratio, "none": None}] for ratio in (1.0, 3.0, 2.0)]
        self.assertEqual(merged(rounds), [{"case": "a", "jobs": 4, "ratio": [2.0, 1.0, 3.0], "none": None}])

    def test_a_number_that_a_round_lacks_is_an_error_with_its_place(self) -> None:
        for value in (None, float("nan")):
            with self.assertRaisesRegex(RecordError, "'a; ratio': a number is missing in a round"):
                merged([[{"case": "a", "ratio": ratio}] for ratio in (1.0, value, 2.0)])

    def test_a_record_that_cannot_be_written_leaves_the_one_before(self) -> None:
        record().write(self.folder)
        with mock.patch.object(pathlib.Path, "replace", side_effect=OSError(28, "No space left on device")):
            with self.assertRaisesRegex(Problem, "overhead.json cannot be written: No space left"):
                record(runs=3).write(self.folder)
        self.assertEqual(load("overhead", self.folder), record())
        self.assertEqual([file.name for file in self.folder.iterdir()], ["overhead.json"])

    def test_rounds_with_different_rows_are_not_merged(self) -> None:
        with self.assertRaisesRegex(RecordError, "different rows"):
            merged([[{"case": "a"}], [{"case": "b"}]])

    def test_cells_have_as_many_digits_as_matter(self) -> None:
        cells = [None, "text", 4, 1250, 0.9634, 1.1, 13.24, 126.4, [1.5, 1.4, 1.62], [1.0, 1.0, 1.0001]]
        self.assertEqual([text_of(cell) for cell in cells],
                         ["", "text", "4", "1,250", "0.96", "1.10", "13.2", "126", "1.50 (1.40-1.62)", "1.00"])

    def test_a_spread_below_zero_can_be_read(self) -> None:
        self.assertEqual(text_of([-2.0, -2.5, -1.5]), "-2.00 (-2.50 to -1.50)")


class PassageTest(unittest.TestCase):
    TABLE = "a\n\n<!-- record: overhead memory -->\n?\n<!-- end -->\n\nb\n"
    CELL = "<!-- record: overhead memory; 64 KiB, 64 connections;\nresident MiB -->?<!-- end --> MiB"

    def setUp(self) -> None:
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_a_table_is_written_with_its_spread_and_where_it_is_from(self) -> None:
        record().write(self.folder)
        text = passages.rewritten(self.TABLE, self.folder)
        self.assertIn("\n| 64 KiB, 64 connections | 13.2 (12.9-13.4) |\n", text)
        self.assertIn("commit `01234567`, 2026-11-25, 2 processors.", text)
        self.assertTrue(text.startswith("a\n\n<!--") and text.endswith("<!-- end -->\n\nb\n"))
        self.assertEqual(passages.rewritten(text, self.folder), text)

    def test_a_number_of_a_sentence_is_written(self) -> None:
        record().write(self.folder)
        self.assertTrue(passages.rewritten(self.CELL, self.folder).endswith("-->13.2<!-- end --> MiB"))

    def test_without_a_record_a_table_says_so_and_a_number_is_an_error(self) -> None:
        self.assertIn(f"\n{NOT_RUN}\n", passages.rewritten(self.TABLE, self.folder))
        with self.assertRaisesRegex(RecordError, "no record overhead"):
            passages.rewritten(self.CELL, self.folder)

    def test_an_older_record_says_so_and_need_not_have_each_table(self) -> None:
        record(older="medians").write(self.folder)
        self.assertIn(NOT_RUN, " ".join(passages.rewritten(self.TABLE, self.folder).split()))
        other = self.TABLE.replace("memory", "calls")
        self.assertIn(f"\n{NOT_RUN}\n", passages.rewritten(other, self.folder))
        record().write(self.folder)
        with self.assertRaisesRegex(RecordError, "no table calls"):
            passages.rewritten(other, self.folder)

    def test_a_table_without_rows_says_why(self) -> None:
        text = passages.table_text(record(tables={"memory": merged([[], []])}), "memory")
        self.assertTrue(text.startswith(passages.NO_ROWS))
        self.assertNotIn("|", text)

    def test_a_wrong_cell_and_a_wide_row_are_errors(self) -> None:
        record().write(self.folder)
        with self.assertRaisesRegex(RecordError, "no cell '128"):
            passages.rewritten(self.CELL.replace("64 KiB", "128 KiB"), self.folder)
        wide = record(tables={"t": [{"a": "x" * passages.COLUMNS}]})
        with self.assertRaisesRegex(RecordError, "columns"):
            passages.table_text(wide, "t")

    def test_markers_that_belong_to_no_passage_are_seen_and_examples_are_none(self) -> None:
        self.assertEqual(passages.loose_markers(self.TABLE + "`<!-- record: x y -->` and `<!-- end -->`"), 0)
        self.assertEqual(passages.loose_markers(self.TABLE + "<!-- record: x y -->"), 1)


class FiguresTest(unittest.TestCase):
    def found(self, text: str) -> list[str]:
        return [what.partition("'")[2].partition("'")[0] for _, what in check_records.figures_without_record(text)]

    def test_measurements_outside_of_passages_are_found(self) -> None:
        text = ("It takes 6 MiB of resident memory and has 0.96 of it.\n\n| a | 1.5 |\n\n"
                "At 400 MiB/s a request takes 120 ns, 1.3 us, 9 million; 5 times faster, 90 requests/s.\n")
        self.assertEqual(sorted(self.found(text)), sorted(
            ["6 MiB of resident", "0.96", "1.5", "400 MiB/s", "120 ns", "1.3 us", "1.3", "5 times faster", "90 requests/s"]))

    def test_settings_versions_code_and_passages_are_not(self) -> None:
        text = ("A device of `400 MiB/s`, OrangeFS (PVFS2) 2.9 and 2.10, BeeGFS 7 (from 7.1) and 8, Ubuntu 24.04.\n"
                "Requests of 64 KiB to 4 MiB, 16 in flight, within 3 %; 3 times.\n\n    0.5 of it, 3 MiB/s\n\n"
                "```\n0.7\n```\n" + PassageTest.TABLE.replace("?", "0.3") + "[page](x-0.5.md) 127.0.0.1:80\n")
        self.assertEqual(self.found(text), [])


class ResumeTest(unittest.TestCase):
    ENTRY = Entry("engine", "engine", {"events": lambda content: content["rows"]}, (("--a",), ("--b",)), rounds=2)

    def setUp(self) -> None:
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.plan = run_record.Plan(folder, folder / "work", folder / "records", "c0ffee00c0ffee", "programs", False, False)
        self.started: list[str] = []
        self.enterContext(contextlib.redirect_stdout(io.StringIO()))
        self.enterContext(contextlib.redirect_stderr(io.StringIO()))
        self.enterContext(mock.patch("subprocess.Popen", self.start))
        self.busy = self.enterContext(mock.patch("run_record.busy_share", return_value=0.0))
        self.codes: dict[str, int] = {}

    def start(self, command: list[str], **_: object) -> mock.Mock:
        """A benchmark that ends at once, and writes its result if it ends well."""
        place = pathlib.Path(command[command.index("--out") + 1])
        self.started.append(place.name)
        code = self.codes.get(place.name, 0)
        if code == 0:
            rows = [{"case": command[3], "rate": float(len(self.started))}]
            (place / "engine.json").write_text(json.dumps({"settings": {"quick": False}, "rows": rows}))
        return mock.Mock(**{"wait.return_value": code, "poll.return_value": code})

    def measure(self, entry: Entry = ENTRY, **changed: object) -> list[str]:
        self.started.clear()
        self.measured = run_record.is_measured(dataclasses.replace(self.plan, **changed), entry)
        return self.started

    def test_a_record_has_the_parts_of_a_round_and_the_spread_of_the_rounds(self) -> None:
        self.measure()
        found = load("engine", self.plan.records)
        assert found is not None
        self.assertEqual(found.tables["events"],
                         [{"case": "--a", "rate": [2.0, 1.0, 3.0]}, {"case": "--b", "rate": [3.0, 2.0, 4.0]}])
        self.assertEqual((found.commit, found.runs, found.commands),
                         ("c0ffee00c0ffee", 2, ["script/bench engine --a", "script/bench engine --b"]))

    def test_a_record_says_what_ran_beside_it_at_worst(self) -> None:
        self.busy.side_effect = [0.01, 0.02, 0.41, 0.03]
        self.measure()
        found = load("engine", self.plan.records)
        assert found is not None
        self.assertEqual(found.busy, 0.41)
        self.assertIn("other programs used up to 41% of the processors.", passages.origin(found))
        for quiet in (0.04, None):
            self.assertTrue(passages.origin(record(busy=quiet)).endswith("2 processors."))

    def test_what_has_ended_is_not_run_again_unless_commit_programs_or_settings_change(self) -> None:
        self.assertEqual(len(self.measure()), 4)
        self.assertEqual(self.measure(), [])
        self.assertEqual(self.measure(dataclasses.replace(self.ENTRY, rounds=3)), ["round3-part1", "round3-part2"])
        self.assertEqual(len(self.measure(programs="other")), 4)
        self.assertEqual(len(self.measure(commit="other")), 4)
        self.assertEqual(len(self.measure(commit="other", quick=True)), 4)

    def test_what_was_interrupted_is_run_again(self) -> None:
        self.codes = {"round2-part1": 130}
        self.measure()
        self.assertFalse(self.measured)
        self.assertIsNone(load("engine", self.plan.records))
        self.codes = {}
        self.assertEqual(self.measure(), ["round2-part1", "round2-part2"])
        self.assertTrue(self.measured)

    def test_a_round_whose_end_was_half_written_is_run_again(self) -> None:
        self.measure()
        (self.plan.place(self.ENTRY, 1, 0) / run_record.DONE).write_text('{"commit": "c0f')
        self.assertEqual(self.measure(), ["round2-part1"])

    def test_a_summary_that_fails_leaves_out_its_record_alone(self) -> None:
        entry = dataclasses.replace(self.ENTRY, tables={"events": lambda content: content["nothing"]})
        self.measure(entry)
        self.assertFalse(self.measured)
        self.assertIsNone(load("engine", self.plan.records))

    def test_a_digest_of_programs_changes_with_one_of_them(self) -> None:
        folder = self.plan.work.parent / "bin"
        folder.mkdir()
        for name in ("vpfs-proxy", "vpfs-load"):
            (folder / name).write_text(name)
            (folder / name).chmod(0o755)
        (folder / "notes").write_text("1")
        before = run_record.digest_of(folder)
        (folder / "notes").write_text("2")
        self.assertEqual(run_record.digest_of(folder), before)
        (folder / "vpfs-load").write_text("another")
        self.assertNotEqual(run_record.digest_of(folder), before)

    def test_the_reason_of_a_failure_is_what_the_benchmark_says_last_of_itself(self) -> None:
        output = self.plan.work.parent / "output.txt"
        for text, reason in (("a\nrun_bench.py: load ended:\nbusy\n", "run_bench.py: load ended:\nbusy"),
                             ("a\nb\n", "b"), ("", "")):
            output.write_text(text)
            self.assertEqual(run_record.reason(output), reason)

    def test_a_quick_run_keeps_the_choice_of_rows_and_not_the_lengths(self) -> None:
        entry = Entry("x", "fio", {}, (("--seconds", "9", "--mounts", "1", "--scale", "0.5"),))
        self.assertEqual(entry.command(0, quick=True), ["fio", "--mounts", "1", "--quick"])
        self.assertEqual(entry.command(0), ["fio", *entry.parts[0]])

    def test_all_pages_are_filled_from_the_records(self) -> None:
        root = self.plan.work.parent
        (root / "docs/admin").mkdir(parents=True)
        (root / "README.md").write_text("nothing\n")
        page = root / "docs/admin" / "page.md"
        page.write_text(PassageTest.TABLE)
        record().write(root / "bench/records")
        self.assertEqual(run_record.write_tables(root), [page])
        self.assertIn("| 13.2 (12.9-13.4) |", page.read_text())
        self.assertEqual(run_record.write_tables(root), [])

    def test_a_run_that_takes_too_long_is_ended(self) -> None:
        process = mock.Mock(**{"poll.return_value": None})
        process.wait.side_effect = [run_record.subprocess.TimeoutExpired("x", 1), 143]
        with self.assertRaisesRegex(Problem, "more than 30 minutes"):
            run_record.wait(process, "engine")
        process.terminate.assert_called_once()


if __name__ == "__main__":
    unittest.main()
