"""Scores of rows for all classes of a model, in blocks of a size that caches like."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array, issparse

from xsoftmax.internal.compiled import njit
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.encoded import encode_rows
from xsoftmax.kernels.full_softmax import score_block
from xsoftmax.kernels.lists import add_scores, add_scores_of
from xsoftmax.kernels.protocol import log_probability
from xsoftmax.kernels.rows import Csr, features_of

# A block of scores is 2 MB: what a core's cache holds. Smaller ones slow down the matrix product.
ROWS_AT_A_TIME = 512
CLASSES_AT_A_TIME = 1024
# Few rows are cut into so many blocks, for threads to share, but not into such as slow down the product.
BLOCKS_OF_ROWS = 4
FEWEST_ROWS = 256
# Classes for which corrections are computed in one go, at most: many nodes of a tree are above several of them.
CLASSES_OF_A_STRETCH = 32768
# Weights that are copied at a time, a row per feature, for sparse rows: all of a small model, a part of a larger one.
SMALL_MODEL = 2**24
FEWEST_WEIGHTS = 2**21
PART_OF_WEIGHTS = 32
SMALLEST, LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)  # of what scores are


class ScoreBlock(NamedTuple):
    """Scores of rows ``first_row``... for classes ``first_class``..., float32 in C order."""

    first_row: int
    first_class: int
    scores: np.ndarray


@dataclass(frozen=True)
class Calibration:
    """How sharp probabilities are, and how much frequencies count: t (s + log q) + c log n goes to the link.

    That is Guo et al. 2017, and with c Menon et al. 2021.

    Attributes
    ----------
    inverse_temperature : float
        t: below 1, probabilities are closer to each other; above 1, further apart. Their order stays.
    frequency : float
        c: above 0, frequent classes are likelier than their scores say; 0 adds nothing.
    log_counts : ndarray of shape (n_classes,), float32, or None
        log n; None where ``frequency`` is 0.

    Raises
    ------
    InputError
        If t is no positive, finite float32, or c is not finite, or stands alone.
    """

    inverse_temperature: float
    frequency: float = 0.0
    log_counts: np.ndarray | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not SMALLEST <= self.inverse_temperature <= LARGEST:  # nor NaN
            raise InputError(
                f"calibration: inverse_temperature is {self.inverse_temperature}; give a finite number above 0, from "
                f"{SMALLEST:.3g} to {LARGEST:.3g}"
            )
        if not abs(self.frequency) <= LARGEST or (self.frequency and self.log_counts is None):
            raise InputError(
                f"calibration: frequency is {self.frequency}; give a finite number, and the rows of each class"
            )

    def offsets(self, classes: Any) -> np.ndarray | float:
        """Give what is added to the scores of some classes, a slice or numbers: c log n, float32."""
        if not self.frequency or self.log_counts is None:
            return 0.0
        return np.float32(self.frequency) * self.log_counts[classes]


def correct(scores: np.ndarray, log_q: np.ndarray | None, calibration: Calibration | None, classes: Any) -> None:
    """Make of scores of some classes, a slice or numbers, those that predict, in place: t (s + log q) + c log n."""
    if log_q is not None:
        scores += log_q
    if calibration is not None:
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite makes the likelihood NaN
            scores *= np.float32(calibration.inverse_temperature)
            if calibration.frequency:
                scores += calibration.offsets(classes)


def weights_copied(size: int) -> int:
    """Count the weights, of so many, that scoring sparse rows copies at a time."""
    return size if size <= SMALL_MODEL else min(SMALL_MODEL, max(FEWEST_WEIGHTS, size // PART_OF_WEIGHTS))


class Scored(NamedTuple):
    """What scores are made of; its fields mean what they mean in a ``Model``, ``n_features`` its ``n_columns``."""

    W: Any
    b: np.ndarray | None
    n_classes: int
    n_features: int
    correction: Any
    calibration: Calibration | None
    encoder: np.ndarray | None = None


class Copies(dict[range, np.ndarray]):
    """Copies of a model's weights that are kept, by the classes that they are of.

    Attributes
    ----------
    whole : bool
        Whether those of any model are kept, and not only of a small one.
    """

    whole = False
    _columns: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def columns_of(self, W: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Give the arrays of sparse weights as ``columns_of`` does, which looks at every weight, the first time."""
        if self._columns is None:
            self._columns = columns_of(W)
        return self._columns


class Scorer:
    """Scores of the rows of ``X`` for all classes of a model, in parts.

    Parameters
    ----------
    model : Scored
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    kept : Copies, optional
        The copy of a small model's weights is taken from here, or left here, if the caller promises not to change
        the weights while it keeps this.
    """

    def __init__(self, model: Scored, X: Any, kept: Copies | None = None) -> None:
        self._model, self._X, self._kept = model, X, kept
        coded = model.encoder is not None
        self._features: Any = None if model.W is None or coded else features_of(X, model.b is not None)
        by_feature = issparse(model.W) and isinstance(self._features, Csr)
        self._columns = (Copies() if kept is None else kept).columns_of(model.W) if by_feature else None
        self._W = model.W.tocsr() if issparse(model.W) and self._columns is None else model.W
        self._feature_major = np.empty((0, 0), np.float32)
        self._workspace = np.empty(0, np.float32)

    @property
    def longest_stretch(self) -> int:
        """How many classes are to be looked at as one, unless they are a block."""
        W = self._W
        if W is None or not isinstance(self._features, Csr) or self._columns is not None:
            return CLASSES_OF_A_STRETCH
        width = W.shape[1] + 1
        return min(CLASSES_OF_A_STRETCH, weights_copied(W.shape[0] * width) // width)

    def stretches(self, width: int) -> Iterator[range]:
        """Cut the classes into stretches of whole blocks: what ``prepare`` and the correction look at as one."""
        K, length = self._model.n_classes, max(1, self.longest_stretch // width) * width
        return (range(first, min(first + length, K)) for first in range(0, K, length))

    def prepare(self, stretch: range) -> None:
        """Copy the weights of some classes for sparse rows: a row per feature makes their scores sums of rows."""
        model = self._model
        if not isinstance(self._features, Csr) or model.W is None or self._columns is not None:
            return
        small = len(stretch) == model.n_classes and model.n_classes * (model.n_features + 1) <= SMALL_MODEL
        kept = self._kept if self._kept is not None and (small or self._kept.whole) else Copies()
        if stretch not in kept:
            kept[stretch] = self._copied(slice(stretch.start, stretch.stop))
            if kept.whole:  # the next stretch gets memory of its own
                self._workspace = np.empty(0, np.float32)
        self._feature_major = kept[stretch]

    def _copied(self, classes: slice) -> np.ndarray:
        """A copy of the transpose, biases last, where the last one was: fresh memory costs more than the copy."""
        W, b = dense(self._W[classes]), self._model.b
        size = W.shape[0] * (W.shape[1] + 1)
        if self._workspace.size < size:
            self._workspace = np.empty(size, np.float32)
        copy = self._workspace[:size].reshape(W.shape[1] + 1, W.shape[0])
        np.copyto(copy[:-1], W.T)
        copy[-1] = 0 if b is None else b[classes]
        return copy

    def blocks(self, rows: slice, stretch: range, width: int, buffer: np.ndarray) -> Iterator[ScoreBlock]:
        """Scores of ``rows`` for the classes of a prepared stretch, in blocks that lie in ``buffer``."""
        n, log_q, correction = rows.stop - rows.start, None, self._model.correction
        write, calibration = self._writer(rows, stretch), self._model.calibration
        if correction is not None:
            log_q = correction.log_q(self._X[rows], stretch.start, stretch.stop)
        for first in range(stretch.start, stretch.stop, width):
            last = min(first + width, stretch.stop)
            scores = buffer[: n * (last - first)].reshape(n, last - first)
            write(first, last, scores)
            of_block = None if log_q is None else log_q[:, first - stretch.start : last - stretch.start]
            correct(scores, of_block, calibration, slice(first, last))
            yield ScoreBlock(rows.start, first, scores)

    def _writer(self, rows: slice, stretch: range) -> Callable[[int, int, np.ndarray], Any]:
        """What writes the scores of ``rows`` for some classes, first to last, without correction."""
        features, W, b = self._features, self._W, self._model.b
        if W is None:
            return lambda first, last, scores: scores.fill(0)
        if self._columns is not None:
            columns = self._columns

            def add(first: int, last: int, scores: np.ndarray) -> None:
                scores[:] = 0 if b is None else b[first:last]
                add_scores(columns, features, rows.start, first, scores)

            return add
        if isinstance(features, Csr):
            samples, copy = np.arange(rows.start, rows.stop), self._feature_major
            return lambda first, last, scores: score_block(features, samples, copy, first - stretch.start, scores)
        encoder = self._model.encoder
        inputs = features.X[rows] if encoder is None else encode_rows(self._X[rows], encoder)

        def multiply(first: int, last: int, scores: np.ndarray) -> None:
            with np.errstate(over="ignore", invalid="ignore"):  # a fit says that it diverged
                np.matmul(inputs, dense(W[first:last]).T, out=scores)
                if b is not None:
                    scores += b[first:last]

        return multiply


def score_each(
    X: Any, y: np.ndarray, W: Any, b: np.ndarray | None, scores: np.ndarray, encoder: np.ndarray | None = None
) -> None:
    """Write the score of class y[i] for each sample i."""
    if encoder is not None:
        for first in range(0, len(y), ROWS_AT_A_TIME):
            part = slice(first, first + ROWS_AT_A_TIME)
            score_each(encode_rows(X[part], encoder), y[part], W, b, scores[part])
        return
    if issparse(W) and issparse(X):
        add_scores_of(columns_of(W), features_of(X, False), np.ascontiguousarray(y, np.int64), scores)
        scores += 0 if b is None else b[y]
        return
    W = W.tocsr() if issparse(W) else W
    with np.errstate(over="ignore", invalid="ignore"):  # a fit says that it diverged
        for first in range(0, len(y), ROWS_AT_A_TIME):
            part = slice(first, first + ROWS_AT_A_TIME)
            rows, labels = X[part], y[part]
            if issparse(rows):
                place = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
                weights = np.asarray(W[labels[place], rows.indices]).ravel()
                scores[part] = np.bincount(place, rows.data * weights, rows.shape[0])
            else:
                scores[part] = np.einsum("ij,ij->i", rows, dense(W[labels]))
        if b is not None:
            scores += b[y]


def columns_of(W: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give the arrays of sparse weights by feature, as kernels take them, classes rising: indptr, indices, data."""
    columns = csc_array(W)
    columns.sort_indices()
    kinds = (columns.indptr, np.int64), (columns.indices, np.int32), (columns.data, np.float32)
    indptr, indices, data = (array.astype(kind, copy=False) for array, kind in kinds)
    return indptr, indices, data


def dense(W: Any) -> np.ndarray:
    """Give weights, or some of them, as an array: not a copy if they are one."""
    return W.toarray() if issparse(W) else W


@njit(**OPTIONS)
def add_log_q(proposal, y, scores):
    """Add the log-probability of class y[i] under a proposal to each sample's score."""
    for i in range(y.size):
        scores[i] += log_probability(proposal, None, i, np.int64(y[i]))
