"""What all proposals and loops do with the classes of one step: room for them, weights, repeats."""

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, OPTIONS, PART
from xsoftmax.kernels.mathematics import exp
from xsoftmax.kernels.protocol import Candidates, Draws, excludes_true


@njit(**OPTIONS)
def empty_draws(n_draws):
    """Room for draws."""
    return empty_candidates(n_draws).draws


@njit(**OPTIONS)
def empty_candidates(n_draws):
    """Room for the true class and the draws of one step."""
    classes = np.empty(1 + n_draws, np.int64)
    log_q = np.empty(n_draws, np.float32)
    weights = np.ones(1 + n_draws, np.float32)
    scores = np.empty(1 + n_draws, np.float32)
    out = np.empty(1 + n_draws, np.float32)
    draws = Draws(classes[1:], log_q, weights[1:], scores[1:], out[1:], np.zeros(1, np.uint64))
    return Candidates(classes, weights, scores, out, draws)


@njit(inline="always", **LEAN)
def part_of(draws, first, stop):
    """View of the draws ``first`` to ``stop``, for a proposal that is made of others."""
    return Draws(
        draws.classes[first:stop],
        draws.log_q[first:stop],
        draws.weights[first:stop],
        draws.scores[first:stop],
        draws.out[first:stop],
        draws.rng,
    )


@njit(**LEAN)
def weigh_by_probability(draws):
    """Weights of independent draws from one distribution: 1 / (n q)."""
    share = np.float32(1) / np.float32(draws.classes.size)
    for j in range(draws.classes.size):
        draws.weights[j] = share * exp(-draws.log_q[j])


@njit(**PART)
def weigh_for(objective, y, draws):
    """Turn weights for a sum over all classes into those of the objective: over the others, or of a mean."""
    share = np.float32(1) / np.float32(draws.classes.size)
    for j in range(draws.classes.size):
        if not excludes_true(objective):
            draws.weights[j] = share
        elif draws.classes[j] == y:
            draws.weights[j] = np.float32(0)


@njit(**PART)
def gather_repeats(candidates, n_true):
    """Add coefficients and weights of repeated classes into their first; what repeats a true one weighs nothing."""
    classes, weights, out = candidates.classes, candidates.weights, candidates.out
    for j in range(n_true, classes.size):
        for earlier in range(j):
            if classes[earlier] == classes[j]:
                out[earlier] += out[j]
                if earlier >= n_true:
                    weights[earlier] += weights[j]
                out[j] = np.float32(0)
                weights[j] = np.float32(0)
                break


@njit(**LEAN)
def weigh_found(draws, n, excluded):
    """Give the n classes found weight 1, and the places behind them none."""
    for j in range(draws.classes.size):
        draws.log_q[j] = np.float32(0)
        draws.weights[j] = np.float32(j < n)
        if j >= n:
            draws.classes[j] = max(excluded, np.int64(0))


@njit(**LEAN)
def keep_highest(draws, n, k, score):
    """Put a class among the first n, which fall, if it belongs there; return how many these are then."""
    if n == draws.classes.size:
        if not score > draws.scores[n - 1]:
            return n
        n -= 1
    place = n
    while place > 0 and draws.scores[place - 1] < score:
        draws.scores[place], draws.classes[place] = draws.scores[place - 1], draws.classes[place - 1]
        place -= 1
    draws.scores[place], draws.classes[place] = score, k
    return n + 1
