"""What the study of ExaNeSt found, and whether it holds in the rows of script/bench placement."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bench.report import Row

SAME = 0.02  # a difference that is none
COLUMNS = ["figure", "finding", "here", "holds"]


def findings(figure: int, rows: Sequence[Row]) -> list[Row]:
    return {6: _figure_6, 7: _figure_7, 8: _figure_8, 9: _figure_9, 10: _figure_10}[figure](rows)


def _finding(figure: int, text: str, here: str, holds: bool) -> Row:
    return {"figure": figure, "finding": text, "here": here, "holds": holds}


def _where(rows: Iterable[Row], **wanted: object) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _ratios(rows: Sequence[Row], key: str, value: object, base: object, of: str = "run_s") -> list[tuple[Row, float]]:
    """Each row with `value`, and its time by that of the row that differs in `key` alone, which is `base` there."""
    names = ("network", "strategy", "access", "stg", "san", "memory_percent", "remote_percent", "priority")
    place = {tuple(row[name] for name in names): row for row in rows}
    found = []
    for row in _where(rows, **{key: value}):
        other = place.get(tuple(base if name == key else row[name] for name in names))
        if other is not None:
            found.append((row, row[of] / other[of]))
    return found


def _most(pairs: Iterable[tuple[Row, float]], measure: Callable[[float], float]) -> float:
    return max((measure(ratio) for _, ratio in pairs), default=0.0)


def _figure_6(rows: Sequence[Row]) -> list[Row]:
    stg = _where(rows, strategy="stg")
    hits = _ratios(_where(stg, access="disperse"), "memory_percent", 100, 0)
    few = _most([pair for pair in hits if pair[0]["stg"] < 64], lambda ratio: 1 - ratio)
    all_ = _most([pair for pair in hits if pair[0]["stg"] == 64], lambda ratio: 1 - ratio)
    away = _most(_ratios(_where(stg, access="disperse"), "remote_percent", 100, 0), lambda ratio: ratio)
    affinity = _ratios(rows, "access", "affinity", "disperse")
    middle = [pair for pair in affinity if pair[0]["strategy"] == "stg" and pair[0]["stg"] in (4, 8, 16, 32)]
    none = [pair for pair in affinity if pair[0]["strategy"] != "stg" or pair[0]["stg"] == 1]
    full = [pair for pair in affinity if pair[0]["stg"] == 64]
    below = _most([pair for pair in full if pair[0]["remote_percent"] <= 20], lambda ratio: 1 - ratio)
    above = _most([pair for pair in full if pair[0]["remote_percent"] > 20], lambda ratio: 1 - ratio)
    gain, loss = _most(middle, lambda ratio: 1 - ratio), _most(middle, lambda ratio: ratio - 1)
    nothing = _most(none, lambda ratio: abs(1 - ratio))
    return [
        _finding(6, "memory hits bring up to 10 %", f"up to {few:.0%} below STG-64, {all_:.0%} with it", few <= 0.15),
        _finding(6, "perfect locality brings up to an order of magnitude", f"{away:.1f} times", away >= 5),
        _finding(6, "affinity brings up to 20 % for STG-4 to STG-32", f"up to {gain:.0%}; {loss:.0%} lost at worst",
                 0.1 <= gain <= 0.3),
        _finding(6, "affinity brings nothing for STG-1, SAN and CACHE", f"{nothing:.1%} at most", nothing <= SAME),
        _finding(6, "affinity brings something for STG-64 only above 20 % remote",
                 f"up to {below:.0%} at 20 % and below, {above:.0%} above", below <= SAME < above),
    ]


def _figure_7(rows: Sequence[Row]) -> list[Row]:
    priorities = dict.fromkeys(row["priority"] for row in rows)
    shared = [abs(1 - ratio) for name in priorities if str(name).startswith("BA") for _, ratio in _ratios(rows, "priority", name, "NP")]
    full = _ratios(rows, "priority", "FP", "NP")
    many = _most([pair for pair in full if pair[0]["stg"] >= 16], lambda ratio: 1 - ratio)
    local = _most([pair for pair in full if pair[0]["stg"] == 64 and pair[0]["remote_percent"] == 0], lambda ratio: abs(1 - ratio))
    return [
        _finding(7, "BA changes little", f"{max(shared):.0%} at most, {sum(shared) / len(shared):.1%} in the mean",
                 sum(shared) / len(shared) <= 0.05),
        _finding(7, "FP brings more than 10 % with STG-16, 32 and 64", f"up to {many:.0%}", many > 0.1),
        _finding(7, "FP brings nothing with STG-64 and 0 % remote", f"{local:.1%} at most", local <= SAME),
    ]


def _figure_8(rows: Sequence[Row]) -> list[Row]:
    def slowness(network: object, strategy: str) -> float:
        (cache,) = _where(rows, network=network, strategy="cache")
        return min(row["total_s"] / cache["total_s"] for row in _where(rows, network=network, strategy=strategy)
                   if row["access"] == "disperse")

    networks = dict.fromkeys(row["network"] for row in rows)
    least = min(row["total_s"] / cache["total_s"] for network in networks for (cache,) in [_where(rows, network=network, strategy="cache")]
                for row in _where(rows, network=network) if row["access"] != "local")
    inside, outside = slowness("dragonfly", "internal"), slowness("dragonfly", "external")
    return [
        _finding(8, "cache is best", f"the next one takes {least:.2f} of its time", least >= 1 - SAME),
        _finding(8, "internal and external are some 44 % slower in the dragonfly",
                 f"internal {inside - 1:.0%}, external {outside - 1:.0%}", all(1.2 <= ratio <= 1.7 for ratio in (inside, outside))),
    ]


def _figure_9(rows: Sequence[Row]) -> list[Row]:
    networks = list(dict.fromkeys(row["network"] for row in rows))

    def total(network: object, strategy: str, san: int) -> float:
        (row,) = _where(rows, network=network, strategy=strategy, san=san)
        return float(row["total_s"])

    one = min(total(network, "san", 1) / total(network, "san", 128) for network in networks)
    flat = max(total(network, "san", 16) / total(network, "san", 128) for network in networks)
    local = min(total(network, "san", 128) / total(network, "cache", 1) for network in networks)
    return [
        _finding(9, "one SAN server is an order of magnitude worse than many", f"{one:.1f} times at least", one >= 5),
        _finding(9, "it flattens at 8 to 16 servers", f"16 take {flat:.2f} of what 128 take at most", flat <= 1.25),
        _finding(9, "SAN-128 never reaches local data with one server", f"{local:.2f} of its time at least", local >= 1),
    ]


def _figure_10(rows: Sequence[Row]) -> list[Row]:
    gains = [1 - ratio for _, ratio in _ratios(rows, "priority", "FP", "NP", "total_s")]
    shared = {name: sum(ratio for _, ratio in _ratios(rows, "priority", name, "NP", "total_s")) for name in
              ("BA 95-5", "BA 50-50", "BA 5-95")}
    best = min(shared, key=lambda name: shared[name])
    return [
        _finding(10, "FP is up to 17 % faster than NP", f"{max(gains):.0%} at most, {min(gains):.0%} at least",
                 0.05 <= max(gains) <= 0.3),
        _finding(10, "of BA, 50-50 is best", f"{best}", best == "BA 50-50"),
    ]
