"""The normal distribution's log cumulative probability and hazard, in float64, over the whole real line.

    log_ndtr(x) = log Phi(x)            hazard(x) = phi(x) / Phi(x) = d log Phi(x) / dx

Between -20 and 8.5, log Phi comes from a table of polynomials (a few nanoseconds, for likelihoods that need it at
all classes and many points); below, from the asymptotic series of Phi, in which no exponential is formed; above,
it is 0 to double precision.
"""

import math

import numpy as np
from scipy import special

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS

LOWEST, HIGHEST = -20.0, 8.5
PER_UNIT = 16
N_CELLS = round((HIGHEST - LOWEST) * PER_UNIT)
DEGREE = 7
HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
_ROOT_HALF = math.sqrt(0.5)
_ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_SERIES_TERMS = 9


def _polynomials() -> np.ndarray:
    """Coefficients by cell, lowest power first, of log Phi at centre + v / (2 PER_UNIT), v from -1 to 1."""
    centres = LOWEST + (np.arange(N_CELLS) + 0.5) / PER_UNIT
    nodes = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    values = special.log_ndtr(centres[:, None] + nodes / (2 * PER_UNIT))
    return np.linalg.solve(np.vander(nodes, increasing=True), values.T).T.copy()


_TABLE = _polynomials()


@njit(**OPTIONS)
def log_ndtr(x):
    """Log of the normal distribution's cumulative probability at ``x``, within 1e-11 of its value below 8.5."""
    if x >= HIGHEST:
        return 0.0
    if not x >= LOWEST:
        return -0.5 * x * x - HALF_LOG_2_PI - math.log(-x) + math.log(_tail_series(x))
    place = (x - LOWEST) * PER_UNIT
    cell = min(int(place), N_CELLS - 1)  # just below 8.5 it may round up
    v = 2.0 * (place - cell) - 1.0
    c = _TABLE[cell]
    return c[0] + v * (c[1] + v * (c[2] + v * (c[3] + v * (c[4] + v * (c[5] + v * (c[6] + v * c[7]))))))


@njit(**OPTIONS)
def hazard(x):
    """Density over cumulative probability: about -x far to the left, 0 far to the right."""
    if x < LOWEST:
        return -x / _tail_series(x)
    return _ROOT_2_OVER_PI * math.exp(-0.5 * x * x) / math.erfc(-x * _ROOT_HALF)


@njit(**OPTIONS)
def _tail_series(x):
    """1 - 1 / x^2 + 3 / x^4 - 15 / x^6 ...: Phi(x) = phi(x) / -x times this, x < -20."""
    inverse = 1.0 / (x * x)
    total = 1.0
    for k in range(_SERIES_TERMS, 0, -1):
        total = 1.0 - (2 * k - 1) * inverse * total
    return total
