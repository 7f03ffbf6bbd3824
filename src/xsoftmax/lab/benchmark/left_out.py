"""Members of the axes that leave out a part of a step: what the rest takes tells what that part costs."""

from typing import NamedTuple

import numpy as np

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.protocol import gradient, proximal, updated
from xsoftmax.kernels.walk import move, move_two, score_class, score_two
from xsoftmax.objectives import objective
from xsoftmax.optimizers import optimizer

_NONE = np.float32(0)


@objective(title="no loss", target="nothing", excludes_true=False, uses_log_q=True)
class NoGradient(NamedTuple):
    """In place of negative sampling: no class moves."""


@implements(gradient, NoGradient)
def _no_gradient(objective, rate, state, score_true, log_q_true, draws):
    draws.out[:] = _NONE
    return _NONE


@objective(title="no loss", target="nothing", excludes_true=True, offers=("proximal",), n_auxiliary=1)
class NoSolve(NamedTuple):
    """In place of the double sum, whose implicit step is solved: both classes always move by ``step``."""

    step: np.float32 = np.float32(1e-6)


@implements(proximal, NoSolve)
def _no_solve(objective, rate, state, squared_norm, score_true, draws):
    draws.out[0] = objective.step
    return -objective.step


@optimizer(accumulates=True)
class NoMove(NamedTuple):
    """In place of Adagrad: moves nothing."""

    learning_rate: float = 0.03
    initial_accumulator: float = 1e-8


@implements(updated, NoMove)
def _not_updated(optimizer, step, w, a, g):
    return w, a


class Unread(NamedTuple):
    """In place of any layout: weights that nobody looks at or moves."""

    W: np.ndarray


@implements(score_class, Unread)
def _no_score(weights, features, i, k):
    return _NONE


@implements(score_two, Unread)
def _no_scores(weights, features, i, k, other):
    return _NONE, _NONE


@implements(move, Unread)
def _no_move(weights, features, optimizer, i, step, coefficient, k):
    pass


@implements(move_two, Unread)
def _no_moves(weights, features, optimizer, i, step, coefficient, k, other_coefficient, other):
    pass
