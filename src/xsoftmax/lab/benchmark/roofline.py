"""What memory itself allows: loops that touch exactly the memory of a step, its rows known in advance.

A floor that is too slow flatters us, so there are several ways to do each and the fastest here and now counts. They
add zeros: whatever trains on the same weights does not notice.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.cache_lines import FLOATS, prefetch

_AHEAD = 2  # steps between asking for a row's first lines and using them; the processor fetches the others by itself
_NOTHING = np.float32(0)


@njit(**OPTIONS)
def _ask_for_first_lines(X, W, i, pair):
    for line in range(2):
        prefetch(X[i], line * FLOATS)
        for k in pair:
            prefetch(W[k, 0], line * FLOATS)
            prefetch(W[k, 1], line * FLOATS)


@njit(**OPTIONS)
def dense_together(X, W, order, pairs, nothing):
    """Read a row of ``X``; read and write two rows of ``W`` (n_classes, 2, width), all four halves at once."""
    for t in range(order.size):
        x = X[order[t]]
        first, second = W[pairs[t, 0]], W[pairs[t, 1]]
        w, a, v, b = first[0], first[1], second[0], second[1]
        for d in range(x.size):
            value = nothing * x[d]
            w[d] += value
            a[d] += value
            v[d] += value
            b[d] += value


@njit(**OPTIONS)
def dense_ahead(X, W, order, pairs, nothing):
    """As ``dense_together``, with the first lines of later rows asked for."""
    for t in range(order.size):
        later = min(t + _AHEAD, order.size - 1)
        _ask_for_first_lines(X, W, order[later], pairs[later])
        x = X[order[t]]
        first, second = W[pairs[t, 0]], W[pairs[t, 1]]
        w, a, v, b = first[0], first[1], second[0], second[1]
        for d in range(x.size):
            value = nothing * x[d]
            w[d] += value
            a[d] += value
            v[d] += value
            b[d] += value


@njit(**OPTIONS)
def dense_row_by_row(X, W, order, pairs, nothing):
    """As ``dense_ahead``, one row of ``W`` after the other."""
    for t in range(order.size):
        later = min(t + _AHEAD, order.size - 1)
        _ask_for_first_lines(X, W, order[later], pairs[later])
        x = X[order[t]]
        for k in pairs[t]:
            w, a = W[k, 0], W[k, 1]
            for d in range(x.size):
                value = nothing * x[d]
                w[d] += value
                a[d] += value


@njit(**OPTIONS)
def sparse_row_by_row(X, W, order, pairs, nothing):
    """Read a row of ``X`` (Csr); read and write its entries in two rows of ``W`` (n_classes, width, 2)."""
    for t in range(order.size):
        i = order[t]
        for k in pairs[t]:
            row = W[k]
            for j in range(X.indptr[i], X.indptr[i + 1]):
                d, value = X.indices[j], nothing * X.data[j]
                row[d, 0] += value
                row[d, 1] += value


@njit(**OPTIONS)
def sparse_together(X, W, order, pairs, nothing):
    """As ``sparse_row_by_row``, both rows at once."""
    for t in range(order.size):
        i = order[t]
        first, second = W[pairs[t, 0]], W[pairs[t, 1]]
        for j in range(X.indptr[i], X.indptr[i + 1]):
            d, value = X.indices[j], nothing * X.data[j]
            first[d, 0] += value
            first[d, 1] += value
            second[d, 0] += value
            second[d, 1] += value


@njit(**OPTIONS)
def sparse_read_first(X, W, order, pairs, nothing):
    """As ``sparse_together``, after having read it all: reading does not wait for what is written."""
    for t in range(order.size):
        i = order[t]
        first, second = W[pairs[t, 0]], W[pairs[t, 1]]
        total = np.float32(0)
        for j in range(X.indptr[i], X.indptr[i + 1]):
            d = X.indices[j]
            total += first[d, 0] + second[d, 0]
        for j in range(X.indptr[i], X.indptr[i + 1]):
            d, value = X.indices[j], nothing * (X.data[j] + total)
            first[d, 0] += value
            first[d, 1] += value
            second[d, 0] += value
            second[d, 1] += value


@njit(**OPTIONS)
def sparse_ahead(X, W, order, pairs, nothing):
    """As ``sparse_together``, with all lines of the next step asked for while this one is done."""
    for t in range(order.size):
        i, later = order[t], min(t + 1, order.size - 1)
        n = X.indptr[order[later] + 1] - X.indptr[order[later]]
        first, second = W[pairs[t, 0]], W[pairs[t, 1]]
        for e in range(max(n, X.indptr[i + 1] - X.indptr[i])):
            if e < n:
                d = X.indices[X.indptr[order[later]] + e]
                prefetch(W[pairs[later, 0], d], 0)
                prefetch(W[pairs[later, 1], d], 0)
            j = X.indptr[i] + e
            if j < X.indptr[i + 1]:
                d, value = X.indices[j], nothing * X.data[j]
                first[d, 0] += value
                first[d, 1] += value
                second[d, 0] += value
                second[d, 1] += value


DENSE = (dense_together, dense_ahead, dense_row_by_row)
SPARSE = (sparse_together, sparse_row_by_row, sparse_read_first, sparse_ahead)


def fastest(ways: Mapping[str, Callable[[], Any]], rounds: int = 5) -> str:
    """Name the way that took the least time, the best of some rounds after a warm one."""
    best = dict.fromkeys(ways, np.inf)
    for turn in range(rounds + 1):
        for name, way in ways.items():
            start = time.thread_time()
            way()
            if turn:
                best[name] = min(best[name], time.thread_time() - start)
    return min(best, key=best.__getitem__)


def row_floor(features: Any, W: np.ndarray, n_steps: int, seed: int = 0) -> tuple[str, Callable[[], object]]:
    """Choose the fastest floor of a step that touches two rows of the weights, all rows drawn uniformly.

    Parameters
    ----------
    features : Dense or Csr
    W : ndarray
        Of the solver whose floor it is: (n_classes, 2, width) for dense rows, (n_classes, width, 2) for sparse ones.
    n_steps : int
        Per call.

    Returns
    -------
    name : str
    run : callable
        Each call goes to other rows than the one before.
    """
    rng = np.random.default_rng(seed)
    dense = hasattr(features, "X")
    X = features.X if dense else features
    n_samples = features.X.shape[0] if dense else features.indptr.size - 1
    plans = [
        (rng.integers(0, n_samples, n_steps), rng.integers(0, W.shape[0], (n_steps, 2))) for _ in range(_N_PLANS)
    ]

    def way(kernel: Callable[..., None]) -> Callable[[], object]:
        turn = iter(range(10**9))
        return lambda: kernel(X, W, *plans[next(turn) % _N_PLANS], _NOTHING)

    ways = {kernel.__name__: way(kernel) for kernel in (DENSE if dense else SPARSE)}
    name = fastest(ways)
    return name.replace("_", " "), ways[name]


_N_PLANS = 8
