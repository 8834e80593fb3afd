"""Programs of others that are the applications of a benchmark, such as fio and IOR."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from lab.mpi import ROOT_MAY

PATIENCE = 10.0


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """That of this program, and these. Open MPI refuses root unless it is told twice."""
    return os.environ | ROOT_MAY | dict(variables)


@contextlib.contextmanager
def started(
    command: Sequence[str], log: pathlib.Path, variables: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs it in the log's folder until the context is left.

    `variables` are added to its environment.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env=environment(variables),
        )
    try:
        yield process
    finally:
        # Its own children end with it: fio and mpirun pass the signal on.
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
        if process.poll() is None:
            process.kill()
            process.wait(PATIENCE)
