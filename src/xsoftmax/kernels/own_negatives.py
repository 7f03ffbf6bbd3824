"""The sampled loop in minibatches: all samples of a batch see the same weights, and each class moves once.

Each sample has draws of its own; ``xsoftmax.kernels.shared_negatives`` is for those that share them.

What a class gains from the samples of a batch is summed into one row, dense or sparse as the samples are, which
the optimizer then moves along as if it were a sample: Adagrad squares the sum, not its parts.
"""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, OPTIONS
from xsoftmax.kernels.coefficients import coefficients_of, excluded_of, lowest_of
from xsoftmax.kernels.dispatch import declared, implements
from xsoftmax.kernels.draws import empty_candidates
from xsoftmax.kernels.layout import age, shrink
from xsoftmax.kernels.protocol import NEGLIGIBLE, Candidates, Step, View, draw, n_exact
from xsoftmax.kernels.random import start
from xsoftmax.kernels.rows import Csr, Dense
from xsoftmax.kernels.run_steps import take, workspace_for
from xsoftmax.kernels.walk import move


class Own(NamedTuple):
    """A step per minibatch of ``size``, along the mean of its samples, which have draws of their own."""

    size: int
    ahead: int = 1


class Workspace(NamedTuple):
    """Of one sample, ``candidates``; of a batch, arrays of shape (size x candidates,), and room to gather a row."""

    candidates: Candidates
    classes: np.ndarray
    slopes: np.ndarray
    touches: np.ndarray
    summed: Any


@implements(workspace_for, Own)
def _workspace(batch, parts, samples, order):
    candidates = empty_candidates(parts.n_sampled + n_exact(parts.proposal))
    n = batch.size * candidates.classes.size
    arrays = np.empty(n, np.int64), np.empty(n, np.float32), np.empty(n, np.float32)
    return Workspace(candidates, arrays[0], arrays[1], arrays[2], workspace_for_sum(samples.features))


@implements(take, Own)
def _take(batch, parts, samples, weights, some, clock, rate, workspace):
    per_sample = workspace.candidates.classes.size
    if not _fill(parts, samples, weights, some, clock, rate, workspace):
        return 0
    _move_all(weights, samples.features, parts.optimizer, some, Step(rate, clock.step), per_sample, workspace)
    return some.size


@njit(**LEAN)
def _fill(parts, samples, weights, some, clock, rate, workspace):
    """Write the classes of a batch, their slopes and touches; tell whether all scores are finite."""
    features, candidates, share = samples.features, workspace.candidates, np.float32(1) / np.float32(some.size)
    entry = 0
    for b in range(some.size):
        i, position = some[b], clock.position + b
        y = np.int64(samples.labels[i])
        excluded, lowest = excluded_of(parts.objective, y), lowest_of(parts, features, weights, i, y)
        rng = start(clock.key, position)
        candidates.classes[0], candidates.weights[0] = y, np.float32(1)
        draw(parts.proposal, View(weights, features), i, excluded, lowest, rng, candidates.draws)
        if not coefficients_of(parts, samples, features, i, weights, i, clock.key, position, rate, candidates):
            return False
        for j in range(candidates.classes.size):
            workspace.classes[entry] = candidates.classes[j]
            workspace.slopes[entry] = share * candidates.out[j]
            workspace.touches[entry] = share * candidates.weights[j]
            entry += 1
    return True


@njit(**OPTIONS)
def _move_all(weights, features, optimizer, samples, step, per_sample, workspace):
    """Move each class that was touched, once."""
    age(weights, step)
    _, classes, slopes, touches, summed = workspace
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
        row = sum_samples(features, samples, by_class[first:stop], slopes, per_sample, summed)
        move(weights, row, optimizer, 0, step, np.float32(1), k)
        first = stop


@declared
def workspace_for_sum(features):
    """Give room for one summed row: its values, the columns touched, and which columns they are."""


@declared
def sum_samples(features, samples, entries, slopes, per_sample, workspace):
    """Sum of slope times sample over some entries, as features of one row."""


@implements(workspace_for_sum, Dense)
def _workspace_dense(features):
    return np.empty((1, features.X.shape[1]), np.float32)


@implements(workspace_for_sum, Csr)
def _workspace_csr(features):
    n = features.n_features
    values, columns = np.empty(n, np.float32), np.empty(n, np.int32)
    return np.zeros(n, np.float32), np.zeros(n, np.bool_), values, columns, np.zeros(2, np.int64)


@implements(sum_samples, Dense)
def _sum_dense(features, samples, entries, slopes, per_sample, workspace):
    row = workspace[0]
    row[:] = np.float32(0)
    constant = np.float32(0)
    for entry in entries:
        slope = slopes[entry]
        if abs(slope) > NEGLIGIBLE:
            x = features.X[samples[entry // per_sample]]
            for d in range(x.size):
                row[d] += slope * x[d]
            constant += slope * features.constant
    return Dense(workspace, constant)


@implements(sum_samples, Csr)
def _sum_csr(features, samples, entries, slopes, per_sample, workspace):
    totals, touched, values, columns, indptr = workspace
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
    return Csr(values, columns, indptr, features.n_features, constant, None)
