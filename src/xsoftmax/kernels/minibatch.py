"""The loop of methods that look at every class: minibatches on feature-major weights.

Weights have one row per feature and a last one for the biases, shape (n_features + 1, n_classes), so that scores
and gradients are sums of contiguous rows. The objective's code is that of the sampled loop, given all the other
classes with weight 1.
"""

import math

import numpy as np
from numba import njit

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.rows import Csr, Dense
from xsoftmax.kernels.steps import Draws, excludes_true, gradient, loss, move_block


@njit(**OPTIONS)
def sweep_all(objective, optimizer, features, labels, states, W, accumulator, order, batch_size, rate, decay):
    """Take one step for each minibatch of ``order``; return how many samples were used.

    It stops early only before a batch whose scores are not finite. Parameters as for ``sweep``, but ``W`` and
    ``accumulator`` float32 of shape (n_features + 1, n_classes); batches are means; ``decay``, float32, is
    ridge / n_samples.
    """
    n_classes = W.shape[1]
    scores = np.empty((batch_size, n_classes), np.float32)
    slopes = np.empty((batch_size, n_classes), np.float32)
    for first in range(0, order.size, batch_size):
        samples = order[first : first + batch_size]
        n = samples.size
        score(features, samples, W, scores[:n])
        for b in range(n):
            if not math.isfinite(scores[b].sum()):
                return first
        slope_block(objective, rate, labels, states, samples, scores[:n], slopes[:n])
        slopes[:n] /= np.float32(n)
        if decay != np.float32(0):
            W[: W.shape[0] - 1] *= np.float32(1) - rate * decay
        move_features(features, optimizer, samples, rate, slopes[:n], W, accumulator)
    return order.size


@njit(**OPTIONS)
def slope_block(objective, rate, labels, states, samples, scores, slopes):
    """Derivatives of each sample's loss by all its scores; rows of ``scores`` are left permuted."""
    others = scores.shape[1] - 1
    ones = np.ones(others, scores.dtype)
    classes = np.arange(others)
    for b in range(samples.size):
        y = labels[samples[b]]
        score_true = _set_aside(scores[b], y, classes)
        draws = Draws(classes, ones, ones, scores[b, :others], slopes[b, :others], np.zeros(1, np.uint64))
        of_true = gradient(objective, rate, states[samples[b]], score_true, scores.dtype.type(0), draws)
        slopes[b, others] = slopes[b, y]
        slopes[b, y] = of_true
        _take_back(y, classes)


@njit(**OPTIONS)
def loss_block(objective, labels, states, samples, scores, log_q):
    """Losses of samples, float64 of shape (n,), from the scores of all classes; rows are left permuted.

    ``log_q``, of shape (1 or n, n_classes), is the proposal's; an objective that sums over the other classes does
    not look at it.
    """
    others = scores.shape[1] - 1
    losses = np.empty(samples.size)
    ones = np.ones(others, scores.dtype)
    classes, every_class = np.arange(others), np.arange(others + 1)
    rng = np.zeros(1, np.uint64)
    for b in range(samples.size):
        y = labels[samples[b]]
        state = states[samples[b]]
        if excludes_true(objective):
            score_true = _set_aside(scores[b], y, classes)
            draws = Draws(classes, ones, ones, scores[b, :others], scores[b, :others], rng)
            losses[b] = loss(objective, state, score_true, scores.dtype.type(0), draws)
            _take_back(y, classes)
        else:
            q = log_q[min(b, log_q.shape[0] - 1)]
            draws = Draws(every_class, q, np.exp(q), scores[b], scores[b], rng)
            losses[b] = loss(objective, state, scores[b, y], q[y], draws)
    return losses


@njit(**OPTIONS)
def _set_aside(scores, y, classes):
    """Put the last class in the place of ``y``; return the score of ``y``."""
    score_true = scores[y]
    scores[y] = scores[scores.size - 1]
    if y < classes.size:
        classes[y] = classes.size
    return score_true


@njit(**OPTIONS)
def _take_back(y, classes):
    """Number the classes again as they are."""
    if y < classes.size:
        classes[y] = y


@njit(**OPTIONS)
def score_block(features, samples, W, scores):
    """Write the scores of samples for all classes of feature-major ``W`` into ``scores``, (n, n_classes)."""
    score(features, samples, W, scores)


def score(features, samples, W, scores):
    """As ``score_block``, inside compiled code."""
    raise TypeError("compiled code only")


def move_features(features, optimizer, samples, rate, slopes, W, accumulator):
    """Move the weights of all features that the samples have, by the sum over them of slope times value."""
    raise TypeError("compiled code only")


@implements(score, Dense)
def _score_dense(features, samples, W, scores):
    n_features = features.X.shape[1]
    scores[:] = np.dot(features.X[samples], W[:n_features])
    scores += features.constant * W[n_features]


@implements(score, Csr)
def _score_csr(features, samples, W, scores):
    for b in range(samples.size):
        i = samples[b]
        out = scores[b]
        bias = W[features.n_features]
        for k in range(out.size):
            out[k] = features.constant * bias[k]
        for j in range(features.indptr[i], features.indptr[i + 1]):
            value = features.data[j]
            w = W[features.indices[j]]
            for k in range(out.size):
                out[k] += value * w[k]


@implements(move_features, Dense)
def _move_features_dense(features, optimizer, samples, rate, slopes, W, accumulator):
    n_features = features.X.shape[1]
    gradients = np.dot(features.X[samples].T, slopes)
    for d in range(n_features):
        move_block(optimizer, rate, gradients[d], W[d], accumulator[d])
    _move_biases(features, optimizer, rate, slopes, W[n_features], accumulator[n_features])


@implements(move_features, Csr)
def _move_features_csr(features, optimizer, samples, rate, slopes, W, accumulator):
    columns, rows, values = _entries_by_column(features, samples)
    total = np.empty(W.shape[1], W.dtype)
    first = 0
    while first < columns.size:
        d = columns[first]
        total[:] = 0
        while first < columns.size and columns[first] == d:
            slope = slopes[rows[first]]
            for k in range(total.size):
                total[k] += values[first] * slope[k]
            first += 1
        move_block(optimizer, rate, total, W[d], accumulator[d])
    _move_biases(features, optimizer, rate, slopes, W[features.n_features], accumulator[features.n_features])


@njit(**OPTIONS)
def _move_biases(features, optimizer, rate, slopes, w, accumulator):
    if features.constant != 0:
        total = np.zeros(w.size, w.dtype)
        for b in range(slopes.shape[0]):
            for k in range(w.size):
                total[k] += features.constant * slopes[b, k]
        move_block(optimizer, rate, total, w, accumulator)


@njit(**OPTIONS)
def _entries_by_column(features, samples):
    """Column, row within the block, and value of all entries of some samples, sorted by column."""
    n = 0
    for i in samples:
        n += features.indptr[i + 1] - features.indptr[i]
    columns = np.empty(n, np.int64)
    rows = np.empty(n, np.int64)
    values = np.empty(n, np.float32)
    n = 0
    for b in range(samples.size):
        for j in range(features.indptr[samples[b]], features.indptr[samples[b] + 1]):
            columns[n] = features.indices[j]
            rows[n] = b
            values[n] = features.data[j]
            n += 1
    order = np.argsort(columns, kind="mergesort")
    return columns[order], rows[order], values[order]
