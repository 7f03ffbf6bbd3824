"""Negative sampling: Bamler and Mandt, Extreme classification via adversarial softmax approximation, ICLR 2020.

    L = softplus(-s_y) + r (s_y + log q_y)^2 + E_{k ~ q} [softplus(s_k) + r (s_k + log q_k)^2]        (eq. 6)

The true class stays among the negatives: Theorem 1 needs it. At the optimum of a flexible model the scores are
those of the softmax less log q, so prediction adds log q (eq. 5). Cost of a step: n_sampled + 1 rows.
"""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import PART
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.mathematics import sigmoid, softplus
from xsoftmax.kernels.protocol import gradient, loss
from xsoftmax.objectives import ScoredClasses, _arrays, objective


@objective(title="negative sampling loss", target="loss", excludes_true=False, uses_log_q=True, adds_log_q=True)
class NegativeSampling(NamedTuple):
    """Parameters: ``regularizer``, the paper's lambda; ``regularizes_log_q``, whether log q is in its square.

    The published code leaves log q out of it for uniform and frequency draws.
    """

    regularizer: float = 0.0
    regularizes_log_q: bool = True

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""

        def penalty(scores: Any, log_q: Any) -> Any:
            return self.regularizer * (scores + log_q if self.regularizes_log_q else scores) ** 2

        of_true = _arrays.softplus(xp, -draws.score_true) + penalty(draws.score_true, draws.log_q_true)
        of_others = _arrays.softplus(xp, draws.scores) + penalty(draws.scores, draws.log_q)
        return of_true + xp.sum(draws.weights * of_others, axis=1)


MEMBER = NegativeSampling


@implements(loss, NegativeSampling)
def _loss(objective, state, score_true, log_q_true, draws):
    regularized = _regularized(objective, score_true, log_q_true)
    total = softplus(-score_true) + objective.regularizer * regularized**2
    for j in range(draws.scores.size):
        if draws.weights[j] > 0:
            penalty = objective.regularizer * _regularized(objective, draws.scores[j], draws.log_q[j]) ** 2
            total += draws.weights[j] * (softplus(draws.scores[j]) + penalty)
    return total


@implements(gradient, NegativeSampling)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    slope = np.float32(2 * objective.regularizer)
    for j in range(draws.scores.size):
        regularized = _regularized(objective, draws.scores[j], draws.log_q[j])
        draws.out[j] = draws.weights[j] * (sigmoid(draws.scores[j]) + slope * regularized)
    return slope * _regularized(objective, score_true, log_q_true) - sigmoid(-score_true)


@njit(**PART)
def _regularized(objective, score, log_q):
    return score + log_q if objective.regularizes_log_q else score
