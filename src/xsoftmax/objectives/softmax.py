"""Exact softmax: the negative log-likelihood itself.

    L = log(1 + sum_{k != y} e^(s_k - s_y))

Cost of a step: all n_classes scores, so it takes the proposal ``all``. It is the optimum that the others are
held against.
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
from xsoftmax.kernels.protocol import gradient, loss
from xsoftmax.objectives import ScoredClasses, _arrays, objective


@objective(
    title="negative log-likelihood",
    target="softmax",
    excludes_true=True,
    needs_all_classes=True,
    sums_exponentials=True,
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
