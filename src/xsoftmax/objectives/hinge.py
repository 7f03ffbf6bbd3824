"""The hinge: Weston and Watkins, Support vector machines for multi-class pattern recognition, ESANN 1999.

    L = sum_{k != y} [margin + s_k - s_y]_+

A class moves only if it scores above s_y - margin: what lies below need not be found. Given the one class that scores
highest, it is the loss of Crammer and Singer 2001, and its implicit step the passive-aggressive update of Crammer et
al. 2006: the least move after which the loss is 0, or a move of the rate's length if that is less. Cost of a step:
n_sampled + 1 rows.
"""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.protocol import floor, gradient, loss, proximal
from xsoftmax.objectives import ScoredClasses, _arrays, objective


@objective(title="hinge loss", target="loss", excludes_true=True, offers=("gradient", "proximal"))
class Hinge(NamedTuple):
    """Parameters: ``margin``, by which the true class is to score above every other one."""

    margin: float = 1.0

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        excess = self.margin + _arrays.gaps(draws)
        return xp.sum(draws.weights * xp.where(excess > 0, excess, xp.zeros_like(excess)), axis=1)


MEMBER = Hinge


@implements(floor, Hinge)
def _floor(objective, score_true):
    return score_true - np.float32(objective.margin)


@implements(loss, Hinge)
def _loss(objective, state, score_true, log_q_true, draws):
    total = 0.0
    for j in range(draws.scores.size):
        total += draws.weights[j] * max(0.0, objective.margin + draws.scores[j] - score_true)
    return total


@implements(gradient, Hinge)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    zero = draws.scores.dtype.type(0)
    lowest, total = score_true - draws.scores.dtype.type(objective.margin), zero
    for j in range(draws.scores.size):
        draws.out[j] = draws.weights[j] if draws.scores[j] > lowest else zero
        total += draws.out[j]
    return -total


@implements(proximal, Hinge)
def _proximal(objective, rate, state, squared_norm, score_true, draws):
    excess = np.float32(objective.margin) + draws.scores[0] - score_true
    step = np.float32(0)
    if excess > 0 and squared_norm > 0:
        step = min(np.float32(rate) * draws.weights[0], excess / (np.float32(2) * squared_norm))
    draws.out[0] = step
    return -step
