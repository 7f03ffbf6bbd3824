"""From records to tables: who reaches which quality when, who is first, and why where that is not us.

The time to a level is that of the first look at or above it, without interpolation: it can only be too long.
"""

import math
from statistics import median
from typing import Any, NamedTuple

from xsoftmax.lab.report.peers import OURS

MANY_CLASSES = 1000
FACTOR = 2.0  # with many classes, ours shall be this many times as fast as the best peer
FULL_SOFTMAX = ("pytorch-full-softmax", "jax-full-softmax")
MISSING = ("not_installable", "not_applicable", "no_result", "not_run")


class Level(NamedTuple):
    """A quality to reach.

    Attributes
    ----------
    measure : str
        ``log_likelihood`` or ``accuracy``.
    share : float
        Relative distance to the best that anyone reaches.
    value : float
        What is to be reached; NaN if nobody has any.
    """

    measure: str
    share: float
    value: float

    @property
    def name(self) -> str:
        """Such as ``log_likelihood within 1 %``."""
        return f"{self.measure} within {self.share:.0%}".replace("%", " %")


SHARES = (
    ("log_likelihood", 0.01),
    ("log_likelihood", 0.05),
    ("log_likelihood", 0.2),
    ("accuracy", 0.01),
    ("accuracy", 0.05),
)


def crossing(curve: list[dict[str, Any]], level: Level) -> dict[str, Any] | None:
    """First point of a curve at or above a level; None if there is none."""
    for point in curve:
        value = point[level.measure]
        if value is not None and value >= level.value:
            return point
    return None


def seconds_to(runs: list[dict[str, Any]], level: Level) -> float | None:
    """Median over runs of the seconds to a level; None unless more than half reach it."""
    times = [point["seconds"] if (point := crossing(run["curve"], level)) else math.inf for run in runs]
    middle = median(times) if times else math.inf
    return middle if math.isfinite(middle) else None


def best(runs: list[dict[str, Any]], measure: str) -> float | None:
    """The best value on the way; None without any."""
    values = [point[measure] for run in runs for point in run["curve"] if point[measure] is not None]
    return max(values, default=None)


def levels(entrants: dict[str, dict[str, Any]]) -> list[Level]:
    """The levels of one data set, set by the best of all entrants."""
    runs = [run for entry in entrants.values() for run in entry["runs"]]
    found = []
    for measure, share in SHARES:
        top = best(runs, measure)
        value = math.nan if top is None else top - share * abs(top)
        found.append(Level(measure, share, value))
    return found


def seconds_per_epoch(runs: list[dict[str, Any]]) -> float | None:
    """Median over runs, each by its last point; None for who makes no epochs."""
    last = [run["curve"][-1] for run in runs if run["curve"]]
    paces = [point["seconds"] / point["epochs"] for point in last if point["epochs"]]
    return median(paces) if paces else None


def memory(runs: list[dict[str, Any]]) -> float | None:
    """Median over runs of the peak above the loaded data, in MB."""
    peaks = [(run["peak_bytes"] - run["loaded_bytes"]) / 1e6 for run in runs if run.get("peak_bytes")]
    return median(peaks) if peaks else None


def summarise(entrants: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Summarise one data set.

    Returns
    -------
    dict
        ``levels``; ``rows`` by entrant: seconds to each level, in their order, and the other measures; ``first``: for
        each level the first peer, the first of ours, and the ratio of their times, above 1 where ours is first.
    """
    steps = levels(entrants)
    rows = {}
    for name, entry in entrants.items():
        runs = entry["runs"]
        rows[name] = {
            "seconds": [seconds_to(runs, level) for level in steps],
            "log_likelihood": best(runs, "log_likelihood"),
            "accuracy": best(runs, "accuracy"),
            "seconds_per_epoch": seconds_per_epoch(runs),
            "memory_mb": memory(runs),
            "note": note(entry),
        }
    return {
        "levels": [level._asdict() for level in steps],
        "rows": rows,
        "first": [_first(rows, n) for n in range(len(steps))],
    }


def summaries(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Summarise all data sets that were there."""
    return {name: summarise(content["entrants"]) for name, content in found.items() if "entrants" in content}


def verdicts(found: dict[str, Any], summary: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Say, for each data set, whether the target is met, and why peers are first where they are."""
    return {
        name: [verdict(found[name], of_dataset), *reasons(found[name], of_dataset)]
        for name, of_dataset in summary.items()
    }


def note(entry: dict[str, Any]) -> str:
    """Why an entrant has no numbers, or what is to be known of them."""
    for key in MISSING:
        if entry.get(key) and not entry["runs"]:
            return f"{key.replace('_', ' ')}{' here' if key == 'not_installable' else ''}: {entry[key]}"
    parts = [entry["search_cut"]] if "search_cut" in entry else []
    for run in entry["runs"]:
        reasons = (run.get("no_log_likelihood"), run.get("diverged"))
        parts += [part for part in (*reasons, "" if run["status"] == "finished" else run["message"]) if part]
        if not run["curve"]:
            parts.append("no result")
        elif run["curve"][0]["seconds"] > run["budget_seconds"]:
            parts.append(f"its shortest training is longer than the {run['budget_seconds']:.3g} s of the others")
    return "; ".join(dict.fromkeys(parts))


def _first(rows: dict[str, dict[str, Any]], n: int) -> dict[str, Any]:
    peer = _fastest(rows, n, ours=False)
    ours = _fastest(rows, n, ours=True)
    ratio = rows[peer]["seconds"][n] / rows[ours]["seconds"][n] if peer and ours else None
    return {"peer": peer, "ours": ours, "ratio": ratio}


def _fastest(rows: dict[str, dict[str, Any]], n: int, ours: bool) -> str | None:
    times = {
        name: row["seconds"][n]
        for name, row in rows.items()
        if row["seconds"][n] is not None and name.startswith(OURS) == ours
    }
    return min(times, key=lambda name: times[name]) if times else None


def verdict(found: dict[str, Any], summary: dict[str, Any]) -> str:
    """Say whether the target is met on a data set: to be the first within 1 % of the best log-likelihood."""
    n_classes, rows, first = found["data"]["n_classes"], summary["rows"], summary["first"][0]
    if n_classes >= MANY_CLASSES:
        target = f"Target: ours within 1 % of the best log-likelihood {FACTOR:g} times as fast as the best peer."
        rival, needed = first["peer"], FACTOR
    else:
        target = "Target: ours within 1 % of the best log-likelihood as fast as full softmax in JAX or PyTorch."
        times = {name: rows[name]["seconds"][0] for name in FULL_SOFTMAX if name in rows and rows[name]["seconds"][0]}
        rival, needed = (min(times, key=lambda name: times[name]) if times else None), 1.0
    if first["ours"] is None and rival is None:
        return f"{target} Nobody to compare: {_who_reaches(rows)}"
    if first["ours"] is None:
        return f"{target} Not met: none of ours gets there; {_closest(rows)}"
    if rival is None:
        return f"{target} Met: of those it names, none but ours ({first['ours']}) gets there."
    ratio = rows[rival]["seconds"][0] / rows[first["ours"]]["seconds"][0]
    if ratio >= needed:
        return f"{target} Met: {first['ours']} is {ratio:.2g} times as fast as {rival}."
    return f"{target} Not met: {first['ours']} is {ratio:.2g} times as fast as {rival}."


def reasons(found: dict[str, Any], summary: dict[str, Any]) -> list[str]:
    """Say, for each level that a peer reaches first, by which epochs of which length."""
    said = []
    for n, (level, first) in enumerate(zip(summary["levels"], summary["first"], strict=True)):
        ours_wins = first["peer"] is None or (first["ratio"] or 0) >= 1
        if ours_wins:
            continue
        name = Level(**level).name.replace("_", "-")
        peer = _effort(found, summary, first["peer"], n)
        if first["ours"] is None:
            said.append(f"{name}: {peer}; none of ours gets there in its time.")
        else:
            said.append(f"{name}: {peer}; {_effort(found, summary, first['ours'], n)}.")
    return said


def _effort(found: dict[str, Any], summary: dict[str, Any], name: str, n: int) -> str:
    """How an entrant spent the time to a level."""
    level = Level(**summary["levels"][n])
    seconds = summary["rows"][name]["seconds"][n]
    points = [point for run in found["entrants"][name]["runs"] if (point := crossing(run["curve"], level))]
    epochs = [point["epochs"] for point in points if point["epochs"]]
    if not epochs:
        return f"{name} takes {seconds:.3g} s, in one training"
    return f"{name} takes {seconds:.3g} s, {median(epochs):.3g} epochs of {seconds / median(epochs):.3g} s"


def _closest(rows: dict[str, dict[str, Any]]) -> str:
    ours = {name: row["log_likelihood"] for name, row in rows.items() if name.startswith(OURS)}
    known = {name: value for name, value in ours.items() if value is not None}
    if not known:
        return "none has a log-likelihood."
    name = max(known, key=lambda name: known[name])
    return f"{name} comes closest, {known[name]:.4g} nats."


def _who_reaches(rows: dict[str, dict[str, Any]]) -> str:
    names = [name for name, row in rows.items() if row["seconds"][0] is not None]
    return f"only {', '.join(names)} get there." if names else "nobody has a log-likelihood."
