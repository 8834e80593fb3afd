"""script/bench engine: events per second of the simulator's engine, by how many are pending."""

from __future__ import annotations

import pathlib

from bench.simulator.rates import Rates
from lab.report import Row

PENDING = [1, 100, 10_000, 1_000_000]
JUDGED = 10_000  # pending events: a run of vpfs-sim has some thousands


def target(row: Row) -> str | None:
    if row["pending"] != JUDGED:
        return None
    return f"{JUDGED} pending, {row['cancel_percent']} % cancel: events per second"


ENGINE = Rates(
    name="engine",
    columns=["pending", "cancel_percent", "events_per_second"],
    rate="events_per_second",
    least=2_000_000.0,
    target=target,
)


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool) -> int:
    events, runs = (1_000_000, 1) if quick else (5_000_000, 5)
    settings = {
        "quick": quick,
        "events": events,
        "model": "each event plans another one after up to 1 ms; one core",
        "cancel_percent": "events that also cancel another one and plan it anew",
        "events_per_second": "without cancelled ones; medians",
    }
    options = {"pending": ",".join(map(str, PENDING)), "events": events}
    return ENGINE.run(binaries, out, options, settings, runs)
