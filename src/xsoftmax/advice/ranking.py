"""Candidates by how good they will be at the end of a budget, or by when they will be good enough."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from xsoftmax.advice.costs import seconds_per_sample, setup_work
from xsoftmax.advice.learned import LEVELS, Learned, predicted_epochs, predicted_rate
from xsoftmax.advice.model import CostModel
from xsoftmax.advice.statistics import SAME, DatasetStatistics, likeness
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.text import duration

# Of a budget, all that a choice may take: each of the first few candidates is timed, then a pilot tunes the rate.
PILOT_SHARE = 0.1
TIMED, TIMING_SHARE = 3, 0.01
LEAST_TIMED = 0.01  # seconds


class Budget(NamedTuple):
    """What a fit may take, or must reach; one of the three is given.

    Attributes
    ----------
    seconds, epochs : float or None
    gap : float or None
        Relative gap to the best log-likelihood (see ``learned``) at which a fit is good enough.
    """

    seconds: float | None = None
    epochs: float | None = None
    gap: float | None = None


class Prediction(NamedTuple):
    """Of one method.

    Attributes
    ----------
    method : str
    rate : float
        Learning rate to begin the pilot with.
    seconds_per_epoch : float
    setup_seconds : float
        Of the proposal's fit.
    gap : float
        At the end of the budget, or the one asked for.
    seconds : float
        Until then, setup included, at most the budget; infinite if it is not to be expected.
    """

    method: str
    rate: float
    seconds_per_epoch: float
    setup_seconds: float
    gap: float
    seconds: float


def rank(
    model: CostModel,
    statistics: DatasetStatistics,
    budget: Budget,
    threads: int = 1,
    among: Sequence[str] | None = None,
    timed: Mapping[str, float] | None = None,
) -> list[Prediction]:
    """Predict all candidates, the best first.

    ``timed`` has seconds per sample of those that were timed on the data themselves.

    Raises
    ------
    InputError
        If one of ``among`` is not a candidate, or the gap is smaller than any that was measured.
    """
    if budget.gap is not None and not LEVELS[-1] <= budget.gap < 1:
        raise InputError(f"a gap of {budget.gap:g} cannot be predicted; ask for {LEVELS[-1]:g} or more, below 1")
    for name in among or ():
        if name not in model.candidates:
            raise InputError(f"auto: nothing was measured of {name!r}; known: {', '.join(model.candidates)}")
    per_sample = {name: predicted_seconds(model, name, statistics, threads) for name in among or model.candidates}
    per_sample |= {name: seconds for name, seconds in (timed or {}).items() if name in per_sample}
    found = [_predict(model, name, statistics, budget, seconds) for name, seconds in per_sample.items()]
    key = (lambda p: (p.seconds, p.gap)) if budget.gap is not None else (lambda p: (p.gap, p.seconds))
    return sorted(found, key=key)


def predicted_seconds(model: CostModel, name: str, statistics: DatasetStatistics, threads: int = 1) -> float:
    """Predict the seconds that a sample takes."""
    method, costs = model.method(name), model.costs[name]
    faster = 1 + (threads - 1) * costs.per_thread
    return seconds_per_sample(costs.sparse if statistics.sparse else costs.dense, method, statistics) / faster


def _predict(
    model: CostModel, name: str, statistics: DatasetStatistics, budget: Budget, per_sample: float
) -> Prediction:
    per_epoch, setup = (
        per_sample * statistics.n_samples,
        model.costs[name].setup * setup_work(model.method(name), statistics),
    )
    epochs = predicted_epochs(model.experience, name, statistics)
    rate = predicted_rate(model.experience, name, statistics)
    if budget.gap is not None:
        return Prediction(name, rate, per_epoch, setup, budget.gap, setup + per_epoch * _at(budget.gap, epochs))
    if budget.epochs is not None:
        allowed = budget.epochs
    elif budget.seconds is not None:
        allowed = max(0.0, (1 - PILOT_SHARE) * budget.seconds - setup) / max(per_epoch, 1e-12)
    else:
        raise InputError("budget: give seconds, epochs or a gap")
    gap = _gap_after(allowed, epochs)
    return Prediction(name, rate, per_epoch, setup, gap, setup + per_epoch * min(allowed, _at(gap, epochs)))


def _gap_after(allowed: float, epochs: np.ndarray) -> float:
    """Gap after so many epochs, between levels by straight lines in logarithms; at best the last level."""
    known = np.isfinite(epochs)
    if not known.any():
        return 1.0
    x, z = np.log(epochs[known]), np.log(np.array(LEVELS)[known])
    if np.log(max(allowed, 1e-12)) < x[0]:  # before the first level: a straight line from a guess
        return float(1 + (np.exp(z[0]) - 1) * allowed / np.exp(x[0]))
    return float(np.exp(np.interp(np.log(allowed), x, z)))


def _at(gap: float, epochs: np.ndarray) -> float:
    """Epochs to a gap, likewise."""
    known = np.isfinite(epochs)
    levels = np.array(LEVELS)[known]
    if not known.any() or gap < levels[-1] * (1 - 1e-9):
        return np.inf
    if gap >= levels[0]:
        return float(epochs[known][0] * (1 - gap) / (1 - levels[0]))
    return float(np.exp(np.interp(-np.log(gap), -np.log(levels), np.log(epochs[known]))))


def explain(
    model: CostModel,
    statistics: DatasetStatistics,
    budget: Budget,
    ranking: Sequence[Prediction],
    timed: Mapping[str, float] | None = None,
) -> str:
    """Say in a sentence what was chosen, from which measurements, and that these are of other data."""
    best = ranking[0]
    parts = [f"{best.method}: a guess for {statistics}, from short fits of {len(model.experience)} other data sets"]
    if known := [each for each in model.experience if best.method in each.measured]:
        likest = max(known, key=lambda each: likeness(each.statistics, statistics))
        parts.append(
            f"the most like it is {likest.dataset} ({compared(statistics, likest.statistics)}); "
            f"{_there(best, likest, len(set(likest.measured) - set(model.origins)))}"
        )
    by_formula = model.origins.get(best.method, f"by a formula for {model.machine['processor']}")
    where = "timed here" if best.method in (timed or {}) else by_formula
    parts.append(f"an epoch takes about {duration(best.seconds_per_epoch)}, {where}")
    if budget.gap is not None:
        came = f"came within {percent(budget.gap)}"
        epochs = f"after as many epochs as take {duration(best.seconds)} here"
        parts.append(f"others {came} {epochs}" if np.isfinite(best.seconds) else f"others never {came}")
    return "; ".join([*parts, "how good it becomes on these data is not known before it is trained"])


def _there(prediction: Prediction, learned: Learned, n_candidates: int) -> str:
    """Say how far a method came on a measured data set, of so many."""
    gap, epochs, seconds = learned.measured[prediction.method]
    came = f"came within {percent(gap)} of the best validation log-likelihood" if gap else "was the best"
    guess = ", where a uniform guess is 100 %," if gap else ""
    return f"there it {came} of {n_candidates} candidates{guess} after {epochs:.3g} epochs, {duration(seconds)}"


def compared(statistics: DatasetStatistics, others: DatasetStatistics) -> str:
    """Say how far apart two data sets are in their sizes."""
    ratios = {
        "rows": statistics.n_samples / max(1, others.n_samples),
        "classes": statistics.n_classes / max(1, others.n_classes),
        "entries a row": statistics.n_entries / max(1.0, others.n_entries),
    }
    if statistics.sparse == others.sparse and all(1 / SAME <= ratio <= SAME for ratio in ratios.values()):
        return "of the same sizes"
    parts = [f"{times(ratio)} the {size}" for size, ratio in ratios.items()]
    if statistics.sparse != others.sparse:
        parts.append("sparse rows, not dense ones" if statistics.sparse else "dense rows, not sparse ones")
    far = likeness(statistics, others) < math.exp(-0.5)
    return f"yours has {', '.join(parts)}{', which is far from all that was measured' if far else ''}"


def times(ratio: float) -> str:
    """Write a factor with two digits: "0.59 times", "1,000 times"."""
    return f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.2g} times"


def percent(gap: float) -> str:
    """Write a gap with two digits."""
    return f"{100 * gap:.2g} %" if gap < 0.995 else "100 %"
