#!/usr/bin/env python3
"""Fails when the dashboard, the alerts or their page do not fit the metrics of a proxy.

Run from the repository root. test/data/metrics/example.prom has every metric; a test in C++ keeps it
as the program writes it. Where promtool is installed, it parses every query and checks the alerts.
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

EXAMPLE = pathlib.Path("test/data/metrics/example.prom")
DASHBOARD = pathlib.Path("conf/grafana/vpfs.json")
ALERTS = pathlib.Path("conf/prometheus/vpfs-alerts.yaml")
ALERT_TESTS = pathlib.Path("test/control/metrics/alerts_test.yaml")
PAGE = pathlib.Path("docs/admin/monitoring.md")
METRIC = re.compile(r"\bvpfs_[a-z0-9_]+")
SELECTOR = re.compile(r"\b(vpfs_[a-z0-9_]+)\{([^}]*)\}")
VARIABLES = {"$__rate_interval": "5m", "$proxy": ".*", "$virtual_pfs": ".*"}


def series() -> dict[str, set[str]]:
    """The names of all series, each with its labels."""
    found: dict[str, set[str]] = {}
    for line in EXAMPLE.read_text().splitlines():
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


def check_layout(dashboard: dict) -> Iterator[str]:
    ids = [panel["id"] for panel in panels(dashboard)]
    if len(set(ids)) != len(ids):
        yield f"{DASHBOARD}: two panels have the same id"
    taken: set[tuple[int, int]] = set()
    for panel in panels(dashboard):
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                 for y in range(place["y"], place["y"] + place["h"])}
        if taken & cells or place["x"] + place["w"] > 24:
            yield f"{DASHBOARD}: {panel['title']}: lies over another panel or beside the page"
        taken |= cells
        if panel["type"] != "row" and not panel.get("targets"):
            yield f"{DASHBOARD}: {panel['title']}: asks for nothing"
    known = {variable["name"] for variable in dashboard["templating"]["list"]} | {"__rate_interval", "__all"}
    for name in re.findall(r"\$\{?(\w+)", DASHBOARD.read_text()):
        if name not in known:
            yield f"{DASHBOARD}: the variable {name} is not defined"


def check_query(where: str, query: str, known: dict[str, set[str]]) -> Iterator[str]:
    for name in set(METRIC.findall(query)) - known.keys():
        yield f"{where}: there is no metric {name}"
    for name, selector in SELECTOR.findall(query):
        for label in re.findall(r'(\w+)\s*(?:=|!=|=~|!~)\s*"', selector):
            if label != "instance" and label not in known.get(name, {label}):
                yield f"{where}: {name} has no label {label}"


def check_use(dashboard: dict, known: dict[str, set[str]]) -> Iterator[str]:
    """That the dashboard shows what a proxy counts."""
    used = {name for _, query in queries(dashboard) for name in METRIC.findall(query)}
    for theme in ("read_bytes", "weight", "queue_requests", "wait_reason", "held_seconds", "limit_bytes", "rule_hits",
                  "shadow", "depth", "duration", "connections", "bypass"):
        if not any(theme in name for name in used):
            yield f"{DASHBOARD}: shows nothing of {theme}"


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
    yield from promtool("check", "rules", ALERTS)
    yield from promtool("test", "rules", ALERT_TESTS)


def main() -> int:
    known = series()
    dashboard = json.loads(DASHBOARD.read_text())
    problems = [*check_layout(dashboard), *check_use(dashboard, known), *check_page(known)]
    if len(known) < 50:
        problems.append(f"{EXAMPLE}: has {len(known)} series only")
    for title, query in queries(dashboard):
        problems += check_query(f"{DASHBOARD}: {title}", query, known)
    for variable in dashboard["templating"]["list"]:
        problems += check_query(f"{DASHBOARD}: {variable['name']}", variable.get("definition", ""), known)
    alerts = "\n".join(line for line in ALERTS.read_text().splitlines() if not line.lstrip().startswith("#"))
    problems += check_query(str(ALERTS), alerts, known)
    summaries = {name.removesuffix("_sum"): labels for name, labels in known.items() if name.endswith("_sum")}
    problems += check_query(str(PAGE), PAGE.read_text(), known | summaries)
    if shutil.which("promtool"):
        problems += check_syntax(dashboard)
    print("\n".join(problems) or "dashboard: ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
