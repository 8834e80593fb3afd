"""script/bench fio: two applications that share a mounted OrangeFS 3:1, by patterns of I/O.

Patterns run for a time. The profiles of WRF, mpiBLAST and S3D move an amount, so they end: the
share is that of the time in which both applications run.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bench.mounts import fio_output, two_jobs
from bench.mounts.two_jobs import DEVICE, TOLERANCE, WANTED, WEIGHTS, Outcome, Site
from lab import plot, targets
from lab.harness import MIB, Problem, machine_settings
from lab.mount import require_mounts
from lab.numbers import above_zero, one_or_more
from lab.report import Row, print_settings, table, write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POLICIES = [*two_jobs.POLICIES, two_jobs.ANTICIPATING]
PROCESSES = [1, 4, 16, 64]
QUICK_PROCESSES = [16]
# So many processes with one request each keep the queue of either application full, however deep
# the proxy goes.
FULL_QUEUES = 16
OF_A_PROFILE = 16  # processes of each application
INTERRUPTED = 128  # how fio ends then, with its results
FILE = 16 * MIB  # of each process of a pattern
BLOCK = bytes(range(256)) * (MIB // 256)
COLUMNS = [
    "profile",
    "mounts",
    "processes",
    "policy",
    "job",
    "weight",
    "share",
    "mib_per_s",
    "fio_mib_per_s",
    "p99_us",
    "seconds",
]


@dataclasses.dataclass(frozen=True)
class Phase:
    """One kind of request, of all processes of an application."""

    name: str
    rw: str
    block: str  # an option of fio: bs= or bssplit=
    mib: int = 0  # of all processes together; 0: for a time


@dataclasses.dataclass(frozen=True)
class Profile:
    """Phases that follow each other."""

    name: str
    phases: tuple[Phase, ...]
    shared: bool = False  # both applications read the same files

    def amounts(self) -> bool:
        return any(phase.mib for phase in self.phases)

    def scaled(self, scale: float, processes: int) -> Profile:
        """With another amount, of which each process gets the same whole number of MiB."""

        def rounded(phase: Phase) -> Phase:
            each = max(1, round(phase.mib * scale / processes))
            return dataclasses.replace(phase, mib=each * processes if phase.mib else 0)

        return dataclasses.replace(self, phases=tuple(map(rounded, self.phases)))


PATTERNS = [
    Profile("large sequential write", (Phase("data", "write", "bs=1m"),)),
    Profile("large sequential read", (Phase("data", "read", "bs=1m"),)),
    Profile("small random", (Phase("data", "randrw", "bs=4k"),)),
    Profile("mixed", (Phase("data", "randrw", "bssplit=4k/40:64k/40:1m/20"),)),
]
APPLICATIONS = [
    Profile("WRF", (Phase("in", "read", "bs=1m", 400), Phase("out", "write", "bs=1m", 600))),
    Profile("mpiBLAST", (Phase("in", "read", "bs=512k", 2048),), shared=True),
    Profile("S3D", (Phase("out", "write", "bs=1m", 2048),)),
]


@dataclasses.dataclass(frozen=True)
class Case:
    profile: Profile
    processes: int
    mounts: int


def cases(
    quick: bool, scale: float, processes: Sequence[int], mounts: Sequence[int], names: Sequence[str]
) -> list[Case]:
    found = [
        Case(pattern, count, number)
        for number in mounts
        for pattern in PATTERNS
        for count in processes
    ]
    found += [
        Case(profile.scaled(scale, OF_A_PROFILE), OF_A_PROFILE, mounts[0])
        for profile in APPLICATIONS
    ]
    if quick:  # two mounts for one pattern only
        found = [case for case in found if case.mounts == mounts[0] or case.profile == PATTERNS[0]]
    return [case for case in found if not names or case.profile.name in names]


def command(case: Case, directory: pathlib.Path, shared: pathlib.Path) -> list[str]:
    """fio for one application.

    Its phases are groups that wait for each other. A pattern goes on until it is interrupted.
    """
    words = [
        "fio",
        "--output-format=json",
        "--direct=1",
        "--ioengine=psync",
        "--fallocate=none",
        "--thread",
        f"--numjobs={case.processes}",
        "--group_reporting",
        "--filename_format=$jobname.$jobnum",
        *([] if case.profile.amounts() else ["--time_based", f"--runtime={two_jobs.PATIENCE:g}"]),
    ]
    for phase in case.profile.phases:
        size = phase.mib * MIB // case.processes or FILE
        words += [
            f"--name={phase.name}",
            "--stonewall",
            f"--directory={shared if case.profile.shared else directory}",
            f"--rw={phase.rw}",
            f"--{phase.block}",
            f"--size={size}",
        ]
        # Otherwise fio writes each byte of a file once before it begins again, and fills what is
        # left with small requests. The faster application comes to that earlier, and what the two
        # ask for is not the same.
        words += ["--norandommap"] if "rand" in phase.rw else []
    return words


def lay_out(site: Site, case: Case, shared: pathlib.Path) -> None:
    """Makes one file for each process, so that fio of both applications begins at once."""
    for phase in case.profile.phases:
        size = phase.mib // case.processes or FILE // MIB
        for directory in [shared] if case.profile.shared else site.directories.values():
            directory.mkdir(exist_ok=True)
            for process in range(case.processes):
                with (directory / f"{phase.name}.{process}").open("wb", buffering=0) as file:
                    file.truncate(size * MIB)
                    for _ in range(0 if phase.rw == "write" else size):
                        file.write(BLOCK)


def measure(
    binaries: pathlib.Path, work: pathlib.Path, case: Case, policy: str, seconds: float
) -> list[Row]:
    with two_jobs.site(binaries, work, policy, mounts=case.mounts) as site:
        shared = next(iter(site.directories.values())).parent / "shared"
        lay_out(site, case, shared)
        outcome = site.run(
            {job: command(case, directory, shared) for job, directory in site.directories.items()},
            None if case.profile.amounts() else seconds,
        )
    return rows_of(case, policy, outcome)


def rows_of(case: Case, policy: str, outcome: Outcome) -> list[Row]:
    rows: list[Row] = []
    for job, done in outcome.done.items():
        if done.code not in ([0] if case.profile.amounts() else [0, INTERRUPTED]):
            raise Problem(f"fio of {job} ended with {done.code}:\n{done.text[-2000:]}")
        numbers = fio_output.numbers(done.text)
        rows.append(
            {
                "profile": case.profile.name,
                "mounts": case.mounts,
                "processes": case.processes,
                "policy": policy,
                "job": job,
                "weight": WEIGHTS[job],
                "share": outcome.share(job),
                "wanted": WEIGHTS[job] / sum(WEIGHTS.values()),
                "mib_per_s": outcome.rate(job),
                "fio_mib_per_s": numbers["mib_per_s"],
                "p99_us": numbers["p99_us"],
                "seconds": done.seconds,
            }
        )
    return rows


def verdicts(rows: Sequence[Row]) -> list[Row]:
    # WRF's processes wait for each other between reading and writing, so its queue is empty for a
    # while.
    waiting = {profile.name for profile in APPLICATIONS if len(profile.phases) > 1}
    names = [
        name for name in dict.fromkeys(str(row["profile"]) for row in rows) if name not in waiting
    ]
    return [
        targets.at_most(
            f"{name}: error of 3:1 by sfq, {FULL_QUEUES} processes or more",
            TOLERANCE,
            two_jobs.ratio_errors(
                [
                    row
                    for row in rows
                    if row["profile"] == name
                    and row["policy"] == "sfq"
                    and row["processes"] >= FULL_QUEUES
                ]
            ),
        )
        for name in names
    ]


def figure(rows: Sequence[Row], caption: str) -> Figure:
    """The share of the heavier job.

    There is a panel for each number of processes, or mounts, of the patterns; and one for the
    profiles.
    """
    heavier = [
        row for row in rows if row["weight"] == max(WEIGHTS.values()) and row["share"] is not None
    ]
    patterns = {pattern.name for pattern in PATTERNS}
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in heavier:
        is_pattern = row["profile"] in patterns
        groups.setdefault((not is_pattern, row["mounts"], row["processes"]), []).append(row)
    sheet = plot.Sheet(
        "Two applications with weights 3:1 on a mounted OrangeFS",
        caption,
        rows=len(groups),
        heights=[1.9],
    )
    for panel, ((_, mounts, processes), own) in zip(sheet.panels, sorted(groups.items())):
        names = list(dict.fromkeys(str(row["profile"]) for row in own))
        share = {(row["profile"], row["policy"]): 100 * float(row["share"]) for row in own}
        plot.bars(
            panel,
            names,
            {policy: [share.get((name, policy)) for name in names] for policy in POLICIES},
        )
        plot.target(panel, 100 * WANTED, "wanted")
        plot.label(
            panel,
            "",
            "heavier job (%)",
            f"{processes} process{'es' if processes > 1 else ''} of each on {mounts} "
            f"mount{'s' if mounts > 1 else ''}",
        )
    plot.from_zero(sheet.panels)
    return sheet.finish()


def option_parser() -> argparse.ArgumentParser:
    known = [profile.name for profile in (*PATTERNS, *APPLICATIONS)]
    parser = argparse.ArgumentParser(
        prog="script/bench fio",
        add_help=False,
        description="Two applications with weights 3:1 by SLURM_JOB_ID, through proxies. Needs "
        "root, /dev/fuse and fio.",
    )
    parser.add_argument(
        "--seconds",
        type=above_zero,
        help="length of each run of a pattern (default 20; 4 with --quick)",
    )
    parser.add_argument(
        "--scale",
        type=above_zero,
        help="of the amounts of WRF, mpiBLAST and S3D, of which 1 is 1,000, 2,048 and 2,048 MiB "
        "for each application (default 1; 0.25 with --quick)",
    )
    parser.add_argument("--processes", type=one_or_more, nargs="+", help="of each application")
    parser.add_argument("--mounts", type=int, nargs="+", choices=[1, 2], default=[1, 2])
    parser.add_argument(
        "--profiles", nargs="+", choices=known, default=[], metavar="NAME", help=", ".join(known)
    )
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    require_mounts()
    seconds = options.seconds or (4.0 if quick else 20.0)
    scale = options.scale or (0.25 if quick else 1.0)
    processes = options.processes or (QUICK_PROCESSES if quick else PROCESSES)
    chosen = cases(quick, scale, processes, options.mounts, options.profiles)
    settings = machine_settings() | {
        "quick": quick,
        "seconds": seconds,
        "scale": scale,
        "device": DEVICE,
        "depth of the proxy": two_jobs.DEPTH,
        "load": "fio psync with direct I/O, each process on a file of its own",
        "share and mib_per_s": "what the proxy counted while both applications ran; fio MiB/s is "
        "fio's own, of its whole run",
        "profiles": {
            profile.name: [
                f"{phase.rw} {phase.block}" + (f", {phase.mib} MiB" if phase.mib else "")
                for phase in profile.phases
            ]
            for profile in dict.fromkeys(case.profile for case in chosen)
        },
    }
    print_settings(settings)
    rows: list[Row] = []
    for number, case in enumerate(chosen):
        part = [
            row
            for policy in POLICIES
            for row in measure(binaries, out / "fio" / f"{number}-{policy}", case, policy, seconds)
        ]
        rows += part
        print("\n" + table(part, COLUMNS), flush=True)
    judged = verdicts(rows)
    print("\n" + table(judged, targets.COLUMNS))
    write_json(out / "fio.json", {"settings": settings, "rows": rows, "targets": judged})
    plot.save(
        out / "fio",
        lambda: figure(
            rows,
            plot.caption(
                settings,
                f"one server of {DEVICE['bandwidth']} and {DEVICE['per_request']} each request",
                "fio with direct I/O",
                f"patterns {seconds:g} s each, profiles {scale:g} of their amount",
            ),
        ),
    )
    return 0
