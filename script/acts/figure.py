"""The demo's figure: what applications get over time in its acts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acts import mounted, whole_site
from acts.live_rules import Measured
from acts.two_applications import (
    APPLICATIONS,
    DEVICE_MIB_PER_S,
    PHASES,
    PROXIES,
    SERVERS,
    WARM_UP,
    WEIGHTS,
)
from lab import plot
from lab.file_systems import DIRECT
from lab.harness import MIB, machine_settings
from lab.load import application_of
from lab.points import bins
from lab.report import Json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


ABOUT_MOUNT = (
    f"at the bottom a mounted directory of {mounted.DEVICE_MIB_PER_S} MiB/s, and two jobs with "
    f"{mounted.THREADS} threads each"
)


def figure(
    results: dict[str, Json],
    seconds: float,
    live: Json,
    measured: list[Measured],
    site: whole_site.Act,
    mount: mounted.Act | None,
) -> Figure:
    names = [app.name for app in APPLICATIONS]
    sheet = plot.Sheet(
        "Two applications on one parallel file system",
        plot.caption(
            machine_settings(),
            f"{SERVERS} data servers of {DEVICE_MIB_PER_S} MiB/s, policy sfq, depth "
            f"{PROXIES.depth_requests} requests and {PROXIES.depth_bytes} of each proxy",
            "writes of 1 MiB, "
            + " and ".join(
                f"{app.processes * app.outstanding} in flight of the {app.name}"
                for app in APPLICATIONS
            ),
            f"{seconds:g} s each above, after {WARM_UP:g} s of warm-up; in the middle vpfsctl "
            "changes rules while both run",
            f"below: {whole_site.CASE.setup.servers} servers of "
            f"{whole_site.CASE.bandwidth // MIB} MiB/s, an application on two of them and one "
            "that is striped over all, weights 1:1",
            *([ABOUT_MOUNT] if mount else []),
        ),
        rows=4 if mount else 3,
        heights=[2.6],
    )
    above, below, across = sheet.panels[:3]
    # All names of the figure are in one legend, so no two look alike.
    looks = plot.looks([*names, *whole_site.NAMES.values(), *map(job_name, mounted.WEIGHTS)])
    for index, (path, result) in enumerate(results.items()):
        start = index * seconds
        draw_rates(above, result, start, looks)
        if path != DIRECT:
            wanted = {
                name: result["total_mib_per_s"] * weight / sum(WEIGHTS.values())
                for name, weight in WEIGHTS.items()
            }
            draw_wanted(above, wanted, (start, start + seconds), looks, at_side=True)
    plot.phases(
        above,
        [
            (index * seconds, (index + 1) * seconds, PHASES[path])
            for index, path in enumerate(results)
        ],
    )
    draw_rates(below, live, 0, looks)
    for each in measured:
        draw_wanted(
            below,
            each.step.wanted(sum(each.rates.values())),
            (each.begin, each.end),
            looks,
            at_side=each is measured[-1],
        )
    plot.phases(below, [(each.begin, each.end, each.step.title) for each in measured])
    draw_site(across, site, looks)
    if mount:
        draw_mount(sheet.panels[3], mount, looks)
    plot.explain_targets(above, "wanted")
    for panel in sheet.panels:
        panel.set_ylim(0, 1.08 * panel.get_ylim()[1])
        plot.label(panel, "time (s)", "bandwidth (MiB/s)")
    return sheet.finish()


def draw_site(panel: Axes, site: whole_site.Act, looks: dict[str, plot.Look]) -> None:
    for key, name in whole_site.NAMES.items():
        timeline = [
            (point["t"], point["mib_per_s"])
            for point in application_of(site.result, key)["timeline"]
        ]
        plot.lines(panel, {name: bins(timeline)}, looks)
    for part in site.parts:
        total = sum(part.rates.values())
        wanted = {
            "narrow": total * part.wanted / (1 + part.wanted),
            "wide": total / (1 + part.wanted),
        }
        draw_wanted(panel, wanted, (part.begin, part.end), looks, at_side=part is site.parts[-1])
    plot.phases(panel, [(part.begin, part.end, part.title) for part in site.parts])


def job_name(job: str) -> str:
    return f"job {job}"


def draw_mount(panel: Axes, mount: mounted.Act, looks: dict[str, plot.Look]) -> None:
    for job, timeline in mount.timeline.items():
        plot.lines(panel, {job_name(job): timeline}, looks)
    total = sum(mount.rates.values())
    wanted = {
        job_name("4711"): total * mount.wanted / (1 + mount.wanted),
        job_name("4712"): total / (1 + mount.wanted),
    }
    end = max(t for points in mount.timeline.values() for t, _ in points) + 0.5
    draw_wanted(panel, wanted, (0, end), looks, at_side=True)
    plot.phases(panel, [(0, end, "two jobs on one mount, 3:1")])


def draw_rates(panel: Axes, result: Json, start: float, looks: dict[str, plot.Look]) -> None:
    for app in APPLICATIONS:
        timeline = [
            (point["t"], point["mib_per_s"])
            for point in application_of(result, app.name)["timeline"]
        ]
        plot.lines(panel, {app.name: [(start + t, rate) for t, rate in bins(timeline)]}, looks)


def draw_wanted(
    panel: Axes,
    wanted: dict[str, float],
    span: tuple[float, float],
    looks: dict[str, plot.Look],
    at_side: bool,
) -> None:
    for name, rate in wanted.items():
        plot.target(panel, rate, "", span, looks[name].colour, f"{rate:.0f}" if at_side else "")
