"""Adagrad: a += g^2; w -= rate g / sqrt(a), for every touched entry; no epsilon, a starts above 0.

Duchi, Hazan and Singer 2011. Weights and accumulators lie side by side, so that a touched row is one stretch of
memory (dense rows) or a touched entry one cache line (sparse rows).
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from xsoftmax.kernels import LEAN
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.layout import Interleaved
from xsoftmax.kernels.rows import Csr, Dense, dot, dot_two
from xsoftmax.kernels.steps import coefficients, gradient, move, move_block, move_two, score_class, score_two
from xsoftmax.optimizers import optimizer


@optimizer(layout=Interleaved, takes_blocks=True)
class Adagrad(NamedTuple):
    """Parameters: ``learning_rate``; ``initial_accumulator``, the a before the first step."""

    learning_rate: float = 0.3
    initial_accumulator: float = 1e-8

    def problem(self) -> str:
        """Say what is wrong with the parameters, or nothing."""
        return "" if self.initial_accumulator > 0 else "initial_accumulator is 0; set it above 0, such as 1e-8"


MEMBER = Adagrad


Adagrad.takes_two = True  # type: ignore[attr-defined]


@implements(coefficients, Adagrad)
def _coefficients(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
    return gradient(objective, rate, state, score_true, log_q_true, draws)


@implements(score_class, Adagrad)
def _score_class(optimizer, features, i, W, k):
    return score_beside(features, i, W, k)


@implements(move, Adagrad)
def _move(optimizer, features, i, step, coefficient, W, k):
    adagrad(features, i, step.rate, coefficient, W, k)


@implements(score_two, Adagrad)
def _score_two(optimizer, features, i, W, k, other):
    return score_two_beside(features, i, W, k, other)


@implements(move_two, Adagrad)
def _move_two(optimizer, features, i, step, coefficient, W, k, other_coefficient, other):
    adagrad_two(features, i, step.rate, coefficient, W, k, other_coefficient, other)


@implements(move_block, Adagrad)
def _move_block(optimizer, rate, gradient, w, accumulator):
    for k in range(w.size):
        w[k], accumulator[k] = _moved(w[k], accumulator[k], rate, gradient[k])


@njit(**LEAN)
def _moved(w, a, rate, g):
    """One entry and its accumulator after a step."""
    a += g * g
    return w - rate * g / np.sqrt(a), a


def score_beside(features, i, W, k):
    """Score of class ``k`` where weights lie beside accumulators (``Interleaved``)."""
    raise TypeError("compiled code only")


def score_two_beside(features, i, W, k, other):
    """Scores of two classes (``Interleaved``)."""
    raise TypeError("compiled code only")


def adagrad_two(features, i, rate, coefficient, W, k, other_coefficient, other):
    """Take the Adagrad steps of two classes along sample ``i``, on interleaved weights."""
    raise TypeError("compiled code only")


def adagrad(features, i, rate, coefficient, W, k):
    """Take the Adagrad step of class ``k`` along sample ``i``, on interleaved weights."""
    raise TypeError("compiled code only")


@implements(score_beside, Dense)
def _score_beside_dense(features, i, W, k):
    return dot(features, i, W[k, 0])


@implements(score_beside, Csr)
def _score_beside_csr(features, i, W, k):
    return dot(features, i, W[k, :, 0])


@implements(score_two_beside, Dense)
def _score_two_beside_dense(features, i, W, k, other):
    return dot_two(features, i, W[k, 0], W[other, 0])


@implements(score_two_beside, Csr)
def _score_two_beside_csr(features, i, W, k, other):
    return dot_two(features, i, W[k, :, 0], W[other, :, 0])


@implements(adagrad_two, Dense)
def _adagrad_two_dense(features, i, rate, coefficient, W, k, other_coefficient, other):
    x = features.X[i]
    w, a = W[k, 0], W[k, 1]
    v, b = W[other, 0], W[other, 1]
    for d in range(x.size):
        w[d], a[d] = _moved(w[d], a[d], rate, coefficient * x[d])
        v[d], b[d] = _moved(v[d], b[d], rate, other_coefficient * x[d])
    d = x.size
    w[d], a[d] = _moved(w[d], a[d], rate, coefficient * features.constant)
    v[d], b[d] = _moved(v[d], b[d], rate, other_coefficient * features.constant)


@implements(adagrad_two, Csr)
def _adagrad_two_csr(features, i, rate, coefficient, W, k, other_coefficient, other):
    row, its = W[k], W[other]
    for j in range(features.indptr[i], features.indptr[i + 1]):
        d = features.indices[j]
        row[d, 0], row[d, 1] = _moved(row[d, 0], row[d, 1], rate, coefficient * features.data[j])
        its[d, 0], its[d, 1] = _moved(its[d, 0], its[d, 1], rate, other_coefficient * features.data[j])
    d = features.n_features
    row[d, 0], row[d, 1] = _moved(row[d, 0], row[d, 1], rate, coefficient * features.constant)
    its[d, 0], its[d, 1] = _moved(its[d, 0], its[d, 1], rate, other_coefficient * features.constant)


@implements(adagrad, Dense)
def _adagrad_dense(features, i, rate, coefficient, W, k):
    x = features.X[i]
    w = W[k, 0]
    a = W[k, 1]
    for d in range(x.size):
        w[d], a[d] = _moved(w[d], a[d], rate, coefficient * x[d])
    d = x.size
    w[d], a[d] = _moved(w[d], a[d], rate, coefficient * features.constant)


@implements(adagrad, Csr)
def _adagrad_csr(features, i, rate, coefficient, W, k):
    both = W[k]
    for j in range(features.indptr[i], features.indptr[i + 1]):
        d = features.indices[j]
        both[d, 0], both[d, 1] = _moved(both[d, 0], both[d, 1], rate, coefficient * features.data[j])
    d = features.n_features
    both[d, 0], both[d, 1] = _moved(both[d, 0], both[d, 1], rate, coefficient * features.constant)
