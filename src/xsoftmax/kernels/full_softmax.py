"""The loop of methods that look at every class: minibatches, in blocks of classes.

A batch is gathered, scored, given its slopes (derivatives by all scores) and moved. Dense rows have class-major
weights, (n_classes, n_features + 1), and matrix products for scores and gradients; sparse rows have feature-major
ones, (n_features + 1, n_classes), whose rows are added up, so that both passes cost only what is not zero. The
gradient of a block of classes is used while it is in cache; none of all weights exists.

The objective's code is that of the sampled loop, given all the other classes with weight 1. Every part says which
classes or rows it is for: threads share them out, in whole blocks, so that bits do not depend on their number.
"""

from typing import NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit, overload, types
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.cache_lines import FLOATS
from xsoftmax.kernels.dispatch import declared, implements
from xsoftmax.kernels.label_sets import (
    AlongGradient,
    coefficients_of_set,
    gather_set,
    has_several,
    labels_of,
    loss_of_labels,
    places_like,
    share_of,
)
from xsoftmax.kernels.layout import Multiplied, array_of, move_entry, opened
from xsoftmax.kernels.mathematics import is_finite
from xsoftmax.kernels.products import columns_times_columns, rows_times_rows
from xsoftmax.kernels.protocol import Draws, Step, excludes_true, gradient, loss
from xsoftmax.kernels.rows import Csr, Dense
from xsoftmax.kernels.walk import move_stretch

# Classes whose weights, accumulators and gradients are in cache together, for 512 features.
CLASSES_OF_A_BLOCK = 512
# Where there are many, larger products make better use of the rows.
CLASSES_OF_A_LARGE_BLOCK = 2048
MANY_CLASSES = 4 * CLASSES_OF_A_LARGE_BLOCK
# The number of blocks is a multiple of this, so that two or four threads have as much to do.
SHARED_BY = 4
# Objectives with code of their own for ``slope_row``, on float32.
HAVE_SLOPE_ROWS: set[type] = set()


class DenseBatch(NamedTuple):
    """Dense samples, the constant feature last: float32 of shape (n, n_features + 1)."""

    inputs: np.ndarray


class CsrBatch(NamedTuple):
    """Sparse samples, and their entries once more, sorted by column.

    Attributes
    ----------
    features : Csr
    samples : ndarray of shape (n,), int64
    columns, rows : ndarray of shape (n_entries,), int64
        Of each entry; rows count within the batch.
    values : ndarray of shape (n_entries,), float32
    """

    features: Csr
    samples: np.ndarray
    columns: np.ndarray
    rows: np.ndarray
    values: np.ndarray


class Pace(NamedTuple):
    """A step, and by how much weights shrink in it: decay, float32, per unit of the learning rate."""

    step: Step
    decay: np.float32


@njit(**OPTIONS)
def run_all_classes(objective, optimizer, features, labels, auxiliary, weights, scores, order, batch_size, pace):
    """Take one step for each minibatch of ``order``; return how many samples were used.

    It stops early only before a batch whose scores are not finite. Parameters as for ``run_steps``, but ``weights``
    ``Plain`` or ``Apart``, of shape (n_classes, n_features + 1) for dense rows and (n_features + 1, n_classes) for
    sparse ones, or an average of these; ``scores``, float32 of shape (batch_size, n_classes), is room to work in;
    batches are means. ``pace`` is that of the first step.
    """
    n_classes = scores.shape[1]
    for first in range(0, order.size, batch_size):
        samples = order[first : first + batch_size]
        workspace = scores[: samples.size]
        batch = gather(features, samples)
        if not score_classes(batch, array_of(weights), 0, n_classes, workspace, 0):
            return first
        slope_block(objective, pace.step.rate, labels, auxiliary, samples, workspace)
        now = Pace(Step(pace.step.rate, pace.step.number + first // batch_size), pace.decay)
        move_classes(batch, optimizer, now, workspace, weights, 0, n_classes, 0)
    return order.size


@njit(**OPTIONS)
def classes_of_a_block(n_classes):
    """How many classes are scored at a time: about as many in each of some blocks, which threads can share evenly."""
    most = CLASSES_OF_A_LARGE_BLOCK if n_classes >= MANY_CLASSES else CLASSES_OF_A_BLOCK
    if n_classes <= most:
        return most
    n_blocks = -(-n_classes // (most * SHARED_BY)) * SHARED_BY
    return -(-n_classes // (n_blocks * FLOATS)) * FLOATS


@njit(**OPTIONS)
def classes_of_a_move(n_classes):
    """How many classes of a block have their gradients formed together: a block is cut evenly."""
    size = classes_of_a_block(n_classes)
    n_parts = -(-size // CLASSES_OF_A_BLOCK)
    return -(-size // (n_parts * FLOATS)) * FLOATS


@njit(**OPTIONS)
def gather_block(features, samples):
    """As ``gather``, from Python."""
    return gather(features, samples)


@njit(**OPTIONS)
def score_classes_block(batch, W, first, last, scores):
    """As ``score_classes``, from Python."""
    return score_classes(batch, W, first, last, scores, 0)


@njit(**OPTIONS)
def move_classes_block(batch, optimizer, pace, slopes, weights, first, last):
    """As ``move_classes``, from Python."""
    move_classes(batch, optimizer, pace, slopes, weights, first, last, 0)


@declared
def gather(features, samples):
    """Collect the rows of a batch."""


@declared
def score_classes(batch, W, first, last, scores, skipped):
    """Write the scores of classes first..last - 1 to their columns; tell whether all are finite.

    ``first`` is a multiple of ``classes_of_a_block(n_classes)``; the first column is that of class ``skipped``.
    """


@declared
def move_classes(batch, optimizer, pace, slopes, weights, first, last, skipped):
    """Move the weights of classes first..last - 1 along the mean over the batch of slope times sample.

    The first column of ``slopes`` is that of class ``skipped``.
    """


@njit(**OPTIONS)
def slope_block(objective, rate, labels, auxiliary, samples, scores):
    """Replace the scores of samples by the derivatives of each one's loss."""
    n_classes = scores.shape[1]
    scratch, ones = np.empty(n_classes, scores.dtype), np.empty(n_classes, scores.dtype)
    classes = np.empty(n_classes, np.int64)
    for k in range(n_classes):
        ones[k], classes[k] = 1, k
    for b in range(samples.size):
        slopes_of_sample(objective, rate, labels, auxiliary, samples[b], scores[b], scratch, ones, classes)


@declared
def slopes_of_sample(objective, rate, labels, auxiliary, i, scores, scratch, ones, classes):
    """As ``slope_row``, of sample ``i``, which may have several labels."""


@overload(slopes_of_sample)
def _slopes_of_sample(objective, rate, labels, auxiliary, i, scores, scratch, ones, classes):
    def of_one(objective, rate, labels, auxiliary, i, scores, scratch, ones, classes):
        slope_row(objective, rate, labels[i], auxiliary[i], scores, scratch, ones, classes)

    def of_several(objective, rate, labels, auxiliary, i, scores, scratch, ones, classes):
        own, first = labels_of(labels, i), labels.starts[i]
        places, share = places_like(scores), share_of(labels, own.size)
        gather_set(own, scores, places)
        states, log_q = auxiliary[first : first + own.size], np.zeros(own.size, np.float32)
        along = AlongGradient()
        coefficients_of_set(objective, along, None, i, rate, states, log_q, share, places, own.size, scratch)
        for j in range(scores.size):
            scores[places.classes[j]] = places.out[j]

    return of_several if has_several(labels) else of_one


@declared
def slope_row(objective, rate, y, state, scores, scratch, ones, classes):
    """Replace the scores of a sample by its slopes; the last three are room, ones and numbers for all classes."""


@overload(slope_row)
def _slope_row(objective, rate, y, state, scores, scratch, ones, classes):
    """By the objective's ``gradient``."""
    own = objective.instance_class in HAVE_SLOPE_ROWS and scores.dtype == types.float32

    def implementation(objective, rate, y, state, scores, scratch, ones, classes):
        others = scores.size - 1
        for k in range(scores.size):
            scratch[k] = scores[k]
        score_true = _set_aside(scratch, y, classes)
        draws = Draws(classes[:others], ones[:others], ones[:others], scratch[:others], scores[:others], _no_rng())
        of_true = gradient(objective, rate, state, score_true, scores.dtype.type(0), draws)
        scores[others] = scores[y]
        scores[y] = of_true
        _take_back(y, classes)

    return None if own else implementation


@njit(**OPTIONS)
def _no_rng():
    return np.zeros(1, np.uint64)


@njit(**OPTIONS)
def loss_block(objective, labels, auxiliary, samples, scores, log_q):
    """Losses of samples, float64 of shape (n,), from the scores of all classes; rows are left permuted.

    ``log_q``, of shape (1 or n, n_classes), is the proposal's; an objective that sums over the other classes does
    not look at it.
    """
    K = scores.shape[1]
    others = K - 1 if excludes_true(objective) else 0
    losses = np.empty(samples.size)
    ones = np.ones(others, scores.dtype)
    classes, every_class = np.arange(others), np.arange(0 if excludes_true(objective) else K)
    rng = np.zeros(1, np.uint64)
    for b in range(samples.size):
        q = log_q[min(b, log_q.shape[0] - 1)]
        if excludes_true(objective):
            most = Draws(classes, ones, ones, scores[b, :others], scores[b, :others], rng)
            losses[b] = loss_of_sample(objective, labels, auxiliary, samples[b], scores[b], most)
        else:
            every = Draws(every_class, q, np.exp(q), scores[b], scores[b], rng)
            losses[b] = loss_of_sample(objective, labels, auxiliary, samples[b], scores[b], every)
    return losses


@declared
def loss_of_sample(objective, labels, auxiliary, i, scores, every):
    """Loss of sample ``i``, from the scores of all classes.

    ``every`` are all classes, weighed by the proposal, for an objective that is a mean under it; otherwise all but
    the last, in whose place the true class is put for a while.
    """


@overload(loss_of_sample)
def _loss_of_sample(objective, labels, auxiliary, i, scores, every):
    def of_one(objective, labels, auxiliary, i, scores, every):
        y = labels[i]
        if excludes_true(objective):
            score_true = _set_aside(scores, y, every.classes)
            value = loss(objective, auxiliary[i], score_true, scores.dtype.type(0), every)
            _take_back(y, every.classes)
            return value
        return loss(objective, auxiliary[i], scores[y], every.log_q[y], every)

    def of_several(objective, labels, auxiliary, i, scores, every):
        own, first = labels_of(labels, i), labels.starts[i]
        places, share = places_like(scores), share_of(labels, own.size)
        gather_set(own, scores, places)
        log_q = np.zeros(own.size, scores.dtype)
        if not excludes_true(objective):
            for t in range(own.size):
                log_q[t] = every.log_q[own[t]]
        states = auxiliary[first : first + own.size]
        return loss_of_labels(objective, states, log_q, share, places, own.size, every)

    return of_several if has_several(labels) else of_one


@njit(**OPTIONS)
def _set_aside(scores, y, classes):
    """Put the last class in the place of ``y``; return the score of ``y``."""
    score_true = scores[y]
    scores[y] = scores[scores.size - 1]
    if y < classes.size:  # the last class has no place where the true one is left out
        classes[y] = scores.size - 1
    return score_true


@njit(**OPTIONS)
def _take_back(y, classes):
    """Number the classes again as they are."""
    if y < classes.size:
        classes[y] = y


@njit(**OPTIONS)
def score_block(features, samples, W, first, scores):
    """Write the scores of sparse samples for classes ``first``... of feature-major ``W``, (n, n_classes)."""
    for b in range(samples.size):
        add_rows(features, samples[b], W, first, scores[b])


@implements(gather, Dense)
def _gather_dense(features, samples):
    n_features = features.X.shape[1]
    inputs = np.empty((samples.size, n_features + 1), np.float32)
    for b in range(samples.size):
        x, row = features.X[samples[b]], inputs[b]
        for d in range(n_features):
            row[d] = x[d]
        row[n_features] = features.constant
    return DenseBatch(inputs)


@implements(score_classes, DenseBatch)
def _score_classes_dense(batch, W, first, last, scores, skipped):
    finite, size = True, classes_of_a_block(W.shape[0])
    for start in range(first, last, size):
        stop = min(start + size, last)
        out = scores[:, start - skipped : stop - skipped]
        rows_times_rows(batch.inputs, W[start:stop], out)
        finite &= _all_finite(scores, start - skipped, stop - skipped)
    return finite


@implements(move_classes, DenseBatch)
def _move_classes_dense(batch, optimizer, pace, slopes, weights, first, last, skipped):
    (n, width), n_classes = batch.inputs.shape, array_of(weights).shape[0]
    size, most = classes_of_a_block(n_classes), min(classes_of_a_move(n_classes), last - first)
    workspace, packing = np.empty((most, width), np.float32), np.empty((n, most), np.float32)
    touched = np.empty(most, np.int64)
    for block in range(first, last, size):
        end = min(block + size, last)
        for start in range(block, end, most):
            stop = min(start + most, end)
            own = slopes[:, start - skipped : stop - skipped]
            if pace.decay != np.float32(0):
                for k in range(start, stop):
                    _shrink(weights, pace, k, 0, width - 1)
            n_touched = _pack_columns(own, touched, packing)
            if n_touched < stop - start:
                own = packing[:, :n_touched]
            gradients = workspace[:n_touched]
            columns_times_columns(own, batch.inputs, np.float32(1) / np.float32(n), gradients)
            for t in range(n_touched):
                k = start + touched[t]
                move_stretch(weights, optimizer, pace.step, k, 0, gradients[t])


@njit(**OPTIONS)
def _pack_columns(slopes, touched, packing):
    """Find the columns that are not all zeros, write their numbers to ``touched``, and count them.

    Where some are left out, ``packing`` gets the others, side by side: a class without a slope does not move.
    """
    n_touched = 0
    for k in range(slopes.shape[1]):
        any_slope = False
        for b in range(slopes.shape[0]):
            if slopes[b, k] != np.float32(0):
                any_slope = True
                break
        touched[n_touched] = k
        n_touched += any_slope
    if n_touched < slopes.shape[1]:
        for b in range(slopes.shape[0]):
            for t in range(n_touched):
                packing[b, t] = slopes[b, touched[t]]
    return n_touched


@njit(**OPTIONS)
def _all_finite(scores, start, stop):
    """Tell whether rows have a finite sum from one column to another."""
    for b in range(scores.shape[0]):
        row = scores[b, start:stop]
        total = np.float32(0)
        for k in range(row.size):
            total += row[k]
        if not is_finite(total):
            return False
    return True


@implements(gather, Csr)
def _gather_csr(features, samples):
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
    return CsrBatch(features, samples, columns[order], rows[order], values[order])


@implements(score_classes, CsrBatch)
def _score_classes_csr(batch, W, first, last, scores, skipped):
    finite, size = True, classes_of_a_block(W.shape[1])
    for start in range(first, last, size):
        stop = min(start + size, last)
        for b in range(batch.samples.size):
            add_rows(batch.features, batch.samples[b], W, start, scores[b, start - skipped : stop - skipped])
        finite &= _all_finite(scores, start - skipped, stop - skipped)
    return finite


@implements(move_classes, CsrBatch)
def _move_classes_csr(batch, optimizer, pace, slopes, weights, first, last, skipped):
    n_features = batch.features.n_features
    share = np.float32(1) / np.float32(slopes.shape[0])
    workspace = np.empty(classes_of_a_block(array_of(weights).shape[1]), np.float32)
    for start in range(first, last, workspace.size):
        stop = min(start + workspace.size, last)
        total = workspace[: stop - start]
        if pace.decay != np.float32(0):
            for d in range(n_features):
                _shrink(weights, pace, d, start, stop)
        j = 0
        while j < batch.columns.size:
            d = batch.columns[j]
            _write_product(share * batch.values[j], slopes[batch.rows[j], start - skipped : stop - skipped], total)
            j += 1
            while j < batch.columns.size and batch.columns[j] == d:
                _add_product(share * batch.values[j], slopes[batch.rows[j], start - skipped : stop - skipped], total)
                j += 1
            move_stretch(weights, optimizer, pace.step, d, start, total)
        if batch.features.constant != np.float32(0):
            total[:] = np.float32(0)
            for b in range(slopes.shape[0]):
                _add_product(share * batch.features.constant, slopes[b, start - skipped : stop - skipped], total)
            move_stretch(weights, optimizer, pace.step, n_features, start, total)


@njit(**OPTIONS)
def _shrink(weights, pace, r, first, stop):
    """Shrink the entries of row ``r`` from ``first`` up to ``stop``."""
    at, by = opened(weights, pace.step, r), Multiplied(np.float32(1) - pace.step.rate * pace.decay)
    for d in range(first, stop):
        move_entry(weights, at, by, pace.step, r, np.uint64(d), np.float32(0))


@njit(**OPTIONS)
def _write_product(value, row, out):
    for k in range(out.size):
        out[k] = value * row[k]


@njit(**OPTIONS)
def _add_product(value, row, out):
    for k in range(out.size):
        out[k] += value * row[k]


@njit(**OPTIONS)
def add_rows(features, i, W, first, out):
    """Write the scores of a sparse sample for classes ``first``..."""
    _write_product(features.constant, W[features.n_features, first : first + out.size], out)
    add_row_product(features, i, W, first, out)


@njit(**OPTIONS)
def add_product(A, first, last, B, out):
    """Add rows first..last - 1 of A B to those of ``out``, in place.

    ``A`` is a ``Csr`` of shape (n, m), whose constant feature is left out, ``B`` of shape (at least m, k), ``out`` of
    shape (at least n, k). Rows do not depend on each other: bits do not depend on how they are shared out.
    """
    for i in range(first, last):
        add_row_product(A, i, B, 0, out[i])


@njit(**OPTIONS)
def add_row_product(A, i, B, first, out):
    """Add row ``i`` of A times columns ``first``... of B to ``out``, four entries at a time."""
    last = first + out.size
    j, end = A.indptr[i], A.indptr[i + 1]
    while j + 4 <= end:
        v0, v1, v2, v3 = A.data[j], A.data[j + 1], A.data[j + 2], A.data[j + 3]
        b0 = B[A.indices[j], first:last]
        b1 = B[A.indices[j + 1], first:last]
        b2 = B[A.indices[j + 2], first:last]
        b3 = B[A.indices[j + 3], first:last]
        for k in range(out.size):
            out[k] += v0 * b0[k] + v1 * b1[k] + v2 * b2[k] + v3 * b3[k]
        j += 4
    while j < end:
        _add_product(A.data[j], B[A.indices[j], first:last], out)
        j += 1
