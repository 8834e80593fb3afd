"""What a record keeps of the file that a round of a benchmark writes: small tables."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lab.record.record import Cell, Row

Content = Mapping[str, Any]  # of bench-out/NAME.json
Found = Mapping[str, Any]  # a row of it
Summary = Callable[[Content], list[Row]]


def groups(rows: Iterable[Found], fields: Sequence[str]) -> dict[tuple[Any, ...], list[Found]]:
    found: dict[tuple[Any, ...], list[Found]] = {}
    for row in rows:
        found.setdefault(tuple(row[field] for field in fields), []).append(row)
    return found


def crossed(
    rows: Iterable[Found], fields: Sequence[str], across: str, value: str, heading: str = "case"
) -> list[Row]:
    """A row for each case, with a column for each value of the field `across`."""
    made: list[Row] = []
    for key, part in groups(rows, fields).items():
        cells: Row = {heading: ", ".join(map(str, key))}
        made.append(cells | {str(row[across]): row.get(value) for row in part})
    return made


def mean(values: Sequence[float]) -> float | None:
    return statistics.geometric_mean(values) if values else None


def shares(content: Content) -> list[Row]:
    """The worst of each kind of case; without an error where none is allowed or forbidden."""
    made: list[Row] = []
    keys = ["case", "servers", "target"]
    for (case, servers, target), part in groups(content["rows"], keys).items():
        judged = [row for row in part if row["allowed_percent"] is not None]
        made.append(
            {
                "case": f"{case}, {servers} server{'s' if servers > 1 else ''}, {target:g}:1",
                "largest error %": max((abs(row["error_percent"]) for row in judged), default=None),
                "least total / `fifo`": least(row.get("total_vs_fifo") for row in part),
            }
        )
    return made


def least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def nanoseconds(field: str) -> Summary:
    def summary(content: Content) -> list[Row]:
        flows = (1, 1000, 100_000)
        rows = [
            row | {"across": f"{row['flows']:,} flow{'s' if row['flows'] > 1 else ''}"}
            for row in content[field]
            if row["flows"] in flows
        ]
        return crossed(rows, ["policy"], "across", "ns_per_request", "ns per request")

    return summary


PLAIN = "priority_queue"  # a heap of all flows, without what a policy needs


def beside_a_plain_queue(content: Content) -> list[Row]:
    """How many times as long as a plain priority queue a policy takes, in the same run."""
    rows = nanoseconds("rows")(content)
    plain: Row = next((row for row in rows if row["ns per request"] == PLAIN), {})
    return [
        {"times a plain priority queue": row["ns per request"]}
        | {column: ratio_of(row[column], plain.get(column)) for column in row if "flow" in column}
        for row in rows
        if row is not plain
    ]


def ratio_of(own: Cell, other: Cell) -> float | None:
    return own / other if isinstance(own, float) and isinstance(other, float) and other else None


def beside_directory(content: Content) -> list[Row]:
    """Operations per second of mounts of a directory against the directory itself."""
    made: list[Row] = []
    rows = [row for row in content["rows"] if row["backend"] == "posix"]
    for (op, size, jobs), part in groups(rows, ["op", "size", "jobs"]).items():
        rates = {str(row["path"]): row["ops_per_s"] for row in part}
        below = rates.pop("below", None)
        load = f"{op} {size}, jobs: {jobs}".replace(" -", "")
        made.append(
            {"operations/s / the directory's": load}
            | {path: ratio_of(rate, below) for path, rate in rates.items()}
        )
    return made


def mounts(path: str) -> Summary:
    """Operations per second of one of our paths against the rival of the backend."""

    def summary(content: Content) -> list[Row]:
        rows = [
            row | {"load": f"{row['op']} {row['size']}, jobs: {row['jobs']}".replace(" -", "")}
            for row in content["rows"]
            if row["path"] == path and row.get("of_rival") is not None
        ]
        return crossed(rows, ["load"], "backend", "of_rival", "operations/s / rival's")

    return summary


def heavier_shares(keys: Sequence[str]) -> Summary:
    """The part in percent of the application with weight 3 of 4, by policy."""

    def summary(content: Content) -> list[Row]:
        rows = [
            row | {"percent": None if row["share"] is None else 100 * row["share"]}
            for row in content["rows"]
            if row["weight"] == 3
        ]
        return crossed(rows, keys, "policy", "percent", "% of the heavier application")

    return summary


def virtual_anticipation(content: Content) -> list[Row]:
    made: list[Row] = []
    for (think_times,), part in groups(content["rows"]["virtual"], ["think_times"]).items():
        states = [row["state"] for row in part]
        made.append(
            {
                "think times": think_times,
                "ratio within 5 %": states.count("within"),
                "loss at its bound": states.count("at bound"),
                "neither": states.count("neither"),
                "least total / `fifo`": least(row["total_vs_fifo"] for row in part),
            }
        )
    return made


def real_anticipation(kind: str) -> Summary:
    """The worst of the sizes, think times and servers of each number of requests in flight."""

    def summary(content: Content) -> list[Row]:
        made: list[Row] = []
        keys = ["clients", "in_flight_a", "in_flight_b", "weight"]
        rows = [{"clients": "model"} | row for row in content["rows"][kind]]
        for (clients, first, second, weight), part in groups(rows, keys).items():
            made.append(
                {
                    "in flight": f"{clients}, {first} and {second}, {weight}:1",
                    "without / feasible": least(ratio(row, "ratio_off") for row in part),
                    "with / feasible": least(ratio(row, "ratio_on") for row in part),
                    "total / `fifo`": least(row["total_vs_fifo"] for row in part),
                }
            )
        return made

    return summary


def ratio(row: Found, field: str) -> float:
    return row[field] / row["feasible_ratio"]


def cycles(content: Content) -> list[Row]:
    made: list[Row] = []
    for row in content["rows"]:
        below = f", {row['aggregators']} aggregators" if row["aggregators"] else ""
        made.append(
            {
                "cycle": f"{row['stages']:,} stages{below}, {row['cycle']}, {row['transport']}",
                "p50 ms": row["p50_ms"],
                "/ floor": row.get("of_floor"),
                "CPU / floor": row.get("cpu_of_floor"),
            }
        )
    return made


def by_aggregators(content: Content) -> list[Row]:
    """What was measured here; more aggregators are in virtual time alone."""
    return [
        {
            "cycle": f"{row['cycle']}, "
            + (f"{row['aggregators']} aggregators" if row["aggregators"] else "flat"),
            "all share, ms": row["shared_ms"],
            "a processor each, ms": row["composed_ms"],
            "virtual, ms": row["virtual_ms"],
        }
        for row in content["rows"]
        if row["shared_ms"] is not None
    ]


def loads_under_control(content: Content) -> list[Row]:
    return [
        {
            "jobs": f"{row['load']}, {row['control']}",
            "MiB/s": row["mib_per_s"],
            "idle %": row["idle_percent"],
            "mean slowdown": row["mean_slowdown"],
            "worst slowdown": row["worst_slowdown"],
        }
        for row in content["rows"]
    ]


def totals(content: Content) -> list[Row]:
    """The worst of all kinds of requests: the ratio / the feasible one, and the total."""
    made: list[Row] = []
    rows = [row for row in content["rows"] if row["policy"] == "total"]
    for (setup, striped, period), part in groups(rows, ["setup", "striped", "period_ms"]).items():
        off = [100 * abs(row["ratio"] / row["feasible_ratio"] - 1) for row in part]
        made.append(
            {
                "servers": f"{setup}, {'striped' if striped else 'unstriped'}, {period} ms",
                "ratio off by %": max(off),
                "least total / feasible": least(row["total_vs_feasible"] for row in part),
            }
        )
    return made


def victims(content: Content) -> list[Row]:
    def part(row: Found, field: str) -> Cell:
        return row[field] / row["entitled_mib_per_s"]

    return [
        {
            "attack": f"{row['attack']} ({row['protocol']})",
            "before": part(row, "victim_before_mib_per_s"),
            "mean during it": part(row, "victim_mean_mib_per_s"),
            "worst second": part(row, "victim_min_1s_mib_per_s"),
        }
        for row in content["rows"]
    ]


def events(content: Content) -> list[Row]:
    return [
        {
            "planned": f"{row['pending']:,}, {row['cancel_percent']} % cancel",
            "million events/s": row["events_per_second"] / 1e6,
        }
        for row in content["rows"]
    ]


WAYS = {
    "adaptbf": "each server alone, `adaptbf`",
    "sfq": "each server alone, `sfq`",
    "psfa": "coordinator `psfa`",
    "total": "coordinator `total`, delay",
}
CYCLE_MS = 100  # of a coordinator


def site(servers: int) -> Summary:
    """How a site of so many servers is shared."""

    def summary(content: Content) -> list[Row]:
        rows = [
            row
            for row in content["rows"]
            if row["servers"] == servers
            and row["cycle_ms"] in (None, CYCLE_MS)
            and row["away_jain"] is None
        ]
        return [
            {
                "divided by": WAYS[row["policy"]]
                + (f" {row['delay_s']:g} s" if row["delay_s"] else ""),
                "Jain's index": row["jain"],
                "worst part of its due": row["worst_ratio"],
                "idle %": row["idle_percent"],
            }
            for row in rows
        ]

    return summary


SHOWN = ("static", "adaptbf", "adaptbf-strict")
DEVICE_MIB_PER_S = 200
VIRTUAL = "virtual_mib_per_s"


def beside_none(field: str, whole: str = "") -> Summary:
    """What each application of AdapTBF's experiments has / what it has without control.

    `whole` is the same field of all jobs together.
    """

    def summary(content: Content) -> list[Row]:
        made: list[Row] = []
        for experiment in ("a", "b", "c"):
            facts = {control: runs[0] for control, runs in content["runs"][experiment].items()}
            fields = [name for name in facts["none"] if name.endswith(f" {field}") or name == whole]
            for name in fields:
                application = "all jobs" if name == whole else name.split(" ")[0]
                row: Row = {"experiment": f"{experiment}, {application}"}
                made.append(row | {each: facts[each][name] / facts["none"][name] for each in SHOWN})
        return made

    return summary


def share_errors(content: Content) -> list[Row]:
    """By how much the worst job is off its priority's share while all run."""
    runs = content["runs"]["a"]
    off = {control: 100 * runs[control][0]["share_error"] for control in ("none", *SHOWN)}
    return [{"experiment": "a, the worst job, %"} | off]


def pay_backs(content: Content) -> list[Row]:
    """What a lender's record says when it returns, and later; its rate beside that of job4."""
    rows: list[Row] = []
    for control in SHOWN[1:]:
        (facts,) = content["runs"]["c"][control]
        for name in ("job1", "job2", "job3"):
            after, borrower = facts[f"{name} mib_per_s_after"], facts[f"{name} borrower_mib_per_s"]
            rows.append(
                {
                    "lender": f"{control}, {name}",
                    "tokens lent at its return": facts[f"{name} record_at_return"],
                    "the least after it": facts[f"{name} least_record_after"],
                    "MiB/s / job4": after / borrower,
                }
            )
    return rows


def token_periods(content: Content) -> list[Row]:
    """The part of the server that AdapTBF uses, by the length of its period."""
    rows: list[Found] = []
    for case, runs in content["runs"]["d"].items():
        control, period = case.split(", ")
        for name, total in ((control, "total_mib_per_s"), (f"{control}, virtual", VIRTUAL)):
            part = runs[0][total] / DEVICE_MIB_PER_S
            rows.append({"period": period, "control": name, "part": part})
    return crossed(rows, ["period"], "control", "part", "period, before scaling")


def period_costs(content: Content) -> list[Row]:
    return [
        {
            "jobs": f"{row['jobs']:,}",
            "us per job": row["us_per_job"],
            "allocator, us per job": row["allocator_us_per_job"],
            "ms per period": row["ms_per_period"],
            "longest call us": row["longest_call_us"],
        }
        for row in content["runs"]["overhead"]
    ]


def takeovers(content: Content) -> list[Row]:
    return [
        {
            "the leader is": f"{row['leader']}, store: {row['store']}",
            "times": row["times"],
            "p50 ms": row["p50_ms"],
            "worst ms": row["worst_ms"],
            "changes lost": row["lost"],
        }
        for row in content["rows"]
    ]


def idle_requests(content: Content) -> list[Row]:
    return [
        {
            "nothing changes": f"{row['coordinators']} coordinators",
            "requests/s of each": row["requests_each"],
        }
        for row in content["idle"]
    ]


def members(content: Content) -> list[Row]:
    """The same number of members and of aggregators in one row."""
    made: list[Row] = []
    for (stages, count), part in groups(content["rows"], ["stages", "processes"]).items():
        kinds = {row["kind"]: row for row in part}
        made.append(
            {
                "processes": f"{count}, {stages:,} stages",
                "members: p50 ms": kinds["members"]["p50_ms"],
                "critical path ms": kinds["members"]["critical_path_ms"],
                "aggregators: p50 ms": kinds["aggregators"]["p50_ms"],
                "their critical path ms": kinds["aggregators"]["critical_path_ms"],
            }
        )
    return made


def led_again(content: Content) -> list[Row]:
    return [
        {
            "what happens": f"{row['event']}, of {row['processes']}",
            "times": row["times"],
            "p50 ms": row["p50_ms"],
            "worst ms": row["worst_ms"],
        }
        for row in content["again"]
    ]


def handed_over(row: Found) -> str:
    return f"{row['protocol']}, {row['policy']}"


def pauses(content: Content) -> list[Row]:
    return [
        {
            "proxy": handed_over(row),
            "paused ms, p50": row["paused_p50_ms"],
            "worst": row["paused_worst_ms"],
            "read ms, p50": row["read_p50_ms"],
            "worst read": row["read_worst_ms"],
        }
        for row in content["rows"]
    ]


def hand_over_faults(content: Content) -> list[Row]:
    return [
        {
            "proxy": handed_over(row),
            "hand-overs": row["times"],
            "verified blocks": row["verified_blocks"],
            "wrong blocks": row["wrong_blocks"],
            "errors, slots left": row["errors"] + row["slots_left"],
        }
        for row in content["rows"]
    ]


def shares_in_hand_overs(content: Content) -> list[Row]:
    return [
        {
            "proxy": handed_over(row),
            "2:1 off by %, second of a hand-over": row["off_percent"],
            "seconds between": row["off_else_percent"],
        }
        for row in content["rows"]
        if row["off_percent"] is not None
    ]


def of_vpfs(site: str, part: str, case: Sequence[str], columns: Mapping[str, str]) -> Summary:
    """A part of script/bench vpfs with servers and clients of `site`; headings by field."""

    def summary(content: Content) -> list[Row]:
        rows = content["found"].get(site, {"rows": []})["rows"]
        return [
            {"case": ", ".join(str(row[field]) for field in case)}
            | {heading: row[field] for field, heading in columns.items()}
            for row in rows
            if row["part"] == part
        ]

    return summary
