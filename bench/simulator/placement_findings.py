"""What the study of ExaNeSt found, and whether it holds in the rows of script/bench placement.

Each finding is one function. Its docstring says which slice and curve of the study it is about. It
gives the number that decides, in words, and a check. "Up to 10 %" is more than nothing and no more
than 10 %; "an order of magnitude" is 10 times. Where a value within a quarter would hold, it nearly
does.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence

from bench.simulator.placement_rows import (
    SAME,
    Check,
    at_least,
    at_most,
    change,
    gain,
    ratios,
    some,
    total,
    up_to,
    verdict,
    where,
)
from lab.report import Row

COLUMNS = ["figure", "mode", "finding", "here", "holds"]
FLAT = 1.1  # a curve is flat where it is at most so many times its end
LITTLE = 0.05


@dataclasses.dataclass(frozen=True)
class Found:
    number: float
    here: str
    check: Check
    is_amount: bool = False  # the study gives a number; else the value holds or does not


Rows = Sequence[Row]
Judge = Callable[[Rows], Found]


def _dragonfly(rows: Rows) -> Rows:
    return where(rows, network="dragonfly", nodes="sequential", backfills=False)


def _percent(value: float) -> str:
    return f"{value:.0%}" if abs(value) >= 0.095 else f"{value:.1%}"


def _hits(rows: Rows, **wanted: object) -> float:
    dragonfly = where(_dragonfly(rows), remote_percent=50, **wanted)
    return gain(ratios(dragonfly, "memory_percent", 100, 0))


def hits_below_stg_64(rows: Rows) -> Found:
    """Memory hits bring up to 10 % with fewer than 64 devices.

    6a: 50 % remote, disperse, 100 against 0 % hits; STG-1 to STG-32.
    """
    most = max(_hits(rows, access="disperse", stg=stg) for stg in (1, 2, 4, 8, 16, 32))
    return Found(most, f"up to {_percent(most)}", up_to(0.1), True)


def hits_with_stg_64(rows: Rows) -> Found:
    """Memory hits bring up to 10 % with STG-64.

    6a: 50 % remote, disperse, 100 against 0 % hits; STG-64.
    """
    value = _hits(rows, access="disperse", stg=64)
    return Found(value, _percent(value), up_to(0.1), True)


def hits_with_cache(rows: Rows) -> Found:
    """Misses cost less with local data than with remote ones.

    6a: 50 % remote, 0 against 100 % hits; CACHE against the mean of STG-1 to STG-64.
    """
    local = _hits(rows, access="local", strategy="cache")
    remote = [_hits(rows, access="disperse", stg=stg) for stg in (1, 2, 4, 8, 16, 32, 64)]
    mean = sum(remote) / len(remote)
    return Found(
        mean - local, f"CACHE {_percent(local)}, STG {_percent(mean)} in the mean", lambda x: x > 0
    )


def cache_beats_stg_64(rows: Rows) -> Found:
    """CACHE beats STG-64 clearly where half of the accesses are remote.

    6a: 50 % remote, all hits; STG-64 against CACHE, at least 5 % at each point.
    """
    here = where(_dragonfly(rows), remote_percent=50)
    least = min(
        total(here, strategy="stg", stg=64, access="disperse", memory_percent=hits)
        / total(here, strategy="cache", access="local", memory_percent=hits)
        for hits in {row["memory_percent"] for row in here}
    )
    return Found(least, f"STG-64 takes {least:.2f} of its time at least", at_least(1 + LITTLE))


def _remote(rows: Rows, stg: int, remote: int) -> float:
    """6c: 50 % hits, disperse."""
    here = where(_dragonfly(rows), memory_percent=50, remote_percent=remote)
    if stg == 0:
        return total(here, strategy="cache", access="local")
    return total(here, strategy="stg", stg=stg, access="disperse")


def perfect_locality(rows: Rows) -> Found:
    """Perfect locality brings up to an order of magnitude.

    6c: 50 % hits, disperse; STG-1 against CACHE, the remote percentage where it is most.
    """
    away = {row["remote_percent"] for row in rows if row["memory_percent"] == 50}
    most = max(_remote(rows, 1, remote) / _remote(rows, 0, remote) for remote in away)
    return Found(most, f"{most:.1f} times", at_least(9.5), True)


def more_devices(rows: Rows) -> Found:
    """STG-1 is worst, more devices spread the load, and CACHE is best.

    6c: 50 % hits, disperse, 100 % remote; each curve is no slower than that of half the devices.
    """
    times = [_remote(rows, stg, 100) for stg in (1, 2, 4, 8, 16, 32, 64, 0)]
    worst = max(after / before for before, after in itertools.pairwise(times))
    return Found(
        worst, f"a curve takes {worst:.2f} of the one before it at most", at_most(1 + SAME)
    )


def remote_accesses_cost(rows: Rows) -> Found:
    """Remote accesses cost very much.

    6c: 50 % hits, disperse; STG-64 with 100 against 0 % remote: twice at least.
    """
    value = _remote(rows, 64, 100) / _remote(rows, 64, 0)
    return Found(value, f"{value:.1f} times", at_least(2))


def _affinity(rows: Rows, **wanted: object) -> list[tuple[Row, float]]:
    here = where(_dragonfly(rows), **wanted)
    base = "local" if wanted.get("strategy") == "cache" else "disperse"
    return ratios(here, "access", "affinity", base)


def affinity_in_the_middle(rows: Rows) -> Found:
    """Affinity brings up to 20 % for STG-4, 8, 16 and 32.

    6b: 50 % remote, all hits. 6d: 50 % hits, all remote percentages. Affinity against disperse.
    """
    pairs = [pair for stg in (4, 8, 16, 32) for pair in _affinity(rows, stg=stg)]
    most, worst = gain(pairs), max(ratio - 1 for _, ratio in pairs)
    return Found(
        most, f"up to {_percent(most)}; {_percent(max(worst, 0))} lost at worst", up_to(0.2), True
    )


def _nothing(pairs: Sequence[tuple[Row, float]]) -> Found:
    value = change(pairs)
    return Found(value, f"{value:.1%} at most", at_most(SAME))


def affinity_with_stg_1(rows: Rows) -> Found:
    """Affinity brings nothing for STG-1. 6b and 6d."""
    return _nothing(_affinity(rows, stg=1))


def affinity_with_san(rows: Rows) -> Found:
    """Affinity brings nothing for SAN. 6b and 6d."""
    return _nothing(_affinity(rows, strategy="san"))


def affinity_with_cache(rows: Rows) -> Found:
    """Affinity brings nothing for CACHE. 6b and 6d."""
    return _nothing(_affinity(rows, strategy="cache"))


def affinity_with_little_remote(rows: Rows) -> Found:
    """Affinity brings nothing for STG-64 with at most 20 % remote. 6d: 50 % hits."""
    pairs = _affinity(rows, stg=64, memory_percent=50)
    few = [ratio for row, ratio in pairs if row["remote_percent"] <= 20]
    value = max(1 - ratio for ratio in few)
    return Found(value, f"up to {_percent(value)}", at_most(LITTLE))


def affinity_with_much_remote(rows: Rows) -> Found:
    """Affinity brings something for STG-64 above 20 % remote. 6d: 50 % hits."""
    pairs = _affinity(rows, stg=64, memory_percent=50)
    value = gain([pair for pair in pairs if pair[0]["remote_percent"] > 20])
    return Found(value, f"up to {_percent(value)}", at_least(LITTLE))


def more_for_communication(rows: Rows) -> Found:
    """More for communication helps slightly where storage traffic is high.

    7a: disperse, 50 % hits, 50 % remote; STG-4 and STG-64, BA 85-15 against BA 5-95: something, up
    to a tenth.
    """
    here = where(_dragonfly(rows), remote_percent=50)
    pairs = ratios(here, "priority", "BA 85-15", "BA 5-95")
    gains = {row["stg"]: 1 - ratio for row, ratio in pairs}
    least, most = sorted((gains[4], gains[64]))
    return Found(
        most if least > 0 else least,
        f"STG-4 {_percent(gains[4])}, STG-64 {_percent(gains[64])}",
        lambda value: 0.002 < value <= 0.105,
    )


def shares_change_little(rows: Rows) -> Found:
    """With BA 85-15, no STG-k is far from NP.

    7a: disperse, 50 % hits, 50 % remote; all STG-k.
    """
    value = change(ratios(where(_dragonfly(rows), remote_percent=50), "priority", "BA 85-15", "NP"))
    return Found(value, f"{_percent(value)} at most", at_most(LITTLE))


def _priority_gain(rows: Rows, stg: int) -> Found:
    """7b: disperse, 50 % hits; FP against NP, the remote percentage where it is most."""
    value = gain(ratios(where(_dragonfly(rows), stg=stg), "priority", "FP", "NP"))
    return Found(value, f"up to {_percent(value)}", at_least(0.1), True)


def priority_with_stg_16(rows: Rows) -> Found:
    """FP brings more than 10 % with STG-16. 7b: disperse, 50 % hits, all remote percentages."""
    return _priority_gain(rows, 16)


def priority_with_stg_32(rows: Rows) -> Found:
    """FP brings more than 10 % with STG-32. 7b: disperse, 50 % hits, all remote percentages."""
    return _priority_gain(rows, 32)


def priority_with_stg_64(rows: Rows) -> Found:
    """FP brings more than 10 % with STG-64. 7b: disperse, 50 % hits, all remote percentages."""
    return _priority_gain(rows, 64)


def priority_with_local_data(rows: Rows) -> Found:
    """FP brings nothing with STG-64 and 0 % remote. 7b: disperse, 50 % hits."""
    here = where(_dragonfly(rows), stg=64, remote_percent=0)
    return _nothing(ratios(here, "priority", "FP", "NP"))


def _against_cache(rows: Rows, network: str, strategy: str, access: str) -> float:
    here = where(rows, network=network, nodes="sequential", backfills=False)
    return total(here, strategy=strategy, access=access) / total(here, strategy="cache")


def _slower(rows: Rows, strategy: str) -> Found:
    """8: dragonfly, the mean of D and A against Cache."""
    both = [
        _against_cache(rows, "dragonfly", strategy, each) - 1 for each in ("disperse", "affinity")
    ]
    value = sum(both) / 2
    return Found(
        value, f"{_percent(value)} (D {_percent(both[0])}, A {_percent(both[1])})", some(0.44), True
    )


def cache_is_best(rows: Rows) -> Found:
    """Cache is best. 8: all networks, against Internal and External with D and A."""
    here = where(rows, nodes="sequential", backfills=False)
    least = min(
        _against_cache(here, row["network"], row["strategy"], row["access"])
        for row in here
        if row["strategy"] != "cache"
    )
    return Found(least, f"the next one takes {least:.2f} of its time", at_least(1))


def internal_is_slower(rows: Rows) -> Found:
    """Internal is some 44 % slower than Cache. 8: dragonfly, the mean of D and A."""
    return _slower(rows, "internal")


def external_is_slower(rows: Rows) -> Found:
    """External is some 44 % slower than Cache. 8: dragonfly, the mean of D and A."""
    return _slower(rows, "external")


def access_matters_little(rows: Rows) -> Found:
    """Whether access is disperse or to a fixed device matters little.

    8: all networks, Internal and External, A against D: at most 10 %.
    """
    value = change(ratios(where(rows, backfills=False), "access", "affinity", "disperse"))
    return Found(value, f"{_percent(value)} at most", at_most(2 * LITTLE))


def networks_agree(rows: Rows) -> Found:
    """What Internal and External lose is much the same in all networks.

    8: D and A; the largest time against Cache divided by the smallest of one curve: at most 1.25.
    """
    spread = 0.0
    for strategy in ("internal", "external"):
        for access in ("disperse", "affinity"):
            here = [
                _against_cache(rows, str(network), strategy, access)
                for network in dict.fromkeys(row["network"] for row in rows)
            ]
            spread = max(spread, max(here) / min(here))
    return Found(spread, f"{spread:.2f} times at most", at_most(1.25))


def _flat(rows: Rows, strategy: str) -> Found:
    """9a: all networks; the time with 8 and with 16 servers against 128."""
    here = where(rows, strategy=strategy, nodes="sequential", backfills=False)
    networks = list(dict.fromkeys(row["network"] for row in here))

    def most(san: int) -> float:
        return max(
            total(here, network=network, san=san) / total(here, network=network, san=128)
            for network in networks
        )

    one = total(here, network="dragonfly", san=1) / total(here, network="dragonfly", san=128)
    return Found(
        min(most(8), most(16)),
        f"1, 8, 16 servers take {one:.2f}, {most(8):.2f}, {most(16):.2f} of 128",
        at_most(FLAT),
    )


def internal_flattens(rows: Rows) -> Found:
    """I-A is flat from 8 to 16 servers on. 9a: all networks, within a tenth of 128 servers."""
    return _flat(rows, "internal")


def cache_flattens(rows: Rows) -> Found:
    """Cache is flat from 8 to 16 servers on. 9a: all networks, within a tenth of 128 servers."""
    return _flat(rows, "cache")


def _servers(rows: Rows, strategy: str, san: int) -> float:
    return total(_dragonfly(rows), strategy=strategy, san=san)


def one_server_is_far_worse(rows: Rows) -> Found:
    """SAN with one server is about an order of magnitude worse than local data with one.

    9b against 9a: dragonfly, SAN-1 against Cache with one server.
    """
    value = _servers(rows, "san", 1) / _servers(rows, "cache", 1)
    other = _servers(rows, "san", 1) / _servers(rows, "internal", 1)
    return Found(value, f"{value:.1f} times Cache, {other:.1f} times I-A", at_least(9.5), True)


def central_servers_help_to_16(rows: Rows) -> Found:
    """SAN gets much better up to 16 servers, then far more slowly.

    9b: dragonfly; what each doubling saves: the mean to 16 against the mean from 16 to 128. At
    least a tenth, and three times as much.
    """
    to_16 = 1 - (_servers(rows, "san", 16) / _servers(rows, "san", 1)) ** (1 / 4)
    after = 1 - (_servers(rows, "san", 128) / _servers(rows, "san", 16)) ** (1 / 3)
    return Found(
        to_16 / max(after, 0.001),
        f"each doubling saves {_percent(to_16)} to 16, then {_percent(after)}",
        lambda value: to_16 >= 0.1 and value >= 3,
    )


def central_never_reaches_local(rows: Rows) -> Found:
    """SAN-128 does not beat local data with one server. 9b against 9a: dragonfly, Cache."""
    value = _servers(rows, "san", 128) / _servers(rows, "cache", 1)
    return Found(value, f"it takes {value:.2f} of that time", at_least(1))


def internal_beats_central(rows: Rows) -> Found:
    """I-A beats SAN. 9: dragonfly, at each number of servers."""
    counts = {row["san"] for row in where(_dragonfly(rows), strategy="san")}
    value = min(_servers(rows, "san", san) / _servers(rows, "internal", san) for san in counts)
    return Found(value, f"SAN takes {value:.2f} of its time at least", at_least(1))


def _of_np(rows: Rows) -> dict[str, float]:
    """10: dragonfly, total time; Internal with D, as the study does not say which."""
    here = where(_dragonfly(rows), strategy="internal")
    return {str(row["priority"]): row["total_s"] / total(here, priority="NP") for row in here}


def priority_is_fastest(rows: Rows) -> Found:
    """FP is best, and up to 17 % faster than NP. 10: dragonfly, Internal with D."""
    value = 1 - _of_np(rows)["FP"]
    return Found(value, _percent(value), some(0.17), True)


def equal_shares_are_best(rows: Rows) -> Found:
    """With parts of 50-50, BA is best. 10: dragonfly, Internal with D."""
    times = _of_np(rows)
    other = min(times["BA 95-5"], times["BA 5-95"]) - times["BA 50-50"]
    here = "; ".join(f"{name[3:]} takes {times[name]:.3f}" for name in times if name[0] == "B")
    return Found(other, f"of NP {here}", lambda value: value > 0.002)


FINDINGS: dict[int, dict[str, Judge]] = {
    6: {
        "memory hits bring up to 10 % below STG-64": hits_below_stg_64,
        "memory hits bring up to 10 % with STG-64": hits_with_stg_64,
        "misses cost less with CACHE than with remote data": hits_with_cache,
        "CACHE beats STG-64 clearly, half remote": cache_beats_stg_64,
        "perfect locality brings up to an order of magnitude": perfect_locality,
        "STG-1 is worst, more devices are better, CACHE is best": more_devices,
        "remote accesses cost very much": remote_accesses_cost,
        "affinity brings up to 20 % for STG-4 to STG-32": affinity_in_the_middle,
        "affinity brings nothing for STG-1": affinity_with_stg_1,
        "affinity brings nothing for SAN": affinity_with_san,
        "affinity brings nothing for CACHE": affinity_with_cache,
        "affinity brings nothing for STG-64 to 20 % remote": affinity_with_little_remote,
        "affinity brings something for STG-64 above that": affinity_with_much_remote,
    },
    7: {
        "more for communication helps slightly": more_for_communication,
        "BA 85-15 is not far from NP": shares_change_little,
        "FP brings more than 10 % with STG-16": priority_with_stg_16,
        "FP brings more than 10 % with STG-32": priority_with_stg_32,
        "FP brings more than 10 % with STG-64": priority_with_stg_64,
        "FP brings nothing with STG-64 and 0 % remote": priority_with_local_data,
    },
    8: {
        "Cache is best": cache_is_best,
        "Internal is some 44 % slower": internal_is_slower,
        "External is some 44 % slower": external_is_slower,
        "disperse or affinity matters little": access_matters_little,
        "networks agree": networks_agree,
    },
    9: {
        "I-A is flat from 8 to 16 servers on": internal_flattens,
        "Cache is flat from 8 to 16 servers on": cache_flattens,
        "one SAN server is an order of magnitude worse": one_server_is_far_worse,
        "SAN gets better to 16 servers, then more slowly": central_servers_help_to_16,
        "SAN-128 never reaches Cache with one server": central_never_reaches_local,
        "I-A beats SAN": internal_beats_central,
    },
    10: {
        "FP is up to 17 % faster than NP": priority_is_fastest,
        "of BA, 50-50 is best": equal_shares_are_best,
    },
}


def findings(figure: int, mode: str, rows: Rows) -> list[Row]:
    """The findings of a figure in the rows of one mode."""
    found: list[Row] = []
    for text, judge in FINDINGS[figure].items():
        result = judge(rows)
        found.append(
            {
                "figure": figure,
                "mode": mode,
                "finding": text,
                "number": result.number,
                "here": result.here,
                "holds": verdict(result.number, result.check, result.is_amount),
            }
        )
    return found
