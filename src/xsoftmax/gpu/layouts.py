"""All weights against a minibatch, by blocks of classes: a row per class if samples are dense, else per feature."""

from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from xsoftmax.gpu.features import CsrRows, DenseRows
from xsoftmax.gpu.weights import Weights

# Products of entries and classes that are added up at a time.
MOST_PRODUCTS = 2**24


class Layout(Protocol):
    """How weights lie; a batch is what ``opened`` made of some rows; of several processes, each has some classes."""

    n_classes: int
    part: Any

    def opened(self, rows: Any) -> Any:
        """Get a minibatch ready."""

    def scores(self, batch: Any, first: int, stop: int) -> Tensor:
        """Scores of a block of classes, (n, stop - first)."""

    def shrink(self, first: int, stop: int, left: float, number: int) -> None:
        """Leave a share of a block's weights, biases left out; ``number`` is of the steps before."""

    def move(self, batch: Any, slopes: Tensor, first: int, stop: int, rate: float, number: int) -> None:
        """Move a block of classes along the sum of slope times sample."""

    def closed(self, batch: Any, rate: float, number: int) -> None:
        """Move what is behind the classes, once all of them have moved."""


class ClassMajor:
    """Weights of shape (n_classes, n_features + 1), for dense rows."""

    def __init__(self, weights: Weights) -> None:
        self._weights, self.n_classes, self.part = weights, weights.W.shape[0], weights.part

    def opened(self, rows: DenseRows) -> DenseRows:
        """See ``Layout``."""
        return rows

    def scores(self, batch: DenseRows, first: int, stop: int) -> Tensor:
        """See ``Layout``."""
        return batch.inputs @ self._weights.W[first:stop].T

    def shrink(self, first: int, stop: int, left: float, number: int) -> None:
        """See ``Layout``."""
        self._weights.shrink((slice(first, stop), slice(0, -1)), left, number)

    def move(self, batch: DenseRows, slopes: Tensor, first: int, stop: int, rate: float, number: int) -> None:
        """See ``Layout``."""
        self._weights.move(slice(first, stop), slopes.T @ batch.inputs, rate, number)

    def closed(self, batch: DenseRows, rate: float, number: int) -> None:
        """See ``Layout``: nothing is."""


class CsrBatch(NamedTuple):
    """Sparse samples; the features that they have, and of each entry which of these it is of."""

    rows: CsrRows
    columns: Tensor
    of_column: Tensor

    @property
    def n(self) -> int:
        """Count the samples."""
        return self.rows.n


class FeatureMajor:
    """Weights of shape (n_features + 1, n_classes), for sparse rows: only features that a batch has are looked at."""

    def __init__(self, weights: Weights) -> None:
        self._weights, self.n_classes, self.part = weights, weights.W.shape[1], weights.part

    def opened(self, rows: CsrRows) -> CsrBatch:
        """See ``Layout``."""
        return CsrBatch(rows, *torch.unique(rows.columns, return_inverse=True))

    def scores(self, batch: CsrBatch, first: int, stop: int) -> Tensor:
        """See ``Layout``."""
        rows, W = batch.rows, self._weights.W
        found = torch.zeros((batch.n, stop - first), dtype=W.dtype, device=W.device)
        for begin, end in self._parts(batch, first, stop):
            products = W[rows.columns, begin:end] * rows.values[:, None]
            found[:, begin - first : end - first].index_add_(0, rows.rows, products)
        return found

    def shrink(self, first: int, stop: int, left: float, number: int) -> None:
        """See ``Layout``."""
        self._weights.shrink((slice(0, -1), slice(first, stop)), left, number)

    def move(self, batch: CsrBatch, slopes: Tensor, first: int, stop: int, rate: float, number: int) -> None:
        """See ``Layout``."""
        rows = batch.rows
        for begin, end in self._parts(batch, first, stop):
            products = slopes[rows.rows, begin - first : end - first] * rows.values[:, None]
            g = torch.zeros((len(batch.columns), end - begin), dtype=slopes.dtype, device=slopes.device)
            g.index_add_(0, batch.of_column, products)
            self._weights.move((batch.columns, slice(begin, end)), g, rate, number)

    def closed(self, batch: CsrBatch, rate: float, number: int) -> None:
        """See ``Layout``: nothing is."""

    def _parts(self, batch: CsrBatch, first: int, stop: int) -> list[tuple[int, int]]:
        size = MOST_PRODUCTS // max(1, len(batch.rows.values))
        return [(first + begin, first + end) for begin, end in cut(stop - first, size)]


def cut(n: int, size: int) -> list[tuple[int, int]]:
    """Cut n into spans of a size, or of 1 if that is less."""
    size = max(1, size)
    return [(first, min(first + size, n)) for first in range(0, n, size)]
