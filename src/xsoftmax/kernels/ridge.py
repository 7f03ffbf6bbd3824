"""A ridge on single steps: the touched rows shrink, each as much as it is rarely touched.

    (ridge / 2) ||W||^2 / n_samples  =  E[sum over touched k of b_k (ridge / 2) ||w_k||^2 / n_samples]

with b_k the inverse of the probability that a step touches class k (Fagan and Iyengar 2018, eq. 6), or, where that
differs from row to row, the weight of the draw. Biases are not shrunk. A row is kept as a number times a row, so
that sparse samples shrink it in one multiplication.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xsoftmax.kernels import LEAN
from xsoftmax.kernels.dispatch import implements, lean, otherwise
from xsoftmax.kernels.rows import axpy, bias_of, dot
from xsoftmax.kernels.steps import coefficients, move, score_class

# A factor outside of these is multiplied into its row, long before float32 loses digits.
_SMALLEST = np.float32(2.0**-20)
_LARGEST = np.float32(2.0**20)


class Ridge(NamedTuple):
    """An optimizer that moves along -rate c x, with a ridge.

    Attributes
    ----------
    inner : NamedTuple
        The optimizer.
    decay : float32
        ridge / n_samples.
    inverse_touch : ndarray of shape (n_classes,), float32
        b_k; of shape (0,): the weights of the draws.
    """

    inner: Any
    decay: np.float32
    inverse_touch: np.ndarray


@lean
def shrink(optimizer, features, step, W, k, weight):
    """Apply the ridge to class ``k``, touched by a draw of this weight; nothing if there is none."""
    raise TypeError("compiled code only")


# It has a shrink of its own.
Ridge.shrinks = True  # type: ignore[attr-defined]


@otherwise(shrink, unless="shrinks")
def _no_shrink(optimizer, features, step, W, k, weight):
    pass


@implements(shrink, Ridge)
def _shrink(optimizer, features, step, W, k, weight):
    b = optimizer.inverse_touch[k] if optimizer.inverse_touch.size else weight
    scale_row(W[k], np.float32(1) - step.rate * optimizer.decay * b)


@njit(**LEAN)
def scale_row(row, by):
    """Multiply a scaled row, but for its bias, by a float32."""
    last = row.size - 1
    factor = row[last] * by
    if not _SMALLEST < abs(factor) < _LARGEST:
        for d in range(last - 1):
            row[d] *= factor
        factor = np.float32(1)
    row[last] = factor


@implements(coefficients, Ridge)
def _coefficients(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
    return coefficients(optimizer.inner, objective, features, i, rate, state, score_true, log_q_true, draws)


@implements(score_class, Ridge)
def _score_class(optimizer, features, i, W, k):
    row = W[k]
    bias = bias_of(features) * row[row.size - 2]
    return row[row.size - 1] * (dot(features, i, row) - bias) + bias


@implements(move, Ridge)
def _move(optimizer, features, i, step, coefficient, W, k):
    row = W[k]
    along = -step.rate * coefficient
    bias = row[row.size - 2]
    axpy(features, i, along / row[row.size - 1], row)
    # Not by taking back what is too much: that may be a million times the step, which float32 would not survive.
    row[row.size - 2] = bias + along * bias_of(features)
