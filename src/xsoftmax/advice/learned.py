"""Epochs to a quality: on the measured data sets, and by these on others.

Quality is the gap to the best log-likelihood that any method reached on a data set, relative to that of guessing: 1
is a uniform guess, 0 the best.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from xsoftmax.advice.statistics import DatasetStatistics, likeness

LEVELS = (0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03, 0.02, 0.01, 0.005)
# A curve is continued by its last slope for so many times its epochs; what it does not reach then, it never does.
CONTINUED = 8.0
NEVER = 5.0


class Measured(NamedTuple):
    """How far a method came on one data set, whatever the rate: the measured point with the smallest gap.

    Attributes
    ----------
    gap : float
    epochs, seconds : float
        Until then; seconds of steps and of the proposal's fit.
    """

    gap: float
    epochs: float
    seconds: float


@dataclass(frozen=True)
class Learned:
    """What was measured on one data set.

    Attributes
    ----------
    dataset : str
    statistics : DatasetStatistics
    epochs : mapping of str to list of float
        By method: epochs to each of ``LEVELS``, infinite if it is not reached.
    rates : mapping of str to float
        By method: the learning rate that went with these.
    measured : mapping of str to Measured
        By method: where its fits came to, which ended after a few seconds. Epochs beyond are continued curves.
    """

    dataset: str
    statistics: DatasetStatistics
    epochs: Mapping[str, Sequence[float]]
    rates: Mapping[str, float]
    measured: Mapping[str, Measured] = field(default_factory=dict)


def gaps(log_likelihoods: np.ndarray, n_classes: int, best: float) -> np.ndarray:
    """Give the relative gaps of mean log-likelihoods (nats) to the best one; NaN counts as a guess."""
    guess = -np.log(n_classes)
    return (best - np.nan_to_num(log_likelihoods, nan=guess)) / (best - guess)


def reached(epochs: np.ndarray, gap: np.ndarray) -> list[float]:
    """Epochs to each of ``LEVELS``, between points by straight lines in logarithms."""
    seen = np.minimum.accumulate(gap)
    keep = np.r_[True, seen[1:] < seen[:-1]] & (epochs > 0)
    if keep.sum() < 2:  # it was best when it was first looked at
        return [float(epochs[0]) if seen[-1] <= level else np.inf for level in LEVELS]
    x, z = np.log(epochs[keep]), -np.log(np.maximum(seen[keep], 1e-6))
    half = max(2, x.size // 3)
    slope = (z[-1] - z[-half]) / max(x[-1] - x[-half], 1e-9)
    found = []
    for level in -np.log(LEVELS):
        at = np.interp(level, z, x)
        if level > z[-1]:
            at = x[-1] + (level - z[-1]) / slope if slope > 0 else np.inf
        found.append(float(np.exp(at)) if at <= np.log(CONTINUED * epochs[-1]) else np.inf)
    return found


def seconds_to(level: float, seconds: np.ndarray, gap: np.ndarray) -> float:
    """Seconds to a level, between measured points by straight lines in logarithms; infinite if it was not reached."""
    seen = np.minimum.accumulate(gap)
    if seen[-1] > level:
        return np.inf
    z = -np.log(np.maximum(seen, 1e-9))
    k = int(np.argmax(seen <= level))
    if k == 0:
        return float(seconds[0])
    return float(np.exp(np.interp(-np.log(level), z[k - 1 : k + 1], np.log(seconds[k - 1 : k + 1]))))


def predicted_epochs(experience: Sequence[Learned], method: str, statistics: DatasetStatistics) -> np.ndarray:
    """Epochs to each of ``LEVELS``: a mean of logarithms over the measured data sets, weighted by likeness."""
    known = [each for each in experience if method in each.epochs]
    weights = np.array([likeness(each.statistics, statistics) for each in known])
    epochs = np.array([each.epochs[method] for each in known])
    finite = np.isfinite(epochs)
    longest = np.max(np.where(finite, epochs, 1.0), axis=1, keepdims=True)
    logarithms = np.log(np.where(finite, epochs, NEVER * longest))
    found = np.exp(weights @ logarithms / weights.sum())
    mostly = weights @ finite >= 0.5 * weights.sum()
    return np.where(mostly, np.maximum.accumulate(found), np.inf)


def predicted_rate(experience: Sequence[Learned], method: str, statistics: DatasetStatistics) -> float:
    """Learning rate, likewise: a mean of what it moves a score by in a first step, rate times norm of a row."""
    known = [each for each in experience if method in each.rates]
    weights = np.array([likeness(each.statistics, statistics) for each in known])
    moves = [each.rates[method] * each.statistics.norm for each in known]
    return float(np.exp(weights @ np.log(moves) / weights.sum())) / statistics.norm
