"""One-vs-rest: a logistic classifier for each class, whether a row has it or not.

    L = sum_{k in P} softplus(-s_k) + c sum_{k not in P} softplus(s_k),    P the labels of the row

c is 1; below 1 rare classes, which have few rows beside very many others, score higher. It is also known as binary
relevance, and as binary cross-entropy. The probability of a class is sigmoid(s_k): those of all classes do not sum to
1, so that a row may have several labels, or none. Cost of a step: n_sampled + |P| rows.
"""

from typing import Any, NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.mathematics import sigmoid, softplus
from xsoftmax.kernels.protocol import gradient, gradient_of_set, loss, loss_of_set
from xsoftmax.objectives import ScoredClasses, _arrays, objective


@objective(title="binary cross-entropy", target="loss", excludes_true=True, takes_sets=True, link="sigmoid")
class OneVsRest(NamedTuple):
    """Parameters: ``others``, the weight c of the other classes; the sum over drawn ones is scaled to all."""

    others: float = 1.0

    def problem(self) -> str:
        """Tell what is wrong with the parameters."""
        return "" if self.others > 0 else f"others is {self.others:g}; set it above 0, to 1 for logistic regression"

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        total = xp.sum(draws.weights * _arrays.softplus(xp, draws.scores), axis=1)
        return _arrays.softplus(xp, -draws.score_true) + self.others * total


MEMBER = OneVsRest


@implements(loss, OneVsRest)
def _loss(objective, state, score_true, log_q_true, draws):
    total = 0.0
    for j in range(draws.scores.size):
        total += draws.weights[j] * softplus(draws.scores[j])
    return softplus(-score_true) + objective.others * total


@implements(gradient, OneVsRest)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    others = draws.scores.dtype.type(objective.others)
    for j in range(draws.scores.size):
        draws.out[j] = others * draws.weights[j] * sigmoid(draws.scores[j])
    return -sigmoid(-score_true)


@implements(loss_of_set, OneVsRest)
def _loss_of_set(objective, share, n_true, places):
    total = 0.0
    for j in range(places.scores.size):
        if j < n_true:
            total += softplus(-places.scores[j])
        else:
            total += objective.others * places.weights[j] * softplus(places.scores[j])
    return total


@implements(gradient_of_set, OneVsRest)
def _gradient_of_set(objective, share, n_true, places):
    others = places.scores.dtype.type(objective.others)
    for t in range(n_true):
        places.out[t] = -sigmoid(-places.scores[t])
    for j in range(n_true, places.scores.size):
        places.out[j] = others * places.weights[j] * sigmoid(places.scores[j])
