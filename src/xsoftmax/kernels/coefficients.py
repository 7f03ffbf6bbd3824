"""What one sample of a sampled step comes to: scores of its classes, and the coefficients along which they move."""

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import PART
from xsoftmax.kernels.draws import gather_repeats, weigh_for
from xsoftmax.kernels.mathematics import is_finite
from xsoftmax.kernels.protocol import (
    View,
    coefficients,
    draws_numbers,
    excludes_true,
    floor,
    log_probability,
    reads_weights,
    uses_log_q,
)
from xsoftmax.kernels.random import start
from xsoftmax.kernels.walk import score_class, score_step

# Parts the objective's own random numbers from those of the proposal.
OWN_NUMBERS = np.uint64(0x5851F42D4C957F2D)


@njit(**PART)
def excluded_of(objective, y):
    """Class that draws may leave out: the true one where the sum is over the others, or -1."""
    return y if excludes_true(objective) else np.int64(-1)


@njit(**PART)
def lowest_of(parts, features, weights, i, y):
    """Score below which no class would move in a step, for proposals that look; otherwise minus infinity."""
    if reads_weights(parts.proposal):
        return floor(parts.objective, score_class(weights, features, i, y))
    return np.float32(-np.inf)


@njit(**PART)
def coefficients_of(parts, samples, features, row, weights, i, key, position, rate, candidates):
    """Fill ``candidates.out`` for sample ``i``, whose classes are there, repeats gathered.

    ``row`` of ``features`` is what classes see of the sample. Return whether all scores are finite, without which
    nothing else is done.
    """
    objective, proposal, optimizer, _ = parts
    y, draws = candidates.classes[0], candidates.draws
    weigh_for(objective, y, draws)
    score_step(weights, features, row, candidates.classes, candidates.scores)
    if not all_finite(candidates.scores):
        return False
    log_q_true = np.float32(0)
    if uses_log_q(objective):
        log_q_true = _log_q_of(samples.log_q, proposal, View(weights, features), i, y)
    if draws_numbers(objective):
        draws.rng[0] = start(key ^ OWN_NUMBERS, position)
    score_true, state = candidates.scores[0], samples.auxiliary[i]
    candidates.out[0] = coefficients(optimizer, objective, features, row, rate, state, score_true, log_q_true, draws)
    gather_repeats(candidates, 1)
    return True


@njit(**PART)
def _log_q_of(known, proposal, view, i, y):
    return log_probability(proposal, view, i, y) if known is None else known[i]


@njit(**PART)
def all_finite(scores):
    """Tell whether a sum of scores is finite, and so each of them."""
    total = np.float32(0)
    for score in scores:
        total += score
    return is_finite(total)
