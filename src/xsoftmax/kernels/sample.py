"""What one sample of a sampled step comes to: scores of its classes, and the coefficients along which they move."""

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import PART
from xsoftmax.kernels.draws import gather_repeats, weigh_for
from xsoftmax.kernels.mathematics import is_finite
from xsoftmax.kernels.random import start
from xsoftmax.kernels.steps import coefficients, draws_numbers, log_probability, uses_log_q
from xsoftmax.kernels.walk import score_step

# Parts the objective's own random numbers from those of the proposal.
OWN_NUMBERS = np.uint64(0x5851F42D4C957F2D)


@njit(**PART)
def coefficients_of(
    objective, proposal, optimizer, features, states, weights, i, y, key, position, rate, log_q_of_labels, draws
):
    """Fill ``draws.out`` for sample ``i`` of class ``y``, whose classes are drawn, repeats gathered.

    Return whether all scores are finite, without which nothing else is done, and the coefficient of the true class.
    ``log_q_of_labels`` may be None; see ``xsoftmax.kernels.sweep.sweep``.
    """
    weigh_for(objective, y, draws)
    score_true = score_step(weights, features, i, y, draws)
    if not _all_finite(score_true, draws.scores):
        return False, np.float32(0)
    log_q_true = np.float32(0)
    if uses_log_q(objective):
        log_q_true = log_probability(proposal, i, y) if log_q_of_labels is None else log_q_of_labels[i]
    if draws_numbers(objective):
        draws.rng[0] = start(key ^ OWN_NUMBERS, position)
    of_true = coefficients(optimizer, objective, features, i, rate, states[i], score_true, log_q_true, draws)
    return True, np.float32(of_true + gather_repeats(y, draws))


@njit(**PART)
def _all_finite(score_true, scores):
    total = score_true
    for score in scores:
        total += score
    return is_finite(total)
