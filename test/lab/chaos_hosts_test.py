"""What the faults of script/chaos do to hosts: packets that do not pass, clocks that jump."""

from __future__ import annotations

import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab import network  # noqa: E402
from lab.chaos.site import CLOCK_LIBRARY  # noqa: E402
from lab.network import CUT, LOSSY, PREFIX, REFUSED, SLOW, Network  # noqa: E402

LIBRARIES = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else ROOT / "build/dev/lib"
PORT = 7000
RCVBUFFORCE = 33  # SO_RCVBUFFORCE: packets are lost by rules alone
ECHO = f"""
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.setsockopt(socket.SOL_SOCKET, {RCVBUFFORCE}, 1 << 22)
server.bind(("", {PORT}))
connections = socket.create_server(("", {PORT}))
print("ready", flush=True)
while True:
    data, sender = server.recvfrom(2048)
    server.sendto(data, sender)
"""
# How many of some packets come back.
ASK = """
import socket, sys
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.setsockopt(socket.SOL_SOCKET, int(sys.argv[4]), 1 << 22)
client.connect((sys.argv[1], int(sys.argv[2])))
client.settimeout(0.3)
for _ in range(int(sys.argv[3])):
    client.send(bytes(1000))
back = 0
try:
    while client.recv(2048):
        back += 1
except TimeoutError:
    pass
print(back)
"""


class NetworkTest(unittest.TestCase):
    def setUp(self) -> None:
        if why := network.why_not():
            self.skipTest(why)
        self.network = self.enterContext(Network(["one", "other", "third"]))
        for host in ("other", "third"):
            command = [*self.network.within(host), sys.executable, "-c", ECHO]
            echo = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            self.addCleanup(echo.wait)
            self.addCleanup(echo.kill)
            assert echo.stdout is not None
            self.addCleanup(echo.stdout.close)
            self.assertEqual(echo.stdout.readline(), "ready\n")

    def come_back(self, host: str, packets: int) -> int:
        words = [self.network.address(host), str(PORT), str(packets), str(RCVBUFFORCE)]
        command = [*self.network.within("one"), sys.executable, "-c", ASK, *words]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def test_a_cut_is_between_two_hosts_until_it_ends(self) -> None:
        self.assertEqual(self.come_back("other", 5), 5)
        self.network.begin(CUT, ("other", "one"))
        self.assertEqual(self.come_back("other", 5), 0)
        self.assertEqual(self.come_back("third", 5), 5)
        self.network.end(CUT, ("other", "one"))
        self.assertEqual(self.come_back("other", 5), 5)

    def test_a_connection_is_refused(self) -> None:
        program = "import socket, sys; socket.create_connection((sys.argv[1], sys.argv[2]), 10)"
        command = [*self.network.within("one"), sys.executable, "-c", program]
        command += [self.network.address("other"), str(PORT)]

        def errors() -> str:
            return subprocess.run(command, check=False, capture_output=True, text=True).stderr

        self.assertEqual(errors(), "")
        self.network.begin(REFUSED, ("other", "one"))
        self.assertIn("ConnectionRefusedError", errors())
        self.network.end(REFUSED, ("other", "one"))
        self.assertEqual(errors(), "")

    def test_a_connection_that_is_idle_ends_when_it_is_refused(self) -> None:
        program = (
            "import socket, sys; s = socket.create_connection((sys.argv[1], sys.argv[2]), 10);"
            "print('ready', flush=True); s.recv(1)"
        )
        command = [*self.network.within("one"), sys.executable, "-c", program]
        command += [self.network.address("other"), str(PORT)]
        idle = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(idle.communicate)
        assert idle.stdout is not None
        self.assertEqual(idle.stdout.readline(), "ready\n")
        self.network.begin(REFUSED, ("other", "one"))
        self.assertIn("ConnectionResetError", idle.communicate(timeout=20)[1])

    def test_one_of_ten_packets_is_lost(self) -> None:
        self.network.begin(LOSSY, ("one", "other"))
        # Each has to pass twice: 81 of 100. Less than 250 of 400, or more than 390, is never so.
        back = sum(self.come_back("other", 40) for _ in range(10))
        self.assertTrue(250 < back < 390, back)

    def test_what_is_above_a_megabit_is_lost(self) -> None:
        self.network.begin(SLOW, ("one", "other"))
        # 150 packets at once are more than a second's.
        self.assertLess(self.come_back("other", 150), 100)
        self.assertEqual(self.come_back("third", 150), 150)

    def test_nothing_is_left_and_a_killed_run_is_swept(self) -> None:
        left = f"{PREFIX}{(1 << 22) + 1}-one"  # above all pids
        subprocess.run(["ip", "netns", "add", left], check=True)
        self.assertIn(left, network.sweep())
        mine = [each.name for each in network.NAMESPACES.iterdir() if str(os.getpid()) in each.name]
        self.assertEqual(len(mine), 4)
        self.network.__exit__()
        self.assertFalse([each for each in mine if (network.NAMESPACES / each).exists()])


class ClockTest(unittest.TestCase):
    def setUp(self) -> None:
        self.library = LIBRARIES / CLOCK_LIBRARY
        if not self.library.exists():
            self.skipTest(f"there is no {self.library}")
        self.file = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "clock"

    def jump(self, seconds: int) -> None:
        with self.file.open("r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds * 10**9))

    def run_python(self, program: str) -> subprocess.Popen[str]:
        environment = {"LD_PRELOAD": str(self.library), "VPFS_CLOCK_FILE": str(self.file)}
        running = subprocess.Popen(
            [sys.executable, "-c", program],
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(running.communicate)
        return running

    def test_the_time_of_day_jumps_while_a_program_runs_and_the_other_clocks_do_not(self) -> None:
        self.jump(0)
        program = "import time\nwhile input():\n print(time.time(), time.monotonic(), flush=True)"
        running = self.run_python(program)
        assert running.stdin is not None and running.stdout is not None
        for offset in (0, 3600, -3600, 0):
            self.jump(offset)
            running.stdin.write("now\n")
            running.stdin.flush()
            day, other = map(float, running.stdout.readline().split())
            self.assertAlmostEqual(day, time.time() + offset, delta=60)
            self.assertAlmostEqual(other, time.monotonic(), delta=60)
        running.stdin.write("\n")

    def test_without_a_file_nothing_changes(self) -> None:
        running = self.run_python("import time; print(time.time())")
        self.assertAlmostEqual(float(running.communicate()[0]), time.time(), delta=60)


if __name__ == "__main__":
    unittest.main()
