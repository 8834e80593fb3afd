"""What fio says at the end, as numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable

from lab.harness import Problem
from lab.report import Json

Numbers = dict[str, float]


def jobs_of(text: str) -> list[Json]:
    """The jobs in the output of --output-format=json. fio may print notes before it."""
    begin = text.find("{")
    try:
        return json.loads(text[begin:])["jobs"] if begin >= 0 else []
    except (ValueError, KeyError) as error:
        raise Problem(f"fio's output is not what it was asked for: {error}") from error


def numbers(text: str) -> Numbers:
    """Reads and writes of all jobs together.

    The rates of jobs that ran one after the other are those of the time that they took together.
    The quantile is the worst of any job's kind of request: quantiles cannot be added.
    """
    jobs = jobs_of(text)
    sides = [side for job in jobs for side in (job["read"], job["write"]) if side["total_ios"]]
    if not sides:
        raise Problem(f"fio moved nothing: {text[:200].strip()}")
    if failed := [job["jobname"] for job in jobs if job["error"]]:
        raise Problem(f"fio failed in {', '.join(failed)}")
    seconds = (
        sum(max(job[side]["runtime"] for side in ("read", "write")) for job in groups(jobs)) / 1000
    )
    moved = sum(side["io_bytes"] for side in sides)
    return {
        "mib_per_s": moved / 2**20 / seconds,
        "ops_per_s": sum(side["total_ios"] for side in sides) / seconds,
        "p99_us": max(side["clat_ns"]["percentile"]["99.000000"] for side in sides) / 1000,
        "gib": moved / 2**30,
    }


def groups(jobs: Iterable[Json]) -> Iterable[Json]:
    """The slowest job of each group.

    The groups of --stonewall run one after the other, the jobs of one together.
    """
    slowest: dict[int, Json] = {}
    for job in jobs:
        time = max(job["read"]["runtime"], job["write"]["runtime"])
        known = slowest.get(job["groupid"])
        if known is None or time > max(known["read"]["runtime"], known["write"]["runtime"]):
            slowest[job["groupid"]] = job
    return slowest.values()
