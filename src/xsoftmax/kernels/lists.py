"""Weights that are not zero, listed by feature, with room to grow: what rows of few words and many classes need.

The list of a feature holds the classes with a weight for it, in rising order. A step reads and moves entries of the
lists of its row's features alone; a class that is not listed there has a weight of zero, and is put in its place when
it first moves. So memory is what is not zero, and the lists are an index from words to classes, too. Biases are an
array.

A list has some room behind its end. A step that might need more than there is is not begun: it notes that the lists
are full, and whoever runs it moves them into larger rooms and goes on from the same sample. There is one writer.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array

from xsoftmax.internal.compiled import njit
from xsoftmax.internal.free_memory import check_free
from xsoftmax.internal.hdf5_checks import ContentError, check_array, check_arrays, copy_arrays
from xsoftmax.kernels import LEAN, OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.layout import has_room, move_entry, stored, stored_score, stored_scores
from xsoftmax.kernels.prefetch import fetch
from xsoftmax.kernels.rows import bias_of
from xsoftmax.kernels.steps import updated

# Room of a list when it is laid out: a share of its length more, and at least so many entries.
SPARE_SHARE, SPARE = 0.5, 8


class Lists(NamedTuple):
    """Weights by feature.

    Attributes
    ----------
    starts : ndarray of shape (n_features + 1,), int64
        Where the room of each list begins.
    sizes : ndarray of shape (n_features,), int64
        Entries of each list.
    classes : ndarray of shape (n_places,), int32
        Rising within a list.
    values : ndarray of shape (n_places,), float32
    accumulates, averages : bool
        Whether ``accumulators`` and ``totals`` are there; otherwise they are of shape (0,).
    accumulators, totals : ndarray of shape (n_places,), float32
        What the optimizer keeps, and as of ``xsoftmax.kernels.layout.Averaged``.
    biases : ndarray of shape (3, n_classes), float32
        Values, accumulators and totals.
    period : ndarray of shape (2,), int64
        Number of steps before the first that counts for the average, and before the next.
    initial : float32
        Accumulator of an entry that has not moved.
    most : ndarray of shape (n_features,), float32
        No weight of a feature is further from zero: what a search may leave lists out by.
    full : ndarray of shape (1,), int64
        How many classes a step wanted to put into a list that has no room for them; 0: there was room.
    """

    starts: np.ndarray
    sizes: np.ndarray
    classes: np.ndarray
    values: np.ndarray
    accumulates: bool
    averages: bool
    accumulators: np.ndarray
    totals: np.ndarray
    biases: np.ndarray
    period: np.ndarray
    initial: np.float32
    most: np.ndarray
    full: np.ndarray

    def weights(self) -> csc_array:
        """Copy of the weights, (n_classes, n_features + 1), the biases as last column: those that train."""
        return self._as_columns(self.values, self.biases[0])

    def average(self) -> csc_array:
        """Average over the period, a copy; the weights, if it has no step."""
        n = int(self.period[1] - self.period[0])
        if not n:
            return self.weights()
        values = self.totals / np.float32(-n)
        values += self.values
        return self._as_columns(values, self.biases[0] - self.biases[2] / np.float32(n))

    def start_again(self, n_steps: int) -> None:
        """Begin a period of the average after so many steps of the fit."""
        self.totals[:] = 0
        self.biases[2] = 0
        self.period[:] = n_steps

    def _as_columns(self, values: np.ndarray, biases: np.ndarray) -> csc_array:
        n_classes, used = self.biases.shape[1], _places_used(self.starts, self.sizes)
        with_bias = np.flatnonzero(biases)
        indptr = np.concatenate([[0], np.cumsum(np.append(self.sizes, with_bias.size))])
        data = np.concatenate([values[used], biases[with_bias]])
        indices = np.concatenate([self.classes[used], with_bias.astype(np.int32)])
        return csc_array((data, indices, indptr), shape=(n_classes, self.sizes.size + 1))

    def load(self, W: Any) -> "Lists":
        """Lists that hold weights (n_classes, n_features), sparse, and nothing else that these hold."""
        columns = csc_array(W, dtype=np.float32)
        columns.sort_indices()
        sizes = np.diff(columns.indptr).astype(np.int64)
        found = _laid_out(self, sizes, np.zeros_like(sizes))
        used = _places_used(found.starts, found.sizes)
        found.classes[used], found.values[used] = columns.indices, columns.data
        bound(found)
        return found

    def grown(self) -> "Lists":
        """Lists with the same entries and more room: as much more as a step wanted, everywhere, and a share."""
        found = _laid_out(self, self.sizes, self.full[0])
        used, before = _places_used(found.starts, found.sizes), _places_used(self.starts, self.sizes)
        for name in ("classes", "values", "accumulators", "totals"):
            if getattr(self, name).size:
                getattr(found, name)[used] = getattr(self, name)[before]
        found.biases[:], found.period[:] = self.biases, self.period
        bound(found)
        return found


def empty_lists(n_classes: int, n_features: int, accumulates: bool, averages: bool, initial: float) -> Lists:
    """Make lists without entries; what is accumulated for one begins at ``initial``."""
    none = np.zeros(n_features, np.int64)
    biases = np.zeros((3, n_classes), np.float32)
    biases[1] = initial
    like = Lists(
        np.zeros(n_features + 1, np.int64),
        none,
        np.empty(0, np.int32),
        np.empty(0, np.float32),
        accumulates,
        averages,
        np.empty(0, np.float32),
        np.empty(0, np.float32),
        biases,
        np.zeros(2, np.int64),
        np.float32(initial),
        np.zeros(n_features, np.float32),
        np.zeros(1, np.int64),
    )
    return _laid_out(like, none, none)


def bytes_of(n_entries: int, n_features: int, n_classes: int, n_arrays: int) -> int:
    """Bytes of lists of so many entries, ``n_arrays`` numbers each beside the class, as they are laid out."""
    places = n_entries + int(SPARE_SHARE * n_entries) + SPARE * n_features
    return places * 4 * (1 + n_arrays) + 16 * n_features + 12 * n_classes


def _laid_out(like: Lists, sizes: np.ndarray, wanted: Any) -> Lists:
    """Make room for lists of these sizes and more; memory is asked for first.

    Raises
    ------
    InputError
        If there is too little.
    """
    rooms = sizes + (SPARE_SHARE * sizes).astype(np.int64) + SPARE + wanted
    starts = np.concatenate([[0], np.cumsum(rooms)])
    n_arrays = 2 + like.accumulates + like.averages
    check_free(4 * n_arrays * int(starts[-1]), "the weights that are not zero")
    n = int(starts[-1])
    return like._replace(
        starts=starts,
        sizes=sizes.copy(),
        classes=np.zeros(n, np.int32),
        values=np.zeros(n, np.float32),
        accumulators=np.full(n * like.accumulates, like.initial, np.float32),
        totals=np.zeros(n * like.averages, np.float32),
        biases=like.biases.copy(),
        period=like.period.copy(),
        most=np.zeros(sizes.size, np.float32),
        full=np.zeros(1, np.int64),
    )


def _places_used(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Places of all entries, feature by feature."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if ends.size else 0) + np.repeat(starts[:-1] - (ends - sizes), sizes)


def checked(own: Lists, states: np.ndarray, arrays: Mapping[str, Any]) -> Lists:
    """Make lists of arrays in memory or in a file, such as ``own`` has, but of any length; fill ``states``, too.

    Raises
    ------
    ContentError
        If they are no such lists; nothing has been changed by then.
    """
    lists = {"classes": True, "values": True, "accumulators": own.accumulates, "totals": own.averages}
    fixed = {name: getattr(own, name) for name in ("starts", "sizes", "biases", "period", "most", "full")}
    fixed["states"] = states
    if missing := lists.keys() - arrays.keys():
        raise ContentError(f"no {', '.join(sorted(missing))}")
    check_arrays(fixed, {name: array for name, array in arrays.items() if name not in lists})
    n = len(arrays["classes"])
    for name, there in lists.items():
        check_array(arrays[name], getattr(own, name).dtype, n * there)
    found = own._replace(**{name: arrays[name][...] for name in (*lists, *fixed) if name != "states"})
    rooms = np.diff(found.starts)
    if found.starts[0] != 0 or found.starts[-1] != n or (rooms < 0).any():
        raise ContentError("lists that begin where there is nothing")
    if (found.sizes < 0).any() or (found.sizes > rooms).any():
        raise ContentError("lists that are longer than their room")
    used = _places_used(found.starts, found.sizes)
    classes = found.classes[used]
    rises = np.diff(classes.astype(np.int64)) > 0
    ends = np.cumsum(found.sizes)[:-1]
    rises[ends[(ends > 0) & (ends < classes.size)] - 1] = True
    if not rises.all() or (classes.size and not 0 <= classes.min() <= classes.max() < own.biases.shape[1]):
        raise ContentError("lists whose classes do not rise, or are none")
    copy_arrays({"states": states}, {"states": arrays["states"]})
    bound(found)
    return found


@njit(**OPTIONS)
def bound(weights):
    """Find the weight of each feature that is furthest from zero."""
    for d in range(weights.sizes.size):
        most = np.float32(0)
        for place in range(weights.starts[d], weights.starts[d] + weights.sizes[d]):
            most = max(most, abs(weights.values[place]))
        weights.most[d] = most


@njit(**LEAN)
def place_of(weights, k, d):
    """Place of class ``k`` in the list of feature ``d``, or where it would be put."""
    low = weights.starts[d]
    return _first_from(weights.classes, low, low + weights.sizes[d], k)


@njit(**LEAN)
def _first_from(classes, low, high, k):
    """Place of the first class, of those that rise from ``low`` up to ``high``, that is not below ``k``."""
    while low < high:
        middle = (low + high) >> 1
        if classes[middle] < k:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**LEAN)
def _is_there(weights, place, k, d):
    return place < weights.starts[d] + weights.sizes[d] and weights.classes[place] == k


@njit(**LEAN)
def stored_at(weights, k, d):
    """Weight of class ``k`` for feature ``d``."""
    place = place_of(weights, k, np.int64(d))
    return weights.values[place] if _is_there(weights, place, k, d) else np.float32(0)


@implements(stored, Lists)
def _stored(weights, k, d):
    return weights.biases[0, k] if d == weights.sizes.size else stored_at(weights, k, d)


@implements(stored_score, Lists)
def _stored_score(weights, features, i, k):
    score = bias_of(features) * weights.biases[0, k]
    for j in range(features.indptr[i], features.indptr[i + 1]):
        score += features.data[j] * stored(weights, k, features.indices[j])
    return score


@implements(stored_scores, Lists)
def _stored_scores(weights, features, i, k, other):
    return stored_score(weights, features, i, k), stored_score(weights, features, i, other)


@implements(fetch, Lists)
def _no_fetch(weights, k):
    pass


@implements(has_room, Lists)
def _has_room(weights, features, i, n):
    most = np.int64(0)
    for j in range(features.indptr[i], features.indptr[i + 1]):
        d = features.indices[j]
        if weights.starts[d] + weights.sizes[d] + n > weights.starts[d + 1]:
            most = n
    weights.full[0] = most
    return most == 0


@implements(move_entry, Lists)
def _move(weights, at, optimizer, step, k, d, g):
    if d == weights.sizes.size:
        b = weights.biases
        before = b[0, k]
        b[0, k], b[1, k] = updated(optimizer, step, before, b[1, k], g)
        b[2, k] += np.float32(step.number - weights.period[0]) * (b[0, k] - before)
        return
    if g == np.float32(0):
        return
    place = place_of(weights, k, np.int64(d))
    if not _is_there(weights, place, k, d):
        _insert(weights, place, k, np.int64(d))
    before = weights.values[place]
    if weights.accumulates:
        now, weights.accumulators[place] = updated(optimizer, step, before, weights.accumulators[place], g)
    else:
        now, _ = updated(optimizer, step, before, np.float32(0), g)
    weights.values[place] = now
    weights.most[d] = max(weights.most[d], abs(now))
    if weights.averages:
        weights.totals[place] += np.float32(step.number - weights.period[0]) * (now - before)


@njit(**LEAN)
def _insert(weights, place, k, d):
    """Put class ``k``, with a weight of zero, at a place of the list of feature ``d``, which has room."""
    last = weights.starts[d] + weights.sizes[d]
    _shift(weights.classes, place, last)
    _shift(weights.values, place, last)
    weights.classes[place], weights.values[place] = k, np.float32(0)
    if weights.accumulates:
        _shift(weights.accumulators, place, last)
        weights.accumulators[place] = weights.initial
    if weights.averages:
        _shift(weights.totals, place, last)
        weights.totals[place] = np.float32(0)
    weights.sizes[d] += 1


@njit(**LEAN)
def _shift(values, first, last):
    """Move the values from ``first`` up to ``last`` one place on."""
    for place in range(last, first, -1):
        values[place] = values[place - 1]


@njit(**OPTIONS)
def add_scores(weights_of, features, first_row, first_class, scores):
    """Add the scores of rows ``first_row``... for classes ``first_class``... to ``scores``.

    ``weights_of`` are ``indptr``, ``indices`` and ``data`` of a ``csc_array`` of shape (n_classes, n_features), its
    indices rising within a column.
    """
    indptr, indices, data = weights_of
    last_class = first_class + scores.shape[1]
    for b in range(scores.shape[0]):
        out = scores[b]
        for j in range(features.indptr[first_row + b], features.indptr[first_row + b + 1]):
            d, x = features.indices[j], features.data[j]
            place = _first_from(indices, indptr[d], indptr[d + 1], first_class)
            while place < indptr[d + 1] and indices[place] < last_class:
                out[indices[place] - first_class] += x * data[place]
                place += 1
