"""U-max: SGD on a double sum, with u lifted first where it is too low for a bounded gradient.

Fagan and Iyengar 2018, Algorithm 1. ``rate`` is the paper's eta times the number of samples. A step that lifts u
follows the draws twice, so that its mean is not the gradient; where u is within ``threshold`` of its best, none does.
The projections of u and W onto balls are left out: without a ridge these are infinite, and with one they bind only
where the objective is worse than at W = 0.
"""

from typing import NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.layout import Plain
from xsoftmax.kernels.rows import axpy, axpy_two, dot, dot_two
from xsoftmax.kernels.steps import coefficients, gradient, move, move_two, raise_bound, score_class, score_two
from xsoftmax.optimizers import optimizer


@optimizer(layout=Plain, needs="raise_bound", takes_ridge=True, qualifier="where u is within threshold of its best")
class UMax(NamedTuple):
    """Parameters: ``learning_rate``; ``threshold``, the paper's delta."""

    learning_rate: float = 0.1
    threshold: float = 1.0


MEMBER = UMax


UMax.takes_two = True  # type: ignore[attr-defined]


@implements(coefficients, UMax)
def _coefficients(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
    raise_bound(objective, optimizer.threshold, state, score_true, draws)
    return gradient(objective, rate, state, score_true, log_q_true, draws)


@implements(score_class, UMax)
def _score_class(optimizer, features, i, W, k):
    return dot(features, i, W[k])


@implements(move, UMax)
def _move(optimizer, features, i, step, coefficient, W, k):
    axpy(features, i, -step.rate * coefficient, W[k])


@implements(score_two, UMax)
def _score_two(optimizer, features, i, W, k, other):
    return dot_two(features, i, W[k], W[other])


@implements(move_two, UMax)
def _move_two(optimizer, features, i, step, coefficient, W, k, other_coefficient, other):
    axpy_two(features, i, -step.rate * coefficient, W[k], -step.rate * other_coefficient, W[other])
