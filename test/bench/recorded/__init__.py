"""Benchmarks with recorded measurements: what each would have measured, without any program.

A Recorded has what is replaced in the modules of a benchmark, and the options that choose rows. So
all that a benchmark does with its rows can be tested in a moment.
"""

from recorded.attacks import ATTACKS
from recorded.control import (
    AGGREGATORS,
    CONTROL,
    CONTROL_ATTACK,
    CONTROL_IMPACT,
    MEMBERS,
    TAKEOVER,
    TOTAL,
)
from recorded.data_path import OVERHEAD, RESTART
from recorded.insight import INSIGHT
from recorded.mounts import FIO, FUSE
from recorded.samples import Option, Recorded
from recorded.schedulers import ADAPTBF, ANTICIPATION, NODE, SHARING
from recorded.simulator import PLACEMENT, SCALE, SIMULATOR
from recorded.vpfs import VPFS

__all__ = ["RECORDED", "Option", "Recorded"]

RECORDED = {
    "control": CONTROL,
    "sharing": SHARING,
    "anticipation": ANTICIPATION,
    "node": NODE,
    "adaptbf": ADAPTBF,
    "vpfs": VPFS,
    "simulator": SIMULATOR,
    "scale": SCALE,
    "placement": PLACEMENT,
    "fuse": FUSE,
    "fio": FIO,
    "total": TOTAL,
    "takeover": TAKEOVER,
    "members": MEMBERS,
    "aggregators": AGGREGATORS,
    "control_impact": CONTROL_IMPACT,
    "control_attack": CONTROL_ATTACK,
    "attacks": ATTACKS,
    "overhead": OVERHEAD,
    "restart": RESTART,
    "insight": INSIGHT,
}
