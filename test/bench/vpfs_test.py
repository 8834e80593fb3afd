"""What `script/bench vpfs` compares, and the configurations that it writes."""
from __future__ import annotations

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from bench.schedulers import vpfs, vpfs_real  # noqa: E402
from bench.schedulers.vpfs_cases import (  # noqa: E402
    ASYMMETRIC, FIFO, FULL, OVERHEAD, PARTS, RATIOS, READ, SETUPS, SFQ, TOTAL, Case)
from lab import real_orangefs  # noqa: E402
from lab.file_systems import DIRECT  # noqa: E402
from lab.mpi import mpi_command  # noqa: E402


class CasesTest(unittest.TestCase):
    def test_only_sfq_has_a_run_for_each_ratio(self) -> None:
        found = FULL.cases([RATIOS])
        self.assertEqual([case.weight for case in found if case.path == SFQ], [1, 2, 4, 8, 16, 32])
        self.assertEqual([case.weight for case in found if case.path in (DIRECT, FIFO)], [1, 1])

    def test_parts_are_those_that_were_asked_for(self) -> None:
        for part in PARTS:
            self.assertEqual({case.part for case in FULL.cases([part])}, {part})
        self.assertLessEqual(max(case.processes * len(case.applications) for case in FULL.cases(PARTS)), 64)

    def test_files_on_the_same_servers_are_shared_by_weight(self) -> None:
        self.assertEqual(Case(RATIOS, SFQ, weight=8).wanted(), 8.0)

    def test_what_is_fair_on_different_servers_is_what_is_feasible(self) -> None:
        # A striped application has one rate on all its servers. Equal totals leave room on some.
        for setup in SETUPS:
            self.assertEqual(Case(ASYMMETRIC, TOTAL, setup=setup).wanted(), 1.0)
        # 3:1 is possible too: a gets 3/7 of each server, and b 4/7 of the one that both use.
        self.assertEqual(Case(ASYMMETRIC, TOTAL, weight=3, setup="all, 1 of 4").wanted(), 3.0)


class RowsTest(unittest.TestCase):
    def test_more_than_wanted_is_as_far_as_less(self) -> None:
        self.assertAlmostEqual(vpfs.closeness(5.0, 4.0), vpfs.closeness(3.2, 4.0))
        self.assertEqual(vpfs.closeness(4.0, 4.0), 1.0)

    def rows(self, of_direct: float, ratio: float) -> list[dict[str, object]]:
        cases = [Case(OVERHEAD, path, applications=("a",)) for path in (DIRECT, SFQ)]
        cases += [Case(RATIOS, DIRECT), Case(RATIOS, SFQ, weight=4)]
        totals = [100.0, 100.0 * of_direct, 50.0, 50.0]
        measured = [{**case.fields(), "total_mib_per_s": total, "ratio": None} for case, total in zip(cases, totals)]
        measured[-1]["ratio"] = ratio
        return vpfs.compared(cases, measured)

    def test_each_row_is_beside_its_own_direct_one(self) -> None:
        rows = self.rows(0.98, 3.9)
        self.assertEqual([row["of_direct"] for row in rows], [1.0, 0.98, 1.0, 1.0])
        self.assertAlmostEqual(rows[-1]["of_wanted"], 3.9 / 4)

    def test_an_application_that_gets_nothing_misses_the_ratio(self) -> None:
        for rates in ({"a": 100.0, "b": 0.0}, {"a": 0.0, "b": 100.0}):
            ratio = vpfs.facts_of(rates)["ratio"]
            self.assertEqual(self.rows(1.0, ratio)[-1]["of_wanted"], 0.0)
            verdicts = {row["target"]: row["verdict"] for row in vpfs.judge(self.rows(1.0, ratio))}
            self.assertEqual(verdicts["1:1 to 32:1: of the wanted ratio"], "missed")
        self.assertIsNone(vpfs.facts_of({"a": 100.0})["ratio"])

    def test_targets_are_missed_by_what_is_below_them(self) -> None:
        def verdicts(rows: list[dict[str, object]]) -> dict[str, str]:
            return {row["target"].split(":")[0]: row["verdict"] for row in vpfs.judge(rows)}

        good = verdicts(self.rows(0.98, 3.9))
        self.assertEqual(good["one application, write"], "reached")
        self.assertEqual(good["1"], "reached")
        self.assertEqual(good["one application, read"], "not measured")
        bad = {row["target"]: row["verdict"] for row in vpfs.judge(self.rows(0.96, 3.8))}
        self.assertEqual(bad["one application, write: of what it gets without proxies"], "missed")
        self.assertEqual(bad["1:1 to 32:1: of the wanted ratio"], "missed")


class RealServersTest(unittest.TestCase):
    def test_handles_are_divided_without_a_gap(self) -> None:
        for count in (1, 3, 4):
            parts = [tuple(map(int, part.split("-"))) for part in real_orangefs.ranges((3, 1 << 62), count)]
            self.assertEqual(parts[0][0], 3)
            self.assertEqual(parts[-1][1], (1 << 62) - 1)
            for (_, end), (begin, _) in zip(parts, parts[1:]):
                self.assertEqual(begin, end + 1)

    def test_each_server_has_its_addresses_and_places(self) -> None:
        servers = [
            real_orangefs.Server("10.0.0.1:3334", "10.0.0.1:4334"),
            real_orangefs.Server("10.0.0.1:3335", data=pathlib.Path("/device/data")),
        ]
        text = real_orangefs.config_text(pathlib.Path("/site"), servers)
        self.assertIn("\tAlias s0 tcp://10.0.0.1:3334,tcp-px://10.0.0.1:4334\n", text)
        self.assertIn("\tAlias s1 tcp://10.0.0.1:3335\n", text)
        self.assertIn("\tServer s1\n\tDataStorageSpace /device/data\n\tMetadataStorageSpace /site/s1/meta\n", text)
        self.assertEqual(text.count("<ServerOptions>"), 2)

    def test_writes_have_a_time_and_reads_an_amount(self) -> None:
        writing = vpfs_real.ior_options(Case(OVERHEAD, SFQ, processes=64), 8)
        self.assertEqual(writing[writing.index("-D") + 1], "8")
        case = Case(OVERHEAD, SFQ, READ, processes=64)
        amount = str(vpfs_real.READ_TOTAL // 64)
        for options, way in ((vpfs_real.ior_options(case, 8), "-r"), (vpfs_real.filling_options(case), "-w")):
            self.assertIn(way, options)
            self.assertEqual(options[options.index("-b") + 1], amount)
            self.assertNotIn("-D", options)

    def test_an_mpi_is_started_in_its_own_words(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "ior")
            program.touch()
            launcher = pathlib.Path(folder, "mpirun")
            for says, words in (("mpirun (Open MPI) 4.1.4", ["-x", "A=1"]), ("HYDRA build details:", ["-genv", "A", "1"])):
                launcher.write_text(f"#!/bin/sh\necho '{says}'\n")
                launcher.chmod(0o755)
                command = mpi_command(str(program), 7, {"A": "1"})
                self.assertEqual(command[0], str(launcher.resolve()))
                self.assertEqual(command[-2:], ["-n", "7"])
                self.assertIn(" ".join(words), " ".join(command))


if __name__ == "__main__":
    unittest.main()
