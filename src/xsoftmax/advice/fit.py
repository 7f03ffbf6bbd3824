"""Fit the model of the advice to what ``benchmark learning`` measured."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from xsoftmax.advice.costs import fit_costs, relative_errors, setup_work, terms
from xsoftmax.advice.learned import LEVELS, Learned, Measured, gaps, reached
from xsoftmax.advice.model import CostModel, Costs
from xsoftmax.advice.statistics import DatasetStatistics
from xsoftmax.methods import Method, build_method

TUNED_AT = 0.05


def fit_model(measured: Mapping[str, Any]) -> CostModel:
    """Fit costs of all candidates, and read epochs to each level off the curves of their best rates."""
    candidates = measured["candidates"]
    costs = {name: _costs(build_method(name, settings), measured) for name, settings in candidates.items()}
    by_dataset = groupby(measured["curves"], key=lambda curve: curve["dataset"])
    experience = [learned_of(dataset, list(curves)) for dataset, curves in by_dataset]
    return CostModel(measured["machine"], candidates, costs, experience)


def points_of(measured: Mapping[str, Any], method: Method, sparse: bool) -> tuple[list[np.ndarray], list[float]]:
    """Counts of work of each measured shape and fit, and seconds per sample of one thread."""
    counts, seconds = [], []
    for each in measured["costs"]:
        statistics = DatasetStatistics(**each["facts"])
        if each["method"] == method.name and each["threads"] == 1 and statistics.sparse == sparse:
            counts.append(terms(method, statistics))
            seconds.append(float(np.median(each["seconds_per_sample"])))
    for each in measured["curves"]:
        statistics = DatasetStatistics(**each["facts"])
        epochs, spent, _ = each["points"][-1]
        if each["method"] == method.name and statistics.sparse == sparse and epochs > 0:
            counts.append(terms(method, statistics))
            seconds.append(spent / epochs / statistics.n_samples)
    return counts, seconds


def _costs(method: Method, measured: Mapping[str, Any]) -> Costs:
    dense, sparse = (fit_costs(*points_of(measured, method, kind)) for kind in (False, True))
    return Costs(dense, sparse, _per_thread(method.name, measured["costs"]), _setup(method, measured["curves"]))


def _setup(method: Method, curves: Sequence[Mapping[str, Any]]) -> float:
    """Seconds that the proposal's fit takes per unit of ``setup_work``: the median over data sets."""
    own = [curve for curve in curves if curve["method"] == method.name]
    return float(
        np.median(
            [curve["setup_seconds"] / setup_work(method, DatasetStatistics(**curve["facts"])) for curve in own]
            or [0.0]
        )
    )


def cost_errors(measured: Mapping[str, Any], model: CostModel) -> dict[str, float]:
    """Median over shapes of the absolute relative error of seconds per sample, by candidate."""
    found = {}
    for name, costs in model.costs.items():
        errors = [
            relative_errors(getattr(costs, kind), *points_of(measured, model.method(name), kind == "sparse"))
            for kind in ("dense", "sparse")
        ]
        found[name] = float(np.median(np.abs(np.concatenate(errors))))
    return found


def _per_thread(name: str, costs: Sequence[Mapping[str, Any]]) -> float:
    """What each further thread adds, in threads: the median over shapes; 0 to 1."""
    by_shape: dict[tuple[Any, ...], dict[int, float]] = {}
    for each in costs:
        if each["method"] == name:
            shape = tuple(each["facts"].values())
            by_shape.setdefault(shape, {})[each["threads"]] = float(np.median(each["seconds_per_sample"]))
    gains = [(times[1] / time - 1) / (n - 1) for times in by_shape.values() for n, time in times.items() if n > 1]
    return float(np.clip(np.median(gains), 0, 1)) if gains else 0.0


def learned_of(dataset: str, curves: Sequence[Mapping[str, Any]]) -> Learned:
    """Read what was learned off the curves of one data set.

    Epochs to a level are those at the rate that gets there first, as a pilot is to find it; the rate to begin the
    pilot with is that of the level ``TUNED_AT``, or of the best point if no rate gets there.
    """
    statistics, best = DatasetStatistics(**curves[0]["facts"]), max(best_of(curve) for curve in curves)
    epochs: dict[str, list[float]] = {}
    rates: dict[str, float] = {}
    measured: dict[str, Measured] = {}
    for name in dict.fromkeys(curve["method"] for curve in curves):
        own = [curve for curve in curves if curve["method"] == name]
        each = np.array([_reached(curve, statistics, best) for curve in own])
        epochs[name] = each.min(axis=0).tolist()
        there = each[:, LEVELS.index(TUNED_AT)]
        chosen = own[int(np.argmin(there))] if np.isfinite(there).any() else max(own, key=best_of)
        rates[name] = chosen["rate"]
        measured[name] = min(_nearest(curve, statistics, best) for curve in own)
    return Learned(dataset, statistics, epochs, rates, measured)


def _nearest(curve: Mapping[str, Any], statistics: DatasetStatistics, best: float) -> Measured:
    """Give the point of a curve that is nearest to the best."""
    points = np.array(curve["points"], float)
    gap = gaps(points[:, 2], statistics.n_classes, best)
    k = int(np.argmin(gap))
    return Measured(float(gap[k]), float(points[k, 0]), float(points[k, 1]) + curve["setup_seconds"])


def _reached(curve: Mapping[str, Any], statistics: DatasetStatistics, best: float) -> list[float]:
    points = np.array(curve["points"], float)
    return reached(points[:, 0], gaps(points[:, 2], statistics.n_classes, best))


def best_of(curve: Mapping[str, Any]) -> float:
    """The best validation log-likelihood (nats) of a curve."""
    values = [value for _, _, value in curve["points"] if value is not None]
    return max(values, default=float("-inf"))
