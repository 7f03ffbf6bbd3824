"""One-vs-each: Titsias, One-vs-each approximation to softmax, NIPS 2016.

    L = sum_{k != y} softplus(s_k - s_y)  >=  -log p(y | x)

A bound: its optimum is the softmax's without features (Proposition 2), and in general is not. Cost of a step:
n_sampled + 1 rows.
"""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.mathematics import sigmoid, softplus
from xsoftmax.kernels.protocol import gradient, loss
from xsoftmax.objectives import ScoredClasses, _arrays, objective


@objective(title="one-vs-each bound", target="bound", excludes_true=True)
class OneVsEach(NamedTuple):
    """No parameters; the sum over the drawn classes is scaled to all."""

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        return xp.sum(draws.weights * _arrays.softplus(xp, _arrays.gaps(draws)), axis=1)


MEMBER = OneVsEach


@implements(loss, OneVsEach)
def _loss(objective, state, score_true, log_q_true, draws):
    total = 0.0
    for j in range(draws.scores.size):
        total += draws.weights[j] * softplus(draws.scores[j] - score_true)
    return total


@implements(gradient, OneVsEach)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    total = np.float32(0)
    for j in range(draws.scores.size):
        draws.out[j] = draws.weights[j] * sigmoid(draws.scores[j] - score_true)
        total += draws.out[j]
    return -total
