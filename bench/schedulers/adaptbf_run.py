"""One run of an experiment of [ADAPTBF], and the numbers that tables and targets take from it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from bench.schedulers.adaptbf_experiments import (
    BORROWER,
    LENDERS,
    PAYBACK,
    PRIORITY,
    SETTLE,
    Experiment,
    Phase,
    Series,
    active_rate,
    bandwidths,
    ends,
    mean_between,
    return_end,
    share_error,
    value_at,
)
from lab.harness import MIB, median
from lab.load import application_of
from lab.report import Json

CAPACITY_FIELDS = ["capacity_least", "capacity_most"]  # MiB/s, as the proxy measured it


@dataclasses.dataclass(frozen=True)
class Run:
    experiment: Experiment
    scale: float
    result: Json
    statuses: Sequence[tuple[float, Json]]
    proxy_cpu_seconds: float

    def bandwidths(self) -> dict[str, Series]:
        return bandwidths(self.result, self.experiment)

    def ends(self) -> dict[str, float]:
        return ends(self.result, self.experiment)

    def phases(self) -> list[Phase]:
        return self.experiment.phases(self.scale, self.ends())

    def records(self) -> dict[str, Series]:
        """The tokens that each job has lent, minus those that it has borrowed.

        Empty if the policy keeps no records.
        """
        found: dict[str, Series] = {job: [] for job in self.experiment.jobs}
        for t, status in self.statuses:
            for row in status["virtual_pfs"]:
                if row["name"] in found and "record" in row:
                    found[row["name"]].append((t, float(row["record"])))
        return found

    def facts(self) -> dict[str, float]:
        moved = sum(entry["bytes"] for entry in self.result["applications"]) / MIB
        facts = {
            "seconds": self.result["duration_s"],
            "total_mib_per_s": self.result["total_mib_per_s"],
            "proxy_cpu_s_per_gib": 1024 * self.proxy_cpu_seconds / moved,
        }
        facts |= self._capacities() | self._applications()
        if self.experiment is PRIORITY:
            facts["share_error"] = self._share_error()
        if self.experiment is PAYBACK:
            facts |= self._lenders()
        return facts

    def _capacities(self) -> dict[str, float]:
        # The proxy needs a second to measure it.
        found = [
            status["capacity"] / MIB
            for t, status in self.statuses
            if t > 1 and "capacity" in status
        ]
        return dict(zip(CAPACITY_FIELDS, (min(found), max(found)))) if found else {}

    def _applications(self) -> dict[str, float]:
        facts: dict[str, float] = {}
        until = self.ends().get(self.experiment.beside, math.inf)
        for application in self.experiment.scaled(self.scale):
            name = application.name
            entry = application_of(self.result, name)
            facts[f"{name} mib_per_s"] = active_rate(self.result, application, until)
            facts[f"{name} seconds"] = entry["last_s"] - application.start
            for field in ("p50", "p99", "max"):
                facts[f"{name} {field}_ms"] = entry["latency_us"][field] / 1000
        return facts

    def _share_error(self) -> float:
        """While all jobs have work."""
        begin, end = SETTLE / self.scale, min(self.ends().values())
        rates = {job: mean_between(line, begin, end) for job, line in self.bandwidths().items()}
        return share_error(rates, self.experiment)

    def _lenders(self) -> dict[str, float]:
        facts: dict[str, float] = {}
        series, records = self.bandwidths(), self.records()
        for job, start in LENDERS.items():
            facts[f"{job} record_at_return"] = value_at(records[job], start / self.scale)
            later = [record for t, record in records[job] if t > start / self.scale]
            facts[f"{job} least_record_after"] = min(later, default=0.0)
            begin, end = (start + SETTLE) / self.scale, return_end(job) / self.scale
            for name, field in ((job, "mib_per_s_after"), (BORROWER, "borrower_mib_per_s")):
                facts[f"{job} {field}"] = mean_between(series[name], begin, end)
        return facts


def medians(runs: Sequence[dict[str, float]]) -> dict[str, float]:
    return {field: median([run[field] for run in runs]) for field in runs[0]}
