"""From records to tables: who reaches which quality when, who is first, and why where that is not us.

An entrant's quality is the test value of one look, the one with the best value on validation rows. The time to a
level is that of the first look at or above it, without interpolation: it can only be too long.
"""

import math
from statistics import median
from typing import Any, NamedTuple

from xsoftmax.lab.report.peers import OURS
from xsoftmax.lab.report.quality import RANKING, Quality, measures_of, memory, note, quality, seconds_per_epoch

MANY_CLASSES = 1000
FACTOR = 2.0  # with many classes, ours shall be this many times as fast as the best peer
FULL_SOFTMAX = ("pytorch-full-softmax", "jax-full-softmax")


class Level(NamedTuple):
    """A quality to reach.

    Attributes
    ----------
    measure : str
        ``log_likelihood`` or ``accuracy``; one of ``RANKING`` where rows have several labels.
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
        return f"{RANKING.get(self.measure, self.measure)} within {self.share:.0%}".replace("%", " %")


SHARES = (
    ("log_likelihood", 0.01),
    ("log_likelihood", 0.05),
    ("log_likelihood", 0.2),
    ("accuracy", 0.01),
    ("accuracy", 0.05),
    *((measure, 0.01) for measure in RANKING),
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


def levels(entrants: dict[str, dict[str, Any]]) -> list[Level]:
    """The levels of one data set, set by the best of all entrants."""
    found, measures = [], measures_of(entrants)
    for measure, share in SHARES:
        if measure not in measures:
            continue
        known = [each.value for entry in entrants.values() if (each := quality(entry["runs"], measure))]
        top = max(known, default=math.nan)
        found.append(Level(measure, share, top - share * abs(top)))
    return found


def summarise(entrants: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Summarise one data set.

    Returns
    -------
    dict
        ``measures``, as they are written; ``levels``; ``rows`` by entrant: its ``Quality`` by each measure, seconds
        to each level, in their order, and what it costs; ``first``: for each level the first peer, the first of ours,
        and the ratio of their times, above 1 where ours is first; ``peers_seconds``: what a run of a peer was given.
    """
    steps, measures = levels(entrants), measures_of(entrants)
    rows = {}
    for name, entry in entrants.items():
        runs = entry["runs"]
        rows[name] = {
            "seconds": [seconds_to(runs, level) for level in steps],
            **{measure: quality(runs, measure) for measure in measures},
            "seconds_per_epoch": seconds_per_epoch(runs),
            "memory_mb": memory(runs),
            "note": note(entry),
        }
    return {
        "measures": measures,
        "levels": [level._asdict() for level in steps],
        "rows": rows,
        "first": [_first(rows, n) for n in range(len(steps))],
        "peers_seconds": _given({name: entry for name, entry in entrants.items() if not name.startswith(OURS)}),
    }


def summaries(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Summarise all data sets that were there."""
    return {name: summarise(content["entrants"]) for name, content in found.items() if "entrants" in content}


def verdicts(found: dict[str, Any], summary: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """Say, for each data set, how ours stand in time to the best likelihood and in quality, and why peers lead."""
    said = {
        name: [verdict(found[name], each), *standing(each), *reasons(found[name], each)]
        for name, each in summary.items()
    }
    return {name: [sentence for sentence in sentences if sentence] for name, sentences in said.items()}


def standing(summary: dict[str, Any]) -> list[str]:
    """Say, by each measure, how the best of ours by validation rows compares with the best peer by test rows."""
    said = []
    for measure, shown in summary["measures"].items():
        known = {name: row[measure] for name, row in summary["rows"].items() if row[measure] is not None}
        ours = max((n for n in known if n.startswith(OURS)), key=lambda n: known[n].judged, default=None)
        peer = max((n for n in known if not n.startswith(OURS)), key=lambda n: known[n].value, default=None)
        if ours is None or peer is None:
            continue
        lead = known[ours].value - known[peer].value
        word = "ahead of" if lead > 0 else "level with" if lead == 0 else "behind"
        name = shown if measure in RANKING else shown.capitalize()
        said.append(f"{name}: ours {word} the best peer, {_at(ours, known)}, {_at(peer, known)}.")
    return said


def _at(name: str, known: dict[str, Quality]) -> str:
    return f"{name} {known[name].value:.4f} at {known[name].seconds:.3g} s".replace(" -", " −")


def _given(entrants: dict[str, dict[str, Any]]) -> float:
    """The seconds that final runs of entrants were given; 0 without any."""
    return max((run["budget_seconds"] for entry in entrants.values() for run in entry["runs"]), default=0.0)


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
    """Say whether the target is met on a data set: to be the first within 1 % of the best log-likelihood.

    Nothing is said where rows have several labels: there are targets of other measures.
    """
    if "log_likelihood" not in summary["measures"]:
        return ""
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
        peers = "no peer" if n_classes >= MANY_CLASSES else "neither"
        given = f"{peers} reached it in the {summary['peers_seconds']:.3g} s of a run"
        took = f"{first['ours']} takes {rows[first['ours']]['seconds'][0]:.3g} s"
        return f"{target} Open, neither met nor missed: {given}, so that there is no time to compare; {took}."
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
    known = {name: found for name, found in ours.items() if found is not None}
    if not known:
        return "none has a log-likelihood."
    name = max(known, key=lambda name: known[name].judged)
    return f"{name} comes closest, {known[name].value:.4g} nats."


def _who_reaches(rows: dict[str, dict[str, Any]]) -> str:
    names = [name for name, row in rows.items() if row["seconds"][0] is not None]
    return f"only {', '.join(names)} get there." if names else "nobody has a log-likelihood."
