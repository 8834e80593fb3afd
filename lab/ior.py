"""IOR and mdtest, of another project: where they are, and what they say at the end, as numbers."""

from __future__ import annotations

import re

from lab.harness import Problem
from lab.mount import in_prefix
from lab.mpi import launcher_of

PREFIX = "VPFS_IOR_PREFIX"
WRONG = re.compile(r"Incorrect data on (\w+) \((\d+) errors? found\)")
# "write  158.66  158.66  158.66  0.00 ...": the largest, the smallest and the mean rate of all
# repetitions, in MiB/s.
SUMMARY = re.compile(r"^Operation +Max\(MiB\).*\n((?:(?:write|read) .*\n?)+)", re.MULTILINE)
# "   File creation   138425.875  138425.875  138425.875  0.000": the same of operations per second.
RATE = re.compile(
    r"^ +((?:File|Directory|Tree) \w+) +([\d.]+) +([\d.]+) +([\d.]+) +[\d.]+ *$", re.MULTILINE
)
SHOWN = 10  # fields of a summary line: up to Mean(s)


def require() -> tuple[str, str]:
    """IOR and mdtest, which packages do not have."""
    ior, mdtest = in_prefix(PREFIX, "ior"), in_prefix(PREFIX, "mdtest")
    if not ior or not mdtest:
        raise Problem(
            "there is no IOR: build it from its sources (./configure --prefix=DIR; make install) "
            f"and set {PREFIX}=DIR, where bin/ior and bin/mdtest are"
        )
    launcher_of(ior)
    return ior, mdtest


def wrong_blocks(text: str) -> int:
    """How many blocks did not hold what was written, as IOR's checks say."""
    return sum(int(count) for _, count in WRONG.findall(text))


def summary_lines(text: str) -> list[str]:
    """IOR's own lines, their heading first."""
    found = SUMMARY.search(text)
    if not found:
        raise Problem(f"IOR printed no summary:\n{text[-2000:]}")
    return found[0].rstrip("\n").splitlines()


def mean_mib_per_s(text: str, op: str) -> float:
    for line in summary_lines(text)[1:]:
        fields = line.split()
        if fields[0] == op:
            return float(fields[3])
    raise Problem(f"IOR's summary has no {op}:\n{text[-2000:]}")


def shown(line: str) -> str:
    """The part of a summary line that has measurements."""
    return "  ".join(f"{field:>10}" for field in line.split()[:SHOWN])


def mdtest_rates(text: str) -> dict[str, float]:
    """The mean operations per second by mdtest's name of the operation."""
    rates = {name: float(mean) for name, _, _, mean in RATE.findall(text)}
    if not rates:
        raise Problem(f"mdtest printed no rates:\n{text[-2000:]}")
    return rates
