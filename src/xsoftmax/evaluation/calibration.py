"""The temperature under which rows are likeliest: Guo et al., On calibration of modern neural networks, ICML 2017.

    max over t > 0 of  sum_i log p_i(t),    p_i(t) = softmax(t s_i)_{y_i}

t, the inverse temperature, multiplies all scores: their order stays. The likelihood is concave in t, its slopes are a
mean and a variance of scores under p(t), so that Newton's steps need a few passes over the scores and hold none.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.evaluation.part_of_model import PartOfModel, lowered
from xsoftmax.internal.compiled import njit
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.log_sum_exp import STRETCH, scan
from xsoftmax.kernels.mathematics import exp32
from xsoftmax.kernels.scores import Calibration
from xsoftmax.model import MOST_HELD, Model

# Rows that decide, at most, and how many of them may be more than have all their scores held at once: two numbers are
# fitted to them.
ROWS, FEWEST_ROWS = 2**12, 2**9
# Passes over the scores, at most; how far one step goes, as a factor; and which step is too short to be taken.
PASSES, FARTHEST, NEAREST = 40, 8.0, 1e-3


class Likelihood(NamedTuple):
    """Mean log-likelihood of rows at an inverse temperature, and its first two derivatives by that."""

    value: float
    slope: float
    curvature: float


class Sums(NamedTuple):
    """Per row: true class, its score, the highest score h so far, and sums of d^j e^(t d), d = s - h, j = 0, 1, 2."""

    y: np.ndarray
    true: np.ndarray
    highest: np.ndarray
    totals: np.ndarray


def rows_for(n_classes: int) -> int:
    """Give how many rows decide, at most: fewer where there are many classes, so that scores are computed once."""
    return min(ROWS, max(FEWEST_ROWS, MOST_HELD // n_classes))


def likelihood_at(model: Model, X: Any, y: np.ndarray, t: float, pool: ThreadPool | None = None) -> Likelihood:
    """Compute the mean log-likelihood at an inverse temperature; its parts are NaN if a score is not finite.

    Parameters
    ----------
    model : Model
        Of link softmax, not calibrated.
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32
    t : float
    pool : ThreadPool, optional
        Of threads; the result does not depend on how many.
    """
    n = len(y)
    sums, factor = Sums(y, np.zeros(n), np.full(n, -np.inf), np.zeros((n, 3))), np.float32(t)
    model.visit_scores(X, lambda block: add_block(block, factor, sums), pool)
    if isinstance(model, PartOfModel):
        sums = _joined(model, factor, sums)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        total, first, second = sums.totals.T
        true, mean = sums.true - sums.highest, first / total
        value = float(factor) * true - np.log(total)
        return Likelihood(value.mean(), (true - mean).mean(), -(second / total - mean**2).mean())


def _joined(model: PartOfModel, t: np.float32, own: Sums) -> Sums:
    """Make of sums over a rank's classes those over all."""
    highest, down = lowered(model.ranks, own.highest)
    zeroth, first, second = own.totals.T
    moments = [zeroth, first + down * zeroth, second + down * (2 * first + down * zeroth)]
    totals = np.exp(t * down)[:, None] * np.stack(moments, 1)
    return Sums(own.y, model.ranks.total(own.true), highest, model.ranks.total(totals))


def fit_calibration(model: Model, X: Any, y: np.ndarray, pool: ThreadPool | None = None) -> Calibration:
    """Find the temperature under which rows are likeliest; they are no less likely than without any (1).

    Parameters are as for ``likelihood_at``. Of scores that are not finite, or no rows, it is 1.
    """
    t = 1.0
    if not len(y):
        return Calibration(t)
    with model.holding(X):
        here = likelihood_at(model, X, y, t, pool)
        step = _newton(here, t)
        for _ in range(PASSES):
            following = t * math.exp(step)
            if not (math.isfinite(here.value) and abs(step) > NEAREST):
                break
            there = likelihood_at(model, X, y, following, pool)
            if there.value > here.value:
                t, here = following, there
                step = _newton(here, t)
            else:
                step /= 4
    return Calibration(t)


def _newton(at: Likelihood, t: float) -> float:
    """Give the logarithm of the factor to go by: Newton's step where that is near, a long one where it is far."""
    farthest = math.log(FARTHEST)
    if not (math.isfinite(at.slope) and math.isfinite(at.curvature)):
        return 0.0
    if at.curvature >= 0:
        return math.copysign(farthest, at.slope) if at.slope else 0.0
    relative = -at.slope / (at.curvature * t)
    return min(math.log1p(relative), farthest) if relative > 1 / FARTHEST - 1 else -farthest


@njit(**OPTIONS)
def add_block(block, t, sums):
    """Go on with the sums of a block's rows."""
    for b in range(block.scores.shape[0]):
        row, i = block.scores[b], block.first_row + b
        k, totals = sums.y[i] - block.first_class, sums.totals[i]
        if 0 <= k < row.size:
            sums.true[i] = row[k]
        seen = scan(row, np.float32(0))
        if seen.not_finite:
            totals[:] = np.nan
            continue
        highest = np.float64(seen.highest)
        if highest > sums.highest[i]:
            if totals[0] > 0:
                down = sums.highest[i] - highest
                share = math.exp(t * down)
                totals[2] = share * (totals[2] + down * (2 * totals[1] + down * totals[0]))
                totals[1] = share * (totals[1] + down * totals[0])
                totals[0] *= share
            sums.highest[i] = highest
        reference = np.float32(sums.highest[i])
        for first in range(0, row.size, STRETCH):
            stretch = row[first : first + STRETCH]
            of_zero = of_one = of_two = np.float32(0)
            for j in range(stretch.size):
                d = stretch[j] - reference
                e = exp32(t * d)
                of_zero += e
                of_one += d * e
                of_two += d * d * e
            totals[0] += np.float64(of_zero)
            totals[1] += np.float64(of_one)
            totals[2] += np.float64(of_two)
