"""What the bench of the control port sends is what control.proto says."""
from __future__ import annotations

import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from bench.control import control_attack, control_port  # noqa: E402
from lab.cluster import Front  # noqa: E402
from bench.control import messages  # noqa: E402
from bench.control.attacks import ATTACKS, WRITERS_ATTACKS  # noqa: E402
from bench.control.scene import State, attack_names  # noqa: E402
from lab.harness import Problem  # noqa: E402

ENVELOPES = {
    'id: 300 hello { version: 1 role: COORDINATOR name: "x" capabilities: "a" capabilities: "b" }':
        {"id": 300, "hello": {"version": 1, "role": "COORDINATOR", "name": "x", "capabilities": ["a", "b"]}},
    'id: 2 answer: true job { action: STOP jobid: "1" uids: 1 uids: 300 }':
        {"id": 2, "answer": True, "job": {"action": "STOP", "jobid": "1", "uids": [1, 300]}},
    'rule { action: STOP name: "\\303\\274" }': {"rule": {"action": "STOP", "name": "ü"}},
    'stats_reply { at: -5 virtual_pfs { rank: 0 read_bytes { min: 3 sumsq: 1.5 } } virtual_pfs { id: 7 } }':
        {"stats_reply": {"at": -5, "virtual_pfs": [{"rank": 0, "read_bytes": {"min": 3, "sumsq": 1.5}}, {"id": 7}]}},
    'site { rules { name: "r" words: "weight=4" until_at: -1 } jobs { jobid: "7" } }':
        {"site": {"rules": [{"name": "r", "words": ["weight=4"], "until_at": -1}], "jobs": [{"jobid": "7"}]}},
    'cycle { lease_us: 18446744073709551615 allocations { flow: 1 } }':
        {"cycle": {"lease_us": (1 << 64) - 1, "allocations": [{"flow": 1}]}},
}


class MessagesTest(unittest.TestCase):
    @unittest.skipUnless(shutil.which("protoc"), "there is no protoc")
    def test_messages_are_what_protoc_makes_and_reads(self) -> None:
        for text, content in ENVELOPES.items():
            made = subprocess.run(["protoc", "--encode=vpfs.control.Envelope", messages.FILE.name], input=text.encode(),
                                  cwd=messages.FILE.parent, check=True, capture_output=True).stdout
            self.assertEqual(messages.decode("Envelope", made), content)
            again = subprocess.run(["protoc", "--decode=vpfs.control.Envelope", messages.FILE.name],
                                   input=messages.encode("Envelope", content), cwd=messages.FILE.parent, check=True,
                                   capture_output=True).stdout
            self.assertEqual(" ".join(again.decode().split()), text)

    def test_all_messages_of_the_file_are_known(self) -> None:
        text = messages.FILE.read_text()
        self.assertEqual(len(messages.schema().messages), len(re.findall(r"^ *message ", text, re.MULTILINE)))
        self.assertEqual(len(messages.schema().enums), text.count("enum "))

    def test_a_cut_message_is_malformed_and_an_unknown_field_is_left_out(self) -> None:
        whole = messages.encode("Envelope", {"rule": {"action": "START", "name": "r"}})
        for size in range(1, len(whole)):
            with self.assertRaises(messages.Malformed):
                messages.decode("Envelope", whole[:size])
        self.assertEqual(messages.decode("Envelope", messages.tagged(999, b"x") + whole), messages.decode("Envelope", whole))


class SceneTest(unittest.TestCase):
    def test_attacks_are_found_by_parts_of_their_names(self) -> None:
        self.assertEqual(attack_names(["silent"]), ["silent_unix", "silent_tcp"])
        self.assertEqual(attack_names(None), [*ATTACKS, *WRITERS_ATTACKS])
        with self.assertRaisesRegex(Problem, "no attack"):
            attack_names(["nothing like it"])

    def test_the_limited_jobs_of_a_template_have_its_share_and_the_last_rule(self) -> None:
        config = control_port.FRONT.proxy_config(1, 2, "status.json")
        self.assertEqual(config["virtual_pfs"], {"a": {"weight": 1}, "job-{jobid}": {"operations": 1}})
        self.assertEqual([rule["virtual_pfs"] for rule in config["rules"]], ["a", "job-{jobid}"])
        self.assertEqual(config["control"], {"socket": "control.sock"})
        self.assertNotIn("control", Front("px", "proxy").proxy_config(1, 2, "status.json"))

    def test_memory_and_files_are_compared_with_those_before(self) -> None:
        before = State(own_mib=10, open_files=20)
        self.assertFalse(State(own_mib=18.9, open_files=20).worse_than(before))
        self.assertTrue(State(own_mib=19.1, open_files=20).worse_than(before))
        self.assertTrue(State(own_mib=10, open_files=21).worse_than(before))


class TargetsTest(unittest.TestCase):
    def test_cycles_that_cost_too_much_are_told(self) -> None:
        def verdicts(reported: float, cpu: float, ratio: float) -> list[object]:
            row = {"virtual_pfs": 1000, "period_ms": 50, "reported_mean": reported, "cpu_ms_per_s": cpu, "p99_ratio": ratio}
            return [line["verdict"] for line in control_port.check([{"virtual_pfs": 100, "period_ms": 50}, row])]

        self.assertEqual(verdicts(995, 9.9, 1.04), ["reached"] * 3)
        self.assertEqual(verdicts(900, 10.1, 1.06), ["missed"] * 3)

    def test_an_attack_that_does_harm_is_told(self) -> None:
        def verdicts(harm: float) -> set[object]:
            row = {"ratio": 1 - harm / 50, "wrong_blocks": harm, "failed": 0, "answer_ms_max": 900 + 200 * harm,
                   "unanswered": harm}
            after = State(10 + 20 * harm, 20 + int(harm))
            seen = control_attack.Seen("all", [row], State(10, 20), after, 10 + int(1000 * harm), 0, 60, {})
            return {line["verdict"] for line in control_attack.check(seen)}

        self.assertEqual(verdicts(0), {"reached"})
        self.assertEqual(verdicts(1), {"missed"})


if __name__ == "__main__":
    unittest.main()
