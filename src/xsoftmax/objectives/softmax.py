"""Exact softmax: the negative log-likelihood itself.

    L = log(1 + sum_{k != y} e^(s_k - s_y))

Cost of a step: all n_classes scores, so it takes the proposal ``all``. It is the optimum that the others are
held against.
"""

import math
from typing import NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.mathematics import exp
from xsoftmax.kernels.steps import gradient, loss
from xsoftmax.objectives import objective


@objective(title="negative log-likelihood", target="softmax", excludes_true=True, needs_all_classes=True)
class Softmax(NamedTuple):
    """No parameters."""


MEMBER = Softmax


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
