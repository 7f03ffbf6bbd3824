"""What an entrant of the benchmark beside other programs comes to, and its costs: medians over its final runs."""

import math
from statistics import median
from typing import Any, NamedTuple

MEASURES = {"log_likelihood": "log-likelihood", "accuracy": "accuracy"}
# Where rows have several labels.
RANKING = {f"{name}_at_{k}": f"{name.upper()}@{k}" for name in ("p", "psp") for k in (1, 3, 5)}
MISSING = ("not_installable", "not_applicable", "no_result", "not_run")


class Quality(NamedTuple):
    """What an entrant comes to by one measure: medians over its runs, each at the look that counts.

    Attributes
    ----------
    value : float
        On test rows.
    seconds : float
        Of training, up to that look.
    judged : float
        What it was chosen by: the value on validation rows; that on test rows where a record has no other.
    """

    value: float
    seconds: float
    judged: float


def measures_of(entrants: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Tell by what entrants are measured on a data set, and how that is written: by ``RANKING`` where they were."""
    curves = [run["curve"] for entry in entrants.values() for run in entry["runs"]]
    return RANKING if any(RANKING.keys() <= point.keys() for curve in curves for point in curve) else MEASURES


def counted(curve: list[dict[str, Any]], measure: str) -> dict[str, Any] | None:
    """The look that counts: the best on validation rows; where none was looked at, the last one. None: no look."""
    points = [point for point in curve if point.get(measure) is not None]
    judged = [point for point in points if point.get(f"validation_{measure}") is not None]
    if judged:
        return max(judged, key=lambda point: point[f"validation_{measure}"])
    return points[-1] if points else None


def quality(runs: list[dict[str, Any]], measure: str, within: float = math.inf) -> Quality | None:
    """What an entrant comes to within some seconds; None unless it gets somewhere in all its runs that trained."""
    curves = [run["curve"] for run in runs if run["curve"]]
    cut = [[point for point in curve if point["seconds"] <= within] for curve in curves]
    points = [point for curve in cut if (point := counted(curve, measure))]
    if not points or len(points) < len(curves):
        return None
    judged = [point.get(f"validation_{measure}", point[measure]) for point in points]
    return Quality(median(p[measure] for p in points), median(p["seconds"] for p in points), median(judged))


def seconds_per_epoch(runs: list[dict[str, Any]]) -> float | None:
    """Median over runs, each by its last point; None for who makes no epochs."""
    last = [run["curve"][-1] for run in runs if run["curve"]]
    paces = [point["seconds"] / point["epochs"] for point in last if point["epochs"]]
    return median(paces) if paces else None


def memory(runs: list[dict[str, Any]]) -> float | None:
    """Median over runs of the peak above the loaded data and what compiling left, in MB."""
    known = [run for run in runs if run.get("peak_bytes")]
    peaks = [(run["peak_bytes"] - run["loaded_bytes"] - run.get("warm_up_bytes", 0)) / 1e6 for run in known]
    return median(peaks) if peaks else None


def note(entry: dict[str, Any]) -> str:
    """Why an entrant has no numbers, or what is to be known of them."""
    for key in MISSING:
        if entry.get(key) and not entry["runs"]:
            return f"{key.replace('_', ' ')}{' here' if key == 'not_installable' else ''}: {entry[key]}"
    parts = [entry["search_cut"]] if "search_cut" in entry else []
    ranked = measures_of({"": entry}) is RANKING
    for run in entry["runs"]:
        reasons = (None if ranked else run.get("no_log_likelihood"), run.get("diverged"))
        parts += [part for part in (*reasons, "" if run["status"] == "finished" else run["message"]) if part]
        if not run["curve"]:
            parts.append("no result")
        elif run["curve"][0]["seconds"] > run["budget_seconds"]:
            parts.append(f"its shortest training is longer than the {run['budget_seconds']:.3g} s of the others")
    return "; ".join(dict.fromkeys(parts))
