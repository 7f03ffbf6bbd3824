"""How good the advice is on data sets that it was not fitted on: each is left out in turn."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.advice.fit import best_of, fit_model
from xsoftmax.advice.learned import gaps, seconds_to
from xsoftmax.advice.model import CostModel
from xsoftmax.advice.ranking import TIMED, Budget, rank
from xsoftmax.advice.statistics import DatasetStatistics

GAPS = (0.25, 0.12, 0.05, 0.02)


class Unseen(NamedTuple):
    """One data set and quality: the advice's method, the best fixed one, and measured seconds to it of both.

    Infinite if the method did not get there in the time that was measured.
    """

    dataset: str
    gap: float
    advised: str
    seconds: float
    best: str
    best_seconds: float

    @property
    def ratio(self) -> float:
        """Time of the advised method, by that of the best."""
        return self.seconds / self.best_seconds


def left_out(measured: Mapping[str, Any]) -> list[Unseen]:
    """Ask for every data set and quality that some method reached, with a model that never saw the data set."""
    found = []
    for dataset in dict.fromkeys(curve["dataset"] for curve in measured["curves"]):
        own = [curve for curve in measured["curves"] if curve["dataset"] == dataset]
        others = [curve for curve in measured["curves"] if curve["dataset"] != dataset]
        model, statistics = fit_model({**measured, "curves": others}), DatasetStatistics(**own[0]["facts"])
        times = times_to(own)
        for gap in GAPS:
            best = min(times, key=lambda name: times[name][gap])
            if np.isfinite(times[best][gap]):
                advised = _advised(model, statistics, gap, own)
                found.append(Unseen(dataset, gap, advised, times[advised][gap], best, times[best][gap]))
    return found


def _advised(model: CostModel, statistics: DatasetStatistics, gap: float, curves: Sequence[Mapping[str, Any]]) -> str:
    """Choose as ``auto`` does, which times the first few candidates on the data themselves."""
    names = list(dict.fromkeys(curve["method"] for curve in curves))
    first = [prediction.method for prediction in rank(model, statistics, Budget(gap=gap), among=names)[:TIMED]]
    timed = {name: measured_seconds(curves, name) for name in first}
    return rank(model, statistics, Budget(gap=gap), among=names, timed=timed)[0].method


def measured_seconds(curves: Sequence[Mapping[str, Any]], method: str) -> float:
    """Measured seconds per sample of a method on one data set: the median over its curves."""
    last = [(curve["points"][-1], curve["facts"]) for curve in curves if curve["method"] == method]
    return float(
        np.median([seconds / epochs / statistics["n_samples"] for (epochs, seconds, _), statistics in last if epochs])
    )


def times_to(curves: Sequence[Mapping[str, Any]]) -> dict[str, dict[float, float]]:
    """Measured seconds of each method, at the rate that is first, to each of ``GAPS`` on one data set."""
    n_classes = curves[0]["facts"]["n_classes"]
    best = max(best_of(curve) for curve in curves)
    found: dict[str, dict[float, float]] = {}
    for curve in curves:
        points = np.array(curve["points"], float)
        gap, seconds = gaps(points[:, 2], n_classes, best), points[:, 1] + curve["setup_seconds"]
        known = found.setdefault(curve["method"], dict.fromkeys(GAPS, np.inf))
        known |= {level: min(known[level], seconds_to(level, seconds, gap)) for level in GAPS}
    return found
