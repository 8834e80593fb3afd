"""What the bench of control cycles computes, and what its virtual stages say to a coordinator."""
from __future__ import annotations

import argparse
import json
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from bench.control import control_cycles  # noqa: E402
from bench.control import control_cycles_units as units  # noqa: E402
from bench.control import messages  # noqa: E402
from bench.control.control_cycles_site import (  # noqa: E402
    Case, Site, Use, costs, deviation, disturbances, latencies, message_sizes, read_log, settled, traffic, without_slowest)
from bench.control.control_cycles_tap import Frames, Tally, Tap  # noqa: E402
from bench.control.control_cycles_targets import check, reasons  # noqa: E402
from lab.harness import Problem, ProcessorTimes  # noqa: E402
from lab.rounds import Rounds  # noqa: E402

BIN = ROOT / "build/dev/bin"
PATIENCE = 30.0
COUNTERS = ("arrived_requests", "arrived_bytes", "sent_requests", "done_bytes", "done_cost", "metadata_operations")
SIZES = {"ask_bytes": 19.5, "report_bytes": 81.25, "enforce_bytes": 60.0, "ack_bytes": 18.5}
LOG = """cycle,stages,total_us,collect_us,compute_us,enforce_us,late
1,1,900.0,0.0,1.0,899.0,0
2,2,500.0,0.0,2.0,498.0,0
3,2,600.0,0.0,2.0,598.0,0
4,2,1000.0,100.0,3.0,897.0,1
5,2,2000.0,200.0,5.0,1795.0,0
6,1,100.0,0.0,1.0,99.0,0
"""


class Peer:
    """The coordinator's end of one stage's connection."""

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        self._connection = connection
        self._part = b""
        self.hello = self.receive()["hello"]
        self.send({"id": 1, "answer": True, "hello": {"version": 1, "least": 1, "role": "COORDINATOR"}})

    def close(self) -> None:
        self._connection.close()

    def send(self, envelope: dict, pieces: int = 1) -> None:
        frame = messages.frame(envelope)
        step = -(-len(frame) // pieces)
        for begin in range(0, len(frame), step):
            self._connection.sendall(frame[begin:begin + step])

    def receive(self) -> dict:
        while len(self._part) < 4 or len(self._part) - 4 < int.from_bytes(self._part[:4], "big"):
            data = self._connection.recv(65536)
            if not data:
                raise AssertionError("the stage has closed the connection")
            self._part += data
        end = 4 + int.from_bytes(self._part[:4], "big")
        frame, self._part = self._part[4:end], self._part[end:]
        return messages.decode("Envelope", frame)

    def cycle(self, number: int, allocation: int = 0, want_report: bool = True) -> None:
        body: dict = {"term": 3, "sequence": number, "lease_us": 1_000_000, "want_report": want_report}
        if allocation:
            body |= {"complete": True, "allocations": [{"flow": 1, "bytes_per_second": allocation}]}
        self.send({"id": 100 + number, "cycle": body}, pieces=1 + number % 3)

    def report(self, number: int) -> dict:
        answer = self.receive()
        assert (answer["id"], answer["answer"]) == (100 + number, True), answer
        report = answer["report"]
        assert (report["term"], report["sequence"], report["applied"]) == (3, number, True), report
        return report


class Stages:
    """The program, and a listener that it dials."""

    def __init__(self, count: int, *options: str, context: ssl.SSLContext | None = None, cwd: str) -> None:
        self._context = context
        if context is None:
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(f"{cwd}/c.sock")
            address = "./c.sock"
        else:
            self._listener = socket.create_server(("127.0.0.1", 0))
            address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._listener.listen(64)
        self._listener.settimeout(PATIENCE)
        self._program = subprocess.Popen(
            [BIN / "vpfs-bench-virtual-stages", "--stages", str(count), "--address", address, *options], cwd=cwd,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.peers = []
        for _ in range(count):
            accepted = self._listener.accept()[0]
            self.peers.append(Peer(context.wrap_socket(accepted, server_side=True) if context else accepted))

    def line(self) -> dict:
        return json.loads(self._program.stdout.readline())

    def now(self) -> dict:
        self._program.send_signal(signal.SIGUSR1)
        return self.line()

    def end(self) -> dict:
        self._program.send_signal(signal.SIGTERM)
        out, errors = self._program.communicate(timeout=PATIENCE)
        if self._program.returncode != 0:
            raise AssertionError(errors)
        return json.loads(out.splitlines()[-1])

    def close(self) -> None:
        for peer in self.peers:
            peer.close()
        self._listener.close()
        self._program.kill()
        self._program.communicate()


class VirtualStagesTest(unittest.TestCase):
    def setUp(self) -> None:
        if not (BIN / "vpfs-bench-virtual-stages").exists():
            self.skipTest("vpfs-bench-virtual-stages is not built")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def stages(self, count: int, *options: str, context: ssl.SSLContext | None = None) -> Stages:
        made = Stages(count, *options, context=context, cwd=self.folder)
        self.addCleanup(made.close)
        return made

    def test_stages_greet_and_announce_their_flow_once(self) -> None:
        stages = self.stages(5, "--per-job", "2", "--first-index", "10", "--connect-parallel", "2")
        self.assertEqual([peer.hello["name"] for peer in stages.peers], [f"stage{number:05}" for number in range(10, 15)])
        self.assertEqual({peer.hello["role"] for peer in stages.peers}, {"STAGE"})
        self.assertEqual(stages.peers[0].hello["capabilities"], ["caps", "metadata_caps", "elsewhere"])
        jobs = []
        for peer in stages.peers:
            peer.cycle(1)
            jobs.append(peer.receive()["flows"]["flows"][0]["name"])
            self.assertEqual([flow["flow"] for flow in peer.report(1)["flows"]], [1])
            peer.cycle(2)
            peer.report(2)
        self.assertEqual(jobs, ["job0005", "job0005", "job0006", "job0006", "job0007"])

    def test_counters_grow_by_another_amount_in_each_report_and_only_in_reports(self) -> None:
        (peer,) = self.stages(1).peers
        seen = []
        for number in range(1, 8, 2):
            peer.cycle(number, allocation=number)
            if number == 1:
                self.assertIn("flows", peer.receive())
            seen.append(peer.report(number)["flows"][0])
            peer.cycle(number + 1, allocation=number, want_report=False)
            self.assertNotIn("flows", peer.report(number + 1))
        for name in COUNTERS:
            growth = [later[name] - earlier[name] for earlier, later in zip(seen, seen[1:])]
            self.assertGreater(min(growth), 0, name)
        arrived = [flow["arrived_bytes"] for flow in seen]
        self.assertEqual(len({later - earlier for earlier, later in zip(arrived, arrived[1:])}), len(arrived) - 1)

    def test_what_the_program_counts_is_what_it_was_sent(self) -> None:
        stages = self.stages(3)
        for number in range(1, 4):
            for peer in stages.peers:
                peer.cycle(number)
                if number == 1:
                    peer.receive()
                peer.report(number)
                peer.cycle(10 + number, allocation=1000 + number // 3, want_report=False)
                peer.report(10 + number)
        self.assertEqual(stages.line()["event"], "ready")
        for peer in stages.peers:
            peer.send({"id": 7, "stats": {}})
            self.assertEqual(peer.receive()["error"]["code"], "UNSUPPORTED")
            peer.send({"id": 8, "site": {"origin": "x"}})
            self.assertIn("ack", peer.receive())
        line = stages.now()
        self.assertEqual((line["asks"], line["enforces"], line["answered"], line["refused"]), (9, 9, 18, 3))
        self.assertEqual((line["allocations"], line["repeated"]), (9, 3))
        enforce = messages.frame({"id": 111, "cycle": {
            "term": 3, "sequence": 11, "lease_us": 1_000_000, "want_report": False, "complete": True,
            "allocations": [{"flow": 1, "bytes_per_second": 1000}]}})
        self.assertEqual(line["enforce_bytes"], len(enforce))
        self.assertGreater(line["report_bytes"], line["ack_bytes"])
        self.assertEqual(stages.end()["event"], "end")

    def test_a_refused_stage_ends_the_program_with_the_reason(self) -> None:
        stages = self.stages(1)
        stages.peers[0].send({"id": 0, "error": {"code": "NOT_PERMITTED", "text": "you are not a stage"}})
        with self.assertRaisesRegex(AssertionError, "you are not a stage"):
            stages.end()

    def test_stages_show_their_certificate(self) -> None:
        subprocess.run([ROOT / "script/certificates", f"{self.folder}/tls", "coordinator=127.0.0.1", "stage"], check=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{self.folder}/tls/coordinator.pem", f"{self.folder}/tls/coordinator.key")
        context.load_verify_locations(f"{self.folder}/tls/ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
        stages = self.stages(2, "--ca", "tls/ca.pem", "--certificate", "tls/stage.pem", "--key", "tls/stage.key",
                             context=context)
        for number in range(1, 4):
            for peer in stages.peers:
                peer.cycle(number, allocation=number)
                if number == 1:
                    peer.receive()
                peer.report(number)
        self.assertEqual(stages.end()["enforces"], 6)


class FloorTest(unittest.TestCase):
    def test_every_message_passes_in_each_cycle(self) -> None:
        program = BIN / "vpfs-bench-control-floor"
        if not program.exists():
            self.skipTest("vpfs-bench-control-floor is not built")
        for transport, sizes in (("unix", "60,80"), ("tcp", "20,80,60,20")):
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([program, "--stages", "7", "--transport", transport, "--sizes", sizes, "--seconds", "0",
                                       "--warm-up", "0", "--least-cycles", "30", "--burst", "3"], cwd=folder, check=True,
                                      capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual(list(pathlib.Path(folder).iterdir()), [])
            found = json.loads(done.stdout)
            self.assertEqual(found["cycles"], 30)
            self.assertLessEqual(found["p50_ms"], found["p99_ms"])
            self.assertGreater(found["p50_ms"], 0)
            self.assertGreater(found["stages_cpu_ms"], 0)


class ArithmeticTest(unittest.TestCase):
    def test_cycles_before_the_warm_up_has_passed_and_without_all_stages_do_not_count(self) -> None:
        cycles = read_log(LOG)
        self.assertEqual([cycle.total for cycle in settled(cycles, 0)], [0.5, 0.6, 1.0, 2.0])
        self.assertEqual([cycle.total for cycle in settled(cycles, 0.001)], [1.0, 2.0])
        self.assertEqual(settled([], 1), [])

    def test_latencies_are_those_of_the_log(self) -> None:
        found = latencies(settled(read_log(LOG), 0))
        self.assertEqual((found["cycles"], found["late"], found["p50_ms"], found["p99_ms"]), (4, 1, 0.6, 2.0))
        self.assertAlmostEqual(found["mean_ms"], 1.025)
        self.assertAlmostEqual(found["compute_ms"], 0.003)
        self.assertAlmostEqual(found["collect_ms"] + found["compute_ms"] + found["enforce_ms"], found["mean_ms"])
        with self.assertRaises(Problem):
            latencies([])

    def test_costs_are_those_of_a_cycle(self) -> None:
        def use(at: float, own: float, below: tuple[float, ...], cycles: int) -> Use:
            return Use(at, own, below, SIZES | {"enforces": 100 * cycles, "cpu_ms": 2.0 * cycles, "allocations": 100 * cycles,
                                                "repeated": cycles})

        flat = costs(Case(100, 0, "fused", "unix"), use(0, 1.0, (), 10), use(2, 1.05, (), 20))
        self.assertAlmostEqual(flat["coordinator_cpu_ms"], 5.0)
        self.assertAlmostEqual(flat["critical_path_ms"], 5.0)
        self.assertAlmostEqual(flat["stages_cpu_ms"], 2.0)
        self.assertAlmostEqual(flat["changed"], 0.99)
        self.assertAlmostEqual(flat["cycles_per_s"], 5.0)
        self.assertEqual((flat["coordinator_tx_bytes"], flat["coordinator_rx_bytes"]), (6000, 8125))
        self.assertEqual((flat["stages_tx_bytes"], flat["stages_rx_bytes"]), (8125, 6000))
        self.assertIsNone(flat["aggregator_cpu_ms"])

        case = Case(100, 2, "four", "unix")
        below = costs(case, use(0, 1.0, (2.0, 3.0), 10), use(2, 1.05, (2.02, 3.06), 20))
        self.assertAlmostEqual(below["aggregator_cpu_ms"], 4.0)
        self.assertAlmostEqual(below["critical_path_ms"], 5.0 + 6.0)
        self.assertEqual((below["stages_tx_bytes"], below["stages_rx_bytes"]), (8125 + 1850, 6000 + 1950))
        self.assertNotIn("coordinator_tx_bytes", below)
        with self.assertRaises(Problem):
            costs(case, use(0, 1.0, (), 10), use(2, 1.0, (), 10))

    def test_a_few_slow_cycles_are_told_from_cycles_that_all_vary(self) -> None:
        self.assertAlmostEqual(deviation([1.0, 3.0]), 50.0)
        few, all_of_them = [1.0] * 199 + [20.0], [1.0, 1.5] * 100
        self.assertGreater(deviation(few), 6)
        self.assertEqual(deviation(without_slowest(few)), 0.0)
        self.assertGreater(deviation(without_slowest(all_of_them)), 6)
        self.assertEqual(without_slowest([7.0]), [7.0])

    def test_processors_that_others_had_are_counted(self) -> None:
        def use(busy: float, idle: float, stolen: float, own: float, preemptions: int) -> Use:
            return Use(0, own, (own, own), {"cpu_ms": 1000 * own}, preemptions, ProcessorTimes(busy, idle, stolen))

        found = disturbances(use(10, 10, 1, 1.0, 5), use(15, 14, 2, 2.0, 25), 10)
        self.assertEqual(found, {"others_percent": 10.0, "stolen_percent": 10.0, "preempted_per_cycle": 2.0})
        self.assertEqual(disturbances(use(1, 1, 0, 1.0, 0), use(1, 1, 0, 1.0, 0), 10), {})

    def test_a_run_goes_on_for_as_long_as_was_asked(self) -> None:
        site, now = object.__new__(Site), [0.0]
        site._case = Case(10, 0, "fused", "unix")

        def use() -> Use:
            return Use(now[0], 0.0, (), {"enforces": 10 * now[0]})

        def sleep(seconds: float) -> None:
            now[0] += seconds

        with mock.patch.object(site, "use", use), mock.patch.multiple(
                "bench.control.control_cycles_site.time", sleep=sleep, monotonic=lambda: now[0]):
            self.assertEqual(site._after(use(), 300.0, 20).at, 300.0)
            self.assertAlmostEqual(site._after(use(), 4.0, 20).at, 320.0, delta=0.5)
            self.assertAlmostEqual(site._after(use(), 4.0, 1000).at, 320.0 + 60.0, delta=1.0)

    def test_aggregators_carry_what_passes_on_both_sides(self) -> None:
        tap = argparse.Namespace(down=Tally(4, 4 * 500), up=Tally(4, 4 * 700))
        self.assertEqual(traffic(Case(100, 2, "four", "unix"), tap, SIZES), {
            "coordinator_tx_bytes": 2000, "coordinator_rx_bytes": 2800, "aggregator_tx_bytes": (7950 + 2800) / 2,
            "aggregator_rx_bytes": (9975 + 2000) / 2})

    def test_controllers_use_is_told_in_the_units_of_the_study_at_both_rates(self) -> None:
        row = {"stages": 2500, "aggregators": 0, "cycle": "four", "transport": "tcp", "cycles_per_s": 50.0,
               "coordinator_cpu_ms": 10.0, "coordinator_rss_mib": 100.0, "coordinator_tx_bytes": 200_000.0,
               "coordinator_rx_bytes": 400_000.0, "aggregator_cpu_ms": None}
        (found,) = units.in_units([row])
        self.assertEqual((found["role"], found["cpu_percent"], found["tx_mb_per_s"], found["rx_mb_per_s"]),
                         ("coordinator", 50.0, 10.0, 20.0))
        self.assertAlmostEqual(found["gb"], 0.1048576)
        self.assertAlmostEqual(found["their_cycles_per_s"], 1000 / 40.4)
        self.assertAlmostEqual(found["their_cpu_percent"], 10 * 100 / 40.4)
        self.assertAlmostEqual(found["their_rx_mb_per_s"], 0.4 * 1000 / 40.4)
        (unknown,) = units.in_units([row | {"stages": 500}])
        self.assertEqual([unknown[name] for name in units.COLUMNS[-4:]], [None] * 4)
        both = units.in_units([row | {"aggregators": 1, "aggregator_cpu_ms": 9.0, "aggregator_rss_mib": 20.0}])
        self.assertEqual([found["role"] for found in both], ["coordinator", "aggregator"])
        self.assertIsNone(both[1]["tx_mb_per_s"])

    def test_the_study_has_its_own_sites_and_kind_of_cycle(self) -> None:
        options = control_cycles.option_parser().parse_args(["--paper"])
        cases = control_cycles.paper_cases(options)
        self.assertEqual({(case.cycle, case.transport) for case in cases}, {("four", "tcp")})
        self.assertEqual(len(cases), 9)
        self.assertEqual(control_cycles.PAPER.asked(options), Rounds(300, 3))

    def test_messages_have_the_order_in_which_they_are_sent(self) -> None:
        self.assertEqual(message_sizes(Case(50, 0, "fused", "unix"), SIZES), [60.0, 81.25])
        self.assertEqual(message_sizes(Case(50, 0, "four", "unix"), SIZES), [19.5, 81.25, 60.0, 18.5])

    def test_there_is_a_row_for_each_setting(self) -> None:
        cases = control_cycles.all_cases()
        self.assertEqual(len(cases), len(set(cases)))
        settings = {(case.stages, case.aggregators) for case in cases}
        self.assertEqual(settings, {(50, 0), (500, 0), (1250, 0), (2500, 0), (10_000, 0), (2500, 1), (10_000, 4), (10_000, 5),
                                    (10_000, 10), (10_000, 20)})
        self.assertEqual(len(cases), len(settings) * 2 * 3)
        options = control_cycles.option_parser().parse_args(["--stages", "50", "--transport", "tcp", "--cycle", "four"])
        self.assertEqual(control_cycles.chosen(cases, options), [Case(50, 0, "four", "tcp")])
        with self.assertRaises(Problem):
            control_cycles.chosen(cases, control_cycles.option_parser().parse_args(["--stages", "51"]))

    def test_a_row_has_the_medians_of_its_runs(self) -> None:
        runs = [{"cycles": 10, "mean_ms": mean, "p50_ms": mean, "of_floor": None} for mean in (1.0, 2.0, 6.0)]
        row = control_cycles.row_of(Case(50, 0, "fused", "mtls"), runs, {"coordinator_tx_bytes": 5})
        self.assertEqual((row["runs"], row["cycles"], row["mean_ms"], row["of_floor"], row["coordinator_tx_bytes"]),
                         (3, 30, 2.0, None, 5))
        self.assertAlmostEqual(row["std_of_runs_ms"], 2.160, places=3)


class TapTest(unittest.TestCase):
    def test_frames_are_found_however_the_stream_is_cut(self) -> None:
        stream = messages.frame({"id": 300}) + messages.frame({"id": 1, "hello": {"name": "x" * 300}})
        whole = Frames().sizes(stream)
        self.assertEqual(sum(whole), len(stream))
        self.assertEqual(len(whole), 2)
        for step in (1, 3, 7):
            frames = Frames()
            parts = [frames.sizes(stream[at:at + step]) for at in range(0, len(stream), step)]
            self.assertEqual(sum(parts, []), whole)

    def test_a_tap_passes_on_what_it_counts(self) -> None:
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as above, \
                socket.socket(socket.AF_UNIX) as below:
            target, path = pathlib.Path(folder, "above"), pathlib.Path(folder, "tap")
            above.bind(str(target))
            above.listen()
            tap = Tap(path, target)
            self.addCleanup(tap.close)
            below.connect(str(path))
            below.settimeout(PATIENCE)
            far = above.accept()[0]
            self.addCleanup(far.close)
            frame = messages.frame({"id": 300})
            below.sendall(2 * frame)
            received = b""
            while len(received) < 2 * len(frame):
                received += far.recv(100)
            far.sendall(frame)
            self.assertEqual(below.recv(100), frame)
            waiting = threading.Event()
            for _ in range(200):
                if (tap.up.messages, tap.down.messages) == (2, 1):
                    break
                waiting.wait(0.01)
            self.assertEqual((tap.up.mean(), tap.down.mean()), (len(frame), len(frame)))


class TargetsTest(unittest.TestCase):
    def test_slow_cycles_are_told(self) -> None:
        def verdicts(ratio: float, mean: float, compute: float, std: float) -> list[object]:
            def row(stages: int, aggregators: int, cycle: str) -> dict:
                return {"stages": stages, "aggregators": aggregators, "cycle": cycle, "transport": "unix", "of_floor": ratio,
                        "mean_ms": mean, "compute_ms": compute, "std_ms": std * mean, "std_of_runs_ms": std * mean,
                        "coordinator_rss_mib": 60 * ratio, "admitted_ms": 4000 * ratio, "changed": 1.99 - ratio}

            mtls = row(10_000, 0, "fused") | {"transport": "mtls", "of_floor": None, "coordinator_rss_mib": 900, "changed": 1}
            return [line["verdict"] for line in check([row(2500, 0, "fused"), row(10_000, 0, "fused"),
                                                       row(10_000, 4, "fused"), row(10_000, 4, "four"), mtls])]

        self.assertEqual(set(verdicts(1.0, 19, 0.9, 0.05)), {"reached"})
        self.assertEqual(set(verdicts(1.6, 104, 1.1, 0.07)), {"missed"})

    def test_a_row_that_deviates_says_why(self) -> None:
        row = {"stages": 50, "aggregators": 0, "cycle": "fused", "transport": "unix", "deviation_percent": 9.0,
               "deviation_of_most_percent": 2.0, "others_percent": 41.0, "stolen_percent": 3.0, "preempted_per_cycle": 0.5}
        (few,) = reasons([row, row | {"deviation_percent": 5.9}])
        self.assertIn("so those are the reason", few)
        self.assertIn("Other programs had 41 % of the processors, the host 3 %", few)
        (every,) = reasons([row | {"deviation_of_most_percent": 8.0}])
        self.assertIn("so all of them vary", every)

    def test_what_was_not_measured_is_told(self) -> None:
        row = {"stages": 50, "aggregators": 0, "cycle": "fused", "transport": "unix", "of_floor": 1.2, "mean_ms": 1.0,
               "std_ms": 0.01, "std_of_runs_ms": 0.01, "changed": 1.0}
        found = [line["verdict"] for line in check([row])]
        self.assertEqual(found.count("not measured"), 6)
        self.assertEqual(found.count("reached"), 4)


if __name__ == "__main__":
    if "--bin" in sys.argv:
        place = sys.argv.index("--bin")
        BIN = pathlib.Path(sys.argv[place + 1]).resolve()
        del sys.argv[place:place + 2]
    unittest.main()
