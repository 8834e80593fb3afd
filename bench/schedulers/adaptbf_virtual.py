"""Experiment c of [ADAPTBF] with other periods, in virtual time.

It shows what the policy does on a server and processors that are never late. Applications have no
amounts there, so a run ends when all lenders have returned for some time.
"""

from __future__ import annotations

import json
import pathlib
import subprocess

from bench.schedulers.adaptbf_experiments import DEVICE, LENDERS, PAYBACK, RETURN, front
from lab.harness import Problem
from lab.load import Application, seconds
from lab.report import Json

PROGRAM = "vpfs-sim"
LENGTH = max(LENDERS.values()) + RETURN
UNKNOWN = {"amount", "connections"}  # words of vpfs-load that a scenario does not have


def described(application: Application) -> Json:
    return {key: value for key, value in application.config().items() if key not in UNKNOWN}


def scenario(configuration: str) -> Json:
    return {
        "configuration": configuration,
        "servers": {"count": 1, "device": DEVICE},
        "duration": seconds(LENGTH),
        "warm_up": "0 s",
        "interval": "1 s",
        "applications": [described(each) for each in PAYBACK.applications],
    }


def total(binaries: pathlib.Path, folder: pathlib.Path, control: str, period: float) -> float:
    """MiB/s of all jobs together. Nothing is scaled."""
    folder.mkdir(parents=True, exist_ok=True)
    proxy, described_in, result = (
        folder / f"virtual{end}" for end in ("-proxy.yaml", ".yaml", ".json")
    )
    result.unlink(missing_ok=True)
    # The addresses are not used.
    config = front(PAYBACK, control, period).proxy_config(1, 2, str(folder / "virtual.status"))
    proxy.write_text(json.dumps(config, indent=1) + "\n")
    described_in.write_text(json.dumps(scenario(proxy.name), indent=1) + "\n")
    done = subprocess.run(
        [str(binaries / PROGRAM), str(described_in), "--json", str(result)],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0 or not result.exists():
        raise Problem(f"{PROGRAM} failed: {done.stderr.strip()}")
    (found,) = json.loads(result.read_text())
    return float(sum(each["mib_per_s"] for each in found["applications"]))
