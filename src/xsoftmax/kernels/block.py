"""Some samples against some classes: scores and gradient steps of a block, by matrix products.

Weights are class-major, in any layout. For dense rows, samples and weights are gathered into two
contiguous blocks for BLAS. For sparse rows the classes' weights are gathered feature-major for the columns that
the samples have, so that each entry of a sample is one contiguous stretch over the classes.
"""

from typing import NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, OPTIONS
from xsoftmax.kernels.dispatch import declared, implements
from xsoftmax.kernels.layout import factor_of, row_of, shrink
from xsoftmax.kernels.rows import Csr, Dense
from xsoftmax.kernels.walk import move

_ONE = np.float32(1)
# Classes of which sparse rows are looked at together: a few vectors per entry, and a block that fits the cache.
_TILE = 64
# Columns are sorted, by a look at every one, if there are fewer than this many per entry of a batch.
_SCANS = 8
# float32 numbers in a cache line.
_LINE = 16


class DenseWorkspace(NamedTuple):
    """float32: samples ``X`` (batch_size, n_features), and of classes, weights or gradients ``rows``.

    These are of shape (n_draws, n_features), their ``biases`` (n_draws,); ``inside``, int64, numbers the samples.
    """

    X: np.ndarray
    rows: np.ndarray
    biases: np.ndarray
    inside: np.ndarray


class CsrWorkspace(NamedTuple):
    """What sparse rows need.

    ``position``, int32 of shape (n_features,), is where a column is among the batch's, -1 if it is not;
    ``columns`` are these, and ``n_columns``, of shape (1,), their number; ``local`` the position of each entry of
    the batch; ``tile`` is room for weights or gradients, (columns, classes), float32, and ``rows`` for the same
    turned.
    """

    position: np.ndarray
    columns: np.ndarray
    n_columns: np.ndarray
    local: np.ndarray
    tile: np.ndarray
    rows: np.ndarray
    indptr: np.ndarray


@declared
def workspace_for_block(features, order, batch_size, n_draws):
    """Room for batches of ``order``, to be allocated once."""


@declared
def take_samples(features, samples, workspace):
    """Make samples ready; return features that hold them, near in memory if they can be, and where they are there."""


@declared
def score_block_of(features, weights, samples, classes, scores, workspace):
    """See ``score_drawn``, which puts the weights first."""


@declared
def move_block_of(features, weights, optimizer, samples, step, classes, slopes, touches, workspace):
    """See ``move_drawn``, which puts the weights first."""


@njit(**OPTIONS)
def score_drawn(weights, features, samples, classes, scores, workspace):
    """Write the scores of the samples taken for ``classes`` to ``scores``, (n_samples, n_classes)."""
    score_block_of(features, weights, samples, classes, scores, workspace)


@njit(**OPTIONS)
def move_drawn(weights, features, optimizer, samples, step, classes, slopes, touches, workspace):
    """Move each of ``classes`` once, along the sum over the samples of slope times sample; shrink it by its touch.

    ``slopes`` is of shape (n_samples, n_classes).
    """
    move_block_of(features, weights, optimizer, samples, step, classes, slopes, touches, workspace)


@implements(workspace_for_block, Dense)
def _workspace_dense(features, order, batch_size, n_draws):
    n_features = features.X.shape[1]
    return DenseWorkspace(
        np.empty((batch_size, n_features), np.float32),
        np.empty((n_draws, n_features), np.float32),
        np.empty(n_draws, np.float32),
        np.arange(batch_size),
    )


@implements(take_samples, Dense)
def _take_dense(features, samples, workspace):
    for b in range(samples.size):
        x, to = features.X[samples[b]], workspace.X[b]
        for d in range(x.size):
            to[d] = x[d]
    return Dense(workspace.X, features.constant), workspace.inside


@implements(score_block_of, Dense)
def _score_dense(features, weights, samples, classes, scores, workspace):
    _gather_rows(weights, features, classes, workspace)
    np.dot(workspace.X[: samples.size], workspace.rows[: classes.size].T, scores)
    _add_biases(workspace.biases, scores)


@njit(**OPTIONS)
def _gather_rows(weights, features, classes, workspace):
    n_features = workspace.X.shape[1]
    for j in range(classes.size):
        k, to = classes[j], workspace.rows[j]
        w, factor = row_of(weights, k), factor_of(weights, k)
        for d in range(n_features):
            to[d] = factor * w[d]
        workspace.biases[j] = features.constant * w[n_features]


@njit(**LEAN)
def _add_biases(biases, scores):
    for b in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            scores[b, j] += biases[j]


@implements(move_block_of, Dense)
def _move_dense(features, weights, optimizer, samples, step, classes, slopes, touches, workspace):
    np.dot(slopes.T, workspace.X[: samples.size], workspace.rows[: classes.size])
    _move_rows(weights, features, optimizer, step, classes, slopes, touches, workspace)


@njit(**LEAN)
def _move_rows(weights, features, optimizer, step, classes, slopes, touches, workspace):
    for j in range(classes.size):
        workspace.biases[j] = np.float32(0)
    for b in range(slopes.shape[0]):
        for j in range(classes.size):
            workspace.biases[j] += slopes[b, j]
    for j in range(classes.size):
        shrink(weights, step, classes[j], touches[j])
        gradient = Dense(workspace.rows[j : j + 1], features.constant * workspace.biases[j])
        move(weights, gradient, optimizer, 0, step, _ONE, classes[j])


@implements(workspace_for_block, Csr)
def _workspace_csr(features, order, batch_size, n_draws):
    most = np.int64(0)
    for first in range(0, order.size, batch_size):
        n = np.int64(0)
        for i in order[first : first + batch_size]:
            n += features.indptr[i + 1] - features.indptr[i]
        most = max(most, n)
    n_columns = min(most, np.int64(features.n_features))
    return CsrWorkspace(
        np.full(features.n_features, -1, np.int32),
        np.empty(n_columns, np.int32),
        np.zeros(1, np.int64),
        np.empty(most, np.int32),
        np.empty(n_columns * min(_TILE, n_draws), np.float32),
        np.empty(n_columns * min(_TILE, n_draws), np.float32),
        np.zeros(2, np.int64),
    )


@implements(take_samples, Csr)
def _take_csr(features, samples, workspace):
    n = e = 0
    for i in samples:
        for j in range(features.indptr[i], features.indptr[i + 1]):
            d = features.indices[j]
            if workspace.position[d] < 0:
                workspace.position[d] = n
                workspace.columns[n] = d
                n += 1
            e += 1
    if workspace.position.size < _SCANS * e:  # rows of weights are read faster in order
        n = _sort_columns(workspace)
    e = 0
    for i in samples:
        for j in range(features.indptr[i], features.indptr[i + 1]):
            workspace.local[e] = workspace.position[features.indices[j]]
            e += 1
    for u in range(n):
        workspace.position[workspace.columns[u]] = -1
    workspace.n_columns[0] = n
    return features, samples


@njit(**LEAN)
def _sort_columns(workspace):
    """Number the columns that have a position in order; return how many they are."""
    n = 0
    for d in range(workspace.position.size):
        if workspace.position[d] >= 0:
            workspace.position[d] = n
            workspace.columns[n] = d
            n += 1
    return n


@implements(score_block_of, Csr)
def _score_csr(features, weights, samples, classes, scores, workspace):
    columns = workspace.columns[: workspace.n_columns[0]]
    for first in range(0, classes.size, _TILE):
        some = classes[first : first + _TILE]
        rows = workspace.rows[: some.size * columns.size].reshape(some.size, columns.size)
        tile = workspace.tile[: some.size * columns.size].reshape(columns.size, some.size)
        _gather_columns(weights, some, columns, rows)
        _start_with_biases(weights, features, some, scores, first)
        _transpose(rows, tile)
        _add_products(features, samples, workspace.local, tile, scores, first)


@njit(**OPTIONS)
def _gather_columns(weights, classes, columns, rows):
    for j in range(classes.size):
        w, row = row_of(weights, classes[j]), rows[j]
        factor = factor_of(weights, classes[j])
        for u in range(columns.size):
            row[u] = factor * w[columns[u]]


@njit(**OPTIONS)
def _start_with_biases(weights, features, classes, scores, first):
    for j in range(classes.size):
        bias = features.constant * row_of(weights, classes[j])[features.n_features]
        for b in range(scores.shape[0]):
            scores[b, first + j] = bias


@njit(**LEAN)
def _transpose(block, out):
    """Turn a block, a few cache lines at a time."""
    n, m = block.shape
    if n < m:
        for u in range(0, m, _LINE):
            stop = min(u + _LINE, m)
            for j in range(n):
                for v in range(u, stop):
                    out[v, j] = block[j, v]
    else:
        for u in range(0, n, _LINE):
            stop = min(u + _LINE, n)
            for j in range(m):
                for v in range(u, stop):
                    out[j, v] = block[v, j]


@njit(**LEAN)
def _add_products(features, samples, local, tile, scores, first):
    """Add to the scores of the classes from ``first`` what a tile of their weights, (columns, classes), gives."""
    e = 0
    for b in range(samples.size):
        out = scores[b, first : first + tile.shape[1]]
        for j in range(features.indptr[samples[b]], features.indptr[samples[b] + 1]):
            x, w = features.data[j], tile[local[e]]
            for k in range(out.size):
                out[k] += x * w[k]
            e += 1


@implements(move_block_of, Csr)
def _move_csr(features, weights, optimizer, samples, step, classes, slopes, touches, workspace):
    columns = workspace.columns[: workspace.n_columns[0]]
    workspace.indptr[1] = columns.size
    for first in range(0, classes.size, _TILE):
        some = classes[first : first + _TILE]
        rows = workspace.rows[: some.size * columns.size].reshape(some.size, columns.size)
        tile = workspace.tile[: some.size * columns.size].reshape(columns.size, some.size)
        _sum_outer_products(features, samples, workspace.local, slopes, first, tile)
        _transpose(tile, rows)
        for j in range(some.size):
            constant = np.float32(0)
            for b in range(samples.size):
                constant += slopes[b, first + j]
            shrink(weights, step, some[j], touches[first + j])
            of_bias = features.constant * constant
            gradient = Csr(rows[j], columns, workspace.indptr, features.n_features, of_bias, None)
            move(weights, gradient, optimizer, 0, step, _ONE, some[j])


@njit(**LEAN)
def _sum_outer_products(features, samples, local, slopes, first, tile):
    """Write the gradients of the classes from ``first`` to a tile, (columns, classes)."""
    tile[:] = np.float32(0)
    e = 0
    for b in range(samples.size):
        slope = slopes[b, first : first + tile.shape[1]]
        for j in range(features.indptr[samples[b]], features.indptr[samples[b] + 1]):
            x, out = features.data[j], tile[local[e]]
            for k in range(slope.size):
                out[k] += x * slope[k]
            e += 1
