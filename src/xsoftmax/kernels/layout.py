"""How weights, and what an optimizer keeps beside them, lie in memory: their type is their layout.

Sampled methods touch a few classes: one row per class, its bias last. Of sparse samples a step touches entries all
over a row, each of which should be one cache line with all that belongs to it. Methods that see every class keep rows
whole for matrix products, and go the other way for sparse samples, one row per feature.

Of a layout, compiled code knows a row's weights and how an entry moves by the rule of an optimizer (see ``updated``
of ``xsoftmax.kernels.protocol``); ``xsoftmax.kernels.walk`` goes along the rows. ``Decayed``, ``Scaled``
(``xsoftmax.kernels.scaled``) and ``Averaged`` are layouts around others, so that no optimizer knows of an L2 penalty,
of decay, or of averages.

A layout is a NamedTuple with ``weights()``, and compiled code for ``move_entry``; where its rows are not ``W[k]``,
for ``row_of``, ``stored``, ``stored_score`` and ``stored_scores``, too. Of the other functions here it brings those
that mean something to it; ``solvers/`` choose which layout a method has.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, OPTIONS
from xsoftmax.kernels.dispatch import declared, implements, lean, otherwise
from xsoftmax.kernels.mathematics import exp32
from xsoftmax.kernels.protocol import updated
from xsoftmax.kernels.rows import dot, dot_two

# A factor outside of these is multiplied into its row between chunks; within one, it does not leave the others.
FOLDED = 2.0**20
_LARGEST = np.float32(2.0**60)
_SMALLEST = np.float32(2.0**-60)


class Plain(NamedTuple):
    """One float32 per weight: ``W`` of shape (n_classes, width), or turned."""

    W: np.ndarray

    def weights(self) -> np.ndarray:
        """View of the weights alone, (n_classes, width)."""
        return self.W


class Apart(NamedTuple):
    """Weights, and in an array of the same shape what is accumulated for each."""

    W: np.ndarray
    accumulators: np.ndarray

    def weights(self) -> np.ndarray:
        """View of the weights alone."""
        return self.W


class Rows(NamedTuple):
    """A row of weights, then a row of accumulators, for dense samples: ``W`` of shape (n_classes, 2, width)."""

    W: np.ndarray

    def weights(self) -> np.ndarray:
        """View of the weights alone, (n_classes, width)."""
        return self.W[:, 0]


class Entries(NamedTuple):
    """Each weight with its accumulator, for sparse samples: ``W`` of shape (n_classes, width, 2)."""

    W: np.ndarray

    def weights(self) -> np.ndarray:
        """View of the weights alone, (n_classes, width)."""
        return self.W[:, :, 0]


class StampedRows(NamedTuple):
    """As ``Rows``, of accumulators that fade in every step: ``W`` of shape (n_classes, 2, width + 1).

    After the weights, as int32 bits, is a stamp: the number of the step that touched the row last, from where the
    accumulators are made to fade as many times as they missed. ``log_fade``, float32: of the factor by which they do.
    """

    W: np.ndarray
    log_fade: np.float32

    def weights(self) -> np.ndarray:
        """View of the weights alone, (n_classes, width)."""
        return self.W[:, 0, :-1]


class StampedEntries(NamedTuple):
    """As ``Entries``, of accumulators that fade: ``W`` of shape (n_classes, width, 3), a stamp beside each."""

    W: np.ndarray
    log_fade: np.float32

    def weights(self) -> np.ndarray:
        """View of the weights alone, (n_classes, width)."""
        return self.W[:, :, 0]


class Decayed(NamedTuple):
    """Weights that shrink when they are touched, each class as much as it is rarely touched; biases do not.

    A class k that a step touches loses rate x decay x b_k of its weights, b_k being the inverse of the probability
    that it is touched, so that on average over steps all shrink alike (Fagan and Iyengar 2018, eq. 6). Weights are a
    factor times what is stored, so that sparse samples shrink a row in one multiplication.

    Attributes
    ----------
    inner : NamedTuple
        What is stored.
    factors : ndarray of shape (n_classes,), float32
    decay : float32
        Of all weights, per sample and unit of the learning rate.
    inverse_inclusion : ndarray of shape (n_classes,), float32
        b_k; of shape (0,): the weights of the draws.
    """

    inner: Any
    factors: np.ndarray
    decay: np.float32
    inverse_inclusion: np.ndarray

    def weights(self) -> np.ndarray:
        """Copy of the weights, (n_classes, width)."""
        weights = self.inner.weights().copy()
        weights[:, :-1] *= self.factors[:, None]
        return weights

    def fold(self) -> None:
        """Multiply factors far from 1 into their rows: between chunks, as others may be reading both."""
        far = np.flatnonzero(~((np.abs(self.factors) < FOLDED) & (np.abs(self.factors) > 1 / FOLDED)))
        self.inner.weights()[far, :-1] *= self.factors[far, None]
        self.factors[far] = 1


class Averaged(NamedTuple):
    """Weights, and what makes of them their average over the steps since one of them.

    W_s being the weights after step s, each move of a weight adds itself times the number of steps before it, so that

        (W_1 + ... + W_t) / t  =  W_t - totals / t

    without a look at what was not touched; where weights decay, see ``xsoftmax.kernels.scaled``.

    Attributes
    ----------
    inner : NamedTuple
        The weights that train; not ``Decayed``, as what a row lost when it was touched would be missing here.
    totals : ndarray of the shape of the weights, float32
    period : ndarray of shape (2,), int64
        Number of steps before the first that counts, and before the next.
    """

    inner: Any
    totals: np.ndarray
    period: np.ndarray

    def weights(self) -> np.ndarray:
        """View of the weights alone: those that train."""
        return self.inner.weights()

    def average(self) -> np.ndarray:
        """Average over the period, a copy; the weights, if it has no step."""
        n = int(self.period[1] - self.period[0])
        if not n:
            return self.weights().copy()
        found = self.totals / np.float32(-n)
        found += self.inner.times(self.inner.scale[2] / n) if hasattr(self.inner, "scale") else self.weights()
        return found

    def start_again(self, n_steps: int) -> None:
        """Begin a period after so many steps of the fit."""
        self.totals[:] = 0
        self.period[:] = n_steps
        if hasattr(self.inner, "scale"):
            self.inner.scale[2] = 0


def allocate(optimizer: Any, n_classes: int, width: int, dense: bool) -> Any:
    """Weights at zero, a row per class, as the optimizer keeps them for samples that are dense or sparse."""
    if not optimizer.accumulates:
        return Plain(np.zeros((n_classes, width), np.float32))
    initial = getattr(optimizer, "initial_accumulator", 0.0)
    stamped = int(optimizer.fade < 1)
    W = np.zeros((n_classes, 2, width + stamped) if dense else (n_classes, width, 2 + stamped), np.float32)
    if initial and dense:
        W[:, 1, :width] = initial
    elif initial:
        W[:, :, 1] = initial
    if not stamped:
        return Rows(W) if dense else Entries(W)
    return (StampedRows if dense else StampedEntries)(W, np.float32(math.log(optimizer.fade)))


def allocate_whole(optimizer: Any, shape: tuple[int, int]) -> Any:
    """Weights at zero, in rows that are whole."""
    W = np.zeros(shape, np.float32)
    if not optimizer.accumulates:
        return Plain(W)
    return Apart(W, np.full(shape, getattr(optimizer, "initial_accumulator", 0.0), np.float32))


def averaged(weights: Any) -> Averaged:
    """Begin an average."""
    return Averaged(weights, np.zeros(weights.weights().shape, np.float32), np.zeros(2, np.int64))


def arrays_of(weights: Any) -> dict[str, np.ndarray]:
    """All arrays of a layout that change, by name."""
    found = {name: part for name, part in weights._asdict().items() if isinstance(part, np.ndarray)}
    found.pop("inverse_touch", None)
    return found | (arrays_of(weights.inner) if hasattr(weights, "inner") else {})


# Of compiled code, by type


@declared
def array_of(weights):
    """Give the array that holds the weights."""


@declared
def row_of(weights, k):
    """View of the stored weights of row ``k``, the bias last; for code that counts arrays, not for single steps."""


@lean
def stored(weights, k, d):
    """Entry ``d`` of the stored weights of row ``k``."""


@lean
def stored_score(weights, features, i, k):
    """Inner product of sample ``i``, its constant feature included, with the stored weights of row ``k``."""


@lean
def stored_scores(weights, features, i, k, other):
    """As ``stored_score``, with two rows, which are on their way at once."""


@lean
def factor_of(weights, k):
    """Factor of the stored weights of class ``k``, the bias excepted, float32."""


@lean
def opened(weights, step, k):
    """What is alike for all entries of row ``k`` in a step, to be handed to ``move_entry``."""


@lean
def for_bias(weights, at):
    """Make of what ``opened`` gave what holds for the bias."""


@lean
def move_entry(weights, at, optimizer, step, k, d, g):
    """Move entry ``d`` of row ``k``, whose gradient is ``g``, by the optimizer's rule."""


@lean
def closed(weights, step, k):
    """Note that a step has moved row ``k``."""


@lean
def shrink(weights, step, k, weight):
    """Shrink class ``k``, touched by a draw of this weight, where weights decay."""


@lean
def age(weights, step):
    """Let a step begin: all weights shrink, where they decay whether they are touched or not."""


@lean
def elapsed(weights, step, first):
    """Give what a move counts in the totals of an average, float32: the steps since ``first``, or their factors."""


@lean
def has_room(weights, features, i, classes):
    """Tell whether a step of sample ``i`` finds room for all that it may move of some classes."""


_ONE = np.float32(1)


@otherwise(has_room)
def _has_room(weights, features, i, classes):
    return True


@otherwise(age)
def _not_aged(weights, step):
    pass


@implements(age, Averaged)
def _age_inner(weights, step):
    age(weights.inner, step)


@otherwise(elapsed)
def _elapsed(weights, step, first):
    return np.float32(step.number - first)


@otherwise(array_of)
def _array_of(weights):
    return weights.W


@otherwise(row_of)
def _row_of(weights, k):
    return weights.W[k]


@implements(row_of, Rows)
def _row_of_rows(weights, k):
    return weights.W[k, 0]


@implements(row_of, StampedRows)
def _row_of_stamped_rows(weights, k):
    return weights.W[k, 0, : weights.W.shape[2] - 1]


@implements(row_of, Entries)
@implements(row_of, StampedEntries)
def _row_of_entries(weights, k):
    return weights.W[k, :, 0]


@otherwise(stored)
def _stored(weights, k, d):
    return weights.W[k, d]


@implements(stored, Rows)
@implements(stored, StampedRows)
def _stored_in_rows(weights, k, d):
    return weights.W[k, 0, d]


@implements(stored, Entries)
@implements(stored, StampedEntries)
def _stored_in_entries(weights, k, d):
    return weights.W[k, d, 0]


@otherwise(stored_score)
def _stored_score(weights, features, i, k):
    return dot(features, i, weights.W[k])


@implements(stored_score, Rows)
@implements(stored_score, StampedRows)
def _stored_score_in_rows(weights, features, i, k):
    return dot(features, i, weights.W[k, 0])


@implements(stored_score, Entries)
@implements(stored_score, StampedEntries)
def _stored_score_in_entries(weights, features, i, k):
    return dot(features, i, weights.W[k, :, 0])


@otherwise(stored_scores)
def _stored_scores(weights, features, i, k, other):
    return dot_two(features, i, weights.W[k], weights.W[other])


@implements(stored_scores, Rows)
@implements(stored_scores, StampedRows)
def _stored_scores_in_rows(weights, features, i, k, other):
    return dot_two(features, i, weights.W[k, 0], weights.W[other, 0])


@implements(stored_scores, Entries)
@implements(stored_scores, StampedEntries)
def _stored_scores_in_entries(weights, features, i, k, other):
    return dot_two(features, i, weights.W[k, :, 0], weights.W[other, :, 0])


@otherwise(factor_of)
def _no_factor(weights, k):
    return _ONE


@implements(factor_of, Decayed)
def _factor_of(weights, k):
    return weights.factors[k]


@implements(factor_of, Averaged)
def _factor_of_inner(weights, k):
    return factor_of(weights.inner, k)


@otherwise(opened)
def _opened(weights, step, k):
    return _ONE


@implements(opened, StampedRows)
def _opened_stamped(weights, step, k):
    return _faded(weights, step.number, weights.W.view(np.int32)[k, 0, weights.W.shape[2] - 1])


@implements(opened, Decayed)
def _opened_decayed(weights, step, k):
    factor = weights.factors[k]
    return opened(weights.inner, step, k), factor, _ONE / factor


@implements(opened, Averaged)
def _opened_averaged(weights, step, k):
    first = weights.period[0]
    return opened(weights.inner, step, k), elapsed(weights.inner, step, first), np.float32(step.number - first)


@otherwise(for_bias)
def _for_bias(weights, at):
    return at


@implements(for_bias, Decayed)
def _for_bias_decayed(weights, at):
    return for_bias(weights.inner, at[0]), _ONE, _ONE


@implements(for_bias, Averaged)
def _for_bias_averaged(weights, at):
    return for_bias(weights.inner, at[0]), at[2], at[2]


@otherwise(closed)
def _not_closed(weights, step, k):
    pass


@implements(closed, StampedRows)
def _closed_stamped(weights, step, k):
    weights.W.view(np.int32)[k, 0, weights.W.shape[2] - 1] = step.number


@implements(move_entry, Plain)
def _move_plain(weights, at, optimizer, step, k, d, g):
    weights.W[k, d], _ = updated(optimizer, step, weights.W[k, d], np.float32(0), g)


@implements(move_entry, Apart)
def _move_apart(weights, at, optimizer, step, k, d, g):
    W, a = weights.W, weights.accumulators
    W[k, d], a[k, d] = updated(optimizer, step, W[k, d], a[k, d], g)


@implements(move_entry, Rows)
def _move_rows(weights, at, optimizer, step, k, d, g):
    W = weights.W
    W[k, 0, d], W[k, 1, d] = updated(optimizer, step, W[k, 0, d], W[k, 1, d], g)


@implements(move_entry, Entries)
def _move_entries(weights, at, optimizer, step, k, d, g):
    W = weights.W
    W[k, d, 0], W[k, d, 1] = updated(optimizer, step, W[k, d, 0], W[k, d, 1], g)


@implements(move_entry, StampedRows)
def _move_stamped_rows(weights, at, optimizer, step, k, d, g):
    W = weights.W
    W[k, 0, d], W[k, 1, d] = updated(optimizer, step, W[k, 0, d], at * W[k, 1, d], g)


@implements(move_entry, StampedEntries)
def _move_stamped_entries(weights, at, optimizer, step, k, d, g):
    W, stamps = weights.W, weights.W.view(np.int32)
    faded = _faded(weights, step.number, stamps[k, d, 2])
    W[k, d, 0], W[k, d, 1] = updated(optimizer, step, W[k, d, 0], faded * W[k, d, 1], g)
    stamps[k, d, 2] = step.number


@njit(**LEAN)
def _faded(weights, number, stamp):
    """Product of the fades between the step of the stamp and this one, which has its own."""
    return exp32(np.float32(number - stamp - 1) * weights.log_fade)


class Stored(NamedTuple):
    """The rule of an optimizer, for weights that are stored divided by a factor."""

    inner: Any
    factor: np.float32
    inverse: np.float32


@implements(updated, Stored)
def _updated_stored(optimizer, step, w, a, g):
    w, a = updated(optimizer.inner, step, optimizer.factor * w, a, g)
    return optimizer.inverse * w, a


class Multiplied(NamedTuple):
    """The rule that multiplies weights by a factor, float32."""

    by: np.float32


@implements(updated, Multiplied)
def _updated_multiplied(optimizer, step, w, a, g):
    return optimizer.by * w, a


def move_divided(weights, at, optimizer, step, k, d, g):
    """Move what a factor has divided: ``opened`` gives that of the inner layout, the factor and its inverse."""
    move_entry(weights.inner, at[0], Stored(optimizer, at[1], at[2]), step, k, d, g)


@implements(move_entry, Averaged)
def _move_averaged(weights, at, optimizer, step, k, d, g):
    before = stored(weights.inner, k, d)
    move_entry(weights.inner, at[0], optimizer, step, k, d, g)
    weights.totals[k, d] += at[1] * (stored(weights.inner, k, d) - before)


@otherwise(shrink)
def _no_shrink(weights, step, k, weight):
    pass


@implements(shrink, Decayed)
def _shrink(weights, step, k, weight):
    b = weights.inverse_inclusion[k] if weights.inverse_inclusion.size else weight
    scale_class(weights, k, _ONE - step.rate * weights.decay * b)


@njit(**LEAN)
def scale_class(weights, k, by):
    """Multiply the weights of class ``k``, but for the bias, by a float32.

    A factor that would leave its bounds stays, and what is stored is multiplied: a thread that reads a row never
    finds it folded under a factor of before.
    """
    factor = weights.factors[k] * by
    if _SMALLEST < abs(factor) < _LARGEST:
        weights.factors[k] = factor
        return
    _scale_stored(weights.inner, k, by)


@njit(**OPTIONS)
def _scale_stored(weights, k, by):
    row = row_of(weights, k)
    for d in range(row.size - 1):
        row[d] *= by


# Of layouts around others


def around(member: type) -> type:
    """Let a layout find in the one within it what that stores: a decorator."""
    for function, code in _WITHIN.items():
        implements(function, member)(code)
    return member


def _array_of_inner(weights):
    return array_of(weights.inner)


def _row_of_inner(weights, k):
    return row_of(weights.inner, k)


def _stored_inside(weights, k, d):
    return stored(weights.inner, k, d)


def _stored_score_inside(weights, features, i, k):
    return stored_score(weights.inner, features, i, k)


def _stored_scores_inside(weights, features, i, k, other):
    return stored_scores(weights.inner, features, i, k, other)


def _closed_inner(weights, step, k):
    closed(weights.inner, step, k)


_WITHIN: dict[Callable, Callable] = {
    array_of: _array_of_inner,
    row_of: _row_of_inner,
    stored: _stored_inside,
    stored_score: _stored_score_inside,
    stored_scores: _stored_scores_inside,
    closed: _closed_inner,
}
for _member in (Decayed, Averaged):
    around(_member)
implements(move_entry, Decayed)(move_divided)
