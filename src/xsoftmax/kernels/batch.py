"""The sampled loop in minibatches: all samples of a batch see the same weights, and each class moves once.

Each sample has draws of its own; ``xsoftmax.kernels.shared_batch`` is for those that share them.

What a class gains from the samples of a batch is gathered into one row, dense or sparse as the samples are, which
the optimizer then moves along as if it were a sample: Adagrad squares the sum, not its parts.
"""

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import NEGLIGIBLE, empty_draws
from xsoftmax.kernels.layout import shrink
from xsoftmax.kernels.random import start
from xsoftmax.kernels.rows import Csr, Dense
from xsoftmax.kernels.sample import coefficients_of
from xsoftmax.kernels.steps import Step, draw, excludes_true, n_exact
from xsoftmax.kernels.walk import move


@njit(**OPTIONS)
def sweep_batches(
    objective, proposal, optimizer, features, labels, states, weights, order, clock, rate, n_sampled, batch_size
):
    """Take one step for each minibatch of ``order``, along the mean of its samples; return how many were used.

    It stops early only before a batch whose scores are not finite. Parameters as for ``sweep``, and

    batch_size : int
    """
    draws = empty_draws(n_sampled + n_exact(proposal))
    n_draws = draws.classes.size
    room = batch_size * (n_draws + 1)
    classes = np.empty(room, np.int64)
    slopes = np.empty(room, np.float32)
    touches = np.empty(room, np.float32)
    gathered = room_for_gathering(features)
    for first in range(0, order.size, batch_size):
        samples = order[first : first + batch_size]
        share = np.float32(1) / np.float32(samples.size)
        step = Step(rate, clock.step + first // batch_size)
        for b in range(samples.size):
            i, position = samples[b], clock.position + first + b
            y = np.int64(labels[i])
            draw(proposal, i, y if excludes_true(objective) else np.int64(-1), start(clock.key, position), draws)
            finite, of_true = coefficients_of(
                objective,
                proposal,
                optimizer,
                features,
                states,
                weights,
                i,
                y,
                clock.key,
                position,
                rate,
                None,
                draws,
            )
            if not finite:
                return first
            begin = b * (n_draws + 1)
            classes[begin], slopes[begin], touches[begin] = y, share * of_true, share
            for j in range(n_draws):
                classes[begin + 1 + j] = draws.classes[j]
                slopes[begin + 1 + j] = share * draws.out[j]
                touches[begin + 1 + j] = share * draws.weights[j]
        _move_all(weights, features, optimizer, samples, step, classes, slopes, touches, n_draws + 1, gathered)
    return order.size


@njit(**OPTIONS)
def _move_all(weights, features, optimizer, samples, step, classes, slopes, touches, per_sample, gathered):
    """Move each class that was touched, once."""
    by_class = np.argsort(classes[: samples.size * per_sample], kind="mergesort")
    first = 0
    while first < by_class.size:
        k = classes[by_class[first]]
        stop = first
        weight = np.float32(0)
        while stop < by_class.size and classes[by_class[stop]] == k:
            weight += touches[by_class[stop]]
            stop += 1
        if weight != np.float32(0):
            shrink(weights, step, k, weight)
        row = gather(features, samples, by_class[first:stop], slopes, per_sample, gathered)
        move(weights, row, optimizer, 0, step, np.float32(1), k)
        first = stop


def room_for_gathering(features):
    """Give room for one gathered row: its values, the columns touched, and which columns they are."""
    raise TypeError("compiled code only")


def gather(features, samples, entries, slopes, per_sample, room):
    """Sum of slope times sample over some entries, as features of one row."""
    raise TypeError("compiled code only")


@implements(room_for_gathering, Dense)
def _room_dense(features):
    return np.empty((1, features.X.shape[1]), np.float32)


@implements(room_for_gathering, Csr)
def _room_csr(features):
    n = features.n_features
    values, columns = np.empty(n, np.float32), np.empty(n, np.int32)
    return np.zeros(n, np.float32), np.zeros(n, np.bool_), values, columns, np.zeros(2, np.int64)


@implements(gather, Dense)
def _gather_dense(features, samples, entries, slopes, per_sample, room):
    row = room[0]
    row[:] = np.float32(0)
    constant = np.float32(0)
    for entry in entries:
        slope = slopes[entry]
        if abs(slope) > NEGLIGIBLE:
            x = features.X[samples[entry // per_sample]]
            for d in range(x.size):
                row[d] += slope * x[d]
            constant += slope * features.constant
    return Dense(room, constant)


@implements(gather, Csr)
def _gather_csr(features, samples, entries, slopes, per_sample, room):
    totals, touched, values, columns, indptr = room
    constant = np.float32(0)
    n = 0
    for entry in entries:
        slope = slopes[entry]
        if abs(slope) > NEGLIGIBLE:
            i = samples[entry // per_sample]
            for j in range(features.indptr[i], features.indptr[i + 1]):
                d = features.indices[j]
                if not touched[d]:
                    touched[d] = True
                    columns[n] = d
                    n += 1
                totals[d] += slope * features.data[j]
            constant += slope * features.constant
    for j in range(n):
        d = columns[j]
        values[j] = totals[d]
        totals[d] = np.float32(0)
        touched[d] = False
    indptr[1] = n
    return Csr(values, columns, indptr, features.n_features, constant)
