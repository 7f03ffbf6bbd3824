"""Augment and reduce with additive noise: Ruiz et al. 2018, section 3.2, for normal or logistic noise.

    ELBO = E_q[log phi(e) + sum_{k != y} log Phi(e + s_y - s_k)] + H[q],    q: e = mu + sigma u,  u ~ phi

``state`` is (mu, gamma, visits) with sigma = log(1 + e^gamma). The expectation over q is one draw in a step, and a
trapezoidal sum where the value is asked for.
"""

import math

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import declared, implements
from xsoftmax.kernels.mathematics import softplus
from xsoftmax.kernels.noise import (
    Logistic,
    Normal,
    draw_noise,
    entropy,
    hazard,
    log_density,
    log_density_slope,
    others_of,
    sum_log_cumulative,
)

N_AUXILIARY = 3
# gamma at sigma = 1.
GAMMA_OF_ONE = math.log(math.e - 1.0)
# Of the trapezoidal sum, in units of q's scale, where that is at most 1.
SPACING = 0.75


@njit(**OPTIONS)
def move_variables(noise, local_rate, local_power, with_entropy, state, score_true, draws):
    """Take the local step along the gradient of the ELBO by (mu, gamma) with one draw of u (eq. 9).

    The step's length is local_rate (1 + t)^-local_power, t the visits of this sample, this one counted; q's entropy
    is left out unless ``with_entropy``.
    """
    draws.rng[0], u = draw_noise(noise, draws.rng[0])
    sigma = softplus(state[1])
    e = state[0] + sigma * u
    slope = log_density_slope(noise, e)
    for j in range(draws.scores.size):
        if draws.weights[j] > 0:
            slope += draws.weights[j] * hazard(noise, e - (np.float64(draws.scores[j]) - np.float64(score_true)))
    sigma_slope = -math.expm1(-sigma)  # d sigma / d gamma
    by_entropy = sigma_slope / sigma if sigma > 1e-300 else 1.0
    state[2] += 1.0
    rate = local_rate * (1.0 + state[2]) ** -local_power
    state[0] += rate * slope
    state[1] += rate * (slope * u * sigma_slope + (by_entropy if with_entropy else 0.0))


@njit(**OPTIONS)
def coefficients_at_draw(noise, state, score_true, draws):
    """Write weight times hazard at a fresh draw of e to ``draws.out``; return minus their sum."""
    draws.rng[0], u = draw_noise(noise, draws.rng[0])
    e = state[0] + softplus(state[1]) * u
    kind = draws.scores.dtype.type
    total = kind(0)
    for j in range(draws.scores.size):
        h = hazard(noise, e - (np.float64(draws.scores[j]) - np.float64(score_true)))
        draws.out[j] = draws.weights[j] * kind(h)
        total += draws.out[j]
    return -total


@njit(**OPTIONS)
def minus_elbo(noise, state, score_true, draws):
    """Negative evidence lower bound, at least -log p(y), in nats."""
    gaps, weights = np.empty(draws.scores.size), np.empty(draws.scores.size)
    for j in range(gaps.size):
        gaps[j] = np.float64(draws.scores[j]) - np.float64(score_true)
        weights[j] = draws.weights[j]
    return minus_elbo_of(noise, state[0], state[1], others_of(noise, gaps, weights))


@njit(**OPTIONS)
def minus_elbo_of(noise, mu, gamma, others):
    """The same from the other classes, made ready; the bound's expectation by a trapezoidal sum over u."""
    sigma = softplus(gamma)
    spacing = SPACING / max(1.0, sigma)
    n = int(reach(noise) / spacing)
    total = norm = 0.0
    for j in range(-n, n + 1):
        u = j * spacing
        e = mu + sigma * u
        q = math.exp(log_density(noise, u))
        norm += q
        total += q * (log_density(noise, e) + sum_log_cumulative(noise, others, e))
    log_sigma = math.log(sigma) if gamma > -30.0 else gamma
    return -total / norm - entropy(noise) - log_sigma


@declared
def reach(noise):
    """How far the trapezoidal sum goes to both sides, in units of q's scale."""


@implements(reach, Normal)
def _reach_normal(noise):
    return 8.25


@implements(reach, Logistic)
def _reach_logistic(noise):
    return 36.0
