"""Programs of MPI, under the launcher of the MPI that they were built with."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
from collections.abc import Mapping

from lab.harness import Problem

# Two applications use all processors, and their processes wait without polling.
OPEN_MPI = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
HYDRA = ["-launcher", "fork", "-bind-to", "none"]


def launcher_of(program: str) -> str:
    """The mpirun beside the program, or else that in PATH."""
    beside = pathlib.Path(program).resolve().parent / "mpirun"
    found = str(beside) if beside.exists() else shutil.which("mpirun")
    if not found:
        raise Problem(f"{program} needs mpirun, beside it or in PATH, of the MPI it was built with")
    return found


def is_open_mpi(launcher: str) -> bool:
    done = subprocess.run([launcher, "--version"], check=False, capture_output=True, text=True)
    return "Open MPI" in done.stdout


def mpi_command(program: str, processes: int, variables: Mapping[str, str]) -> list[str]:
    """What comes before the program's own command, to run it in so many processes.

    `variables` are those of the environment that all of them get.
    """
    launcher = launcher_of(program)
    if is_open_mpi(launcher):
        given = [part for name, value in variables.items() for part in ("-x", f"{name}={value}")]
        return [launcher, *OPEN_MPI, *given, "-n", str(processes)]
    given = [part for name, value in variables.items() for part in ("-genv", name, value)]
    return [launcher, *HYDRA, *given, "-n", str(processes)]
