"""Loss and slopes of one sample, all classes looked at, from an objective's compiled code."""

from typing import NamedTuple

import numpy as np

from objectives.one_step import gradient_of, loss_of
from xsoftmax.kernels.protocol import Draws


class Evaluated(NamedTuple):
    """Loss; slopes by all scores, in the precision that was asked for; the state after either."""

    loss: float
    slopes: np.ndarray
    state: np.ndarray


def draws_of(classes, weights, scores):
    """Draws of one precision, that of ``scores``."""
    workspace = [np.zeros(len(scores), scores.dtype) for _ in range(2)]
    weights = np.asarray(weights, scores.dtype)
    return Draws(np.asarray(classes), workspace[0], weights, scores, workspace[1], np.zeros(1, np.uint64))


def slopes_of(objective, s, y, classes, weights, state=None):
    """Slopes by all scores where only some classes, with weights, are looked at."""
    s, classes = np.asarray(s), np.asarray(classes)
    draws, state = draws_of(classes, weights, s[classes]), np.zeros(0) if state is None else state
    zero = s.dtype.type(0)
    of_true = gradient_of(objective, zero, state, s[y], zero, draws)
    assert type(of_true) is float  # numba hands back Python's, whatever the precision
    slopes = np.zeros_like(s)
    np.add.at(slopes, classes, draws.out)
    slopes[y] += of_true
    return slopes


def evaluate(objective, s, y, state=(), dtype=np.float64):
    """Look at all classes, in the order of the loops: the last in the place of ``y``."""
    s = np.asarray(s, dtype)
    classes = np.arange(len(s) - 1)
    if y < len(classes):
        classes[y] = len(classes)
    after, again = np.array(state, float), np.array(state, float)
    slopes = slopes_of(objective, s, y, classes, np.ones(len(classes)), after)
    value = loss_of(objective, again, s[y], dtype(0), draws_of(classes, np.ones(len(classes)), s[classes]))
    assert np.allclose(after, again, rtol=1e-12, atol=1e-12)
    return Evaluated(value, slopes, after)
