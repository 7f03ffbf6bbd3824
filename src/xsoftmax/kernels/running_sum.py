"""A running inner sum per sample: what methods share that replace a sum over classes by an average over steps.

    inner = 1 + sum_{k != y} e^(s_k - s_y)  =  1 / p(y | x)

Everything is kept as a logarithm, so that no score gap overflows.
"""

import math

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.mathematics import exp, log_add_exp

# Of Newton's method for the variable of a double sum, which converges quadratically: a last change of 1e-7 leaves an
# error of 1e-14.
NEWTON_STEPS, NEWTON_TOLERANCE = 20, 1e-7


@njit(**OPTIONS)
def log_inner_sum(score_true, draws):
    """Log of the inner sum as these draws estimate it, 1 + sum_j weights[j] e^(s_j - s_y), float64."""
    highest = score_true
    for j in range(draws.scores.size):
        highest = max(highest, draws.scores[j] if draws.weights[j] > 0 else score_true)
    total = math.exp(np.float64(score_true - highest))
    for j in range(draws.scores.size):
        total += draws.weights[j] * exp(draws.scores[j] - highest) if draws.weights[j] > 0 else 0.0
    return math.log(total) + np.float64(highest - score_true)


@njit(**OPTIONS)
def double_sum(nu, score_true, draws):
    """The double sum nu + e^-nu inner - 1, float64: at least log(inner), and equal at nu = log(inner)."""
    return nu + math.exp(log_inner_sum(score_true, draws) - nu) - 1.0


@njit(**OPTIONS)
def log_mix(log_a, log_b, share):
    """Log of the average (1 - share) a + share b, in float64; a and b may be 0, their logs -inf."""
    first, second = math.log(1.0 - share) + log_a, math.log(share) + log_b
    return log_add_exp(first, second) if max(first, second) > -math.inf else -math.inf


@njit(**OPTIONS)
def slopes_from(log_inner, score_true, draws):
    """Write weights[j] e^(s_j - s_y - log_inner) to ``draws.out``; return minus their sum, the true class's slope."""
    shift = draws.scores.dtype.type(log_inner)
    total = draws.scores.dtype.type(0)
    for j in range(draws.scores.size):
        draws.out[j] = draws.weights[j] * exp(draws.scores[j] - score_true - shift)
        total += draws.out[j]
    return -total
