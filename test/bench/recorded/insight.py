"""Recorded measurements of bench/insight."""

from __future__ import annotations

import pathlib

from bench.insight import insight, site
from lab.report import Row
from lab.rounds import Rounds
from recorded.samples import Option, Recorded, field, samples


def rows_of_site(_: pathlib.Path, __: pathlib.Path, size: site.Size, ___: int) -> list[Row]:
    return [
        {**size.fields(), "asked": way, **samples(insight.SITE_COLUMNS[3:], size, way)}
        for way in ("coordinator", "proxies")
    ]


def rows_of_reads(_: pathlib.Path, __: pathlib.Path, ___: Rounds) -> list[Row]:
    return [
        {"beside": beside, **samples(insight.NUMBERS, beside)}
        for beside in (insight.ALONE, insight.ASKED, insight.ELSEWHERE, insight.RECORDED)
    ]


INSIGHT = Recorded(
    {
        "bench.insight.site.measure": rows_of_site,
        "bench.insight.insight.measure_reads": rows_of_reads,
    },
    {"--proxies": Option(field("proxies"), ["7"])},
    [[]],
)
