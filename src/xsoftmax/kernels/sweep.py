"""The loop of every sampled method: one step for each sample, its parts chosen by type."""

import math

import numpy as np
from numba import njit

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.random import start
from xsoftmax.kernels.rows import dot
from xsoftmax.kernels.steps import (
    Draws,
    coefficients,
    draw,
    excludes_true,
    inverse_probability,
    log_probability,
    move,
    row,
    uses_log_q,
)


@njit(**OPTIONS)
def sweep(objective, proposal, optimizer, features, labels, states, W, order, first, key, rate):
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
    first : int
        Position in the epoch of the first step: with ``key`` it determines the draws.
    key : uint64
        Of the epoch's random numbers (``xsoftmax.kernels.random.stream``).
    rate : float32
    """
    draws = empty_draws(objective.n_sampled)
    for t in range(order.size):
        i = order[t]
        y = np.int64(labels[i])
        draw(proposal, i, y if excludes_true(objective) else np.int64(-1), start(key, first + t), draws)
        weigh(objective, proposal, y, draws)
        score_true = dot(features, i, row(optimizer, features, W, y))
        check = score_true
        for j in range(draws.classes.size):
            draws.scores[j] = dot(features, i, row(optimizer, features, W, draws.classes[j]))
            check += draws.scores[j]
        if not math.isfinite(check):
            return t
        log_q_true = log_probability(proposal, i, y) if uses_log_q(objective) else np.float32(0)
        of_true = coefficients(optimizer, objective, features, i, rate, states[i], score_true, log_q_true, draws)
        of_true = np.float32(of_true + gather_repeats(y, draws))
        move(optimizer, features, i, rate, of_true, W, y)
        for j in range(draws.classes.size):
            if draws.out[j] != np.float32(0):
                move(optimizer, features, i, rate, draws.out[j], W, draws.classes[j])
    return order.size


@njit(**OPTIONS)
def empty_draws(n_sampled):
    """Room for the draws of one step."""
    return Draws(
        np.empty(n_sampled, np.int64),
        np.empty(n_sampled, np.float32),
        np.empty(n_sampled, np.float32),
        np.empty(n_sampled, np.float32),
        np.empty(n_sampled, np.float32),
    )


@njit(**OPTIONS)
def weigh(objective, proposal, y, draws):
    """Weights that make sums over the draws unbiased: 1 / (n q), and 0 for the true class, or 1 / n."""
    share = np.float32(1) / np.float32(draws.classes.size)
    for j in range(draws.classes.size):
        if not excludes_true(objective):
            draws.weights[j] = share
        elif draws.classes[j] == y:
            draws.weights[j] = np.float32(0)
        else:
            draws.weights[j] = share * inverse_probability(proposal, draws.log_q[j])


@njit(**OPTIONS)
def gather_repeats(y, draws):
    """Add coefficients of repeated classes into their first; return the sum of those of the true class."""
    of_true = np.float32(0)
    for j in range(draws.classes.size):
        if draws.classes[j] == y:
            of_true += draws.out[j]
            draws.out[j] = np.float32(0)
            continue
        for earlier in range(j):
            if draws.classes[earlier] == draws.classes[j]:
                draws.out[earlier] += draws.out[j]
                draws.out[j] = np.float32(0)
                break
    return of_true
