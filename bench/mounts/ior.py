"""script/bench ior: IOR and mdtest of two applications on a mounted OrangeFS, at 3:1.

Easy is a file for each process in requests of 1 MiB; hard is one file of all processes, in which
each has every n-th block of 47,008 bytes. What is written is read back and compared, and so is what
is read.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench.mounts import two_jobs
from bench.mounts.two_jobs import DEVICE, POLICIES, TOLERANCE, WANTED, WEIGHTS, Done, Outcome
from lab import ior, plot, targets
from lab.harness import MIB, Problem, machine_settings
from lab.mount import require_mounts
from lab.mpi import mpi_command
from lab.numbers import one_or_more
from lab.report import Row, print_settings, table, write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRIDE = 47_008
# What is written is kept; a run of its own then reads it back and compares (-W), another is
# measured as the read, and compares too (-R).
OPS = {"write": ["-w", "-k"], "check": ["-W", "-E", "-k"], "read": ["-r", "-R", "-C"]}
SIGNATURE = "47"  # of the data; a read is compared with what this makes
COLUMNS = [
    "test",
    "op",
    "policy",
    "job",
    "weight",
    "share",
    "mib_per_s",
    "ior_mib_per_s",
    "wrong_blocks",
    "seconds",
]
NAME_COLUMNS = ["op", "policy", "job", "weight", "ops_per_s"]


@dataclasses.dataclass(frozen=True)
class Plan:
    processes: int  # of each application
    easy_mib: int  # of each process
    hard_blocks: int  # of each process
    files: int  # of each process in mdtest


FULL = Plan(processes=8, easy_mib=128, hard_blocks=2000, files=500)
QUICK = Plan(processes=8, easy_mib=32, hard_blocks=400, files=30)


def ior_command(program: str, test: str, op: str, plan: Plan, directory: pathlib.Path) -> list[str]:
    """The command of one run of IOR.

    Data goes past the page cache, so that a check reads what the servers have. A reader is another
    process than the writer of a block (-C).
    """
    layout = (
        ["-F", "-t", "1m", "-b", f"{plan.easy_mib}m"]
        if test == "easy"
        else ["-t", str(STRIDE), "-b", str(STRIDE), "-s", str(plan.hard_blocks)]
    )
    return [
        program,
        "-a",
        "POSIX",
        "--posix.odirect",
        "-e",
        "-G",
        SIGNATURE,
        *OPS[op],
        *layout,
        "-o",
        str(directory / test),
    ]


def checked(done: Done, job: str) -> Done:
    if wrong := ior.wrong_blocks(done.text):
        raise Problem(f"job {job}: IOR found {wrong} wrong blocks:\n{done.text[-3000:]}")
    if done.code != 0:
        raise Problem(f"job {job} ended with {done.code}:\n{done.text[-3000:]}")
    return done


def data_rows(test: str, op: str, policy: str, outcome: Outcome) -> list[Row]:
    rows: list[Row] = []
    for job, done in outcome.done.items():
        text = checked(done, job).text
        rows.append(
            {
                "test": test,
                "op": op,
                "policy": policy,
                "job": job,
                "weight": WEIGHTS[job],
                "share": outcome.share(job),
                "wanted": WEIGHTS[job] / sum(WEIGHTS.values()),
                "mib_per_s": outcome.rate(job),
                "ior_mib_per_s": ior.mean_mib_per_s(text, op),
                "wrong_blocks": ior.wrong_blocks(text),
                "seconds": done.seconds,
                "summary": ior.summary_lines(text),
            }
        )
    return rows


def print_data(rows: Sequence[Row]) -> None:
    print("\n" + table(rows, COLUMNS))
    for index, row in enumerate(rows):
        heading, *lines = row["summary"]
        for line in ([heading] if index == 0 else []) + lines:
            print(
                f"  {'IOR' if line == heading else row['job']:>4}  {ior.shown(line)}",
                flush=True,
            )


def name_rows(policy: str, outcome: Outcome) -> list[Row]:
    return [
        {"op": op, "policy": policy, "job": job, "weight": WEIGHTS[job], "ops_per_s": rate}
        for job, done in outcome.done.items()
        for op, rate in ior.mdtest_rates(checked(done, job).text).items()
    ]


def verdicts(rows: Sequence[Row]) -> list[Row]:
    return [
        targets.at_most(
            f"IOR {test}: error of 3:1 by sfq",
            TOLERANCE,
            two_jobs.ratio_errors(
                [row for row in rows if row["test"] == test and row["policy"] == "sfq"]
            ),
        )
        for test in ("easy", "hard")
    ]


def figure(rows: Sequence[Row], caption: str) -> Figure:
    heavier = [
        row for row in rows if row["weight"] == max(WEIGHTS.values()) and row["share"] is not None
    ]
    sheet = plot.Sheet(
        "IOR of two applications with weights 3:1 on a mounted OrangeFS", caption, heights=[2.8]
    )
    (panel,) = sheet.panels
    tests = list(dict.fromkeys((str(row["test"]), str(row["op"])) for row in heavier))
    share = {(row["test"], row["op"], row["policy"]): 100 * float(row["share"]) for row in heavier}
    plot.bars(
        panel,
        [" ".join(test) for test in tests],
        {policy: [share.get((*test, policy)) for test in tests] for policy in POLICIES},
    )
    plot.target(panel, 100 * WANTED, "wanted")
    plot.label(panel, "", "the heavier job's share (%)")
    plot.from_zero(sheet.panels)
    return sheet.finish()


def option_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="script/bench ior",
        add_help=False,
        description="Two applications with weights 3:1 by SLURM_JOB_ID, through proxies. Needs "
        f"root, /dev/fuse, mpirun, and {ior.PREFIX}, where bin/ior and bin/mdtest are.",
    )
    parser.add_argument(
        "--processes", type=one_or_more, help=f"of each application (default {FULL.processes})"
    )
    parser.add_argument(
        "--servers", type=one_or_more, default=1, help="with a proxy each (default 1)"
    )
    parser.add_argument("--mounts", type=int, choices=[1, 2], default=1)
    return parser


def run(binaries: pathlib.Path, out: pathlib.Path, quick: bool, options: argparse.Namespace) -> int:
    program, mdtest = ior.require()
    require_mounts()
    plan = QUICK if quick else FULL
    plan = dataclasses.replace(plan, processes=options.processes or plan.processes)
    settings = machine_settings() | {
        "quick": quick,
        "device": DEVICE,
        "depth of each proxy": two_jobs.DEPTH,
        "servers": options.servers,
        "mounts": options.mounts,
        "processes": f"{plan.processes} of each application",
        "easy": f"{plan.easy_mib} MiB for each process, in requests of 1 MiB, a file each",
        "hard": f"{plan.hard_blocks} blocks of {STRIDE:,} bytes for each process, "
        f"{plan.hard_blocks * STRIDE // MIB} MiB, in one file",
        "mdtest": f"{plan.files} files of each process",
        "share and MiB/s": "what the proxies counted while both applications ran; IOR MiB/s is "
        "IOR's own",
    }
    print_settings(settings)
    rows: list[Row] = []
    named: list[Row] = []
    for policy in POLICIES:
        with two_jobs.site(
            binaries, out / "ior" / policy, policy, options.servers, options.mounts
        ) as site:
            for test in ("easy", "hard"):
                for op in OPS:
                    outcome = site.run(
                        {
                            job: mpi_command(program, plan.processes, {"SLURM_JOB_ID": job})
                            + ior_command(program, test, op, plan, directory)
                            for job, directory in site.directories.items()
                        }
                    )
                    if op == "check":
                        for job, done in outcome.done.items():
                            checked(done, job)
                        continue
                    part = data_rows(test, op, policy, outcome)
                    rows += part
                    print_data(part)
            outcome = site.run(
                {
                    job: [
                        *mpi_command(mdtest, plan.processes, {"SLURM_JOB_ID": job}),
                        mdtest,
                        "-F",
                        "-u",
                        "-n",
                        str(plan.files),
                        "-d",
                        str(directory / "mdtest"),
                    ]
                    for job, directory in site.directories.items()
                }
            )
            part = name_rows(policy, outcome)
            named += part
            print("\n" + table(part, NAME_COLUMNS), flush=True)
    judged = verdicts(rows)
    print("\n" + table(rows, COLUMNS) + "\n\n" + table(judged, targets.COLUMNS))
    write_json(
        out / "ior.json", {"settings": settings, "rows": rows, "names": named, "targets": judged}
    )
    plot.save(
        out / "ior",
        lambda: figure(
            rows,
            plot.caption(
                settings,
                f"{options.servers} server{'s' if options.servers > 1 else ''} of "
                f"{DEVICE['bandwidth']} and {DEVICE['per_request']} each request",
                f"{plan.processes} processes of each application",
                f"hard: blocks of {STRIDE:,} bytes in one file",
            ),
        ),
    )
    return 0
