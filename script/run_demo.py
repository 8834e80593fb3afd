#!/usr/bin/env python3
"""Shows in less than a minute what vpfs does: two applications on one file system, without and with
shares.

Two embedded servers are a parallel file system whose devices are the bottleneck. Both applications
use them directly at first, then through a vpfs-proxy in front of each server, at 2:1. In the second
act vpfsctl changes rules while both run. In the third act a coordinator shares what applications
get on four servers together, and is killed. In the fourth act two jobs share a mounted directory,
where FUSE is there.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lab import interpreter

interpreter.with_packages()

from acts import live_rules, mounted, whole_site
from acts.figure import figure
from acts.live_rules import LiveRules, Measured
from acts.two_applications import (
    APPLICATIONS,
    DEVICE,
    DEVICE_MIB_PER_S,
    LEAST_STEP,
    LIVE_APPLICATIONS,
    PHASES,
    PROXIES,
    SERVERS,
    TARGET,
    TOLERANCE_PERCENT,
    WARM_UP,
    WEIGHTS,
    LiveLines,
    ratio,
    steps,
)
from lab import browser, plot
from lab.browser import Browser
from lab.cluster import Cluster
from lab.file_systems import DIRECT
from lab.harness import (
    Problem,
    Programs,
    busy_share,
    require_programs,
    run_main,
)
from lab.load import application_of, run_load
from lab.mount import why_not
from lab.numbers import above_zero
from lab.report import Json, Row, table, write_json

BUSY = 0.6
PAGE = "page.png"


def site_summary(site: whole_site.Act) -> list[Row]:
    return [
        {"": f"site: {part.title}"}
        | {f"{whole_site.NAMES[name]} MiB/s": rate for name, rate in part.rates.items()}
        | {
            "total MiB/s": sum(part.rates.values()),
            "ratio": f"{part.ratio():.2f}",
            "feasible": f"{part.wanted:.2f}",
        }
        for part in site.parts
    ]


def summary(results: dict[str, Json], measured: list[Measured]) -> list[Row]:
    rows: list[Row] = []
    for path, result in results.items():
        rates = {app.name: application_of(result, app.name)["mib_per_s"] for app in APPLICATIONS}
        row: Json = {"": PHASES[path]}
        for name, rate in rates.items():
            row[f"{name} MiB/s"] = rate
            row[f"{name} p99 ms"] = application_of(result, name)["latency_us"]["p99"] / 1000
        rows.append(
            row | {"total MiB/s": result["total_mib_per_s"], "ratio": f"{ratio(rates):.2f}"}
        )
    for each in measured:
        row = {"": f"live: {each.step.title}"} | {
            f"{name} MiB/s": rate for name, rate in each.rates.items()
        }
        rows.append(
            row
            | {"total MiB/s": sum(each.rates.values()), "ratio": f"{ratio(dict(each.rates)):.2f}"}
        )
    return rows


def checked(name: str, result: Json, work: pathlib.Path) -> Json:
    errors = sum(app["errors"] for app in result["applications"])
    if errors:
        raise Problem(f"{errors} requests failed {name}; the logs are in {work}")
    return result


def share_site(options: argparse.Namespace, work: pathlib.Path) -> whole_site.Act:
    """The third act."""
    print(
        f"\nNow {whole_site.CASE.setup.servers} servers. One application has its files on two of "
        "them, another one is striped "
        "over all four.\n"
    )
    lines = LiveLines("site", whole_site.applications(), whole_site.NAMES)
    with Programs(options.bin.resolve(), work) as programs:
        return whole_site.perform(
            programs,
            lambda text: print(f"\n{text}\n", flush=True),
            lines,
            max(LEAST_STEP, round(0.5 * options.seconds)),
        )


def share_mount(options: argparse.Namespace, work: pathlib.Path) -> mounted.Act | None:
    """The fourth act. Nothing: this machine cannot show it."""
    if why := why_not():
        print(f"\nThe fourth act, shares of a mounted directory, is left out: {why}.")
        return None
    print(
        f"\nNow a directory of {mounted.DEVICE_MIB_PER_S} MiB/s that is mounted already. fio runs "
        "in it as jobs 4711 and 4712, "
        "at 3:1.\n"
    )
    with Programs(options.bin.resolve(), work) as programs:
        return mounted.perform(
            programs,
            max(LEAST_STEP, round(0.5 * options.seconds)),
            lambda text: print(text, flush=True),
        )


def measure(
    options: argparse.Namespace, work: pathlib.Path
) -> tuple[dict[str, Json], Json, list[Measured]]:
    results = {}
    with Programs(options.bin.resolve(), work) as programs:
        pages = [programs.reserve_port() for _ in range(SERVERS)]
        cluster = Cluster(programs, SERVERS, [dataclasses.replace(PROXIES, pages=pages)], DEVICE)
        addresses = " and ".join(f"http://127.0.0.1:{port}/" for port in pages)
        print(f"While it runs, the proxies show themselves in a browser: {addresses}\n", flush=True)
        for path in PHASES:
            if path != DIRECT:
                cluster.start(path)
            result = run_load(
                programs,
                f"load-{path}",
                cluster.address(path),
                APPLICATIONS,
                options.seconds,
                WARM_UP,
                LiveLines(PHASES[path]),
            )
            results[path] = checked(PHASES[path], result, work)
        live, measured = change_rules(
            programs, cluster, max(LEAST_STEP, round(0.4 * options.seconds))
        )
        checked("while rules changed", live, work)
        if browser.missing() is None:
            take_picture(programs, f"http://127.0.0.1:{pages[0]}/", options.out / PAGE)
    return results, live, measured


def has_text(window: Browser, part: str) -> bool:
    return window.text(part) != ""


def take_picture(programs: Programs, address: str, file: pathlib.Path) -> None:
    """Takes one of a proxy's page, as it shows the phases until now. The demo goes on without."""
    try:
        window = Browser(programs)
        window.resize(1200, 900)
        window.open(address)
        for part in ("#throughput-legend", "#fairness", "#changes"):
            is_drawn = functools.partial(has_text, window, part)
            window.wait_until(is_drawn, f"{address}: {part}")
        window.screenshot(file)
        window.close()
    except (Problem, OSError) as error:
        print(f"no picture of the page: {error}")


def change_rules(
    programs: Programs, cluster: Cluster, step_seconds: int
) -> tuple[Json, list[Measured]]:
    """The second act."""
    print("\nNow vpfsctl changes the rules of both proxies while the applications run.\n")
    rules = LiveRules(programs, cluster, PROXIES.name, steps(step_seconds), step_seconds, WARM_UP)
    lines = LiveLines("live")

    def on_line(line: str) -> None:
        rules.on_line(line)
        lines(line)

    try:
        live = run_load(
            programs,
            "load-live",
            cluster.address(PROXIES.name),
            LIVE_APPLICATIONS,
            rules.seconds,
            WARM_UP,
            on_line,
            interval=live_rules.INTERVAL,
        )
        return live, rules.measured(live)
    finally:
        rules.stop()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="script/demo", description=(__doc__ or "").partition("\n\n")[0]
    )
    parser.add_argument(
        "--seconds",
        type=above_zero,
        default=8,
        help="length of each of the first two phases (default 8)",
    )
    parser.add_argument(
        "--bin", type=pathlib.Path, default=ROOT / "build/demo/bin", help="where the programs are"
    )
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "demo-out")
    parser.add_argument("--anyway", action="store_true", help="run even on a busy machine")
    options = parser.parse_args()

    require_programs(
        options.bin,
        ["vpfs-server", "vpfs-proxy", "vpfs-load", "vpfsctl", "vpfs-coordinator", "vpfs-mount"],
    )
    busy = busy_share()
    if busy > BUSY and not options.anyway:
        raise Problem(
            f"other programs use {busy:.0%} of the processors: wait until they are done (--anyway "
            "runs all the same)"
        )
    out = options.out.resolve()
    shutil.rmtree(out / "run", ignore_errors=True)
    (out / PAGE).unlink(missing_ok=True)
    print(
        f"{SERVERS} data servers of {DEVICE_MIB_PER_S} MiB/s each; both applications write as "
        "fast as they can."
    )
    print(
        "The analysis has four times the processes, but the simulation is to have twice the "
        "bandwidth.\n"
    )
    results, live, measured = measure(options, out / "run")
    site = share_site(options, out / "run" / "site")
    mount = share_mount(options, out / "run" / "mount")

    rows = summary(results, measured)
    print("\n" + table(rows, list(rows[0])))
    rows = site_summary(site)
    print("\n" + table(rows, list(rows[0])))
    rates = {app.name: application_of(results["px"], app.name)["mib_per_s"] for app in APPLICATIONS}
    achieved = ratio(rates)
    error = abs(achieved / TARGET - 1) * 100
    live_error = max(each.error_percent() for each in measured)
    site_error = site.error_percent()
    is_site_right = site_error <= whole_site.TOLERANCE_PERCENT and site.went_on()
    is_mount_right = mount is None or mount.error_percent() <= mounted.TOLERANCE_PERCENT
    is_right = max(error, live_error) <= TOLERANCE_PERCENT and is_site_right and is_mount_right
    verdict = "PASS" if is_right else "FAIL"
    write_json(
        out / "result.json",
        {
            "target": TARGET,
            "achieved": achieved,
            "error_percent": error,
            "live_error_percent": live_error,
            "verdict": verdict,
            "settings": {
                "servers": SERVERS,
                "device": DEVICE,
                "weights": WEIGHTS,
                "seconds": options.seconds,
                "warm_up_seconds": WARM_UP,
            },
            "phases": {PHASES[path]: result for path, result in results.items()},
            "live": {
                each.step.title: {
                    "commands": each.step.commands,
                    "target": each.step.target(),
                    "achieved": each.step.achieved(each.rates),
                    "error_percent": each.error_percent(),
                    "mib_per_s": each.rates,
                }
                for each in measured
            },
            "live_run": live,
            "site": {
                part.title: {
                    "target": part.wanted,
                    "achieved": part.ratio(),
                    "error_percent": part.error_percent(),
                    "mib_per_s": {
                        whole_site.NAMES[name]: rate for name, rate in part.rates.items()
                    },
                }
                for part in site.parts
            },
            "site_error_percent": site_error,
            "io_went_on_after_kill": site.went_on(),
            "site_run": site.result,
            "mount": mount
            and {
                "target": mount.wanted,
                "achieved": mount.ratio(),
                "error_percent": mount.error_percent(),
                "mib_per_s": mount.rates,
            },
        },
    )
    drawn = plot.save(
        out / "shares", lambda: figure(results, options.seconds, live, measured, site, mount)
    )
    shown = f"{options.out / 'shares.svg'} shows it over time; " if drawn else ""
    if (out / PAGE).exists():
        shown += f"{options.out / PAGE} is what a proxy showed in a browser; "
    print(f"\n{shown}{options.out / 'result.json'} has the numbers")
    capacity = SERVERS * DEVICE_MIB_PER_S
    if verdict == "FAIL" and results["px"]["total_mib_per_s"] < 0.8 * capacity:
        print(
            f"This machine did not keep {capacity} MiB/s of storage busy. Without pressure there "
            "is nothing to share."
        )
    for each in measured:
        print(
            f"live: {each.step.title}: target={each.step.target():.2f} "
            f"achieved={each.step.achieved(each.rates):.2f} error={each.error_percent():.1f}%"
        )
    for part in site.parts:
        print(
            f"site: {part.title}: target={part.wanted:.2f} achieved={part.ratio():.2f} "
            f"error={part.error_percent():.1f}%"
        )
    if mount:
        print(
            f"mount: jobs 4711 and 4712: target={mount.wanted:.2f} achieved={mount.ratio():.2f} "
            f"error={mount.error_percent():.1f}%"
        )
    if not site.went_on():
        print("site: I/O stopped when the coordinator was killed")
    print(
        f"RESULT target={TARGET:.2f} achieved={achieved:.2f} error={error:.1f}% "
        f"live_error={live_error:.1f}% site_error={site_error:.1f}% "
        f"mount_error={f'{mount.error_percent():.1f}%' if mount else 'none'} {verdict}"
    )
    return 0 if verdict == "PASS" else 1


if __name__ == "__main__":
    run_main(main)
