"""Implicit (proximal) SGD: the gradient is taken where the step ends, so that no step is too long.

Fagan and Iyengar 2018, section 3.2; Toulis, Tran and Airoldi 2016. ``rate`` is the paper's eta times the number
of samples.
"""

from typing import NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.layout import Plain
from xsoftmax.kernels.rows import axpy, axpy_two, dot, dot_two, squared_norm
from xsoftmax.kernels.steps import coefficients, move, move_two, proximal, score_class, score_two
from xsoftmax.optimizers import optimizer


@optimizer(layout=Plain, needs="proximal", takes_ridge=True, qualifier="as the rate falls to 0")
class Implicit(NamedTuple):
    """Parameters: ``learning_rate``."""

    learning_rate: float = 0.1


MEMBER = Implicit


Implicit.takes_two = True  # type: ignore[attr-defined]


@implements(coefficients, Implicit)
def _coefficients(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
    return proximal(objective, rate, state, squared_norm(features, i), score_true, draws)


@implements(score_class, Implicit)
def _score_class(optimizer, features, i, W, k):
    return dot(features, i, W[k])


@implements(move, Implicit)
def _move(optimizer, features, i, step, coefficient, W, k):
    axpy(features, i, -coefficient, W[k])


@implements(score_two, Implicit)
def _score_two(optimizer, features, i, W, k, other):
    return dot_two(features, i, W[k], W[other])


@implements(move_two, Implicit)
def _move_two(optimizer, features, i, step, coefficient, W, k, other_coefficient, other):
    axpy_two(features, i, -coefficient, W[k], -other_coefficient, W[other])
