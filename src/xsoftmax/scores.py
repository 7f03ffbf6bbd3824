"""Scores of rows for all classes of a model, in blocks of a size that caches like."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.minibatch import score_block
from xsoftmax.kernels.rows import Csr, dot, features_of
from xsoftmax.kernels.steps import log_probability

if TYPE_CHECKING:
    from xsoftmax.model import Model

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


class ScoreBlock(NamedTuple):
    """Scores of rows ``first_row``... for classes ``first_class``..., float32 in C order."""

    first_row: int
    first_class: int
    scores: np.ndarray


def weights_copied(size: int) -> int:
    """Count the weights, of so many, that scoring sparse rows copies at a time."""
    return size if size <= SMALL_MODEL else min(SMALL_MODEL, max(FEWEST_WEIGHTS, size // PART_OF_WEIGHTS))


class Scorer:
    """Scores of the rows of ``X`` for all classes of a model, in parts."""

    def __init__(self, model: "Model", X: Any) -> None:
        self._model, self._X = model, X
        self._features = None if model.W is None else features_of(X, model.bias)
        self._feature_major = np.empty((0, 0), np.float32)
        self._room = np.empty(0, np.float32)

    @property
    def longest_stretch(self) -> int:
        """How many classes are to be looked at as one, unless they are a block."""
        W = self._model.W
        if W is None or not isinstance(self._features, Csr):
            return CLASSES_OF_A_STRETCH
        return min(CLASSES_OF_A_STRETCH, weights_copied(W.size) // W.shape[1])

    def stretches(self, width: int) -> Iterator[range]:
        """Cut the classes into stretches of whole blocks: what ``prepare`` and the correction look at as one."""
        K, length = self._model.n_classes, max(1, self.longest_stretch // width) * width
        return (range(first, min(first + length, K)) for first in range(0, K, length))

    def prepare(self, stretch: range) -> None:
        """Copy the weights of some classes for sparse rows: a row per feature makes their scores sums of rows."""
        model = self._model
        if not isinstance(self._features, Csr) or model.W is None:
            return
        small = len(stretch) == model.n_classes and model.W.size <= SMALL_MODEL
        kept = model._kept[-1] if model._kept and small else {}
        if stretch not in kept:
            kept[stretch] = self._copied(model.W[stretch.start : stretch.stop])
        self._feature_major = kept[stretch]

    def _copied(self, W: np.ndarray) -> np.ndarray:
        """A copy of the transpose, where the last one was: fresh memory costs more than the copy."""
        if self._room.size < W.size:
            self._room = np.empty(W.size, np.float32)
        copy = self._room[: W.size].reshape(W.shape[1], W.shape[0])
        np.copyto(copy, W.T)
        return copy

    def blocks(self, rows: slice, stretch: range, width: int, buffer: np.ndarray) -> Iterator[ScoreBlock]:
        """Scores of ``rows`` for the classes of a prepared stretch, in blocks that lie in ``buffer``."""
        n, log_q, correction = rows.stop - rows.start, None, self._model.correction
        write = self._writer(rows, stretch)
        if correction is not None:
            log_q = correction.log_q(self._X[rows], stretch.start, stretch.stop)
        for first in range(stretch.start, stretch.stop, width):
            last = min(first + width, stretch.stop)
            scores = buffer[: n * (last - first)].reshape(n, last - first)
            write(first, last, scores)
            if log_q is not None:
                scores += log_q[:, first - stretch.start : last - stretch.start]
            yield ScoreBlock(rows.start, first, scores)

    def _writer(self, rows: slice, stretch: range) -> Callable[[int, int, np.ndarray], Any]:
        """What writes the scores of ``rows`` for some classes, first to last, without correction."""
        features, W = self._features, self._model.W
        if W is None or features is None:
            return lambda first, last, scores: scores.fill(0)
        if isinstance(features, Csr):
            samples, copy = np.arange(rows.start, rows.stop), self._feature_major
            return lambda first, last, scores: score_block(features, samples, copy, first - stretch.start, scores)
        inputs = np.empty((rows.stop - rows.start, W.shape[1]), np.float32)
        inputs[:, :-1], inputs[:, -1] = features.X[rows], features.constant

        def multiply(first: int, last: int, scores: np.ndarray) -> None:
            with np.errstate(over="ignore", invalid="ignore"):  # a fit says that it diverged
                np.matmul(inputs, W[first:last].T, out=scores)

        return multiply


@njit(**OPTIONS)
def score_each(features, y, W, scores):
    """Write the score of class y[i] for each sample i, with W of shape (n_classes, n_features + 1)."""
    for i in range(y.size):
        scores[i] = dot(features, i, W[y[i]])


@njit(**OPTIONS)
def add_log_q(proposal, y, scores):
    """Add the log-probability of class y[i] under a proposal to each sample's score."""
    for i in range(y.size):
        scores[i] += log_probability(proposal, i, np.int64(y[i]))
