"""Noise-contrastive estimation: Gutmann and Hyvarinen 2012; for softmaxes Mnih and Teh, ICML 2012.

    L = softplus(-(s_y - log r q_y)) + g s_y^2 + E_{k ~ q} [r softplus(s_k - log r q_k) + g s_k^2]

To tell the true class from r classes that the proposal draws. The true class stays among these. At the optimum of a
flexible model the scores are the log-probabilities themselves, whatever q and r, so prediction adds nothing; a model
that is not flexible enough ends elsewhere than the softmax. With the proposal ``tree`` the base distribution depends
on x. r = 1 is the baseline of Bamler and Mandt 2020 (their regularizer g is on s alone), r = n_sampled that of Mnih
and Teh and of Fagan and Iyengar 2018. Cost of a step: n_sampled + 1 rows.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.mathematics import sigmoid, softplus
from xsoftmax.kernels.protocol import gradient, loss
from xsoftmax.objectives import ScoredClasses, _arrays, objective


@objective(title="noise-contrastive loss", target="loss", excludes_true=False, uses_log_q=True)
class Nce(NamedTuple):
    """Parameters: ``noise_ratio``, r above; ``regularizer``, g."""

    noise_ratio: float = 1.0
    regularizer: float = 0.0

    def problem(self) -> str:
        """Say what is wrong with the parameters, if anything is."""
        if self.noise_ratio > 0:
            return ""
        return "noise_ratio is 0: no noise, no contrast; set it to 1, or to n_sampled of the proposal"

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        r, g = self.noise_ratio, self.regularizer
        contrast_true = draws.score_true - draws.log_q_true - math.log(r)
        contrast = draws.scores - draws.log_q - math.log(r)
        of_true = _arrays.softplus(xp, -contrast_true) + g * draws.score_true**2
        return of_true + xp.sum(draws.weights * (r * _arrays.softplus(xp, contrast) + g * draws.scores**2), axis=1)


MEMBER = Nce


@implements(loss, Nce)
def _loss(objective, state, score_true, log_q_true, draws):
    r, log_r, g = objective.noise_ratio, math.log(objective.noise_ratio), objective.regularizer
    total = softplus(np.float64(log_q_true) + log_r - score_true) + g * score_true**2
    for j in range(draws.scores.size):
        if draws.weights[j] > 0:
            contrast = np.float64(draws.scores[j]) - draws.log_q[j] - log_r
            total += draws.weights[j] * (r * softplus(contrast) + g * draws.scores[j] ** 2)
    return total


@implements(gradient, Nce)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    number = draws.scores.dtype.type
    r, log_r = number(objective.noise_ratio), number(math.log(objective.noise_ratio))
    slope = number(2 * objective.regularizer)
    for j in range(draws.scores.size):
        of_noise = r * sigmoid(draws.scores[j] - draws.log_q[j] - log_r)
        draws.out[j] = draws.weights[j] * (of_noise + slope * draws.scores[j])
    return slope * score_true - sigmoid(log_q_true + log_r - score_true)
