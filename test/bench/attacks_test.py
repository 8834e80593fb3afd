"""What attackers send is what real clients send, and what their victims lose is summed rightly."""
from __future__ import annotations

import pathlib
import socket
import struct
import sys
import tempfile
import unittest
from collections.abc import Iterator
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab import interpreter  # noqa: E402

if __name__ == "__main__":
    interpreter.with_packages()

from bench.attacks import beegfs, orangefs, scene  # noqa: E402
from bench.attacks.attack import Attack, Outcome, victim_every_second, victim_loses  # noqa: E402
from bench.attacks.attacker import Attacker  # noqa: E402
from bench.attacks.run import ATTACKS, chosen  # noqa: E402
from bench.attacks.shared_node import SharedNode  # noqa: E402
from lab.cluster import Front  # noqa: E402
from lab.harness import Problem  # noqa: E402

CAPTURES = ROOT / "test/data"
LINK_HEADERS = {1: 14, 113: 16, 276: 20}


def payloads(capture: str) -> Iterator[bytes]:
    """The payload of every TCP segment of a capture."""
    content = (CAPTURES / capture).read_bytes()
    link = LINK_HEADERS[struct.unpack_from("<I", content, 20)[0]]
    at = 24
    while at < len(content):
        size = struct.unpack_from("<I", content, at + 8)[0]
        packet = content[at + 16 + link:at + 16 + size]
        at += 16 + size
        segment = packet[(packet[0] & 15) * 4:struct.unpack_from(">H", packet, 2)[0]]
        yield segment[(segment[12] >> 4) * 4:]


def captured_orangefs(capture: str, operation: int) -> bytes:
    """The first such request."""
    return next(one for one in payloads(capture)
                if one[:8] == struct.pack("<II", orangefs.MAGIC, orangefs.UNEXPECTED)
                and struct.unpack_from("<i", one, 32)[0] == operation)


def captured_beegfs(capture: str, kind: int) -> bytes:
    return next(one for one in payloads(capture)
                if len(one) >= beegfs.HEADER.size and beegfs.HEADER.unpack_from(one)[4:6] == (beegfs.PREFIX, kind))


def u64(content: bytes, at: int) -> int:
    return struct.unpack_from("<Q", content, at)[0]


class OrangefsMessageTest(unittest.TestCase):
    def test_a_getconfig_is_that_of_a_real_client(self) -> None:
        self.assertEqual(orangefs.getconfig(1), captured_orangefs("orangefs/ping.pcap", orangefs.GETCONFIG))

    def test_a_read_is_that_of_a_real_client(self) -> None:
        real = captured_orangefs("orangefs/sread.pcap", orangefs.IO)
        payload = real[orangefs.HEADER.size:]
        # Issuer, file and rights are at the offsets of docs/wire-orangefs.md, section 3.
        about = {"ISSUER": payload[20:24], "FS_ID": struct.unpack_from("<i", payload, 104)[0],
                 "METAFILE": u64(payload, 64), "FAR_FUTURE": u64(payload, 48),
                 "ALL_OPERATIONS": struct.unpack_from("<I", payload, 56)[0]}
        with mock.patch.multiple(orangefs, **about):
            made = orangefs.io(u64(real, orangefs.TAG_OFFSET), orangefs.READ, u64(payload, 96), u64(payload, 256),
                               offset=u64(payload, 248))
        self.assertEqual(made, real)

    def test_a_hint_of_text_is_written_as_a_real_client_does(self) -> None:
        payload = captured_orangefs("orangefs/hints_4k_64k.pcap", orangefs.IO)[orangefs.HEADER.size:]
        at = payload.index(struct.pack("<II", 3, 3))  # there are three, the first is the file
        file, text = payload[at + 8:at + 16], payload[at + 16:]
        made = orangefs.hints(u64(file, 0), b"job42")
        self.assertEqual(made[4:16], struct.pack("<I", 3) + file)
        named = made[16:].replace(orangefs.text(b"jobid"), orangefs.text(b"app"))
        self.assertEqual(named, text[:len(named)])

    def test_a_small_io_has_its_fields_where_the_commonest_has_them(self) -> None:
        payload = orangefs.small_write(1, 99, b"abcd", offset=5)[orangefs.HEADER.size:]
        self.assertEqual((u64(payload, 96), struct.unpack_from("<i", payload, 108)[0]), (99, orangefs.WRITE))
        self.assertEqual((u64(payload, 240), u64(payload, 248), u64(payload, 256)), (5, 4, 4))
        self.assertEqual(payload[268:], b"abcd")

    def test_a_longer_hint_keeps_everything_behind_it_aligned(self) -> None:
        for size in range(1, 20):
            payload = orangefs.io(1, orangefs.WRITE, 99, 1 << 20, b"j" * size)[orangefs.HEADER.size:]
            self.assertEqual(len(payload) % 8, 0)
            self.assertEqual(struct.unpack_from("<qq", payload, len(payload) - 16), (0, 1 << 20))
            self.assertEqual(payload[-16 - len(orangefs.CONTIGUOUS):-16], orangefs.CONTIGUOUS)

    def test_every_request_of_a_flood_has_a_tag_of_its_own_in_every_round(self) -> None:
        one = orangefs.getconfig(0)
        flood = orangefs.TaggedFlood(one, range(1 << 20, 301 << 20, 1 << 20))

        def tags() -> list[int]:
            return [u64(flood.bytes, at + orangefs.TAG_OFFSET) for at in range(0, len(flood.bytes), len(one))]

        self.assertEqual(tags(), list(range(1 << 20, 301 << 20, 1 << 20)))
        counted = orangefs.TaggedFlood(one, range(1, 301))
        counted.next_round(0x123)
        self.assertEqual(u64(counted.bytes, orangefs.TAG_OFFSET), 0x123 << 32 | 1)
        self.assertEqual(bytes(counted.bytes[len(one) * 299:]), orangefs.getconfig(0x123 << 32 | 300))

    def test_a_reader_gives_whole_messages(self) -> None:
        here, there = socket.socketpair()
        with here, there:
            there.sendall(orangefs.data(7, b"abc") + orangefs.data(8, b""))
            reader = orangefs.Reader(here)
            self.assertEqual([reader.next(), reader.next()], [(7, b"abc"), (8, b"")])
            there.close()
            with self.assertRaises(ConnectionError):
                reader.next()


class BeegfsMessageTest(unittest.TestCase):
    CAPTURE = "beegfs/small4k.pcap"

    def test_the_first_words_are_those_of_a_real_client(self) -> None:
        real = captured_beegfs(self.CAPTURE, beegfs.PEER_INFO)
        node = struct.unpack_from("<I", real, beegfs.HEADER.size + 4)[0]
        self.assertEqual(beegfs.introduction(), captured_beegfs(self.CAPTURE, beegfs.SET_CHANNEL_DIRECT))
        self.assertEqual(beegfs.hello(node), beegfs.introduction() + real)

    def test_reads_and_writes_are_those_of_a_real_client(self) -> None:
        for kind in (beegfs.READ, beegfs.WRITE):
            real = captured_beegfs(self.CAPTURE, kind)
            *_, target, user, _, _ = beegfs.HEADER.unpack_from(real)
            body = real[beegfs.HEADER.size:]
            offset, count = struct.unpack_from("<qq", body)
            handle = body[24:24 + struct.unpack_from("<I", body, 20)[0]]
            session, entry = handle.split(b"#")
            node = struct.unpack_from("<I", body, 20 + len(beegfs.aligned_text(handle)))[0]
            made = beegfs.file_io(kind, count, node, user, entry=entry, session=int(session, 16), offset=offset,
                                  target=target)
            self.assertEqual(made, real[:len(made)])
            self.assertEqual(struct.unpack_from("<I", real)[0], len(made))

    def test_the_header_may_name_another_target_than_the_body(self) -> None:
        made = beegfs.file_io(beegfs.READ, 1, 2, 3, target=101, header_target=104)
        self.assertEqual(beegfs.HEADER.unpack_from(made)[6], 104)
        self.assertEqual(struct.unpack("<H", made[-2:])[0], 101)

    def test_answers_are_taken_to_their_end(self) -> None:
        here, there = socket.socketpair()
        with here, there:
            there.sendall(struct.pack("<q", 3) + b"abc" + struct.pack("<q", 2) + b"de" + struct.pack("<q", 0))
            there.sendall(struct.pack("<q", -3))
            there.sendall(beegfs.message(beegfs.WRITE_ANSWER, struct.pack("<q", 4096)))
            self.assertEqual((beegfs.receive_read(here), beegfs.receive_read(here), beegfs.receive_write(here)),
                             (5, -3, 4096))


class VictimTest(unittest.TestCase):
    # Two seconds in quarters: the second in the middle has nothing.
    BINS = [(0.25 * (i + 1), 0.0 if 2 <= i < 6 else 100.0) for i in range(8)]

    def test_the_worst_second_may_begin_anywhere(self) -> None:
        self.assertEqual(scene.worst_second(self.BINS, 0.25), 0.0)
        self.assertEqual(scene.worst_second(self.BINS[:5], 0.25), 25.0)
        self.assertEqual(scene.worst_second(self.BINS[:2], 0.25), 100.0)

    def test_more_than_its_half_does_not_make_up_for_what_was_lost(self) -> None:
        self.assertAlmostEqual(scene.seconds_lost(self.BINS, 50.0, 0.25), 1.0)
        self.assertAlmostEqual(scene.seconds_lost(self.BINS, 200.0, 0.25), 1.5)

    def test_only_what_is_within_a_time_as_a_whole_counts(self) -> None:
        self.assertEqual([at for at, _ in scene.between(self.BINS, 0.5, 1.1)], [0.75, 1.0])
        with self.assertRaisesRegex(Problem, "too short"):
            scene.mean_of(scene.between(self.BINS, 5, 6))

    def test_a_status_is_read_without_its_details(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "status.json")
            file.write_text('{\n  "queued": 3,\n  "outstanding": 4,\n  "virtual_pfs": [\n    {\n'
                            '      "outstanding": 50,\n      "excess_requests": 60\n    }\n  ],\n'
                            '  "counters": {\n    "excess_requests": 5,\n    "ios_alive": 7\n  }\n}\n')
            status = scene.Status(file)
        self.assertEqual((status.alive(), status.excess_requests), (14, 5))

    def test_targets_tell_a_victim_that_lost_its_half(self) -> None:
        def verdicts(worst: float, lost: float, leaked: int) -> list[object]:
            victim = scene.Victim(entitled=100, before=99, mean=95, worst_second=worst, seconds_lost=lost,
                                  wrong_blocks=0, failed=0)
            row = victim.row("x", "orangefs", leaked, 6.0)
            attack = Attack("x", "orangefs", lambda *_: None, (victim_every_second(0.9), victim_loses(2.0)))
            seen = Outcome(row, victim, {"seconds_lost_per_minute": lost})
            return [line["verdict"] for line in attack.judge(seen)]

        self.assertEqual(verdicts(91, 1.9, 0), ["reached", "reached", "reached"])
        self.assertEqual(verdicts(89, 2.1, 1), ["missed", "missed", "missed"])


class AttackTest(unittest.TestCase):
    def test_attacks_are_found_by_their_names(self) -> None:
        self.assertEqual([attack.protocol for attack in chosen(False, ["huge"], None)], ["orangefs", "beegfs"])
        self.assertEqual(len(chosen(False, ["huge"], ["beegfs"])), 1)
        self.assertEqual(len(chosen(False, None, None)), len(ATTACKS))
        self.assertLess(len(chosen(True, None, None)), len(ATTACKS))
        with self.assertRaisesRegex(Problem, "no attack"):
            chosen(False, ["nothing like it"], None)

    def test_every_attack_on_a_protocol_has_a_name_of_its_own(self) -> None:
        names = [(attack.name, attack.protocol) for attack in ATTACKS]
        self.assertEqual(len(names), len(set(names)))

    def test_slow_applications_are_all_limited_on_one_node(self) -> None:
        case = SharedNode(4, 12, writers=True)
        fast, *slow = case.applications(True)
        self.assertEqual({one.node for one in (fast, *slow)}, {fast.node})
        self.assertEqual([(one.connections, one.read_percent) for one in slow], [(12, 0)] * 4)
        self.assertEqual(case.applications(False), [fast])

    def test_a_front_has_rules_for_its_templates_behind_the_others(self) -> None:
        front = Front("px", "proxy", "sfq", {"a": 1}, templates={"job-{jobid}": {"hint": {"jobid": "*"}}})
        config = front.proxy_config(1, 2, "status.json")
        self.assertEqual([rule["virtual_pfs"] for rule in config["rules"]], ["a", "job-{jobid}"])
        self.assertEqual(config["virtual_pfs"], {"a": {"weight": 1}, "job-{jobid}": {}})

    def test_an_attack_that_is_over_has_no_connection_and_no_thread_left(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            attacker = Attacker(server.getsockname()[1])
            connection = attacker.connect()
            attacker.drain(connection)
            attacker.start(lambda: attacker.pause(60), again=True)
            there, _ = server.accept()
            attacker.stop()
            with there:
                self.assertEqual(there.recv(1), b"")
            with self.assertRaises(ConnectionError):
                attacker.connect()
        self.assertFalse(any(thread.is_alive() for thread in attacker._threads))


if __name__ == "__main__":
    unittest.main()
