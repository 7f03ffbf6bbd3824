"""The loop of every sampled method: one step for each sample, its parts chosen by type.

Classes are drawn for a few steps ahead, so that the rows of the next step can be asked for in advance, and proposals
can overlap their own waiting for memory.
"""

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN
from xsoftmax.kernels.draws import draw_steps, empty_draws_ahead, take_step
from xsoftmax.kernels.prefetch import prefetch_step
from xsoftmax.kernels.sample import coefficients_of
from xsoftmax.kernels.steps import Step
from xsoftmax.kernels.walk import move_step

AHEAD = 32


def sweep(
    objective,
    proposal,
    optimizer,
    features,
    labels,
    states,
    weights,
    order,
    clock,
    rate,
    n_sampled,
    log_q_of_labels=None,
):
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
    weights : NamedTuple
        In a layout that has what the optimizer accumulates (``xsoftmax.kernels.layout``); changed in place.
    order : ndarray of shape (n_steps,), int64
        Samples to visit.
    clock : Clock
        Where this begins.
    rate : float32
    n_sampled : int
        Classes that the proposal draws for a step.
    log_q_of_labels : ndarray of shape (n_samples,), float32, optional
        Log-probability of each sample's label under the proposal, where that is known already.
    """
    ahead = room_ahead(n_sampled, proposal)
    return sweep_in(
        objective, proposal, optimizer, features, labels, states, weights, order, clock, rate, log_q_of_labels, ahead
    )


def room_ahead(n_sampled, proposal):
    """Room for the draws of the steps ahead."""
    return empty_draws_ahead(AHEAD, n_sampled + len(getattr(proposal, "exact_classes", ())))


@njit(**LEAN)
def sweep_in(
    objective, proposal, optimizer, features, labels, states, weights, order, clock, rate, log_q_of_labels, ahead
):
    """``sweep`` in room of ``room_ahead``, for compiled code, too."""
    draws = ahead.step
    for first in range(0, order.size, AHEAD):
        samples = order[first : first + AHEAD]
        draw_steps(objective, proposal, labels, samples, clock, first, ahead)
        for b in range(samples.size):
            i = samples[b]
            y = np.int64(labels[i])
            if b + 1 < samples.size:
                following = samples[b + 1]
                prefetch_step(features, following, weights, np.int64(labels[following]), ahead.classes[b + 1])
            take_step(ahead, b)
            step = Step(rate, clock.step + first + b)
            position = clock.position + first + b
            finite, of_true = coefficients_of(
                objective,
                proposal,
                optimizer,
                features,
                states,
                weights,
                i,
                y,
                clock.key,
                position,
                rate,
                log_q_of_labels,
                draws,
            )
            if not finite:
                return first + b
            move_step(weights, features, optimizer, i, step, of_true, y, draws)
    return order.size
