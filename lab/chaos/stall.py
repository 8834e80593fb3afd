"""How late this machine runs what is due, so that bounds by the clock can allow for it."""

from __future__ import annotations

import threading
import time
from collections import deque

STEP = 0.01
KEPT = 1000.0  # seconds


class StallWatch(threading.Thread):
    """Wakes up every STEP and notes by how much it was too late: so late were others too."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._late: deque[tuple[float, float]] = deque()
        self._lock = threading.Lock()
        self._done = threading.Event()
        self.worst = 0.0

    def run(self) -> None:
        while not self._done.is_set():
            due = time.monotonic() + STEP
            time.sleep(STEP)
            late = time.monotonic() - due
            if late < STEP:
                continue
            with self._lock:
                self.worst = max(self.worst, late)
                self._late.append((due, late))
                while self._late[0][0] < due - KEPT:
                    self._late.popleft()

    def between(self, begin: float, end: float) -> float:
        """Seconds by which it was late, added up."""
        with self._lock:
            return sum(late for due, late in self._late if begin <= due <= end)

    def stop(self) -> None:
        self._done.set()
        self.join()
