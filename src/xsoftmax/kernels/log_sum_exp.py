"""Passes over rows of scores: the highest, how many are no lower than another, sums of exponentials.

They are written so that they vectorise, which a maximum of floats that may be NaN does not: bit patterns are compared
as integers, and sums are float32 over short stretches, then float64.
"""

from typing import NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.mathematics import bits_of_float, exp32, float_with_bits

INFINITY = np.float32(np.inf)
# Terms of a float32 sum. Eight or sixteen partial sums are kept at once, so that each grows by a few dozen terms.
STRETCH = 256


class Scan(NamedTuple):
    """What one look at a row of scores finds.

    Attributes
    ----------
    highest : float32
        Of the scores that are numbers; of no use if some are not.
    no_lower : int32
        How many are not below a given score; NaN is not below anything.
    not_finite : int32
        How many are NaN or infinity; minus infinity is the score of a class of probability zero.
    """

    highest: np.float32
    no_lower: np.int32
    not_finite: np.int32


@njit(**OPTIONS)
def scan(row, score):
    """Find the highest of a row of float32 scores, and count those that are not below ``score``: a ``Scan``."""
    highest = _ordered(bits_of_float(-INFINITY))  # type: ignore[call-arg]
    no_lower = not_finite = np.int32(0)
    for k in range(row.size):
        no_lower = np.int32(no_lower + (not (row[k] < score)))  # numba adds two of 32 bits to one of 64
        not_finite = np.int32(not_finite + (not (row[k] < INFINITY)))
        highest = max(highest, _ordered(bits_of_float(row[k])))
    return Scan(float_with_bits(_ordered(highest)), no_lower, not_finite)


@njit(**OPTIONS)
def sum_exp(row, reference):
    """Sum of e^(score - reference) over a row of float32 scores, in float64."""
    total = 0.0
    for first in range(0, row.size, STRETCH):
        stretch = row[first : first + STRETCH]
        part = np.float32(0)
        for k in range(stretch.size):
            part += exp32(stretch[k] - reference)
        total += np.float64(part)
    return total


@njit(**OPTIONS)
def write_exp(row, reference):
    """Replace a row of float32 scores by e^(score - reference); return their sum, in float64."""
    total = 0.0
    for first in range(0, row.size, STRETCH):
        stretch = row[first : first + STRETCH]
        part = np.float32(0)
        for k in range(stretch.size):
            stretch[k] = exp32(stretch[k] - reference)
            part += stretch[k]
        total += np.float64(part)
    return total


@njit(inline="always", **OPTIONS)
def _ordered(bits):
    """Bits of a float32 as an int32 of the same order; its own inverse."""
    return np.int32(bits ^ (np.int32(bits >> np.int32(31)) & np.int32(0x7FFFFFFF)))
