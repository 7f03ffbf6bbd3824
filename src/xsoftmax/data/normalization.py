"""Steps that rescale or project features; each is fitted on training rows and stored with the data.

``l2`` and ``max`` divide each row by its norm or its largest absolute value; ``column_max`` divides each
column by its largest absolute training value (a column without one is left alone); ``standardize``, of dense rows,
subtracts each column's training mean and divides by its standard deviation (of a constant column by nothing) and by
the root of the number of columns, so that rows are of about unit length; ``{divide: c}`` divides everything;
``{pca: k}`` subtracts the training mean and projects onto the k leading
principal components (not whitened).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5_checks import ContentError, check_array

Matrix: TypeAlias = Any  # csr_array or ndarray, float32; scipy is untyped
BLOCK = 4096
DENSE_COVARIANCE_UP_TO = 4096
KINDS = ("l2", "max", "column_max", "standardize", "divide", "pca")
LEARNED = ("column_max", "standardize", "pca")
# A column that varies by less, of its mean, is constant but for rounding.
SMALLEST_DEVIATION = 1e-6
LARGEST, SMALLEST = np.finfo(np.float32).max, np.finfo(np.float32).tiny


@dataclass(frozen=True)
class Step:
    """One fitted step: its kind and its arrays by name."""

    kind: str
    arrays: Mapping[str, np.ndarray]

    def apply(self, X: Matrix) -> Matrix:
        """Transform rows; float32 in, float32 out."""
        return _APPLY[self.kind](X, self.arrays)

    @classmethod
    def restored(cls, kind: str, arrays: Mapping[str, np.ndarray], n_features: int) -> tuple["Step", int]:
        """Make a step, for rows of so many features, of what a file says; and tell how many features come out.

        Raises
        ------
        ContentError
            If there is no such step, or its arrays are not what it needs.
        """
        if kind not in KINDS:
            raise ContentError(f"unknown step {kind!r} of a transform")
        n_after = len(arrays["components"]) if kind == "pca" else n_features
        shapes: dict[str, dict[str, tuple[int, ...]]] = {
            "column_max": {"maxima": (n_features,)},
            "standardize": {"mean": (n_features,), "divisors": (n_features,)},
            "divide": {"divisor": (1,)},
            "pca": {"mean": (n_features,), "components": (n_after, n_features)},
        }
        for name, shape in shapes.get(kind, {}).items():
            check_array(arrays[name], np.float32, *shape)
        return cls(kind, arrays), n_after


def fit_steps(wanted: Any, X: Matrix) -> list[Step]:
    """Fit steps, in order, on training rows.

    Parameters
    ----------
    wanted : str, mapping with one key, or a list of these
        As in the config's ``normalize``.
    X : csr_array or ndarray of shape (n_samples, n_features), float32
    """
    steps: list[Step] = []
    kinds = parse(wanted)
    for number, (kind, argument) in enumerate(kinds):
        step = _fit(kind, argument, X)
        steps.append(step)
        if any(later in (*LEARNED, "divide") for later, _ in kinds[number + 1 :]):
            with np.errstate(over="ignore", invalid="ignore"):  # said by Transform.finish, with the row
                X = step.apply(X)
    return steps


def parse(wanted: Any) -> list[tuple[str, float]]:
    """Read the config's ``normalize`` into kinds with their argument (0 where there is none)."""
    found = []
    for item in wanted if isinstance(wanted, list) else [wanted]:
        kind, argument = next(iter(item.items())) if isinstance(item, dict) and len(item) == 1 else (item, None)
        if kind in (None, "none"):
            continue
        if kind not in KINDS:
            raise InputError(f"normalize: unknown step {kind!r}; known: none, {', '.join(KINDS)}")
        needs_argument = kind in ("pca", "divide")
        number = isinstance(argument, (int, float)) and not isinstance(argument, bool) and 0 < argument < math.inf
        if needs_argument != number or (kind == "pca" and not isinstance(argument, int)):
            raise InputError(f"normalize: {kind}: expected {_form(kind)}, found {item!r}")
        if argument is not None and not float(SMALLEST) <= argument <= float(LARGEST):
            raise InputError(f"normalize: {kind}: give a number from {SMALLEST:.3g} to {LARGEST:.3g}, as of float32")
        found.append((kind, float(argument or 0)))
    return found


def _form(kind: str) -> str:
    return f"'{{{kind}: a positive number}}'" if kind in ("pca", "divide") else f"just '{kind}'"


def _fit(kind: str, argument: float, X: Matrix) -> Step:
    if kind == "column_max":
        return Step(kind, {"maxima": _column_maxima(X)})
    if kind == "standardize":
        return Step(kind, _mean_and_divisors(X))
    if kind == "divide":
        return Step(kind, {"divisor": _divisor(argument, X)})
    if kind == "pca":
        return Step(kind, principal_components(X, int(argument)))
    return Step(kind, {})


def _divisor(argument: float, X: Matrix) -> np.ndarray:
    """Take a number to divide by, shape (1,), if it leaves something of the rows."""
    divisor = np.array([argument], dtype=np.float32)
    values = X.data if issparse(X) else X
    largest = max(values.max(initial=0), -values.min(initial=0))
    if largest > 0 and largest / divisor[0] == 0:
        raise InputError(f"normalize: divide: by {argument:g} all features become 0 (the largest is {largest:g})")
    return divisor


def _column_maxima(X: Matrix) -> np.ndarray:
    if X.shape[0] == 0 or X.shape[1] == 0:
        return np.ones(X.shape[1], dtype=np.float32)
    if issparse(X):
        maxima = np.zeros(X.shape[1], dtype=np.float32)
        np.maximum.at(maxima, X.indices, np.abs(X.data))
    else:
        maxima = np.maximum(X.max(axis=0), -X.min(axis=0))
    maxima[maxima == 0] = 1
    return maxima.astype(np.float32)


def _mean_and_divisors(X: Matrix) -> dict[str, np.ndarray]:
    if issparse(X):
        raise InputError(
            "normalize: standardize: rows are sparse, and less their mean they would not be; take column_max"
        )
    n_samples, n_features = X.shape
    mean, squares = X.mean(axis=0, dtype=np.float64) if n_samples else np.zeros(n_features), np.zeros(n_features)
    for start in range(0, n_samples, BLOCK):
        squares += np.square(X[start : start + BLOCK] - mean).sum(axis=0)
    deviations = np.sqrt(squares / max(1, n_samples))
    deviations[deviations <= SMALLEST_DEVIATION * np.abs(mean)] = 1  # what rounding leaves of a constant column
    divisors = np.maximum(deviations, SMALLEST) * math.sqrt(max(1, n_features))
    return {"mean": mean.astype(np.float32), "divisors": divisors.astype(np.float32)}


def principal_components(X: Matrix, k: int) -> dict[str, np.ndarray]:
    """Find the mean and the k leading principal axes; the largest entry of each axis is positive.

    Returns
    -------
    dict
        ``mean`` of shape (n_features,) and ``components`` of shape (k, n_features), float32.
    """
    n_samples, n_features = X.shape
    if not 0 < k <= min(n_samples, n_features):
        raise InputError(f"normalize: pca: {k} components of {n_samples} rows with {n_features} features")
    mean = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel() / n_samples
    if n_features <= DENSE_COVARIANCE_UP_TO:
        vectors = np.linalg.eigh(_covariance(X, mean))[1][:, ::-1][:, :k]
    else:
        vectors = _leading(X, mean, k)
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(k)])
    return {"mean": mean.astype(np.float32), "components": (vectors * signs).T.astype(np.float32)}


def _covariance(X: Matrix, mean: np.ndarray) -> np.ndarray:
    total = np.zeros((X.shape[1], X.shape[1]))
    for start in range(0, X.shape[0], BLOCK):
        block = X[start : start + BLOCK]
        block = (block.toarray() if issparse(block) else block).astype(np.float64) - mean
        total += block.T @ block
    return total / X.shape[0]


def _leading(X: Matrix, mean: np.ndarray, k: int) -> np.ndarray:
    """Find leading eigenvectors of the covariance without forming it."""
    n_samples, n_features = X.shape
    X = X.astype(np.float64)

    def product(v: np.ndarray) -> np.ndarray:
        centred = X @ v - mean @ v
        return (X.T @ centred - mean * centred.sum()) / n_samples

    from scipy.sparse.linalg import LinearOperator, eigsh  # not for those who only apply it: it takes 0.05 s

    operator = LinearOperator((n_features, n_features), matvec=product, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(n_features)
    values, vectors = eigsh(operator, k=k, v0=start)
    return vectors[:, np.argsort(-values, kind="stable")]


def _divide_rows(X: Matrix, scale: np.ndarray) -> Matrix:
    """Divide each row by its scale, in float64 where one of them is none of float32."""
    scale = np.where(scale == 0, 1, scale)
    if scale.max(initial=1) <= LARGEST and scale.min(initial=1) >= SMALLEST:
        scale = scale.astype(np.float32)
    return _divided(X, scale).astype(np.float32, copy=False)


def _divided(X: Matrix, scale: np.ndarray) -> Matrix:
    if issparse(X):
        data = X.data / np.repeat(scale, np.diff(X.indptr))
        return csr_array((data, X.indices, X.indptr), shape=X.shape)
    return X / scale[:, None]


def _l2(X: Matrix, arrays: Mapping[str, np.ndarray]) -> Matrix:
    return _divide_rows(X, np.sqrt(_row_reduce(X, np.add, np.square)))


def _max(X: Matrix, arrays: Mapping[str, np.ndarray]) -> Matrix:
    return _divide_rows(X, _row_reduce(X, np.maximum, np.abs))


def _row_reduce(X: Matrix, reduce: np.ufunc, of: np.ufunc) -> np.ndarray:
    """Reduce ``of`` each entry over rows, in float64; zero for rows without entries."""
    if not issparse(X):
        blocks = (X[start : start + BLOCK] for start in range(0, len(X), BLOCK))
        parts = [reduce.reduce(of(block, dtype=np.float64), axis=1, initial=0) for block in blocks]
        return np.concatenate(parts) if parts else np.zeros(0)
    result = np.zeros(X.shape[0])
    filled = np.flatnonzero(np.diff(X.indptr))
    if filled.size:
        result[filled] = reduce.reduceat(of(X.data, dtype=np.float64), X.indptr[filled])
    return result


def _column_max(X: Matrix, arrays: Mapping[str, np.ndarray]) -> Matrix:
    maxima = arrays["maxima"]
    if issparse(X):
        return csr_array((X.data / maxima[X.indices], X.indices, X.indptr), shape=X.shape)
    return X / maxima


def _standardize(X: Matrix, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    found = X - arrays["mean"]
    found /= arrays["divisors"]
    return found


def _divide(X: Matrix, arrays: Mapping[str, np.ndarray]) -> Matrix:
    divisor = arrays["divisor"][0]
    if issparse(X):
        return csr_array((X.data / divisor, X.indices, X.indptr), shape=X.shape)
    return X / divisor


def _pca(X: Matrix, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    components = np.ascontiguousarray(arrays["components"].T)
    offset = arrays["mean"] @ components
    projected = np.empty((X.shape[0], components.shape[1]), dtype=np.float32)
    for start in range(0, X.shape[0], BLOCK):
        projected[start : start + BLOCK] = X[start : start + BLOCK] @ components - offset
    return projected


_APPLY = {
    **{"l2": _l2, "max": _max, "column_max": _column_max, "standardize": _standardize},
    **{"divide": _divide, "pca": _pca},
}
