"""Implicit (proximal) SGD: the gradient is taken where the step ends, so that no step is too long.

Fagan and Iyengar 2018, section 3.2; Toulis, Tran and Airoldi 2016. ``rate`` is the paper's eta times the number
of samples.
"""

from typing import NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.layout import Plain
from xsoftmax.kernels.rows import axpy, dot, squared_norm
from xsoftmax.kernels.steps import coefficients, move, proximal, score_class
from xsoftmax.optimizers import optimizer


@optimizer(layout=Plain, needs="proximal", takes_ridge=True, qualifier="as the rate falls to 0")
class Implicit(NamedTuple):
    """Parameters: ``learning_rate``."""

    learning_rate: float = 0.1


MEMBER = Implicit


@implements(coefficients, Implicit)
def _coefficients(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
    return proximal(objective, rate, state, squared_norm(features, i), score_true, draws)


@implements(score_class, Implicit)
def _score_class(optimizer, features, i, W, k):
    return dot(features, i, W[k])


@implements(move, Implicit)
def _move(optimizer, features, i, step, coefficient, W, k):
    axpy(features, i, -coefficient, W[k])
