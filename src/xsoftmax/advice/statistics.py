"""What the advice knows of a data set: its sizes, and the scale of its rows."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from xsoftmax.data.dataset import Dataset

ROWS = 10_000  # are enough for a mean
# Factors between sizes, and how many others a data set of the same sizes counts as.
ALIKE, SAME, SAME_COUNTS = 100.0, 1.12, 100.0


class DatasetStatistics(NamedTuple):
    """Sizes of the training rows.

    Attributes
    ----------
    n_samples, n_classes, n_features : int
    n_entries : float
        Stored entries of a row, in the mean; all features where rows are dense.
    sparse : bool
    norm : float
        Sum of absolute entries of a row, in the mean: a first step of Adagrad moves a score by rate times norm.
    """

    n_samples: int
    n_classes: int
    n_features: int
    n_entries: float
    sparse: bool
    norm: float = 1.0

    @property
    def position(self) -> np.ndarray:
        """Where it stands among data sets: logarithms of classes, of rows per class, and of entries."""
        sizes = (self.n_classes, self.n_samples / self.n_classes, max(1.0, self.n_entries))
        return np.log([*sizes])

    def __str__(self) -> str:
        rows = f"{self.n_samples:,} rows, {self.n_classes:,} classes, {self.n_features:,} "
        return rows + (f"sparse features, {self.n_entries:.0f} of a row" if self.sparse else "dense features")


def statistics_of(data: Dataset) -> DatasetStatistics:
    """Read the sizes of a prepared data set."""
    n, sparse = data.n_samples("train"), data.sparse
    entries = data.n_entries("train") / max(1, n) if sparse else float(data.n_features)
    return DatasetStatistics(
        n, data.n_classes, data.n_features, entries, sparse, _norm(data.rows("train", 0, ROWS).X)
    )


def statistics_of_arrays(X: Any, n_classes: int) -> DatasetStatistics:
    """Read the sizes of rows in memory."""
    n, n_features = X.shape
    sparse = not isinstance(X, np.ndarray)
    entries = X.nnz / max(1, n) if sparse else float(n_features)
    return DatasetStatistics(n, n_classes, n_features, entries, sparse, _norm(X[:ROWS]))


def _norm(X: Any) -> float:
    """Mean over rows of the sum of absolute entries; 1 if there are none."""
    total = float(np.abs(X.data if issparse(X) else X).sum(dtype=np.float64))
    return total / X.shape[0] if total > 0 else 1.0


def likeness(a: DatasetStatistics, b: DatasetStatistics) -> float:
    """How much is to be learned from one data set for another: the more, the nearer their sizes are.

    By a Gaussian of the distance between logarithms, a factor of ``ALIKE`` in one size, or sparse rows against dense
    ones, being one unit: as long as few data sets are known, a narrower one would listen to single ones. One whose
    sizes are the same, but for a few per cent, is likely to be the same data, and counts as much as many others.
    """
    apart = a.position - b.position
    distance = float(apart @ apart) / math.log(ALIKE) ** 2 + (a.sparse != b.sparse)
    return math.exp(-0.5 * distance) + SAME_COUNTS * math.exp(
        -0.5 * distance * (math.log(ALIKE) / math.log(SAME)) ** 2
    )
