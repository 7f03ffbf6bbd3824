"""Weights that shrink together in every step, whichever classes it touches: decay, apart from the gradient.

All weights but biases are one factor times what is stored,

    W  =  c V,    c <- c (1 - rate x decay)  in every step,

so that a step costs what it touches. A move of a weight by m moves what is stored by m / c. For the average of the
weights over steps 1 ... t, C being the sum of c over the steps before a move of what is stored by v (summation by
parts),

    W_1 + ... + W_t  =  C_t V_t - sum over moves of C v

which again needs no look at what was not touched. Between chunks, c is multiplied into what is stored.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.layout import (
    Averaged,
    Stored,
    age,
    around,
    elapsed,
    factor_of,
    for_bias,
    move_divided,
    move_entry,
    opened,
)

# A factor above this stays; between chunks, a smaller one is multiplied in: sums of averages lose as many digits.
FOLDED = 0.5
# What a step leaves of weights, at least, and all steps of a stretch together.
LEAST = 2.0**-7
# Rows of weights that are folded in one go.
_ROWS = 1024


@around
class Scaled(NamedTuple):
    """Weights that share a factor, but for the biases.

    Attributes
    ----------
    inner : NamedTuple
        What is stored.
    scale : ndarray of shape (3,), float64
        The factor, its inverse, and its sum over the steps of the average's period.
    decay : float32
        Of all weights, per step and unit of the learning rate.
    """

    inner: Any
    scale: np.ndarray
    decay: np.float32

    def weights(self) -> np.ndarray:
        """Copy of the weights, (n_classes, width)."""
        return self.times(self.scale[0])

    def times(self, factor: float) -> np.ndarray:
        """Copy of what is stored, the weights but for the biases multiplied."""
        weights = self.inner.weights().copy()
        weights[:, :-1] *= np.float32(factor)
        return weights


def scaled(weights: Any, decay: float) -> Scaled:
    """Let weights decay from now on."""
    return Scaled(weights, unscaled(), np.float32(decay))


def unscaled() -> np.ndarray:
    """Give the scale of weights that have not shrunk yet."""
    return np.array([1.0, 1.0, 0.0])


def left_by_a_step(decay: float, rate: float) -> float:
    """What a step leaves of each weight."""
    return max(1 - float(np.float32(rate)) * float(decay), LEAST)


def steps_of_a_stretch(weights: Any, rate: float) -> int | None:
    """Count the steps after which what is left may have to be multiplied in; None: that never happens."""
    decay = decay_of(weights)
    if not decay or not rate > 0:
        return None
    return max(1, int(math.log(LEAST) / math.log(left_by_a_step(decay, rate))))


def decay_of(weights: Any) -> float:
    """Give the decay of weights in any layout, for all of them; 0 if they have none."""
    if isinstance(weights, Averaged):
        return decay_of(weights.inner)
    return float(weights.decay) if hasattr(weights, "scale") else 0.0


def fold(weights: Any) -> None:
    """Multiply a small factor into what is stored, in place: nobody may be reading."""
    scaled, totals = (weights.inner, weights.totals) if isinstance(weights, Averaged) else (weights, None)
    if not isinstance(scaled, Scaled) or scaled.scale[0] > FOLDED:
        return
    V, factor, sum_of_factors = scaled.inner.weights(), *scaled.scale[[0, 2]]
    for first in range(0, len(V), _ROWS):
        rows = V[first : first + _ROWS, :-1]
        if totals is not None:
            totals[first : first + _ROWS, :-1] += np.float32(sum_of_factors * (factor - 1)) * rows
        rows *= np.float32(factor)
    scaled.scale[:2] = 1


def later(weights: Any, n_steps: int, rate: float) -> Any:
    """Give the same weights with a scale of their own, that after so many steps: where a thread begins."""
    if isinstance(weights, Averaged):
        return weights._replace(inner=later(weights.inner, n_steps, rate))
    if not isinstance(weights, Scaled):
        return weights
    left, (factor, _, total) = left_by_a_step(float(weights.decay), rate), weights.scale
    power = left**n_steps
    steps = n_steps if left == 1 else left * (1 - power) / (1 - left)
    return weights._replace(scale=np.array([factor * power, 1 / (factor * power), total + factor * steps]))


def scale_of(weights: Any) -> np.ndarray:
    """Give the scale of weights in any layout; of none, (0,)."""
    if isinstance(weights, Averaged):
        return scale_of(weights.inner)
    return weights.scale if isinstance(weights, Scaled) else np.empty(0)


# Of compiled code


@njit(**LEAN)
def shrink_all(scale, decay, rate):
    """Let all weights of a scale shrink as one step makes them."""
    if decay != np.float32(0):
        scale[0] *= max(1.0 - np.float64(rate) * np.float64(decay), LEAST)
        scale[1] = 1.0 / scale[0]
    scale[2] += scale[0]


@njit(**LEAN)
def sum_before(scale):
    """Sum of the factors after the steps before this one, which has made all weights shrink: float32."""
    return np.float32(scale[2] - scale[0])


@njit(**LEAN)
def rule_of(scale, optimizer):
    """Give the optimizer's rule for what is stored under a scale."""
    return Stored(optimizer, np.float32(scale[0]), np.float32(scale[1]))


@implements(age, Scaled)
def age_scaled(weights, step):
    """Let a step begin, of weights that have a scale."""
    shrink_all(weights.scale, weights.decay, step.rate)


@implements(elapsed, Scaled)
def _elapsed(weights, step, first):
    return sum_before(weights.scale)


@implements(factor_of, Scaled)
def _factor_of(weights, k):
    return np.float32(weights.scale[0])


@implements(opened, Scaled)
def _opened(weights, step, k):
    return opened(weights.inner, step, k), np.float32(weights.scale[0]), np.float32(weights.scale[1])


@implements(for_bias, Scaled)
def _for_bias(weights, at):
    return for_bias(weights.inner, at[0]), np.float32(1), np.float32(1)


implements(move_entry, Scaled)(move_divided)
