"""Samples against rows of the weights: scores, and moves along a sample, whatever the layout.

A row of the weights comes from memory as fast as one stream of it can; two at once come in little more time than one.
So the classes of a step are walked two at a time.

A layout may bring ``score_class``, ``score_two``, ``move`` and ``move_two`` of its own; those here are for rows of
entries.
"""

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import PART
from xsoftmax.kernels.dispatch import lean, otherwise
from xsoftmax.kernels.layout import (
    age,
    closed,
    factor_of,
    for_bias,
    move_entry,
    opened,
    shrink,
    stored,
    stored_score,
    stored_scores,
)
from xsoftmax.kernels.protocol import NEGLIGIBLE
from xsoftmax.kernels.rows import Csr, Dense, bias_of, rate_of, width_of


@lean
def score_class(weights, features, i, k):
    """Score of class ``k`` for sample ``i``, float32."""


@lean
def score_two(weights, features, i, k, other):
    """Scores of two classes, as ``score_class`` gives them up to rounding, with both rows on their way at once."""


@lean
def move(weights, features, optimizer, i, step, coefficient, k):
    """Move the weights of class ``k`` by the gradient ``coefficient`` times sample ``i``."""


@lean
def move_two(weights, features, optimizer, i, step, coefficient, k, other_coefficient, other):
    """Move two different classes as ``move`` does."""


@otherwise(score_class)
def _score_class(weights, features, i, k):
    return _scaled(weights, features, k, stored_score(weights, features, i, k))


@otherwise(score_two)
def _score_two(weights, features, i, k, other):
    score, of_other = stored_scores(weights, features, i, k, other)
    return _scaled(weights, features, k, score), _scaled(weights, features, other, of_other)


@njit(**PART)
def _scaled(weights, features, k, score):
    """Apply the factor of class ``k`` to a score of what is stored; biases have none."""
    factor = factor_of(weights, k)
    if factor == np.float32(1):
        return score
    bias = bias_of(features) * stored(weights, k, width_of(features))
    return factor * (score - bias) + bias


@otherwise(move, second=Dense)
def _move_dense(weights, features, optimizer, i, step, coefficient, k):
    x, at = features.X[i], opened(weights, step, k)
    for d in range(x.size):
        move_entry(weights, at, optimizer, step, k, d, coefficient * x[d])
    move_entry(weights, for_bias(weights, at), optimizer, step, k, x.size, coefficient * features.constant)
    closed(weights, step, k)


@otherwise(move, second=Csr)
def _move_csr(weights, features, optimizer, i, step, coefficient, k):
    at = opened(weights, step, k)
    for j in range(features.indptr[i], features.indptr[i + 1]):
        d = features.indices[j]
        move_entry(weights, at, optimizer, step, k, d, coefficient * (features.data[j] * rate_of(features.rates, d)))
    of_bias = coefficient * features.constant
    move_entry(weights, for_bias(weights, at), optimizer, step, k, features.n_features, of_bias)
    closed(weights, step, k)


@otherwise(move_two, second=Dense)
def _move_two_dense(weights, features, optimizer, i, step, coefficient, k, other_coefficient, other):
    x, at, there = features.X[i], opened(weights, step, k), opened(weights, step, other)
    for d in range(x.size):
        move_entry(weights, at, optimizer, step, k, d, coefficient * x[d])
        move_entry(weights, there, optimizer, step, other, d, other_coefficient * x[d])
    _move_biases(weights, features, at, there, optimizer, step, coefficient, k, other_coefficient, other, x.size)


@otherwise(move_two, second=Csr)
def _move_two_csr(weights, features, optimizer, i, step, coefficient, k, other_coefficient, other):
    at, there = opened(weights, step, k), opened(weights, step, other)
    for j in range(features.indptr[i], features.indptr[i + 1]):
        d = features.indices[j]
        x = features.data[j] * rate_of(features.rates, d)
        move_entry(weights, at, optimizer, step, k, d, coefficient * x)
        move_entry(weights, there, optimizer, step, other, d, other_coefficient * x)
    n = features.n_features
    _move_biases(weights, features, at, there, optimizer, step, coefficient, k, other_coefficient, other, n)


@njit(**PART)
def _move_biases(weights, features, at, there, optimizer, step, coefficient, k, other_coefficient, other, d):
    x = features.constant
    move_entry(weights, for_bias(weights, at), optimizer, step, k, d, coefficient * x)
    move_entry(weights, for_bias(weights, there), optimizer, step, other, d, other_coefficient * x)
    closed(weights, step, k)
    closed(weights, step, other)


@njit(**PART)
def move_stretch(weights, optimizer, step, r, first, gradient):
    """Move the entries of row ``r`` from ``first`` on by their ``gradient``, (n,)."""
    at, begin = opened(weights, step, r), np.uint64(first)  # unsigned: no entry is counted from the end
    for j in range(gradient.size):
        move_entry(weights, at, optimizer, step, r, begin + np.uint64(j), gradient[j])


@njit(**PART)
def score_step(weights, features, i, classes, scores):
    """Write the scores of some classes."""
    n = classes.size
    for j in range(0, n - 1, 2):
        scores[j], scores[j + 1] = score_two(weights, features, i, classes[j], classes[j + 1])
    if n % 2:
        scores[n - 1] = score_class(weights, features, i, classes[n - 1])


@njit(**PART)
def move_step(weights, features, optimizer, i, step, candidates):
    """Move the classes of a step, whose repeats are gathered; they shrink first, where weights decay."""
    age(weights, step)
    waiting, coefficient, waits = np.int64(0), np.float32(0), False
    for j in range(candidates.classes.size):
        k, c = candidates.classes[j], candidates.out[j]
        if candidates.weights[j] != np.float32(0):
            shrink(weights, step, k, candidates.weights[j])
        if abs(c) > NEGLIGIBLE:
            if waits:
                move_two(weights, features, optimizer, i, step, coefficient, waiting, c, k)
            else:
                waiting, coefficient = k, c
            waits = not waits
    if waits:
        move(weights, features, optimizer, i, step, coefficient, waiting)
