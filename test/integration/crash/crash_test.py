#!/usr/bin/env python3
"""A proxy that crashes is started anew: what was at rest goes on, the rest is closed.

crash_test.py DIRECTORY_OF_PROGRAMS
crash_test.py DIRECTORY_OF_PROGRAMS --kills 100    by hand: under load, with figures
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import resource
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import unittest

from crash_site import PROGRAMS, SOCKETS, Site, wait_until
from descriptor_store import PATIENCE, Client, WrongBytes, crash

JOURNAL = "proxy.connections"


class CrashTest(unittest.TestCase):
    def site(self, protocol: str = "orangefs", most: int = 400, more: str = "") -> Site:
        folder = tempfile.TemporaryDirectory(prefix="vpfs")
        self.addCleanup(folder.cleanup)
        site = Site(pathlib.Path(folder.name), protocol, most, more)
        self.addCleanup(site.close)
        self.addCleanup(lambda: self.assertEqual(site.upstream.problems, []))
        return site

    def expect_ended(self, client: Client) -> None:
        client.socket.settimeout(PATIENCE)
        self.assertTrue(client.has_ended())

    def test_connections_at_rest_go_on_over_crashes(self) -> None:
        for protocol in ("orangefs", "beegfs"):
            with self.subTest(protocol):
                site = self.site(protocol)
                clients = [site.connect() for _ in range(20)]
                site.wait_for_kept(20)
                accepted = site.upstream.accepted
                for how in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT):
                    time.sleep(0.5)  # what was asked before is recorded
                    site.restart(how)
                    for client in clients:
                        for size in (0, 1, 5000, 200_000):
                            self.assertTrue(client.ask(size), site.log.read_text())
                self.assertEqual(site.upstream.accepted - accepted, 3, "the look of each start")
                self.assertEqual(site.store.count(SOCKETS), 40)

    def test_bytes_that_came_while_no_process_ran_are_served(self) -> None:
        site = self.site()
        client = site.connect()
        site.wait_for_kept(1)
        crash(site.processes[-1])
        served = []
        asking = threading.Thread(target=lambda: served.append(client.ask(300_000)))
        asking.start()
        time.sleep(0.3)
        site.start()
        asking.join()
        self.assertEqual(served, [True])

    def test_a_connection_that_moved_since_its_record_is_closed(self) -> None:
        site = self.site()
        clients = [site.connect() for _ in range(4)]
        site.wait_for_kept(4)
        time.sleep(0.3)
        self.assertTrue(clients[0].ask(100))  # a moment ago: not recorded again
        half = clients[1].script.question(2, 2, 1000)
        clients[1].socket.sendall(half[:500])
        clients[2].socket.sendall(half[:10])  # of a header
        time.sleep(0.05)
        site.restart()
        for client in clients[:3]:
            self.expect_ended(client)
        self.assertTrue(clients[3].ask(100))
        wait_until(lambda: site.store.count(SOCKETS) == 2, "the manager drops the others")

    def test_a_crash_while_the_server_works(self) -> None:
        site = self.site("beegfs")
        clients = [site.connect() for _ in range(2)]
        site.wait_for_kept(2)
        site.upstream.stall.set()
        question = clients[0].script.question(1, 2, 100)
        clients[0].socket.sendall(question)
        time.sleep(0.1)
        site.restart(signal.SIGSEGV)
        site.upstream.stall.clear()
        self.expect_ended(clients[0])
        self.assertTrue(clients[1].ask(10))

    def test_an_answer_that_was_due_comes_through_the_next_process(self) -> None:
        site = self.site("beegfs")
        client = site.connect()
        site.wait_for_kept(1)
        site.upstream.stall.set()
        answers: list[bool] = []
        asking = threading.Thread(target=lambda: answers.append(client.ask(1000)))
        asking.start()
        time.sleep(1)  # recorded, with the answer that is due
        crash(site.processes[-1])
        site.upstream.stall.clear()
        site.start()
        asking.join()
        self.assertEqual(answers, [True])
        self.assertTrue(client.ask(1000))

    def test_peers_that_left_while_no_process_ran(self) -> None:
        site = self.site()
        clients = [site.connect() for _ in range(6)]
        site.wait_for_kept(6)
        time.sleep(0.3)
        crash(site.processes[-1])
        clients[0].close()
        clients[1].socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        clients[1].close()  # a reset
        clients[2].socket.shutdown(socket.SHUT_WR)
        site.start()
        self.expect_ended(clients[2])
        for client in clients[3:]:
            self.assertTrue(client.ask(100))
        wait_until(lambda: site.store.count(SOCKETS) == 6, "the manager drops the others")

    def test_more_connections_than_the_store_takes(self) -> None:
        site = self.site(most=16 + 2 * 5)
        clients = [site.connect() for _ in range(12)]
        site.wait_for_kept(5)
        self.assertEqual(site.store.refused, 0)
        time.sleep(0.3)
        site.restart()
        for client in clients:
            client.socket.settimeout(PATIENCE)
        self.assertEqual(sum(client.ask(100) for client in clients), 5)
        # Places of connections that end serve others.
        for client in clients:
            client.close()
        wait_until(lambda: site.store.count(SOCKETS) == 0, "all are gone")
        site.connect()
        site.wait_for_kept(1)

    def test_a_store_that_is_smaller_than_the_program_was_told(self) -> None:
        site = self.site()
        site.store.most = 6 + 5  # listeners, and half of a pair
        for _ in range(5):
            site.connect()
        wait_until(lambda: site.store.count(SOCKETS) >= 3, "it is full")
        time.sleep(0.5)
        site.restart()
        self.assertEqual(
            sum(client.ask(100) for client in site.clients), site.store.count(SOCKETS) // 2
        )

    def test_a_crash_while_connections_are_stored(self) -> None:
        site = self.site()
        clients = [site.connect() for _ in range(60)]
        wait_until(lambda: site.store.count(SOCKETS) > 20, "some are stored")
        site.restart()
        served = sum(client.ask(100) for client in clients)
        self.assertGreaterEqual(served, 10)
        self.assertLessEqual(served, 60)

    def test_a_manager_that_is_busy_delays_nothing(self) -> None:
        site = self.site()
        site.store.is_paused = True
        time.sleep(0.1)
        clients = [site.connect() for _ in range(30)]
        time.sleep(2)
        for client in clients:
            self.assertTrue(client.ask(1000))
        site.store.is_paused = False
        site.wait_for_kept(30)

    def test_a_journal_that_cannot_be_read_counts_for_nothing(self) -> None:
        def garbage(file: int) -> None:
            os.pwrite(file, random.Random(1).randbytes(os.fstat(file).st_size), 0)

        def version(file: int) -> None:
            os.pwrite(file, struct.pack("<Q", 99), 8)

        def length(file: int) -> None:
            os.ftruncate(file, os.fstat(file).st_size - 100)

        def nothing(file: int) -> None:
            os.ftruncate(file, 0)

        for damage, words in (
            (garbage, "it is something else"),
            (version, "version 99"),
            (length, "another length"),
            (nothing, "0 bytes"),
        ):
            with self.subTest(words):
                site = self.site()
                client = site.connect()
                site.wait_for_kept(1)
                crash(site.processes[-1])
                damage(next(each for name, each in site.store.kept if name == JOURNAL))
                site.start()
                self.expect_ended(client)
                self.assertTrue(site.logged(words), site.log.read_text())
                self.assertEqual(site.log.read_text().count("journal of connections"), 1)
                self.assertTrue(site.connect().ask(10))

    def test_a_journal_with_damaged_records_counts_for_the_others(self) -> None:
        site = self.site()
        clients = [site.connect() for _ in range(6)]
        site.wait_for_kept(6)
        time.sleep(0.3)
        crash(site.processes[-1])
        journal = next(each for name, each in site.store.kept if name == JOURNAL)
        for place in range(3):
            os.pwrite(journal, b"\xff", 4096 + 512 * place + 90)
        site.start()
        self.assertEqual(sum(client.ask(100) for client in clients), 3)

    def test_after_an_upgrade_the_new_process_keeps_them(self) -> None:
        for protocol in ("orangefs", "beegfs"):
            with self.subTest(protocol):
                site = self.site(protocol)
                clients = [site.connect() for _ in range(10)]
                site.wait_for_kept(10)
                names = {name for name, _ in site.store.kept}
                site.upgrade()
                site.wait_for_kept(10)
                self.assertFalse(
                    names & {name for name, _ in site.store.kept if name.startswith(SOCKETS)}
                )
                for client in clients:
                    self.assertTrue(client.ask(100))
                time.sleep(0.5)
                os.kill(site.store.main, signal.SIGKILL)
                site.wait_for_end(site.store.main)
                site.start()
                for client in clients:
                    self.assertTrue(client.ask(1000), site.log.read_text())

    def test_what_stayed_with_the_process_before_is_not_used(self) -> None:
        site = self.site()
        clients = [site.connect() for _ in range(3)]
        site.wait_for_kept(3)
        half = clients[0].script.question(1, 2, 1000)
        clients[0].socket.sendall(half[:500])  # so that it stays
        time.sleep(0.1)
        first = site.processes[-1]
        site.upgrade()
        self.assertIsNone(first.poll())
        wait_until(lambda: site.store.count(SOCKETS) == 4, "only those that went are kept")
        time.sleep(0.3)
        os.kill(first.pid, signal.SIGSTOP)  # it notices nothing of what follows
        os.kill(site.store.main, signal.SIGKILL)
        site.wait_for_end(site.store.main)
        self.assertEqual(site.store.count(SOCKETS), 4)
        crash(first)  # a manager ends what is left before a start
        site.start()
        self.expect_ended(clients[0])
        for client in clients[1:]:
            self.assertTrue(client.ask(100))

    def test_a_process_that_still_runs_keeps_its_connections_from_the_next(self) -> None:
        site = self.site()
        client = site.connect()
        site.wait_for_kept(1)
        time.sleep(0.3)
        os.kill(site.processes[-1].pid, signal.SIGSTOP)
        other = site.folder / "other.yaml"
        other.write_text(
            site.config.read_text()
            .replace(str(site.control), str(site.folder / "other"))
            .replace(str(site.log), str(site.folder / "other.log"))
        )
        process = site.store.start([PROGRAMS[0] / "vpfs-proxy", "--config", other])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_until(
            lambda: (
                "still runs" in (site.folder / "other.log").read_text()
                if (site.folder / "other.log").exists()
                else False
            ),
            "it says why",
        )
        self.expect_ended(client)

    def test_a_clean_stop_ends_all(self) -> None:
        site = self.site()
        clients = [site.connect() for _ in range(5)]
        site.wait_for_kept(5)
        site.processes[-1].send_signal(signal.SIGTERM)
        self.assertEqual(site.processes[-1].wait(PATIENCE), 0)
        for client in clients:
            self.expect_ended(client)
        wait_until(lambda: site.store.count(SOCKETS) == 0, "the manager drops them")
        site.start()
        self.assertTrue(site.connect().ask(10))

    def test_switched_off_nothing_is_kept(self) -> None:
        site = self.site(more="restart: {keep_over_crash: false}")
        client = site.connect()
        time.sleep(2)
        self.assertEqual(site.store.count(SOCKETS), 0)
        self.assertEqual(site.store.count(JOURNAL), 0)
        site.restart()
        self.expect_ended(client)

    def test_switched_off_by_the_next_start_all_are_closed(self) -> None:
        site = self.site()
        client = site.connect()
        site.wait_for_kept(1)
        crash(site.processes[-1])
        site.write("restart: {keep_over_crash: false}")
        site.start()
        self.expect_ended(client)
        wait_until(lambda: site.store.count(SOCKETS) == 0, "the manager drops them")

    def test_a_connection_that_ends_is_dropped_by_the_manager(self) -> None:
        site = self.site()
        clients = [site.connect() for _ in range(4)]
        site.wait_for_kept(4)
        clients[0].close()
        wait_until(lambda: site.store.count(SOCKETS) == 6, "it is dropped")

    def test_crashes_under_load(self) -> None:
        for protocol in ("orangefs", "beegfs"):
            with self.subTest(protocol):
                figures = crashes_under_load(self.site(protocol), 4, idle=20, busy=6)
                self.assertEqual(figures["problems"], [])
                self.assertEqual(figures["idle kept"], 4 * 20)


def crashes_under_load(site: Site, kills: int, idle: int, busy: int) -> dict[str, object]:
    """Kills a proxy that often, with clients that rest and others that ask all the time."""
    random_source = random.Random(1)
    figures: dict[str, object] = {
        "kills": kills,
        "idle kept": 0,
        "idle closed": 0,
        "busy closed": 0,
        "answers": 0,
    }
    problems: list[str] = []
    is_over = threading.Event()
    lock = threading.Lock()
    resting = [site.connect() for _ in range(idle)]

    def count(word: str, more: int = 1) -> None:
        with lock:
            figures[word] = int(str(figures[word])) + more

    def ask_always(seed: int) -> None:
        sizes = random.Random(seed)
        pause = (0, 0, 0.001, 0.05, 0.3, 1.5)[seed % 6]
        client = None
        while not is_over.is_set():
            try:
                if client is None:
                    client = Client(
                        site.protocol, site.port(), 1000 + seed * 100000 + sizes.randrange(99999)
                    )
                if client.ask(sizes.choice((0, 10, 1000, 20_000, 70_000, 400_000))):
                    count("answers")
                    time.sleep(pause)
                else:
                    count("busy closed")
                    client.close()
                    client = None
            except WrongBytes as wrong:
                problems.append(str(wrong))
                break
            except (OSError, StopIteration):
                client = None
                time.sleep(0.01)
        if client is not None:
            client.close()

    askers = [threading.Thread(target=ask_always, args=(i,)) for i in range(busy)]
    for each in askers:
        each.start()
    time.sleep(2)
    try:
        for _ in range(kills):
            time.sleep(0.4 + random_source.random() * 0.3)
            site.restart(random_source.choice((signal.SIGKILL, signal.SIGSEGV)))
            for i, client in enumerate(resting):
                if client.ask(random_source.choice((0, 100, 3000, 100_000))):
                    count("idle kept")
                else:
                    count("idle closed")
                    client.close()
                    resting[i] = site.connect()
    except WrongBytes as wrong:
        problems.append(str(wrong))
    finally:
        is_over.set()
        for each in askers:
            each.join()
    figures["problems"] = problems + site.upstream.problems
    figures["served"] = site.upstream.served
    return figures


def by_hand(kills: int) -> None:
    for protocol in ("orangefs", "beegfs"):
        with tempfile.TemporaryDirectory(prefix="vpfs") as folder:
            site = Site(pathlib.Path(folder), protocol)
            try:
                print(
                    protocol,
                    json.dumps(crashes_under_load(site, kills, idle=100, busy=12)),
                    flush=True,
                )
            finally:
                site.close()


if __name__ == "__main__":
    PROGRAMS.append(pathlib.Path(sys.argv.pop(1)).resolve())
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if "--kills" in sys.argv:
        by_hand(int(sys.argv[sys.argv.index("--kills") + 1]))
    else:
        unittest.main()
