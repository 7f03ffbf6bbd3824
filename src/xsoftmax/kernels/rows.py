"""One row abstraction for dense and CSR features: kernels are written once, the type chooses the code.

Rows of the weights have one entry more than there are features: the last one is the bias, which sees a constant
feature (1, or 0 for a model without biases).
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN
from xsoftmax.kernels.dispatch import implements, lean


class Dense(NamedTuple):
    """Rows of a C-ordered array ``X`` of shape (n_samples, n_features), float32."""

    X: np.ndarray
    constant: np.float32


class Csr(NamedTuple):
    """Rows of a compressed sparse matrix: float32 values, int32 column indices, int64 row pointers.

    ``rates``, float32 of shape (n_features,) or None: how much further than others a step goes along each feature.
    """

    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray
    n_features: int
    constant: np.float32
    rates: np.ndarray | None = None


def features_of(X, bias: bool, power: float = 0.0) -> Dense | Csr:
    """Wrap ``X``, of shape (n_samples, n_features), for the kernels, with the dtypes that they are compiled for.

    Steps along a feature of sparse rows are as long as the number of rows that have it, to the ``power``, and on
    average over rows as long as with power 0: a row's squared norm is weighed so, too.
    """
    constant = np.float32(bias)
    if sparse.issparse(X):
        X = X.tocsr()
        return Csr(
            np.ascontiguousarray(X.data, np.float32),
            np.ascontiguousarray(X.indices, np.int32),
            np.ascontiguousarray(X.indptr, np.int64),
            X.shape[1],
            constant,
            _rates(X, power) if power else None,
        )
    return Dense(np.ascontiguousarray(X, np.float32), constant)


def _rates(X, power: float) -> np.ndarray:
    """Powers of how many rows have each feature, times what leaves the mean squared norm of rows as it is."""
    powers = np.maximum(np.bincount(X.indices, minlength=X.shape[1]), 1.0) ** power
    squares = np.bincount(X.indices, np.square(X.data, dtype=np.float64), X.shape[1])
    weighed = squares @ powers
    return (powers * (squares.sum() / weighed if weighed else 1.0)).astype(np.float32)


def n_columns(features: Dense | Csr) -> int:
    """Number of features, the bias not counted."""
    return features.X.shape[1] if isinstance(features, Dense) else features.n_features


@lean
def dot(features, i, row):
    """Inner product of sample ``i``, constant feature included, with a row of weights."""


@lean
def axpy(features, i, a, row):
    """Add ``a`` times sample ``i``, constant feature included, to a row of weights."""


@lean
def dot_two(features, i, row, other):
    """Inner products of sample ``i`` with two rows of weights, read at once."""


@lean
def axpy_two(features, i, a, row, b, other):
    """Add ``a`` times sample ``i`` to one row of weights and ``b`` times to another."""


@lean
def bias_of(features):
    """Value of the constant feature, float32."""


@lean
def width_of(features):
    """Number of features, the constant one not counted."""


@lean
def squared_norm(features, i):
    """Squared Euclidean norm of sample ``i``, constant feature included and ``rates`` as weights, float32."""


@njit(**LEAN)
def rate_of(rates, d):
    """Factor of steps along feature ``d``, float32; ``rates`` may be None."""
    return np.float32(1) if rates is None else rates[d]


@implements(dot, Dense)
def _dot_dense(features, i, row):
    x = features.X[i]
    total = np.float32(0)
    for d in range(x.size):
        total += x[d] * row[d]
    return total + features.constant * row[x.size]


@implements(dot, Csr)
def _dot_csr(features, i, row):
    total = np.float32(0)
    for j in range(features.indptr[i], features.indptr[i + 1]):
        total += features.data[j] * row[features.indices[j]]
    return total + features.constant * row[features.n_features]


@implements(axpy, Dense)
def _axpy_dense(features, i, a, row):
    x = features.X[i]
    for d in range(x.size):
        row[d] += a * x[d]
    row[x.size] += a * features.constant


@implements(axpy, Csr)
def _axpy_csr(features, i, a, row):
    for j in range(features.indptr[i], features.indptr[i + 1]):
        row[features.indices[j]] += a * features.data[j]
    row[features.n_features] += a * features.constant


@implements(dot_two, Dense)
def _dot_two_dense(features, i, row, other):
    x = features.X[i]
    total, of_other = np.float32(0), np.float32(0)
    for d in range(x.size):
        total += x[d] * row[d]
        of_other += x[d] * other[d]
    return total + features.constant * row[x.size], of_other + features.constant * other[x.size]


@implements(dot_two, Csr)
def _dot_two_csr(features, i, row, other):
    total, of_other = np.float32(0), np.float32(0)
    for j in range(features.indptr[i], features.indptr[i + 1]):
        d = features.indices[j]
        total += features.data[j] * row[d]
        of_other += features.data[j] * other[d]
    d = features.n_features
    return total + features.constant * row[d], of_other + features.constant * other[d]


@implements(axpy_two, Dense)
def _axpy_two_dense(features, i, a, row, b, other):
    x = features.X[i]
    for d in range(x.size):
        row[d] += a * x[d]
        other[d] += b * x[d]
    row[x.size] += a * features.constant
    other[x.size] += b * features.constant


@implements(axpy_two, Csr)
def _axpy_two_csr(features, i, a, row, b, other):
    for j in range(features.indptr[i], features.indptr[i + 1]):
        d = features.indices[j]
        row[d] += a * features.data[j]
        other[d] += b * features.data[j]
    row[features.n_features] += a * features.constant
    other[features.n_features] += b * features.constant


@implements(bias_of, Dense)
@implements(bias_of, Csr)
def _bias_of(features):
    return features.constant


@implements(width_of, Dense)
def _width_of_dense(features):
    return features.X.shape[1]


@implements(width_of, Csr)
def _width_of_csr(features):
    return features.n_features


@implements(squared_norm, Dense)
def _squared_norm_dense(features, i):
    x = features.X[i]
    total = features.constant * features.constant
    for d in range(x.size):
        total += x[d] * x[d]
    return total


@implements(squared_norm, Csr)
def _squared_norm_csr(features, i):
    total = features.constant * features.constant
    for j in range(features.indptr[i], features.indptr[i + 1]):
        total += features.data[j] * features.data[j] * rate_of(features.rates, features.indices[j])
    return total
