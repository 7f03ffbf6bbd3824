"""Weights that are not zero, listed by class: what steps go along that know which classes they look at.

The row of a step is written out once, an array of all features. A class's score is then what its list finds there;
the words of the row that its list has not found are put at its end when the class moves. So a step costs the entries
of its classes' lists, one after another in memory, not a search for every word in each of them.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, csr_array

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.layout import age, has_room
from xsoftmax.kernels.lists import (
    Lists,
    columns_of_arrays,
    laid_out_for,
    move_bias,
    move_place,
    multiple,
    note_room,
    open_end,
    places_for,
)
from xsoftmax.kernels.prefetch import fetch
from xsoftmax.kernels.rows import bias_of, rate_of
from xsoftmax.kernels.scaled import age_scaled, rule_of
from xsoftmax.kernels.walk import move, move_two, score_class, score_two


class Row(NamedTuple):
    """A sample, written out.

    Attributes
    ----------
    values : ndarray of shape (n_features,), float32
    moves : ndarray of shape (n_features,), int64
        The last move in which a class had this feature in its list.
    shown : ndarray of shape (2,), int64
        Which sample this is, -1 for none; and how many moves there were.
    """

    values: np.ndarray
    moves: np.ndarray
    shown: np.ndarray


class ClassLists(Lists):
    """Weights by class; fields are those of ``Lists``, but ``most``, which is empty."""

    @property
    def rises(self) -> bool:
        """Tell whether the members of a list rise: they stand as they came."""
        return False

    def n_members(self) -> int:
        """Count what may stand in a list."""
        return int(self.row.values.size)

    def columns(self, of_values: np.float32, of_totals: np.float32) -> csc_array:
        """Multiples of values and totals as a matrix (n_classes, n_features)."""
        n = int(self.sizes.sum())
        indptr, data, indices = (
            np.zeros(self.n_members() + 1, np.int64),
            np.empty(n, np.float32),
            np.empty(n, np.int32),
        )
        _write_by_feature(self, of_values, of_totals, indptr, data, indices)
        return columns_of_arrays(data, indices, indptr, (self.sizes.size, self.n_members()))

    def lists_of(self, W: Any) -> csr_array:
        """Weights (n_classes, n_features) as a matrix whose ``indices`` are the members of one list after another."""
        return csr_array(W, dtype=np.float32)


def empty_class_lists(
    n_classes: int, n_features: int, accumulates: bool, averages: bool, initial: float, decay: float = 0.0
) -> ClassLists:
    """Make lists without entries; what is accumulated for one begins at ``initial``."""
    row = Row(np.zeros(n_features, np.float32), np.zeros(n_features, np.int64), np.array([-1, 0]))
    found = laid_out_for(ClassLists, n_classes, n_classes, 0, accumulates, averages, initial, row)
    return found._replace(decay=np.float32(decay))


@njit(**OPTIONS)
def _write_by_feature(weights, of_values, of_totals, indptr, data, indices):
    """Write multiples of values and totals feature by feature, classes rising."""
    for k in range(weights.sizes.size):
        for place in range(weights.starts[k], weights.starts[k] + weights.sizes[k]):
            indptr[weights.members[place] + 1] += 1
    indptr[:] = np.cumsum(indptr)
    at = indptr[:-1].copy()
    for k in range(weights.sizes.size):
        for place in range(weights.starts[k], weights.starts[k] + weights.sizes[k]):
            d = weights.members[place]
            data[at[d]], indices[at[d]] = multiple(weights, of_values, of_totals, place), k
            at[d] += 1


@njit(**LEAN)
def write_out(row, features, i):
    """Write sample ``i`` out, unless it is there, in the place of the one before."""
    if row.shown[0] == i:
        return
    before = row.shown[0]
    if before >= 0:
        for j in range(features.indptr[before], features.indptr[before + 1]):
            row.values[features.indices[j]] = np.float32(0)
    for j in range(features.indptr[i], features.indptr[i + 1]):
        row.values[features.indices[j]] = features.data[j]
    row.shown[0] = i


@implements(score_class, ClassLists)
def _score_class(weights, features, i, k):
    write_out(weights.row, features, i)
    values, first = weights.row.values, np.uint64(weights.starts[k])
    score = np.float32(weights.scale[1]) * (bias_of(features) * weights.biases[0, k])
    for j in range(np.uint64(weights.sizes[k])):  # unsigned: no place is counted from the end, so that it vectorises
        score += values[np.uint32(weights.members[first + j])] * weights.values[first + j]
    return np.float32(weights.scale[0]) * score


implements(age, ClassLists)(age_scaled)


@implements(score_two, ClassLists)
def _score_two(weights, features, i, k, other):
    return score_class(weights, features, i, k), score_class(weights, features, i, other)


@implements(fetch, ClassLists)
def _no_fetch(weights, k):
    pass


@implements(has_room, ClassLists)
def _has_room(weights, features, i, classes):
    needed, n = np.int64(0), features.indptr[i + 1] - features.indptr[i]
    for k in classes:
        needed += places_for(weights, k, n)
    return note_room(weights, needed)


@implements(move, ClassLists)
def _move(weights, features, optimizer, i, step, coefficient, k):
    write_out(weights.row, features, i)
    row, rule = weights.row, rule_of(weights.scale, optimizer)
    row.shown[1] += 1
    now, first, n_found = row.shown[1], weights.starts[k], 0
    for place in range(first, first + weights.sizes[k]):
        d = weights.members[place]
        x = row.values[d]
        if x != np.float32(0):
            move_place(weights, rule, step, place, coefficient * (x * rate_of(features.rates, d)))
            row.moves[d] = now
            n_found += 1
    if n_found < features.indptr[i + 1] - features.indptr[i]:
        _move_others(weights, features, rule, i, step, coefficient, k)
    move_bias(weights, optimizer, step, k, coefficient * features.constant)


@njit(**LEAN)
def _move_others(weights, features, rule, i, step, coefficient, k):
    """Put features of the sample that the last move has not found at the end of the class's list, and move them."""
    now = weights.row.shown[1]
    for j in range(features.indptr[i], features.indptr[i + 1]):
        d, x = features.indices[j], features.data[j]
        if x != np.float32(0) and weights.row.moves[d] != now:
            place = open_end(weights, k)
            weights.members[place] = d
            move_place(weights, rule, step, place, coefficient * (x * rate_of(features.rates, d)))


@implements(move_two, ClassLists)
def _move_two(weights, features, optimizer, i, step, coefficient, k, other_coefficient, other):
    move(weights, features, optimizer, i, step, coefficient, k)
    move(weights, features, optimizer, i, step, other_coefficient, other)
