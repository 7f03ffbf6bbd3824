"""Exact softmax: the negative log-likelihood itself.

    L = log(1 + sum_{k != y} e^(s_k - s_y))

Of a sample with labels P it is the cross-entropy L = sum_{k in P} log(sum_j e^s_j) - s_k (Yen et al. 2018, eq. 2),
or that over |P|. Cost of a step: all n_classes scores, so it takes the proposal ``all``. It is the optimum that the
others are held against.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit, overload, types
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.full_softmax import HAVE_SLOPE_ROWS, slope_row
from xsoftmax.kernels.log_sum_exp import scan, write_exp
from xsoftmax.kernels.mathematics import exp
from xsoftmax.kernels.protocol import gradient, gradient_of_set, loss, loss_of_set
from xsoftmax.objectives import ScoredClasses, _arrays, objective


@objective(
    title="negative log-likelihood",
    target="softmax",
    excludes_true=True,
    needs_all_classes=True,
    sums_exponentials=True,
    takes_sets=True,
)
class Softmax(NamedTuple):
    """No parameters."""

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        return _arrays.log_inner_sum(xp, draws)


MEMBER = Softmax
HAVE_SLOPE_ROWS.add(Softmax)


@implements(loss, Softmax)
def _loss(objective, state, score_true, log_q_true, draws):
    highest = score_true
    for j in range(draws.scores.size):
        highest = max(highest, draws.scores[j])
    total = math.exp(score_true - highest)
    for j in range(draws.scores.size):
        total += draws.weights[j] * exp(draws.scores[j] - highest)
    return math.log(total) + highest - score_true


@implements(gradient, Softmax)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    highest = score_true
    for j in range(draws.scores.size):
        highest = max(highest, draws.scores[j])
    of_true = exp(score_true - highest)
    total = of_true
    for j in range(draws.scores.size):
        draws.out[j] = draws.weights[j] * exp(draws.scores[j] - highest)
        total += draws.out[j]
    others = total - total  # zero, in the precision of the scores
    for j in range(draws.scores.size):
        draws.out[j] /= total
        others += draws.out[j]
    return -others


@implements(loss_of_set, Softmax)
def _loss_of_set(objective, share, n_true, places):
    log_sum, total = _log_sum(places.scores), 0.0
    for t in range(n_true):
        total += log_sum - places.scores[t]
    return share * total


@implements(gradient_of_set, Softmax)
def _gradient_of_set(objective, share, n_true, places):
    log_sum, n = places.scores.dtype.type(_log_sum(places.scores)), places.scores.dtype.type(n_true)
    for j in range(places.scores.size):
        places.out[j] = share * n * exp(places.scores[j] - log_sum)
    for t in range(n_true):
        places.out[t] -= share


@njit(**OPTIONS)
def _log_sum(scores):
    highest, total = scores.max(), 0.0
    for j in range(scores.size):
        total += exp(scores[j] - highest)
    return math.log(total) + highest


@overload(slope_row)
def _slope_row(objective, rate, y, state, scores, scratch, ones, classes):
    if objective.instance_class is Softmax and scores.dtype == types.float32:
        return lambda objective, rate, y, state, scores, scratch, ones, classes: subtract_truth(scores, y)


@njit(**OPTIONS)
def subtract_truth(scores, y):
    """Replace a row of float32 scores by probabilities, minus 1 for class ``y``: all slopes of the loss.

    That of ``y`` is minus the sum of the others, so that nothing cancels.
    """
    highest = scan(scores, np.float32(0)).highest
    of_true = exp(scores[y] - highest)
    scores[y] = np.float32(-np.inf)
    others = write_exp(scores, highest)
    total = others + np.float64(of_true)
    factor = np.float32(1 / total)
    for k in range(scores.size):
        scores[k] *= factor
    scores[y] = -np.float32(others / total)
