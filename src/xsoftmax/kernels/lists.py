"""Weights that are not zero, in lists with room to grow: what rows of few words and many classes need.

A step reads and moves entries of the lists of its row alone; what is not listed is a weight of zero, and is put in
its place when it first moves. So memory is what is not zero. Biases are an array. There are two kinds of lists:

    Lists       by feature, the classes of each in rising order: an index from words to classes    (here)
    ClassLists  by class, its features in the order in which it met them: what steps that know their classes go along
                several times as fast                                                       (``class_lists``)

All weights but biases are a factor times what is listed, so that those that decay cost nothing where no step touches
them: see ``xsoftmax.kernels.scaled``.

A list that is full moves to where no list is, with twice the room. A step that might need more than there is is not
begun: it notes that the lists are full, and whoever runs it moves them into a larger place and goes on from the same
sample. There is one writer.
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
from xsoftmax.kernels.layout import age, has_room, move_entry, stored, stored_score, stored_scores
from xsoftmax.kernels.prefetch import fetch
from xsoftmax.kernels.protocol import updated
from xsoftmax.kernels.rows import bias_of
from xsoftmax.kernels.scaled import FOLDED, age_scaled, rule_of, sum_before, unscaled

# Places that belong to no list when they are laid out: a share of all entries.
SPARE_SHARE = 0.5
# Room of a list beyond its entries, at least.
SPARE = 4
# Room of a full list that moves, beyond twice its entries.
MORE = 4
_BY_PLACE = ("members", "values", "accumulators", "totals")
_FIXED = ("starts", "sizes", "rooms", "free", "biases", "period", "scale", "most", "full")


class Lists(NamedTuple):
    """Weights by feature.

    Attributes
    ----------
    starts, sizes, rooms : ndarray of shape (n_lists,), int64
        Where each list begins, its entries, and how many it has room for.
    free : ndarray of shape (1,), int64
        The first place that is not in the room of a list, nor is any behind it.
    members : ndarray of shape (n_places,), int32
        Classes of a feature, rising; of ``ClassLists``, features of a class.
    values : ndarray of shape (n_places,), float32
    accumulates, averages : bool
        Whether ``accumulators`` and ``totals`` are there; otherwise they are of shape (0,).
    accumulators, totals : ndarray of shape (n_places,), float32
        What the optimizer keeps, and as of ``xsoftmax.kernels.layout.Averaged``.
    biases : ndarray of shape (3, n_classes), float32
        Values, accumulators and totals.
    period : ndarray of shape (2,), int64
        Number of steps before the first that counts for the average, and before the next.
    scale : ndarray of shape (3,), float64
        Of weights but biases, as of ``Scaled``.
    decay : float32
        Of weights but biases, as of ``Scaled``; 0: they do not decay.
    initial : float32
        Accumulator of an entry that has not moved.
    most : ndarray of shape (n_features,), float32
        No value of a feature is further from zero: what a search may leave lists out by.
    full : ndarray of shape (1,), int64
        How many places a step wanted that there were not; 0: there was room.
    row : NamedTuple or None
        Of ``ClassLists``, room for a sample.
    """

    starts: np.ndarray
    sizes: np.ndarray
    rooms: np.ndarray
    free: np.ndarray
    members: np.ndarray
    values: np.ndarray
    accumulates: bool
    averages: bool
    accumulators: np.ndarray
    totals: np.ndarray
    biases: np.ndarray
    period: np.ndarray
    scale: np.ndarray
    decay: np.float32
    initial: np.float32
    most: np.ndarray
    full: np.ndarray
    row: Any = None

    @property
    def rises(self) -> bool:
        """Tell whether the members of a list rise."""
        return True

    def n_members(self) -> int:
        """Count what may stand in a list."""
        return int(self.biases.shape[1])

    def weights(self) -> csc_array:
        """Copy of the weights, (n_classes, n_features + 1), the biases as last column: those that train."""
        return self._with_biases(self.biases[0], self.scale[0], 0.0)

    def average(self) -> csc_array:
        """Average over the period, a copy; the weights, if it has no step."""
        n = int(self.period[1] - self.period[0])
        if not n:
            return self.weights()
        return self._with_biases(self.biases[0] - self.biases[2] / np.float32(n), self.scale[2] / n, -1 / n)

    def start_again(self, n_steps: int) -> None:
        """Begin a period of the average after so many steps of the fit."""
        self.totals[:] = 0
        self.biases[2] = 0
        self.scale[2] = 0
        self.period[:] = n_steps

    def fold(self) -> None:
        """Multiply a small factor into the values, between chunks."""
        factor = np.float32(self.scale[0])
        if factor > FOLDED:
            return
        if self.averages:
            np.add(self.totals, np.float32(self.scale[2] * (factor - 1)) * self.values, out=self.totals)
        np.multiply(self.values, factor, out=self.values)
        np.multiply(self.most, factor, out=self.most)
        self.scale[:2] = 1

    def _with_biases(self, biases: np.ndarray, of_values: float, of_totals: float) -> csc_array:
        """Multiples of values and totals as a matrix, which is held once where there are no biases."""
        check_free(8 * int(self.sizes.sum()), "a copy of the weights that are not zero")
        columns, with_bias = self.columns(np.float32(of_values), np.float32(of_totals)), np.flatnonzero(biases)
        data, indices, shape = columns.data, columns.indices, (columns.shape[0], columns.shape[1] + 1)
        if with_bias.size:
            data = np.concatenate([data, biases[with_bias]])
            indices = np.concatenate([indices, with_bias.astype(np.int32)])
        return columns_of_arrays(data, indices, np.append(columns.indptr, data.size), shape)

    def columns(self, of_values: np.float32, of_totals: np.float32) -> csc_array:
        """Multiples of values and totals as a matrix (n_classes, n_features)."""
        indptr = np.concatenate([[0], np.cumsum(self.sizes)])
        data, indices = np.empty(indptr[-1], np.float32), np.empty(indptr[-1], np.int32)
        write_lists(self, of_values, of_totals, data, indices)
        return columns_of_arrays(data, indices, indptr, (self.biases.shape[1], self.sizes.size))

    def lists_of(self, W: Any) -> Any:
        """Weights (n_classes, n_features) as a matrix whose ``indices`` are the members of one list after another."""
        columns = csc_array(W, dtype=np.float32)
        columns.sort_indices()
        return columns

    def load(self, W: Any) -> "Lists":
        """Lists that hold weights (n_classes, n_features), sparse, and nothing else that these hold."""
        there = self.lists_of(W)
        found = _laid_out(self, np.diff(there.indptr).astype(np.int64), 0)
        for name, numbers in (("members", there.indices), ("values", there.data)):
            move_lists(found.sizes, there.indptr[:-1].astype(np.int64), numbers, found.starts, getattr(found, name))
        bound(found)
        return found


def columns_of_arrays(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]) -> csc_array:
    """Make a matrix whose indices are of 4 bytes where ``indptr`` allows it: scipy makes both alike."""
    return csc_array((data, indices, indptr.astype(np.int32 if data.size < 2**31 else np.int64)), shape=shape)


def empty_lists(
    n_classes: int, n_features: int, accumulates: bool, averages: bool, initial: float, decay: float = 0.0
) -> Lists:
    """Make lists without entries; what is accumulated for one begins at ``initial``."""
    found = laid_out_for(Lists, n_features, n_classes, n_features, accumulates, averages, initial, None)
    return found._replace(decay=np.float32(decay))


def laid_out_for(
    kind: type,
    n_lists: int,
    n_classes: int,
    n_bounds: int,
    accumulates: bool,
    averages: bool,
    initial: float,
    row: Any,
) -> Any:
    """Make ``n_lists`` lists of a kind, without entries."""
    none, biases = np.zeros(n_lists, np.int64), np.zeros((3, n_classes), np.float32)
    biases[1] = initial
    places = (np.empty(0, np.int32), np.empty(0, np.float32), accumulates, averages, *[np.empty(0, np.float32)] * 2)
    changing = (biases, np.zeros(2, np.int64), unscaled(), np.float32(0), np.float32(initial))
    found = (np.zeros(n_bounds, np.float32), np.zeros(1, int))
    return _laid_out(kind(none, none, none, np.zeros(1, np.int64), *places, *changing, *found, row), none, 0)


def bytes_of(n_entries: int, n_lists: int, n_classes: int, n_arrays: int) -> int:
    """Bytes of lists of so many entries, ``n_arrays`` numbers each beside the member, as they are laid out."""
    places = int((1 + SPARE_SHARE) * (n_entries + SPARE * n_lists))
    return places * 4 * (1 + n_arrays) + 28 * n_lists + 12 * n_classes


def _laid_out(like: Any, sizes: np.ndarray, wanted: int) -> Any:
    """Make room for lists of these sizes and more, without entries; memory is asked for first.

    Raises
    ------
    InputError
        If there is too little.
    """
    found, n = _planned(like, sizes, wanted)
    check_free(4 * n * _n_kinds(like), "the weights that are not zero")
    return found._replace(**{name: _places(like, name, n) for name in _BY_PLACE})


def _planned(like: Any, sizes: np.ndarray, wanted: int) -> tuple[Any, int]:
    """Say where lists of these sizes begin, and how many places there are to be; what these hold is left as it is."""
    rooms = sizes + SPARE
    ends = np.cumsum(rooms)
    used = int(ends[-1]) if ends.size else 0
    found = like._replace(
        starts=ends - rooms,
        sizes=sizes.copy(),
        rooms=rooms,
        free=np.array([used], np.int64),
        biases=like.biases.copy(),
        period=like.period.copy(),
        scale=like.scale.copy(),
        most=np.zeros_like(like.most),
        full=np.zeros(1, np.int64),
    )
    return found, used + int(SPARE_SHARE * used) + wanted


def _n_kinds(like: Any) -> int:
    """Count the numbers of a place."""
    return 2 + like.accumulates + like.averages


def _places(like: Any, name: str, n: int) -> np.ndarray:
    """Make numbers of one kind for so many places: none if the lists do not have this kind."""
    if name == "accumulators":
        return np.full(n * like.accumulates, like.initial, np.float32)
    return np.zeros(n * like.averages if name == "totals" else n, np.int32 if name == "members" else np.float32)


def grown(holder: list[Any]) -> Any:
    """Give the lists that stand in ``holder`` more room: as many places as a step wanted, and a share of all.

    They are taken out of there. Where nobody else holds them, one kind of number at a time is in memory twice.

    Raises
    ------
    InputError
        If there is too little memory; the lists are lost then.
    """
    before = holder.pop()
    found, n = _planned(before, before.sizes, int(before.full[0]))
    held = 4 * before.members.size * _n_kinds(before)
    check_free(4 * n * (1 + _n_kinds(before)) - held, "the weights that are not zero")
    numbers, starts = {name: getattr(before, name) for name in _BY_PLACE}, before.starts
    del before
    found = found._replace(**dict.fromkeys(_BY_PLACE))
    for name in _BY_PLACE:
        there, places = numbers.pop(name), _places(found, name, n)
        if there.size:
            move_lists(found.sizes, starts, there, found.starts, places)
        found = found._replace(**{name: places})
    bound(found)
    return found


def _places_used(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Places of all entries, list by list."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if ends.size else 0) + np.repeat(starts - (ends - sizes), sizes)


def checked(own: Any, auxiliary: np.ndarray, arrays: Mapping[str, Any]) -> Any:
    """Make lists of arrays in memory or in a file, such as ``own`` has, but of any length; fill ``auxiliary``, too.

    Raises
    ------
    ContentError
        If they are no such lists; nothing has been changed by then.
    """
    there = {"members": True, "values": True, "accumulators": own.accumulates, "totals": own.averages}
    fixed = {name: getattr(own, name) for name in _FIXED} | {"auxiliary": auxiliary}
    if missing := there.keys() - arrays.keys():
        raise ContentError(f"no {', '.join(sorted(missing))}")
    check_arrays(fixed, {name: array for name, array in arrays.items() if name not in there})
    n = len(arrays["members"])
    for name, is_there in there.items():
        check_array(arrays[name], getattr(own, name).dtype, n * is_there)
    found = own._replace(**{name: arrays[name][...] for name in (*there, *_FIXED)})
    _check_rooms(found, n)
    _check_members(found)
    copy_arrays({"auxiliary": auxiliary}, {"auxiliary": arrays["auxiliary"]})
    bound(found)
    return found


def _check_rooms(found: Any, n: int) -> None:
    """Refuse lists that share a place, or leave the ``n`` that there are."""
    order = np.argsort(found.starts, kind="stable")
    starts, rooms, ends = found.starts[order], found.rooms[order], (found.starts + found.rooms)[order]
    if not (np.isfinite(found.scale).all() and found.scale[0] > 0):
        raise ContentError("lists of a factor that is none")
    if (rooms < 0).any() or (starts < 0).any() or (ends > found.free[0]).any() or not 0 <= found.free[0] <= n:
        raise ContentError("lists that begin where there is nothing")
    if (ends[:-1] > starts[1:]).any():
        raise ContentError("lists that share their room")
    if (found.sizes < 0).any() or (found.sizes > found.rooms).any():
        raise ContentError("lists that are longer than their room")


def _check_members(found: Any) -> None:
    """Refuse members that are none, stand in a list twice, or do not rise where they have to."""
    members, n_members = found.members[_places_used(found.starts, found.sizes)].astype(np.int64), found.n_members()
    if members.size and not 0 <= members.min() <= members.max() < n_members:
        raise ContentError("lists of what is no class or feature")
    keys = np.repeat(np.arange(found.sizes.size), found.sizes) * n_members + members
    if not (np.diff(keys if found.rises else np.sort(keys)) > 0).all():
        raise ContentError("lists whose members do not rise, or stand there twice")


@njit(**OPTIONS)
def move_lists(sizes, starts, numbers, to_starts, to):
    """Copy lists of these sizes to where they begin in another array."""
    for which in range(sizes.size):
        first, to_first = starts[which], to_starts[which]
        for j in range(sizes[which]):
            to[to_first + j] = numbers[first + j]


@njit(**OPTIONS)
def write_lists(weights, of_values, of_totals, data, indices):
    """Write multiples of values and totals, and the members, list by list."""
    n = 0
    for which in range(weights.sizes.size):
        for place in range(weights.starts[which], weights.starts[which] + weights.sizes[which]):
            data[n], indices[n] = multiple(weights, of_values, of_totals, place), weights.members[place]
            n += 1


@njit(**LEAN)
def multiple(weights, of_values, of_totals, place):
    """Give a multiple of the value at a place, and one of its total if there are totals."""
    value = of_values * weights.values[place]
    return value + of_totals * weights.totals[place] if weights.averages else value


@njit(**OPTIONS)
def bound(weights):
    """Find the weight of each feature that is furthest from zero, where lists keep that."""
    for d in range(weights.most.size):
        most = np.float32(0)
        for place in range(weights.starts[d], weights.starts[d] + weights.sizes[d]):
            most = max(most, abs(weights.values[place]))
        weights.most[d] = most


@njit(**LEAN)
def place_of(weights, k, d):
    """Place of class ``k`` in the list of feature ``d``, or where it would be put."""
    low = weights.starts[d]
    return _first_from(weights.members, low, low + weights.sizes[d], k)


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
    return place < weights.starts[d] + weights.sizes[d] and weights.members[place] == k


@njit(**LEAN)
def stored_at(weights, k, d):
    """Give what is listed of class ``k`` for feature ``d``."""
    place = place_of(weights, k, np.int64(d))
    return weights.values[place] if _is_there(weights, place, k, d) else np.float32(0)


@implements(stored, Lists)
def _stored(weights, k, d):
    return (
        weights.biases[0, k] if d == weights.sizes.size else np.float32(weights.scale[0]) * stored_at(weights, k, d)
    )


@implements(stored_score, Lists)
def _stored_score(weights, features, i, k):
    score = np.float32(weights.scale[1]) * (bias_of(features) * weights.biases[0, k])
    for j in range(features.indptr[i], features.indptr[i + 1]):
        score += features.data[j] * stored_at(weights, k, features.indices[j])
    return np.float32(weights.scale[0]) * score


@implements(stored_scores, Lists)
def _stored_scores(weights, features, i, k, other):
    return stored_score(weights, features, i, k), stored_score(weights, features, i, other)


implements(age, Lists)(age_scaled)


@implements(fetch, Lists)
def _no_fetch(weights, k):
    pass


@implements(has_room, Lists)
def _has_room(weights, features, i, classes):
    needed = np.int64(0)
    for j in range(features.indptr[i], features.indptr[i + 1]):
        needed += places_for(weights, features.indices[j], classes.size)
    return note_room(weights, needed)


@njit(**LEAN)
def places_for(weights, which, n):
    """Count the places, at most, that a list moves through as it takes ``n`` more entries, one by one."""
    size = weights.sizes[which]
    return np.int64(4 * (size + n)) if size + n > weights.rooms[which] else np.int64(0)


@njit(**LEAN)
def note_room(weights, needed):
    """Tell whether so many places are free, and note how many were wanted if not."""
    there = weights.free[0] + needed <= weights.members.size
    weights.full[0] = np.int64(0) if there else needed
    return there


@implements(move_entry, Lists)
def _move(weights, at, optimizer, step, k, d, g):
    if d == weights.sizes.size:
        move_bias(weights, optimizer, step, k, g)
    elif g != np.float32(0):
        place = place_of(weights, k, np.int64(d))
        if not _is_there(weights, place, k, d):
            place = _insert(weights, place, k, np.int64(d))
        now = move_place(weights, rule_of(weights.scale, optimizer), step, place, g)
        weights.most[d] = max(weights.most[d], abs(now))


@njit(**LEAN)
def move_bias(weights, optimizer, step, k, g):
    """Move the bias of a class by its gradient."""
    b = weights.biases
    before = b[0, k]
    b[0, k], b[1, k] = updated(optimizer, step, before, b[1, k], g)
    b[2, k] += np.float32(step.number - weights.period[0]) * (b[0, k] - before)


@njit(**LEAN)
def move_place(weights, optimizer, step, place, g):
    """Move the value at a place by the gradient of the weight; return what it is then. See ``rule_of``."""
    last = weights.values[place]
    if weights.accumulates:
        now, weights.accumulators[place] = updated(optimizer, step, last, weights.accumulators[place], g)
    else:
        now, _ = updated(optimizer, step, last, np.float32(0), g)
    weights.values[place] = now
    if weights.averages:
        weights.totals[place] += sum_before(weights.scale) * (now - last)
    return now


@njit(**LEAN)
def open_end(weights, which):
    """Make the list one entry longer, a weight of zero of no member yet; return its place. It may move the list."""
    size = weights.sizes[which]
    if size == weights.rooms[which]:
        first, to, room = weights.starts[which], weights.free[0], 2 * size + MORE
        for j in range(size):
            weights.members[to + j], weights.values[to + j] = weights.members[first + j], weights.values[first + j]
            if weights.accumulates:
                weights.accumulators[to + j] = weights.accumulators[first + j]
            if weights.averages:
                weights.totals[to + j] = weights.totals[first + j]
        weights.starts[which], weights.rooms[which] = to, room
        weights.free[0] += room
    place = weights.starts[which] + size
    weights.sizes[which] += 1
    weights.values[place] = np.float32(0)
    if weights.accumulates:
        weights.accumulators[place] = weights.initial
    if weights.averages:
        weights.totals[place] = np.float32(0)
    return place


@njit(**LEAN)
def _insert(weights, place, k, d):
    """Put class ``k``, with a weight of zero, at a place of the list of feature ``d``; return where that is then."""
    before = weights.starts[d]
    last = open_end(weights, d)
    place += weights.starts[d] - before
    _shift(weights.members, place, last)
    _shift(weights.values, place, last)
    weights.members[place], weights.values[place] = k, np.float32(0)
    if weights.accumulates:
        _shift(weights.accumulators, place, last)
        weights.accumulators[place] = weights.initial
    if weights.averages:
        _shift(weights.totals, place, last)
        weights.totals[place] = np.float32(0)
    return place


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


@njit(**OPTIONS)
def add_scores_of(weights_of, features, y, scores):
    """Add the score of class y[i] of each row i to scores[i]: see ``add_scores``."""
    indptr, indices, data = weights_of
    for i in range(y.size):
        for j in range(features.indptr[i], features.indptr[i + 1]):
            d = features.indices[j]
            place = _first_from(indices, indptr[d], indptr[d + 1], y[i])
            if place < indptr[d + 1] and indices[place] == y[i]:
                scores[i] += features.data[j] * data[place]
