"""Rows through a trained table: what classes see of a row is the mean of the table's rows that belong to it.

    h(x) = sum_d x_d E_d / sum_d |x_d|,     scores = W h + b

``E`` has a row per feature, ``table`` in code. A row of one feature gives that feature's row of the table, as
skip-gram has it; entries above zero give their weighted mean, the hidden layer of the tagger of Yen et al. 2018; a
row of zeros gives zeros. With absolute values in the sum, h stays among the table's rows whatever signs entries have.

A step makes h once. The gradient by h, sum_k c_k W_k, is taken before W moves; then each row of the table that
belongs to a non-zero moves along its share of that, by the optimizer's rule, beside an accumulator of its own. Cost:
dimension x (non-zeros + classes looked at).
"""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, OPTIONS, PART
from xsoftmax.kernels.dispatch import declared, implements, lean
from xsoftmax.kernels.draws import part_of
from xsoftmax.kernels.full_softmax import CsrBatch, DenseBatch, gather
from xsoftmax.kernels.label_sets import as_candidates
from xsoftmax.kernels.layout import Plain, closed, move_entry, opened, stored
from xsoftmax.kernels.one_sample import fill_places
from xsoftmax.kernels.products import columns_times_columns, rows_times_columns
from xsoftmax.kernels.protocol import NEGLIGIBLE, Step
from xsoftmax.kernels.rows import Csr, Dense, features_of
from xsoftmax.kernels.run_steps import take, workspace_for
from xsoftmax.kernels.walk import move_step, move_stretch


class EncodedWeights(NamedTuple):
    """What a fit with an encoder learns.

    Attributes
    ----------
    rows : ndarray of shape (n_classes, dimension + 1), float32
        A row per class, its bias last.
    table : ndarray of shape (n_features, dimension), float32
        A row per feature.
    """

    rows: np.ndarray
    table: np.ndarray


class Embedded(NamedTuple):
    """Samples, and the table that they go through.

    Attributes
    ----------
    rows : Dense or Csr
    table : NamedTuple
        In a layout of (n_features, dimension), without a bias.
    dimension : int
        Columns of the table.
    constant : float32
        What biases see.
    trained : bool
        Whether the table moves.
    """

    rows: Any
    table: Any
    dimension: int
    constant: np.float32
    trained: bool


class Encoded(NamedTuple):
    """The batch type of single steps through a table; ``steps`` are those that would be taken without one."""

    steps: Any
    size: int = 1
    ahead: int = 1


class Workspace(NamedTuple):
    """Of one step: what it takes without a table; h, (1, dimension); and the gradient by h, (dimension,)."""

    step: Any
    hidden: np.ndarray
    pulled: np.ndarray


def encode_rows(X: Any, table: np.ndarray) -> np.ndarray:
    """Give h of all rows.

    Parameters
    ----------
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    table : ndarray of shape (n_features, dimension), float32

    Returns
    -------
    ndarray of shape (n_samples, dimension), float32
    """
    hidden = np.empty((X.shape[0], table.shape[1]), np.float32)
    encode_samples(features_of(X, False), Plain(table), np.arange(X.shape[0]), hidden)
    return hidden


@njit(**OPTIONS)
def encode_samples(rows, table, samples, out):
    """Write h of some samples, one row each; ``out`` may have more columns."""
    for b in range(samples.size):
        encode(rows, table, samples[b], out[b])


@njit(**OPTIONS)
def encoded_batch(embedded, samples):
    """Gather the h of a batch, as loops over all classes take dense rows."""
    dimension = embedded.dimension
    inputs = np.empty((samples.size, dimension + 1), np.float32)
    for b in range(samples.size):
        encode(embedded.rows, embedded.table, samples[b], inputs[b, :dimension])
        inputs[b, dimension] = embedded.constant
    return DenseBatch(inputs)


@lean
def encode(rows, table, i, out):
    """Write h of sample ``i``."""


@lean
def share_out(rows, table, optimizer, i, step, pulled):
    """Move the rows of a table that belong to sample ``i``, each by its share of the gradient by h."""


@lean
def sum_of_sizes(rows, i):
    """Sum of the absolute values of sample ``i``, float32; 1 if that is zero."""


@implements(sum_of_sizes, Dense)
def _sum_dense(rows, i):
    total = np.float32(0)
    for value in rows.X[i]:
        total += abs(value)
    return total if total != np.float32(0) else np.float32(1)


@implements(sum_of_sizes, Csr)
def _sum_csr(rows, i):
    total = np.float32(0)
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        total += abs(rows.data[j])
    return total if total != np.float32(0) else np.float32(1)


@implements(encode, Dense)
def _encode_dense(rows, table, i, out):
    _clear(out)
    x, total = rows.X[i], sum_of_sizes(rows, i)
    for d in range(x.size):
        if x[d] != np.float32(0):
            add_stored(table, d, x[d] / total, out)


@implements(encode, Csr)
def _encode_csr(rows, table, i, out):
    _clear(out)
    total = sum_of_sizes(rows, i)
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        add_stored(table, np.int64(rows.indices[j]), rows.data[j] / total, out)


@implements(share_out, Dense)
def _share_out_dense(rows, table, optimizer, i, step, pulled):
    x, total = rows.X[i], sum_of_sizes(rows, i)
    for d in range(x.size):
        if x[d] != np.float32(0):
            _move_row(table, optimizer, step, d, x[d] / total, pulled)


@implements(share_out, Csr)
def _share_out_csr(rows, table, optimizer, i, step, pulled):
    total = sum_of_sizes(rows, i)
    for j in range(rows.indptr[i], rows.indptr[i + 1]):
        _move_row(table, optimizer, step, np.int64(rows.indices[j]), rows.data[j] / total, pulled)


@njit(**LEAN)
def _clear(out):
    for d in range(out.size):
        out[d] = np.float32(0)


@njit(**LEAN)
def add_stored(weights, k, factor, out):
    """Add ``factor`` times the first entries of row ``k`` to ``out``."""
    for d in range(out.size):
        out[d] += factor * stored(weights, k, d)


@njit(**LEAN)
def _move_row(table, optimizer, step, k, share, pulled):
    at = opened(table, step, k)
    for d in range(pulled.size):
        move_entry(table, at, optimizer, step, k, d, share * pulled[d])
    closed(table, step, k)


@implements(workspace_for, Encoded)
def _workspace(batch, parts, samples, order):
    step, dimension = workspace_for(batch.steps, parts, samples, order), samples.features.dimension
    return Workspace(step, np.empty((1, dimension), np.float32), np.empty(dimension, np.float32))


@implements(take, Encoded)
def _take(batch, parts, samples, weights, some, clock, rate, workspace):
    return _take_step(batch.steps, parts, samples, weights, some[0], clock, rate, workspace)


@njit(**LEAN)
def _take_step(steps, parts, samples, weights, i, clock, rate, workspace):
    embedded, step = samples.features, Step(rate, clock.step)
    encode(embedded.rows, embedded.table, i, workspace.hidden[0])
    hidden = Dense(workspace.hidden, embedded.constant)
    n = fill_places(steps, parts, samples, hidden, 0, weights, i, clock, rate, workspace.step)
    if not n:
        return 0
    candidates = as_candidates(part_of(workspace.step.places, 0, n))
    if embedded.trained:
        pull(weights, candidates, workspace.pulled)
    move_step(weights, hidden, parts.optimizer, 0, step, candidates)
    if embedded.trained:
        share_out(embedded.rows, embedded.table, parts.optimizer, i, step, workspace.pulled)
    return 1


@njit(**PART)
def pull(weights, candidates, out):
    """Write the gradient by h: the classes' weights times their coefficients, added up."""
    _clear(out)
    for j in range(candidates.classes.size):
        if abs(candidates.out[j]) > NEGLIGIBLE:
            add_stored(weights, candidates.classes[j], candidates.out[j], out)


# Of batches over all classes


@njit(**OPTIONS)
def pull_block(slopes, W, first, last, out):
    """Write what classes first..last - 1 add to the gradient by h of each sample of a batch, (n, dimension)."""
    rows_times_columns(slopes[:, first:last], W[first:last], out)


@njit(**OPTIONS)
def share_out_batch(embedded, optimizer, step, samples, pulled):
    """Move a table along the mean of the gradients of a batch, (n, dimension): each of its rows once."""
    sizes = np.empty(samples.size, np.float32)
    for b in range(samples.size):
        sizes[b] = sum_of_sizes(embedded.rows, samples[b]) * np.float32(samples.size)
    move_table(gather(embedded.rows, samples), embedded.table, optimizer, step, sizes, pulled)


@declared
def move_table(batch, table, optimizer, step, sizes, pulled):
    """Move the rows of a table; the entries of each sample are divided by its ``sizes``."""


@implements(move_table, DenseBatch)
def _move_table_dense(batch, table, optimizer, step, sizes, pulled):
    n, n_features = batch.inputs.shape[0], batch.inputs.shape[1] - 1
    shares, gradients = np.empty((n, n_features), np.float32), np.empty((n_features, pulled.shape[1]), np.float32)
    for b in range(n):
        for d in range(n_features):
            shares[b, d] = batch.inputs[b, d] / sizes[b]
    columns_times_columns(shares, pulled, np.float32(1), gradients)
    for d in range(n_features):
        move_stretch(table, optimizer, step, d, 0, gradients[d])


@implements(move_table, CsrBatch)
def _move_table_csr(batch, table, optimizer, step, sizes, pulled):
    total, j = np.empty(pulled.shape[1], np.float32), 0
    while j < batch.columns.size:
        column = batch.columns[j]
        _clear(total)
        while j < batch.columns.size and batch.columns[j] == column:
            share = batch.values[j] / sizes[batch.rows[j]]
            for d in range(total.size):
                total[d] += share * pulled[batch.rows[j], d]
            j += 1
        move_stretch(table, optimizer, step, column, 0, total)
