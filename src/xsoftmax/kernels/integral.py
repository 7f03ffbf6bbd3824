"""Exact likelihoods of models with additive noise: one integral per row, centred at the mode of its integrand.

    log p(y) = log of the integral of e^F(e) de,    F(e) = log phi(e) + sum_{k != y} log Phi(e - gap_k)

F is concave, so its mode is found by safeguarded Newton steps, and the trapezoidal rule, summed outwards from there
until nothing is left to add, converges exponentially (Trefethen and Weideman 2014). Its step follows the curvature at
the mode and the sharpest edge that the others can form. Cost of a row: some 60 sums over all classes.
"""

import math

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import declared, implements
from xsoftmax.kernels.mathematics import is_finite
from xsoftmax.kernels.noise import (
    Logistic,
    Normal,
    hazard,
    hazard_slope,
    log_density,
    log_density_slope,
    others_of,
    sum_log_cumulative,
)

# In units of the integrand's scale: the first two terms that Poisson's summation formula leaves out are below 1e-10.
STEP = 0.4
# e^-DROP of the mode's value is where the sum ends.
DROP = 24.0
NEWTON_STEPS = 60
# So close to the mode, in units of the integrand's scale, that the sum may as well begin there.
CLOSE = 0.1
# Where the true class is this far behind, logistic noise leaves a plateau that long: then steps grow with it.
LONGEST = 2000.0


@declared
def bracket(noise, others):
    """Right end of an interval from 0 that holds the mode of the integrand."""


@declared
def scale(noise, others, curvature):
    """Length on which the integrand changes, at its mode and at the edges that the others form."""


@njit(**OPTIONS)
def log_likelihoods(noise, scores, classes):
    """Log-probabilities of some classes of each row: float64 of shape (n, m).

    Parameters
    ----------
    noise : NamedTuple
        See ``xsoftmax.kernels.noise``.
    scores : ndarray of shape (n, n_classes), float64
        A row with a score that is not finite gives NaN.
    classes : ndarray of shape (n, m), int64
    """
    out = np.empty(classes.shape)
    gaps, ones = np.empty(scores.shape[1] - 1), np.ones(scores.shape[1] - 1)
    for i in range(scores.shape[0]):
        finite = is_finite(np.abs(scores[i]).max())
        for j in range(classes.shape[1]):
            gaps_to(scores[i], classes[i, j], gaps)
            out[i, j] = log_integral(noise, others_of(noise, gaps, ones)) if finite else np.nan
    return out


@njit(**OPTIONS)
def sampled_log_likelihoods(noise, scores, y, points, log_q):
    """Log-probabilities of the classes ``y`` by importance sampling, float64 of shape (n,).

    Parameters
    ----------
    noise, scores
        As for ``log_likelihoods``.
    y : ndarray of shape (n,), int64
    points, log_q : ndarray of shape (n, n_draws), float64
        Draws of e for each row, and their log-densities.
    """
    n_draws = points.shape[1]
    out, logs = np.empty(y.size), np.empty(n_draws)
    gaps, ones = np.empty(scores.shape[1] - 1), np.ones(scores.shape[1] - 1)
    for i in range(y.size):
        gaps_to(scores[i], y[i], gaps)
        others = others_of(noise, gaps, ones)
        for j in range(n_draws):
            logs[j] = log_joint(noise, others, points[i, j]) - log_q[i, j]
        highest = logs.max()
        out[i] = highest + math.log(np.exp(logs - highest).mean())
    return out


@njit(**OPTIONS)
def gaps_to(scores, y, gaps):
    """Write s_k - s_y of all k other than ``y``."""
    n = 0
    for k in range(scores.size):
        if k != y:
            gaps[n] = np.float64(scores[k]) - np.float64(scores[y])
            n += 1


@njit(**OPTIONS)
def log_integral(noise, others):
    """Log of the integral of phi(e) prod Phi(e - gap)."""
    mode, curvature = mode_of(noise, others)
    step = STEP * scale(noise, others, curvature)
    highest = log_joint(noise, others, mode)
    total = 1.0
    for direction in (-1.0, 1.0):
        n = 0
        value = 0.0
        while value > -DROP:
            n += 1
            value = log_joint(noise, others, mode + direction * step * n) - highest
            total += math.exp(value)
    return min(0.0, highest + math.log(step * total))  # rounding may leave it a little above


@njit(**OPTIONS)
def log_joint(noise, others, e):
    """F(e)."""
    return log_density(noise, e) + sum_log_cumulative(noise, others, e)


@njit(**OPTIONS)
def mode_of(noise, others):
    """Where F is highest, about, and minus its second derivative there."""
    low, high = 0.0, bracket(noise, others)
    e = 0.5 * (low + high)
    curvature = 1.0
    for _ in range(NEWTON_STEPS):
        slope, curvature = slope_and_curvature(noise, others, e)
        low, high = (e, high) if slope > 0 else (low, e)
        change = slope / curvature if curvature > 0 else math.inf
        if change * change * curvature < CLOSE * CLOSE:
            break
        e = e + change if low < e + change < high else 0.5 * (low + high)
    return e, curvature


@njit(**OPTIONS)
def slope_and_curvature(noise, others, e):
    """F'(e) and -F''(e)."""
    slope = log_density_slope(noise, e)
    curvature = density_curvature(noise, slope)
    for k in range(others.gaps.size):
        x = e - others.gaps[k]
        h = others.weights[k] * hazard(noise, x)
        slope += h
        curvature -= hazard_slope(noise, x, h)
    return slope, curvature


@declared
def density_curvature(noise, slope):
    """Minus the second derivative of log phi, where its first is ``slope``."""


@implements(density_curvature, Normal)
def _density_curvature_normal(noise, slope):
    return 1.0


@implements(density_curvature, Logistic)
def _density_curvature_logistic(noise, slope):
    return 0.5 * (1.0 - slope * slope)


@implements(bracket, Normal)
def _bracket_normal(noise, others):
    return max(others.highest, 0.0) + math.sqrt(2.0 * math.log(others.gaps.size)) + 2.0


@implements(bracket, Logistic)
def _bracket_logistic(noise, others):
    return max(others.highest, 0.0) + math.log(others.gaps.size) + 5.0


@implements(scale, Normal)
def _scale_normal(noise, others, curvature):
    sharpest_edge = 1.0 + 2.0 * math.log(others.gaps.size)
    return 1.0 / math.sqrt(max(curvature, sharpest_edge))


@implements(scale, Logistic)
def _scale_logistic(noise, others, curvature):
    return max(1.0, others.highest / LONGEST)
