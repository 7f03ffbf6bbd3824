"""One-vs-rest: a logistic classifier for each class, whether a row has it or not.

    L = sum_{k in P} softplus(-s_k) + sum_{k not in P} softplus(s_k),    P the labels of the row

Also known as binary relevance, and as binary cross-entropy. The probability of a class is sigmoid(s_k): those of all
classes do not sum to 1, so that a row may have several labels, or none. Cost of a step: n_sampled + |P| rows.
"""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.mathematics import sigmoid, softplus
from xsoftmax.kernels.protocol import gradient, gradient_of_set, loss, loss_of_set
from xsoftmax.objectives import ScoredClasses, _arrays, objective


@objective(title="binary cross-entropy", target="loss", excludes_true=True, takes_sets=True, link="sigmoid")
class OneVsRest(NamedTuple):
    """No parameters; the sum over the drawn classes is scaled to all."""

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        others = xp.sum(draws.weights * _arrays.softplus(xp, draws.scores), axis=1)
        return _arrays.softplus(xp, -draws.score_true) + others


MEMBER = OneVsRest


@implements(loss, OneVsRest)
def _loss(objective, state, score_true, log_q_true, draws):
    total = np.float64(softplus(-score_true))
    for j in range(draws.scores.size):
        total += draws.weights[j] * softplus(draws.scores[j])
    return total


@implements(gradient, OneVsRest)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    for j in range(draws.scores.size):
        draws.out[j] = draws.weights[j] * sigmoid(draws.scores[j])
    return -sigmoid(-score_true)


@implements(loss_of_set, OneVsRest)
def _loss_of_set(objective, share, n_true, places):
    total = 0.0
    for j in range(places.scores.size):
        total += places.weights[j] * softplus(-places.scores[j] if j < n_true else places.scores[j])
    return total


@implements(gradient_of_set, OneVsRest)
def _gradient_of_set(objective, share, n_true, places):
    for t in range(n_true):
        places.out[t] = -sigmoid(-places.scores[t])
    for j in range(n_true, places.scores.size):
        places.out[j] = places.weights[j] * sigmoid(places.scores[j])
