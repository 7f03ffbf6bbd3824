"""The loop of every sampled method: one step for each sample, its parts chosen by type."""

import math

import numpy as np
from numba import njit

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.draws import NEGLIGIBLE, empty_draws, gather_repeats, weigh_for
from xsoftmax.kernels.random import start
from xsoftmax.kernels.ridge import shrink
from xsoftmax.kernels.steps import (
    Step,
    coefficients,
    draw,
    draws_numbers,
    excludes_true,
    log_probability,
    move,
    n_exact,
    score_class,
    uses_log_q,
)

# Parts the objective's own random numbers from those of the proposal.
OWN_NUMBERS = np.uint64(0x5851F42D4C957F2D)


@njit(**OPTIONS)
def sweep(objective, proposal, optimizer, features, labels, states, W, order, clock, rate):
    """Take one step for each sample of ``order``; return how many were taken.

    It stops early only before a step whose scores are not finite.

    Parameters
    ----------
    objective, proposal, optimizer : NamedTuple
        The method; their types choose the code (see ``xsoftmax.kernels.steps``).
    features : Dense or Csr
    labels : ndarray of shape (n_samples,), int32
    states : ndarray of shape (n_samples, n_states), float64
        What the objective keeps per sample; changed in place.
    W : ndarray, float32
        Weights in the optimizer's layout; changed in place.
    order : ndarray of shape (n_steps,), int64
        Samples to visit.
    clock : Clock
        Where this begins.
    rate : float32
    """
    draws = empty_draws(objective.n_sampled + n_exact(proposal))
    for t in range(order.size):
        i = order[t]
        y = np.int64(labels[i])
        step = Step(rate, clock.step + t)
        draw(
            proposal, i, y if excludes_true(objective) else np.int64(-1), start(clock.key, clock.position + t), draws
        )
        weigh_for(objective, y, draws)
        score_true = score_class(optimizer, features, i, W, y)
        check = score_true
        for j in range(draws.classes.size):
            draws.scores[j] = score_class(optimizer, features, i, W, draws.classes[j])
            check += draws.scores[j]
        if not math.isfinite(check):
            return t
        log_q_true = log_probability(proposal, i, y) if uses_log_q(objective) else np.float32(0)
        if draws_numbers(objective):
            draws.rng[0] = start(clock.key ^ OWN_NUMBERS, clock.position + t)
        of_true = coefficients(optimizer, objective, features, i, rate, states[i], score_true, log_q_true, draws)
        of_true = np.float32(of_true + gather_repeats(y, draws))
        shrink(optimizer, features, step, W, y, np.float32(1))
        move(optimizer, features, i, step, of_true, W, y)
        for j in range(draws.classes.size):
            if draws.weights[j] != np.float32(0):
                shrink(optimizer, features, step, W, draws.classes[j], draws.weights[j])
            if abs(draws.out[j]) > NEGLIGIBLE:
                move(optimizer, features, i, step, draws.out[j], W, draws.classes[j])
    return order.size
