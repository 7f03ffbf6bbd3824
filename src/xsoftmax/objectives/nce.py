"""Noise-contrastive estimation: Gutmann and Hyvarinen 2012; for softmaxes Mnih and Teh, ICML 2012.

    L = softplus(-(s_y - log r q_y)) + g s_y^2 + E_{k ~ q} [r softplus(s_k - log r q_k) + g s_k^2]

To tell the true class from r classes that the proposal draws. The true class stays among these. At the optimum of a
flexible model the scores are the log-probabilities themselves, whatever q and r, so prediction adds nothing; a model
that is not flexible enough ends elsewhere than the softmax. With the proposal ``tree`` the base distribution depends
on x. r = 1 is the baseline of Bamler and Mandt 2020 (their regularizer g is on s alone), r = n_sampled that of Mnih
and Teh and of Fagan and Iyengar 2018. Cost of a step: n_sampled + 1 rows.

With ``learns_normalizer``, s - z stands for s in the two contrasts, z = 10 v being one number of the whole fit.
Scores that begin at 0 then need not learn for every class that its log-probability is about -log K. v begins at 0 and
moves with each sample by Adagrad, at the weights' rate, as in Bamler and Mandt's published code. Softmax
probabilities do not depend on z, so models have none.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.data.training_set import TrainingSet
from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import PART
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.mathematics import sigmoid, softplus
from xsoftmax.kernels.protocol import gradient, loss
from xsoftmax.objectives import ScoredClasses, _arrays, objective

_description = objective(title="noise-contrastive loss", target="loss", excludes_true=False, uses_log_q=True)
# z over v, and what v's squared slopes begin at: of the published code.
_SCALE, _INITIAL_ACCUMULATOR = 10.0, 1e-8


def _value(objective: Any, log_normalizer: float, xp: Any, draws: ScoredClasses) -> Any:
    r, g = objective.noise_ratio, objective.regularizer
    shift = math.log(r) + log_normalizer
    contrast_true = draws.score_true - draws.log_q_true - shift
    contrast = draws.scores - draws.log_q - shift
    of_true = _arrays.softplus(xp, -contrast_true) + g * draws.score_true**2
    return of_true + xp.sum(draws.weights * (r * _arrays.softplus(xp, contrast) + g * draws.scores**2), axis=1)


@_description
class Nce(NamedTuple):
    """Parameters: ``noise_ratio``, r above; ``regularizer``, g; ``learns_normalizer``, whether there is a z."""

    noise_ratio: float = 1.0
    regularizer: float = 0.0
    learns_normalizer: bool = False

    def problem(self) -> str:
        """Say what is wrong with the parameters, if anything is."""
        if self.noise_ratio > 0:
            return ""
        return "noise_ratio is 0: no noise, no contrast; set it to 1, or to n_sampled of the proposal"

    def fit(self, data: TrainingSet) -> "Nce | NceWithNormalizer":
        """Make room for the normaliser, if there is one."""
        if not self.learns_normalizer:
            return self
        return NceWithNormalizer(self.noise_ratio, self.regularizer, np.array([0.0, _INITIAL_ACCUMULATOR]))

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        return _value(self, 0.0, xp, draws)


MEMBER = Nce


@_description
class NceWithNormalizer(NamedTuple):
    """What the kernels see: beside r and g, v and the sum of its squared slopes, float64 of shape (2,)."""

    noise_ratio: float
    regularizer: float
    normalizer: np.ndarray

    def arrays(self) -> dict[str, np.ndarray]:
        """What it learns, for a checkpoint."""
        return {"normalizer": self.normalizer}

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        return _value(self, _SCALE * float(self.normalizer[0]), xp, draws)


@njit(**PART)
def _loss_of(objective, log_normalizer, score_true, log_q_true, draws):
    r, g = objective.noise_ratio, objective.regularizer
    shift = math.log(r) + log_normalizer
    total = softplus(np.float64(log_q_true) + shift - score_true) + g * score_true**2
    for j in range(draws.scores.size):
        if draws.weights[j] > 0:
            contrast = np.float64(draws.scores[j]) - draws.log_q[j] - shift
            total += draws.weights[j] * (r * softplus(contrast) + g * draws.scores[j] ** 2)
    return total


@njit(**PART)
def _slopes_of(objective, log_normalizer, score_true, log_q_true, draws):
    """Write the slopes of the drawn scores, return that of the true one, and that by the log-normaliser, float64."""
    number = draws.scores.dtype.type
    r, shift = number(objective.noise_ratio), number(math.log(objective.noise_ratio) + log_normalizer)
    slope = number(2 * objective.regularizer)
    of_true = sigmoid(log_q_true + shift - score_true)
    by_normalizer = np.float64(of_true)
    for j in range(draws.scores.size):
        of_noise = draws.weights[j] * r * sigmoid(draws.scores[j] - draws.log_q[j] - shift)
        draws.out[j] = of_noise + draws.weights[j] * slope * draws.scores[j]
        by_normalizer -= of_noise
    return slope * score_true - of_true, by_normalizer


@implements(loss, Nce)
def _loss(objective, state, score_true, log_q_true, draws):
    return _loss_of(objective, 0.0, score_true, log_q_true, draws)


@implements(gradient, Nce)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    return _slopes_of(objective, 0.0, score_true, log_q_true, draws)[0]


@implements(loss, NceWithNormalizer)
def _loss_with_normalizer(objective, state, score_true, log_q_true, draws):
    return _loss_of(objective, _SCALE * objective.normalizer[0], score_true, log_q_true, draws)


@implements(gradient, NceWithNormalizer)
def _gradient_with_normalizer(objective, rate, state, score_true, log_q_true, draws):
    v = objective.normalizer
    of_true, by_normalizer = _slopes_of(objective, _SCALE * v[0], score_true, log_q_true, draws)
    slope = _SCALE * by_normalizer
    v[1] += slope**2
    v[0] -= rate * slope / math.sqrt(v[1])
    return of_true
