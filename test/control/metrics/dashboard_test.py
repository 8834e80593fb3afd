#!/usr/bin/env python3
"""Fails when a dashboard, the alerts or their page do not fit the metrics of a proxy and of a coordinator.

Run from the repository root. test/data/metrics has files with every metric of each; tests in C++ keep
them as the programs write them. Where promtool is installed, it parses every query and checks the alerts.
"""
from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

EXAMPLES = [pathlib.Path("test/data/metrics") / name for name in ("example.prom", "coordinator.prom", "member.prom")]
# With words of what each has to show.
DASHBOARDS = {
    pathlib.Path("conf/grafana/vpfs.json"): (
        "read_bytes", "weight", "queue_requests", "wait_reason", "held_seconds", "limit_bytes", "rule_hits", "shadow", "depth",
        "duration", "connections", "bypass"),
    pathlib.Path("conf/grafana/coordinator.json"): ("stages", "cycle_seconds", "job_granted", "in_force", "capacity", "lies"),
}
ALERTS = pathlib.Path("conf/prometheus/vpfs-alerts.yaml")
ALERT_TESTS = pathlib.Path("test/control/metrics/alerts_test.yaml")
PAGE = pathlib.Path("docs/admin/monitoring.md")
METRIC = re.compile(r"\bvpfs_[a-z0-9_]+")
SELECTOR = re.compile(r"\b(vpfs_[a-z0-9_]+)\{([^}]*)\}")
VARIABLES = {"$__rate_interval": "5m", "$proxy": ".*", "$virtual_pfs": ".*", "$coordinator": ".*"}


def series() -> dict[str, set[str]]:
    """The names of all series, each with its labels."""
    found: dict[str, set[str]] = {}
    for line in "".join(file.read_text() for file in EXAMPLES).splitlines():
        if match := re.match(r"(vpfs_\w+)(?:\{(.*)\})? ", line):
            found.setdefault(match[1], set()).update(re.findall(r'(\w+)="', match[2] or ""))
    return found


def panels(dashboard: dict) -> Iterator[dict]:
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def queries(dashboard: dict) -> Iterator[tuple[str, str]]:
    """Each with the title of its panel."""
    for panel in panels(dashboard):
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def check_layout(file: pathlib.Path, dashboard: dict) -> Iterator[str]:
    ids = [panel["id"] for panel in panels(dashboard)]
    if len(set(ids)) != len(ids):
        yield f"{file}: two panels have the same id"
    taken: set[tuple[int, int]] = set()
    for panel in panels(dashboard):
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        if taken & cells or place["x"] + place["w"] > 24:
            yield f"{file}: {panel['title']}: overlaps another panel or the edge of the page"
        taken |= cells
        if panel["type"] != "row" and not panel.get("targets"):
            yield f"{file}: {panel['title']}: asks for nothing"
    known = {variable["name"] for variable in dashboard["templating"]["list"]} | {"__rate_interval", "__all"}
    for name in re.findall(r"\$\{?(\w+)", file.read_text()):
        if name not in known:
            yield f"{file}: the variable {name} is not defined"


def check_query(where: str, query: str, known: dict[str, set[str]]) -> Iterator[str]:
    for name in set(METRIC.findall(query)) - known.keys():
        yield f"{where}: there is no metric {name}"
    for name, selector in SELECTOR.findall(query):
        for label in re.findall(r'(\w+)\s*(?:=|!=|=~|!~)\s*"', selector):
            if label != "instance" and label not in known.get(name, {label}):
                yield f"{where}: {name} has no label {label}"


def check_use(file: pathlib.Path, dashboard: dict) -> Iterator[str]:
    """That the dashboard shows what its program counts."""
    used = {name for _, query in queries(dashboard) for name in METRIC.findall(query)}
    for theme in DASHBOARDS[file]:
        if not any(theme in name for name in used):
            yield f"{file}: shows nothing of {theme}"


def check_page(known: dict[str, set[str]]) -> Iterator[str]:
    text = PAGE.read_text()
    told = {name for span in re.findall(r"`([^`]+)`", text) for name in METRIC.findall(span)}
    for name in sorted(known):
        if name not in told and re.sub("_(sum|count)$", "", name) not in told:
            yield f"{PAGE}: does not explain {name}"


def promtool(*arguments: str | pathlib.Path) -> Iterator[str]:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        yield f"promtool {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}"


def check_syntax(dashboard: dict) -> Iterator[str]:
    rules = []
    for title, query in queries(dashboard):
        for name, value in VARIABLES.items():
            query = query.replace(name, value)
        rules.append({"record": f"query:{len(rules)}", "expr": query, "labels": {"panel": title}})
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump({"groups": [{"name": "queries", "rules": rules}]}, file)  # JSON is YAML
        file.flush()
        yield from promtool("check", "rules", file.name)


def check_alerts() -> Iterator[str]:
    yield from promtool("check", "rules", ALERTS)
    yield from promtool("test", "rules", ALERT_TESTS)


def main() -> int:
    known = series()
    problems = [*check_page(known)]
    if len(known) < 70:
        problems.append(f"{EXAMPLES[0].parent}: has {len(known)} series only")
    for file in DASHBOARDS:
        dashboard = json.loads(file.read_text())
        problems += [*check_layout(file, dashboard), *check_use(file, dashboard)]
        for title, query in queries(dashboard):
            problems += check_query(f"{file}: {title}", query, known)
        for variable in dashboard["templating"]["list"]:
            problems += check_query(f"{file}: {variable['name']}", variable.get("definition", ""), known)
        if shutil.which("promtool"):
            problems += check_syntax(dashboard)
    alerts = "\n".join(line for line in ALERTS.read_text().splitlines() if not line.lstrip().startswith("#"))
    problems += check_query(str(ALERTS), alerts, known)
    summaries = {name.removesuffix("_sum"): labels for name, labels in known.items() if name.endswith("_sum")}
    problems += check_query(str(PAGE), PAGE.read_text(), known | summaries)
    if shutil.which("promtool"):
        problems += check_alerts()
    print("\n".join(problems) or "dashboard: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
