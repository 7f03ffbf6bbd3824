"""Importance sampling: Bengio and Senecal 2008, as the baseline of Fagan and Iyengar 2018, section 4.

    L = log(e^(s_y - log q_y) + sum_j e^(s_j - log q_j)) - (s_y - log q_y),      k_j ~ q

A softmax over the true class and the drawn ones, every score less its log-probability under the proposal. A draw
of the true class is neither excluded nor masked: it counts as any other. Biased: the mean gradient is that of
nothing one could name. The inner sum is about n_sampled sum_k e^(s_k), to which the true class's own e^(s_y) / q_y
is added: until n_sampled is well above 1 / q_y, the true class looks likelier than it is.

``loss`` over all classes is the value at the expected inner sum, log(e^(s_y) / q_y + n_sampled sum_k e^(s_k)) -
(s_y - log q_y): no step sees it, and it lies above the mean loss. Cost of a step: n_sampled + 1 rows.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.data.training_set import TrainingSet
from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.mathematics import exp
from xsoftmax.kernels.protocol import gradient, loss
from xsoftmax.objectives import ScoredClasses, _arrays, objective

_description = objective(title="importance sampling loss", target="nothing", excludes_true=False, uses_log_q=True)


@_description
class ImportanceSampling(NamedTuple):
    """No parameters."""

    def fit(self, data: TrainingSet) -> "SumOfDraws":
        """Take over how many classes the proposal draws for a step."""
        return SumOfDraws(data.n_sampled)


MEMBER = ImportanceSampling


@_description
class SumOfDraws(NamedTuple):
    """What the kernels see: how many draws the inner sum has, which their weights, a mean's, do not tell."""

    n_sampled: int

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        reference = draws.score_true - draws.log_q_true
        return _arrays.log_sum(xp, reference, draws.scores - draws.log_q, self.n_sampled * draws.weights) - reference


@implements(loss, SumOfDraws)
def _loss(objective, state, score_true, log_q_true, draws):
    reference = score_true - log_q_true
    return _log_sum(objective, reference, draws) - np.float64(reference)


@implements(gradient, SumOfDraws)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    log_sum = _log_sum(objective, score_true - log_q_true, draws)
    shift, n = draws.scores.dtype.type(log_sum), draws.scores.dtype.type(objective.n_sampled)
    for j in range(draws.scores.size):
        draws.out[j] = n * draws.weights[j] * exp(draws.scores[j] - draws.log_q[j] - shift)
    return exp(score_true - log_q_true - shift) - draws.scores.dtype.type(1)


@njit(**OPTIONS)
def _log_sum(objective, reference, draws):
    """Log of e^reference + n_sampled sum_j weights[j] e^(s_j - log q_j), float64.

    The weights of n_sampled draws are 1 / n_sampled, those of all classes are q.
    """
    highest = reference
    for j in range(draws.scores.size):
        if draws.weights[j] > 0:
            highest = max(highest, draws.scores[j] - draws.log_q[j])
    total = math.exp(np.float64(reference - highest))
    for j in range(draws.scores.size):
        if draws.weights[j] > 0:
            total += objective.n_sampled * draws.weights[j] * exp(draws.scores[j] - draws.log_q[j] - highest)
    return math.log(total) + np.float64(highest)
