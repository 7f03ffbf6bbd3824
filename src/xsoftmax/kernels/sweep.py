"""The loop of every sampled method: one step for each sample, its parts chosen by type.

Classes are drawn for a few steps ahead, so that the rows of the next step can be asked for in advance, and proposals
can overlap their own waiting for memory.
"""

import math

import numpy as np
from numba import njit

from xsoftmax.kernels import LEAN, PART
from xsoftmax.kernels.draws import (
    draw_steps,
    empty_draws_ahead,
    gather_repeats,
    take_step,
    weigh_for,
)
from xsoftmax.kernels.pairs import move_step, score_step
from xsoftmax.kernels.prefetch import prefetch_step
from xsoftmax.kernels.random import start
from xsoftmax.kernels.steps import (
    Step,
    coefficients,
    draws_numbers,
    log_probability,
    uses_log_q,
)

# Parts the objective's own random numbers from those of the proposal.
OWN_NUMBERS = np.uint64(0x5851F42D4C957F2D)
AHEAD = 32


def sweep(objective, proposal, optimizer, features, labels, states, W, order, clock, rate, log_q_of_labels=None):
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
    log_q_of_labels : ndarray of shape (n_samples,), float32, optional
        Log-probability of each sample's label under the proposal, where that is known already.
    """
    ahead = empty_draws_ahead(AHEAD, objective.n_sampled + len(getattr(proposal, "exact_classes", ())))
    return _sweep(
        objective, proposal, optimizer, features, labels, states, W, order, clock, rate, log_q_of_labels, ahead
    )


@njit(**LEAN)
def _sweep(objective, proposal, optimizer, features, labels, states, W, order, clock, rate, log_q_of_labels, ahead):
    draws = ahead.step
    for first in range(0, order.size, AHEAD):
        samples = order[first : first + AHEAD]
        draw_steps(objective, proposal, labels, samples, clock, first, ahead)
        for b in range(samples.size):
            i = samples[b]
            y = np.int64(labels[i])
            if b + 1 < samples.size:
                following = samples[b + 1]
                prefetch_step(features, following, W, np.int64(labels[following]), ahead.classes[b + 1])
            take_step(ahead, b)
            step = Step(rate, clock.step + first + b)
            weigh_for(objective, y, draws)
            score_true = score_step(optimizer, features, i, W, y, draws)
            if not _all_finite(score_true, draws.scores):
                return first + b
            log_q_true = np.float32(0)
            if uses_log_q(objective):
                log_q_true = log_probability(proposal, i, y) if log_q_of_labels is None else log_q_of_labels[i]
            if draws_numbers(objective):
                draws.rng[0] = start(clock.key ^ OWN_NUMBERS, clock.position + first + b)
            of_true = coefficients(optimizer, objective, features, i, rate, states[i], score_true, log_q_true, draws)
            of_true = np.float32(of_true + gather_repeats(y, draws))
            move_step(optimizer, features, i, step, of_true, W, y, draws)
    return order.size


@njit(**PART)
def _all_finite(score_true, scores):
    total = score_true
    for score in scores:
        total += score
    return math.isfinite(total)
