"""Members of the axes that leave out a part of a step: what the rest takes tells what that part costs."""

from typing import NamedTuple

import numpy as np

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.layout import Interleaved
from xsoftmax.kernels.steps import coefficients, gradient, move, proximal, score_class
from xsoftmax.objectives import objective
from xsoftmax.optimizers import optimizer
from xsoftmax.optimizers.adagrad import Adagrad

_NONE = np.float32(0)


@objective(title="no loss", target="nothing", excludes_true=False, uses_log_q=True)
class NoGradient(NamedTuple):
    """In place of negative sampling: no class moves."""


@implements(gradient, NoGradient)
def _no_gradient(objective, rate, state, score_true, log_q_true, draws):
    draws.out[:] = _NONE
    return _NONE


@objective(title="no loss", target="nothing", excludes_true=True, offers=("proximal",), n_states=1)
class NoSolve(NamedTuple):
    """In place of the double sum, whose implicit step is solved: both classes always move by ``step``."""

    step: np.float32 = np.float32(1e-6)


@implements(proximal, NoSolve)
def _no_solve(objective, rate, state, squared_norm, score_true, draws):
    draws.out[0] = objective.step
    return -objective.step


@optimizer(layout=Interleaved)
class NoMove(NamedTuple):
    """In place of Adagrad: scores as it does, and moves nothing."""

    inner: Adagrad = Adagrad()
    learning_rate: float = 0.03
    initial_accumulator: float = 1e-8


@optimizer(layout=Interleaved)
class NoScore(NamedTuple):
    """In place of Adagrad: neither looks at the weights nor moves them."""

    learning_rate: float = 0.03
    initial_accumulator: float = 1e-8


@implements(score_class, NoMove)
def _score_as_inner(optimizer, features, i, W, k):
    return score_class(optimizer.inner, features, i, W, k)


@implements(score_class, NoScore)
def _score_nothing(optimizer, features, i, W, k):
    return _NONE


@implements(coefficients, NoMove)
@implements(coefficients, NoScore)
def _coefficients(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
    return gradient(objective, rate, state, score_true, log_q_true, draws)


@implements(move, NoMove)
@implements(move, NoScore)
def _move_nothing(optimizer, features, i, step, coefficient, W, k):
    pass
