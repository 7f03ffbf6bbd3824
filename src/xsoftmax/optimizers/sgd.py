"""Stochastic gradient descent: w -= rate c x."""

from typing import NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.layout import Plain
from xsoftmax.kernels.rows import axpy, dot
from xsoftmax.kernels.steps import coefficients, gradient, move, move_block, score_class
from xsoftmax.optimizers import optimizer


@optimizer(layout=Plain, takes_blocks=True, takes_ridge=True)
class Sgd(NamedTuple):
    """Parameters: ``learning_rate``, in units of one sample's gradient."""

    learning_rate: float = 0.1


MEMBER = Sgd


@implements(coefficients, Sgd)
def _coefficients(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
    return gradient(objective, rate, state, score_true, log_q_true, draws)


@implements(score_class, Sgd)
def _score_class(optimizer, features, i, W, k):
    return dot(features, i, W[k])


@implements(move, Sgd)
def _move(optimizer, features, i, step, coefficient, W, k):
    axpy(features, i, -step.rate * coefficient, W[k])


@implements(move_block, Sgd)
def _move_block(optimizer, rate, gradient, w, accumulator):
    for k in range(w.size):
        w[k] -= rate * gradient[k]
