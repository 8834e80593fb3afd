#!/usr/bin/env python3
"""Shows in half a minute what vpfs does: two applications on one file system, without and with shares.

Two embedded servers are a parallel file system whose devices are the bottleneck. Both applications
use them directly at first, then through a vpfs-proxy in front of each server, at 2:1.
"""
from __future__ import annotations

import argparse
import pathlib
import shutil
import sys
from typing import TYPE_CHECKING

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import interpreter  # noqa: E402

interpreter.with_packages()

from bench import plot  # noqa: E402
from bench.cluster import DIRECT, Cluster, Front  # noqa: E402
from bench.harness import MIB, Problem, Programs, busy_share, machine_settings, require_programs, run_main  # noqa: E402
from bench.load import Application, application_of, line_rates, line_time, run_load  # noqa: E402
from bench.report import table, write_json  # noqa: E402

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERVERS = 2
DEVICE_MIB_PER_S = 200  # of each server, and far below what two processors can move
DEVICE = {"bandwidth": f"{DEVICE_MIB_PER_S} MiB/s", "per_request": "50 us", "parallelism": 1}
WEIGHTS = {"simulation": 2, "analysis": 1}
TARGET = WEIGHTS["simulation"] / WEIGHTS["analysis"]
TOLERANCE_PERCENT = 2.0
# The analysis is greedy: it has four times the processes and requests in flight.
APPLICATIONS = [
    Application("simulation", size=MIB, processes=2, outstanding=16),
    Application("analysis", size=MIB, processes=8, outstanding=16),
]
PROXIES = Front("px", "proxy", "sfq", WEIGHTS, depth_requests=8, depth_bytes="4 MiB")
PHASES = {DIRECT: "without vpfs", "px": f"with vpfs, {WEIGHTS['simulation']}:{WEIGHTS['analysis']}"}
WARM_UP = 1.0
BUSY = 0.6


def ratio(rates: dict[str, float]) -> float:
    return rates["simulation"] / rates["analysis"] if rates["analysis"] > 0 else float("inf")


class LiveLines:
    """Prints each of vpfs-load's seconds as one line."""

    def __init__(self, title: str) -> None:
        self._title = title

    def __call__(self, line: str) -> None:
        rates, second = line_rates(line, APPLICATIONS), line_time(line)
        if not rates or second is None:
            return
        text = "   ".join(f"{name} {rate:6.1f} MiB/s" for name, rate in rates.items())
        print(f"{second:3.0f} s  {self._title:17}  {text}   ratio {ratio(rates):5.2f}{self._bar(rates)}", flush=True)

    @staticmethod
    def _bar(rates: dict[str, float]) -> str:
        if not sys.stdout.isatty():
            return ""
        mine = round(24 * rates["simulation"] / max(1e-9, sum(rates.values())))
        return "   " + "█" * mine + "░" * (24 - mine)


def figure(results: dict[str, dict], seconds: float) -> Figure:
    names = [app.name for app in APPLICATIONS]
    sheet = plot.Sheet("Two applications on one parallel file system", plot.caption(
        machine_settings(),
        f"{SERVERS} data servers of {DEVICE_MIB_PER_S} MiB/s, policy sfq, depth {PROXIES.depth_requests} requests and "
        f"{PROXIES.depth_bytes} of each proxy",
        "writes of 1 MiB, " + " and ".join(f"{app.processes * app.outstanding} in flight of the {app.name}"
                                           for app in APPLICATIONS),
        f"{seconds:g} s each, after {WARM_UP:g} s of warm-up"), heights=[3.2])
    (panel,) = sheet.panels
    looks = plot.looks(names)
    for index, (path, result) in enumerate(results.items()):
        start = index * seconds
        for name in names:
            timeline = [(point["t"], point["mib_per_s"]) for point in application_of(result, name)["timeline"]]
            plot.lines(panel, {name: [(start + t, rate) for t, rate in plot.bins(timeline)]}, looks)
            if path != DIRECT:
                wanted = result["total_mib_per_s"] * WEIGHTS[name] / sum(WEIGHTS.values())
                plot.target(panel, wanted, f"{WEIGHTS[name]}/{sum(WEIGHTS.values())} of the total",
                            (start, start + seconds), looks[name].colour, f"{wanted:.0f}")
    plot.phases(panel, [(index * seconds, (index + 1) * seconds, PHASES[path]) for index, path in enumerate(results)])
    panel.set_ylim(0, 1.08 * panel.get_ylim()[1])
    plot.label(panel, "time (s)", "bandwidth (MiB/s)")
    return sheet.finish()


def summary(results: dict[str, dict]) -> list[dict[str, object]]:
    rows = []
    for path, result in results.items():
        rates = {app.name: application_of(result, app.name)["mib_per_s"] for app in APPLICATIONS}
        row: dict[str, object] = {"": PHASES[path]}
        for name, rate in rates.items():
            row[f"{name} MiB/s"] = rate
            row[f"{name} p99 ms"] = application_of(result, name)["latency_us"]["p99"] / 1000
        rows.append(row | {"total MiB/s": result["total_mib_per_s"], "ratio": f"{ratio(rates):.2f}"})
    return rows


def measure(options: argparse.Namespace, work: pathlib.Path) -> dict[str, dict]:
    results = {}
    with Programs(options.bin.resolve(), work) as programs:
        cluster = Cluster(programs, SERVERS, [PROXIES], DEVICE)
        for path in PHASES:
            if path != DIRECT:
                cluster.start(path)
            results[path] = run_load(programs, f"load-{path}", cluster.address(path), APPLICATIONS, options.seconds,
                                     WARM_UP, LiveLines(PHASES[path]))
            errors = sum(app["errors"] for app in results[path]["applications"])
            if errors:
                raise Problem(f"{errors} requests failed {PHASES[path]}; the logs are in {work}")
    return results


def main() -> int:
    parser = argparse.ArgumentParser(prog="script/demo", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10, help="length of each of the two phases (default 10)")
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin", help="where the programs are")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "demo-out")
    parser.add_argument("--anyway", action="store_true", help="run even on a busy machine")
    options = parser.parse_args()

    require_programs(options.bin, ["vpfs-server", "vpfs-proxy", "vpfs-load"])
    busy = busy_share()
    if busy > BUSY and not options.anyway:
        raise Problem(f"other programs use {busy:.0%} of the processors: wait until they are done "
                      "(--anyway runs all the same)")
    out = options.out.resolve()
    shutil.rmtree(out / "run", ignore_errors=True)
    print(f"{SERVERS} data servers of {DEVICE_MIB_PER_S} MiB/s each; both applications write as fast as they can.")
    print("The analysis has four times the processes, but the simulation is to have twice the bandwidth.\n")
    results = measure(options, out / "run")

    rows = summary(results)
    print("\n" + table(rows, list(rows[0])))
    rates = {app.name: application_of(results["px"], app.name)["mib_per_s"] for app in APPLICATIONS}
    achieved = ratio(rates)
    error = abs(achieved / TARGET - 1) * 100
    verdict = "PASS" if error <= TOLERANCE_PERCENT else "FAIL"
    write_json(out / "result.json", {
        "target": TARGET, "achieved": achieved, "error_percent": error, "verdict": verdict,
        "settings": {"servers": SERVERS, "device": DEVICE, "weights": WEIGHTS, "seconds": options.seconds,
                     "warm_up_seconds": WARM_UP},
        "phases": {PHASES[path]: result for path, result in results.items()},
    })
    drawn = plot.save(out / "shares", lambda: figure(results, options.seconds))
    shown = f"{options.out / 'shares.svg'} shows it over time; " if drawn else ""
    print(f"\n{shown}{options.out / 'result.json'} has the numbers")
    capacity = SERVERS * DEVICE_MIB_PER_S
    if verdict == "FAIL" and results["px"]["total_mib_per_s"] < 0.8 * capacity:
        print(f"This machine did not keep {capacity} MiB/s of storage busy. Without pressure there is nothing to share.")
    print(f"RESULT target={TARGET:.2f} achieved={achieved:.2f} error={error:.1f}% {verdict}")
    return 0 if verdict == "PASS" else 1


if __name__ == "__main__":
    run_main(main)
