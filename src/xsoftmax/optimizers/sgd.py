"""Stochastic gradient descent: w -= rate c x."""

from typing import NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.layout import Plain
from xsoftmax.kernels.rows import axpy, axpy_two, dot, dot_two
from xsoftmax.kernels.steps import coefficients, gradient, move, move_block, move_two, score_class, score_two
from xsoftmax.optimizers import optimizer


@optimizer(layout=Plain, takes_blocks=True, takes_ridge=True)
class Sgd(NamedTuple):
    """Parameters: ``learning_rate``, in units of one sample's gradient."""

    learning_rate: float = 0.1


MEMBER = Sgd


Sgd.takes_two = True  # type: ignore[attr-defined]


@implements(coefficients, Sgd)
def _coefficients(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
    return gradient(objective, rate, state, score_true, log_q_true, draws)


@implements(score_class, Sgd)
def _score_class(optimizer, features, i, W, k):
    return dot(features, i, W[k])


@implements(move, Sgd)
def _move(optimizer, features, i, step, coefficient, W, k):
    axpy(features, i, -step.rate * coefficient, W[k])


@implements(score_two, Sgd)
def _score_two(optimizer, features, i, W, k, other):
    return dot_two(features, i, W[k], W[other])


@implements(move_two, Sgd)
def _move_two(optimizer, features, i, step, coefficient, W, k, other_coefficient, other):
    axpy_two(features, i, -step.rate * coefficient, W[k], -step.rate * other_coefficient, W[other])


@implements(move_block, Sgd)
def _move_block(optimizer, rate, gradient, w, accumulator):
    for k in range(w.size):
        w[k] -= rate * gradient[k]
