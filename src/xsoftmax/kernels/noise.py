"""Additive noise: class k is chosen where s_k + noise_k is highest; the noise's distribution makes the model.

    p(y | s) = integral of phi(e) prod_{k != y} Phi(e + s_y - s_k) de        (Ruiz et al. 2018, eq. 5)

with phi the noise's density and Phi its cumulative distribution: normal noise gives the multinomial probit,
logistic noise the multinomial logistic model (Gumbel noise would give the softmax). The type of an empty NamedTuple
chooses the code. All in float64.
"""

import math
from typing import NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS, normal
from xsoftmax.kernels.dispatch import declared, implements
from xsoftmax.kernels.mathematics import sigmoid, softplus
from xsoftmax.kernels.random import next_u64

_UNIT = 2.0**-53
# Logarithms are taken of products: of blocks of factors that are at most 1e30 each, so that none overflows.
_LARGE_FACTOR, _LARGE_PRODUCT, _BLOCK = 1e30, 1e60, 8


class Normal(NamedTuple):
    """Standard normal noise."""


class Logistic(NamedTuple):
    """Standard logistic noise."""


class Others(NamedTuple):
    """The other classes of a sample, made ready for sums over them at many points.

    Attributes
    ----------
    gaps : ndarray of shape (n,), float64
        s_k - s_y.
    weights : ndarray of shape (n,), float64
    common_weight : float
        The weight of all, or NaN where they differ.
    highest : float
        The largest gap.
    powers : ndarray of shape (n,) or (0,), float64
        e^(gap - highest), for logistic noise.
    """

    gaps: np.ndarray
    weights: np.ndarray
    common_weight: float
    highest: float
    powers: np.ndarray


@declared
def draw_noise(noise, rng):
    """Draw one number from random state ``rng``; return the new state and the number."""


@declared
def log_density(noise, x):
    """Log of phi."""


@declared
def log_density_slope(noise, x):
    """Derivative of log phi."""


@declared
def entropy(noise):
    """Entropy in nats."""


@declared
def hazard(noise, x):
    """Density over cumulative probability: the derivative of log Phi."""


@declared
def hazard_slope(noise, x, h):
    """Derivative of the hazard, ``h`` at ``x``: never above 0."""


@declared
def others_of(noise, gaps, weights):
    """Make the other classes ready."""


@declared
def sum_log_cumulative(noise, others, e):
    """Sum over the others of weight times log Phi(e - gap)."""


@njit(**OPTIONS)
def open_uniform(rng):
    """Draw a float64 in the open interval (0, 1)."""
    rng, bits = next_u64(rng)
    return rng, (np.float64(bits >> np.uint64(11)) + 0.5) * _UNIT


@implements(draw_noise, Normal)
def _draw_normal(noise, rng):
    rng, first = open_uniform(rng)
    rng, second = open_uniform(rng)
    return rng, math.sqrt(-2.0 * math.log(first)) * math.cos(2.0 * math.pi * second)


@implements(draw_noise, Logistic)
def _draw_logistic(noise, rng):
    rng, p = open_uniform(rng)
    return rng, math.log(p) - math.log1p(-p)


@implements(log_density, Normal)
def _log_density_normal(noise, x):
    return -0.5 * x * x - normal.HALF_LOG_2_PI


@implements(log_density, Logistic)
def _log_density_logistic(noise, x):
    return -abs(x) - 2.0 * math.log1p(math.exp(-abs(x)))


@implements(log_density_slope, Normal)
def _log_density_slope_normal(noise, x):
    return -x


@implements(log_density_slope, Logistic)
def _log_density_slope_logistic(noise, x):
    return -math.tanh(0.5 * x)


@implements(entropy, Normal)
def _entropy_normal(noise):
    return normal.HALF_LOG_2_PI + 0.5


@implements(entropy, Logistic)
def _entropy_logistic(noise):
    return 2.0


@implements(hazard, Normal)
def _hazard_normal(noise, x):
    return normal.hazard(x)


@implements(hazard, Logistic)
def _hazard_logistic(noise, x):
    return sigmoid(-x)


@implements(hazard_slope, Normal)
def _hazard_slope_normal(noise, x, h):
    return -h * (x + h)


@implements(hazard_slope, Logistic)
def _hazard_slope_logistic(noise, x, h):
    return -h * (1.0 - h)


@implements(others_of, Normal)
def _others_normal(noise, gaps, weights):
    return Others(gaps, weights, _common(weights), gaps.max(), np.empty(0))


@implements(others_of, Logistic)
def _others_logistic(noise, gaps, weights):
    highest = gaps.max()
    return Others(gaps, weights, _common(weights), highest, np.exp(gaps - highest))


@njit(**OPTIONS)
def _common(weights):
    for k in range(weights.size):
        if weights[k] != weights[0]:
            return np.nan
    return weights[0]


@implements(sum_log_cumulative, Normal)
def _sum_log_cumulative_normal(noise, others, e):
    total = 0.0
    for k in range(others.gaps.size):
        x = e - others.gaps[k]
        if x < normal.HIGHEST:
            total += others.weights[k] * normal.log_ndtr(x)
    return total


@implements(sum_log_cumulative, Logistic)
def _sum_log_cumulative_logistic(noise, others, e):
    factor = math.exp(min(others.highest - e, 700.0))
    if others.common_weight == others.common_weight and factor < _LARGE_FACTOR:
        return -others.common_weight * _sum_log1p(others.powers, factor)
    total = 0.0
    for k in range(others.gaps.size):
        total -= others.weights[k] * softplus(others.gaps[k] - e)
    return total


@njit(**OPTIONS)
def _sum_log1p(powers, factor):
    """Sum of log(1 + power factor), of few logarithms."""
    total, product = 0.0, 1.0
    for first in range(0, powers.size, _BLOCK):
        block = 1.0
        for k in range(first, min(first + _BLOCK, powers.size)):
            block *= 1.0 + powers[k] * factor
        product *= block
        if product > _LARGE_PRODUCT:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)
