"""What the study of ExaNeSt found, and whether it holds in the rows of script/bench placement.

Each finding is a row of its own, with the number that decides and a verdict. "Some 44 %" is that
number within a quarter of it; "up to 10 %" is more than nothing and no more than 10 %; "an order of
magnitude" is 10 times. All up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lab.report import Row

SAME = 0.02  # a difference that is none
SLIGHT = 0.05
FLAT = 0.1  # a curve is flat where it is at most so much above its end
COLUMNS = ["figure", "finding", "here", "holds"]
Ratios = Sequence[tuple[Row, float]]


def findings(figure: int, rows: Sequence[Row]) -> list[Row]:
    return {6: _figure_6, 7: _figure_7, 8: _figure_8, 9: _figure_9, 10: _figure_10}[figure](rows)


def some(number: float, value: float) -> bool:
    return 0.75 * value <= number <= 1.25 * value


def up_to(most: float, value: float) -> bool:
    return SAME < value <= most + 0.005


def order_of_magnitude(value: float) -> bool:
    return value >= 9.5


def _finding(figure: int, text: str, number: float, here: str, holds: bool) -> Row:
    return {"figure": figure, "finding": text, "number": number, "here": here, "holds": holds}


def _where(rows: Iterable[Row], **wanted: object) -> list[Row]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _ratios(
    rows: Sequence[Row], key: str, value: object, base: object, of: str = "run_s"
) -> Ratios:
    """Each row with `value`, and its time divided by that of the row with `base` instead.

    The two rows differ in `key` alone.
    """
    names = (
        "network",
        "strategy",
        "access",
        "stg",
        "san",
        "memory_percent",
        "remote_percent",
        "priority",
    )
    place = {tuple(row[name] for name in names): row for row in rows}
    found = []
    for row in _where(rows, **{key: value}):
        other = place.get(tuple(base if name == key else row[name] for name in names))
        if other is not None:
            found.append((row, row[of] / other[of]))
    return found


def _gain(pairs: Ratios) -> float:
    """The most that a row saves."""
    return max((1 - ratio for _, ratio in pairs), default=0.0)


def _change(pairs: Ratios) -> float:
    """The largest difference, either way."""
    return max((abs(1 - ratio) for _, ratio in pairs), default=0.0)


def _of(pairs: Ratios, wanted: Callable[[Row], bool]) -> Ratios:
    return [(row, ratio) for row, ratio in pairs if wanted(row)]


def _figure_6(rows: Sequence[Row]) -> list[Row]:
    stg = _where(rows, strategy="stg")
    hits = _ratios(_where(stg, access="disperse"), "memory_percent", 100, 0)
    few = _gain(_of(hits, lambda row: row["stg"] < 64))
    all_ = _gain(_of(hits, lambda row: row["stg"] == 64))
    away = max(
        (ratio for _, ratio in _ratios(_where(stg, access="disperse"), "remote_percent", 100, 0)),
        default=0.0,
    )
    affinity = _ratios(rows, "access", "affinity", "disperse")
    middle = _of(affinity, lambda row: row["stg"] in (4, 8, 16, 32))
    full = _of(affinity, lambda row: row["stg"] == 64)
    gain = _gain(middle)
    loss = max((ratio - 1 for _, ratio in middle), default=0.0)
    below = _gain(_of(full, lambda row: row["remote_percent"] <= 20))
    above = _gain(_of(full, lambda row: row["remote_percent"] > 20))
    nothing = {
        "STG-1": _change(_of(affinity, lambda row: row["stg"] == 1)),
        "SAN": _change(_of(affinity, lambda row: row["strategy"] == "san")),
        "CACHE": _change(_of(affinity, lambda row: row["strategy"] == "cache")),
    }
    return [
        _finding(
            6, "memory hits bring up to 10 % below STG-64", few, f"up to {few:.0%}", up_to(0.1, few)
        ),
        _finding(
            6,
            "memory hits bring up to 10 % with STG-64",
            all_,
            f"up to {all_:.0%}",
            up_to(0.1, all_),
        ),
        _finding(
            6,
            "perfect locality brings up to an order of magnitude",
            away,
            f"{away:.1f} times",
            order_of_magnitude(away),
        ),
        _finding(
            6,
            "affinity brings up to 20 % for STG-4 to STG-32",
            gain,
            f"up to {gain:.0%}; {max(loss, 0):.0%} lost at worst",
            up_to(0.2, gain),
        ),
        *(
            _finding(
                6,
                f"affinity brings nothing for {name}",
                change,
                f"{change:.1%} at most",
                change <= SAME,
            )
            for name, change in nothing.items()
        ),
        _finding(
            6,
            "affinity brings nothing for STG-64 with at most 20 % remote",
            below,
            f"up to {below:.0%}",
            below <= SAME,
        ),
        _finding(
            6,
            "affinity brings something for STG-64 above 20 % remote",
            above,
            f"up to {above:.0%}",
            above > SAME,
        ),
    ]


def _figure_7(rows: Sequence[Row]) -> list[Row]:
    priorities = dict.fromkeys(str(row["priority"]) for row in rows)
    shared = [
        pair
        for name in priorities
        if name.startswith("BA")
        for pair in _ratios(rows, "priority", name, "NP")
    ]
    mean = sum(abs(1 - ratio) for _, ratio in shared) / max(len(shared), 1)
    full = _ratios(rows, "priority", "FP", "NP")
    gains = {
        stg: _gain([(row, ratio) for row, ratio in full if row["stg"] == stg])
        for stg in (16, 32, 64)
        if _where(rows, stg=stg)
    }
    local = _change(_of(full, lambda row: row["stg"] == 64 and row["remote_percent"] == 0))
    return [
        _finding(
            7,
            "BA changes little",
            _change(shared),
            f"{_change(shared):.0%} at most, {mean:.1%} in the mean",
            _change(shared) <= SLIGHT,
        ),
        *(
            _finding(
                7, f"FP brings more than 10 % with STG-{stg}", gain, f"up to {gain:.0%}", gain > 0.1
            )
            for stg, gain in gains.items()
        ),
        _finding(
            7,
            "FP brings nothing with STG-64 and 0 % remote",
            local,
            f"{local:.1%} at most",
            local <= SAME,
        ),
    ]


def _figure_8(rows: Sequence[Row]) -> list[Row]:
    def against_cache(row: Row) -> float:
        (cache,) = _where(rows, network=row["network"], strategy="cache")
        return row["total_s"] / cache["total_s"]

    least = min(against_cache(row) for row in rows if row["strategy"] != "cache")
    found = [
        _finding(
            8, "cache is best", least, f"the next one takes {least:.2f} of its time", least >= 0.995
        )
    ]
    for strategy in ("internal", "external"):
        (row,) = _where(rows, network="dragonfly", strategy=strategy, access="disperse")
        slower = against_cache(row) - 1
        found.append(
            _finding(
                8,
                f"{strategy} is some 44 % slower in the dragonfly",
                slower,
                f"{slower:.0%}",
                some(0.44, slower),
            )
        )
    return found


def _figure_9(rows: Sequence[Row]) -> list[Row]:
    networks = list(dict.fromkeys(row["network"] for row in rows))

    def total(network: object, strategy: str, san: int) -> float:
        (row,) = _where(rows, network=network, strategy=strategy, san=san)
        return float(row["total_s"])

    counts = sorted({row["san"] for row in rows})
    one = min(total(network, "san", 1) / total(network, "san", 128) for network in networks)
    enough = max(
        next(
            count
            for count in counts
            if total(network, "san", count) <= (1 + FLAT) * total(network, "san", 128)
        )
        for network in networks
    )
    after_16 = max(total(network, "san", 16) / total(network, "san", 128) for network in networks)
    local = min(total(network, "san", 128) / total(network, "cache", 1) for network in networks)
    return [
        _finding(
            9,
            "one SAN server is an order of magnitude worse than many",
            one,
            f"{one:.1f} times at least",
            order_of_magnitude(one),
        ),
        _finding(
            9,
            "it flattens at 8 to 16 servers",
            enough,
            f"at {enough}; 16 take {after_16:.2f} of what 128 take at most",
            8 <= enough <= 16,
        ),
        _finding(
            9,
            "SAN-128 never reaches local data with one server",
            local,
            f"{local:.2f} of its time at least",
            local >= 1,
        ),
    ]


def _figure_10(rows: Sequence[Row]) -> list[Row]:
    gains = _ratios(rows, "priority", "FP", "NP", "total_s")
    most, least = _gain(gains), min((1 - ratio for _, ratio in gains), default=0.0)
    means = {
        name: sum(ratio for _, ratio in pairs) / len(pairs)
        for name in ("BA 95-5", "BA 50-50", "BA 5-95")
        if (pairs := _ratios(rows, "priority", name, "NP", "total_s"))
    }
    is_best = all(
        means["BA 50-50"] + SAME < mean for name, mean in means.items() if name != "BA 50-50"
    )
    return [
        _finding(
            10,
            "FP is up to 17 % faster than NP",
            most,
            f"{most:.0%} at most, {least:.0%} at least",
            some(0.17, most),
        ),
        _finding(
            10,
            "of BA, 50-50 is best",
            means["BA 50-50"],
            "; ".join(f"{name[3:]} takes {mean:.3f} of NP" for name, mean in means.items()),
            is_best,
        ),
    ]
