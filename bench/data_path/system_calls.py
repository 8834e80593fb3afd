"""The system calls of an operation, counted by strace.

A program is traced over two loads that differ only in their number of operations. So what a
connection, a file and the end of a load take is in both and falls out.
"""

from __future__ import annotations

import dataclasses
import shutil
import signal
from collections.abc import Mapping, Sequence

from lab.cluster import Cluster, Front
from lab.harness import Problem, Program, Programs
from lab.load import Application, run_load
from lab.report import Row, size_name

CASES = (("read", 4 << 10), ("read", 64 << 10), ("write", 64 << 10))  # with one in flight
COLUMNS = ["op", "size", "path", "operations", "system_calls", "most_of_them"]
FEW, MANY = 100, 600  # operations of the two loads
SECONDS = 2.0  # of each load, whenever its operations are done: timers then fall out as well
ATTACHED = "attached"
ABSENT = "strace is not installed"
REFUSED = "strace may not trace here"
MOST = 5  # calls that a row names


@dataclasses.dataclass(frozen=True)
class Count:
    """How often a program made each call, and how often one failed, as with EAGAIN."""

    calls: Mapping[str, float]
    errors: float
    operations: int = 0

    def total(self) -> float:
        return sum(self.calls.values())

    def of_an_operation(self, fewer: Count) -> Count:
        """What each operation took that this count has and `fewer` has not."""
        operations = self.operations - fewer.operations
        if operations <= 0:
            raise Problem(f"{self.operations} operations under strace: the machine is too busy")
        names = dict.fromkeys([*self.calls, *fewer.calls])
        return Count(
            {
                name: (self.calls.get(name, 0) - fewer.calls.get(name, 0)) / operations
                for name in names
            },
            (self.errors - fewer.errors) / operations,
            operations,
        )

    def most(self) -> str:
        """The calls of which an operation takes a tenth at least, the most frequent first."""
        found = sorted(self.calls.items(), key=lambda item: -item[1])[:MOST]
        return ", ".join(f"{name} {count:.1f}" for name, count in found if count >= 0.1)


def parse_summary(text: str) -> Count:
    """Reads what `strace -c` writes.

    A line has the part of the time, seconds, microseconds of a call, calls, errors if there are
    any, and the name of the call.
    """
    calls: dict[str, float] = {}
    errors = 0.0
    for line in text.splitlines():
        fields = line.split()
        if len(fields) not in (5, 6) or fields[-1] == "total" or not fields[3].isdecimal():
            continue
        calls[fields[-1]] = calls.get(fields[-1], 0) + int(fields[3])
        errors += int(fields[4]) if len(fields) == 6 else 0
    if not calls:
        raise Problem(f"strace has counted no system call:\n{text}")
    return Count(calls, errors)


def counted(
    programs: Programs, name: str, traced: Program, address: str, case: tuple[str, int], number: int
) -> Count | None:
    """The calls of a program during so many operations; None: strace may not trace."""
    op, size = case
    summary = programs.work / f"{name}.strace"
    summary.unlink(missing_ok=True)
    strace = programs.start(
        f"{name}-strace", "strace", "-c", "-f", "-o", str(summary), "-p", str(traced.pid)
    )
    try:
        strace.wait_for_line(ATTACHED)
    except Problem:
        return None
    load = Application(
        "a",
        size,
        read_percent=100 if op == "read" else 0,
        file_size=MANY * size,
        amount=number * size,
    )
    result = run_load(programs, name, address, [load], SECONDS, 0.0)
    strace.signal(signal.SIGINT)
    strace.wait_until_ended()
    count = parse_summary(summary.read_text())
    return dataclasses.replace(count, operations=result["applications"][0]["requests"])


def row_of(programs: Programs, cluster: Cluster, path: str, case: tuple[str, int]) -> Row:
    (traced,) = cluster.running[path]
    op, size = case
    row = {"op": op, "size": size_name(size), "path": path}
    counts = []
    for number in (FEW, MANY):
        name = f"calls-{path}-{op}{size}-{number}"
        count = counted(programs, name, traced, cluster.address(path), case, number)
        if count is None:
            return row | {"system_calls": REFUSED}
        counts.append(count)
    each = counts[1].of_an_operation(counts[0])
    return row | {
        "operations": each.operations,
        "system_calls": each.total(),
        "failed_calls": each.errors,
        "most_of_them": each.most(),
    }


def rows(programs: Programs, fronts: Sequence[Front], protocol: str) -> list[Row]:
    """One row for each front and case; without strace, rows that say so."""
    if shutil.which("strace") is None:
        return [
            {"op": op, "size": size_name(size), "path": front.name, "system_calls": ABSENT}
            for op, size in CASES
            for front in fronts
        ]
    # How often a worker polls before it sleeps depends on time, which strace stretches.
    fronts = [
        dataclasses.replace(front, proxy={**front.proxy, "busy_poll": "0 s"}) for front in fronts
    ]
    cluster = Cluster(programs, 1, fronts, prefix="calls-", protocol=protocol)
    for front in fronts:
        cluster.start(front.name)
    return [row_of(programs, cluster, front.name, case) for case in CASES for front in fronts]
