"""Reads a proxy's status file, at the end or over time."""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Iterable

from lab.harness import Problem, Ticker
from lab.load import run_begins
from lab.report import Json

INTERVAL = 0.1  # the shortest that a proxy accepts


def read_status(file: pathlib.Path) -> Json:
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise Problem(f"{file} is not the status of a proxy: {error}") from error


def virtual_pfs_of(status: Json, name: str) -> Json:
    for row in status["virtual_pfs"]:
        if row["name"] == name:
            return row
    raise Problem(f"the proxy knows no virtual PFS {name}")


def moved_bytes(files: Iterable[pathlib.Path], names: Iterable[str]) -> dict[str, float]:
    """The bytes of each of these virtual PFSes that the proxies with these status files counted."""
    moved = dict.fromkeys(names, 0.0)
    for file in files:
        for row in read_status(file)["virtual_pfs"]:
            if row["name"] in moved:
                moved[row["name"]] += row["done_bytes"]
    return moved


class StatusRecorder:
    """Keeps every status that a proxy writes while vpfs-load runs, with the time of that run."""

    def __init__(self, file: pathlib.Path) -> None:
        self._file = file
        self._origin: float | None = None
        self._samples: list[tuple[float, Json]] = []
        self._ticker = Ticker(INTERVAL / 2, self._look)
        self._seen = 0

    def start(self) -> None:
        self._ticker.start()

    def saw_line(self, line: str) -> None:
        """Gets each line of vpfs-load as it appears. One of them says that the run begins."""
        if self._origin is None and run_begins(line):
            self._origin = time.monotonic()

    def _look(self) -> None:
        try:
            # The proxy replaces the file as a whole, so a reader never sees half of it.
            written = self._file.stat().st_mtime_ns
        except OSError:
            return
        if written != self._seen:
            self._seen = written
            self._samples.append((time.monotonic(), read_status(self._file)))

    def stop(self) -> list[tuple[float, Json]]:
        """Returns the samples of the run: its second, and the status."""
        self._ticker.stop()
        origin = self._origin
        if origin is None:
            raise Problem("vpfs-load did not say when its run began")
        return [(at - origin, status) for at, status in self._samples if at >= origin]
