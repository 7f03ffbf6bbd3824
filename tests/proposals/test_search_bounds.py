"""Bounds by which an exact search leaves lists and classes out never leave out a better class."""

import numpy as np
import pytest
from numba import njit
from scipy.sparse import csc_array, csr_array

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.draws import empty_draws
from xsoftmax.kernels.lists import empty_lists
from xsoftmax.kernels.protocol import View, draw
from xsoftmax.kernels.rows import features_of
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.search import Search

N, D, K = 40, 30, 60


@njit(**OPTIONS)
def lowest_found(kernel, view, i, excluded, lowest, n, workspace):
    """Search; write the found classes to ``workspace`` and return how many they are."""
    draws = empty_draws(n)
    draw(kernel, view, i, excluded, lowest, np.uint64(0), draws)
    n_found = 0
    for j in range(n):
        if draws.weights[j] > 0:
            workspace[n_found] = draws.classes[j]
            n_found += 1
    return n_found


def hard_problem(rng, kind):
    """Lists of all lengths; weights that are equal, of both signs, or of many sizes: bounds are tight or loose."""
    filled = rng.uniform(0.02, 0.9, D)
    W = np.where(rng.random((K, D)) < filled, rng.standard_normal((K, D)), 0)
    if kind == "equal":
        W = np.abs(np.sign(W)) * 0.5
    elif kind == "wide":
        W *= 10 ** rng.uniform(-3, 2, (K, 1)) * 10 ** rng.uniform(-2, 2, D)
    X = np.where(rng.random((N, D)) < 0.3, rng.standard_normal((N, D)), 0)
    return X.astype(np.float32), W.astype(np.float32)


@pytest.mark.parametrize("kind", ["signed", "equal", "wide"])
def test_no_better_class_is_skipped(kind):
    rng, workspace = np.random.default_rng(8), np.empty(K, np.int64)
    for _ in range(12):
        X, W = hard_problem(rng, kind)
        rows, y = csr_array(X), rng.integers(K, size=N)
        weights = empty_lists(K, D, False, False, 0.0).load(csc_array(W))
        fitted = Search().fit(TrainingSet(rows, y.astype(np.int32), K))
        kernel, view = fitted.kernel(rows), View(weights, features_of(rows, False))
        exact = X.astype(float) @ W.T.astype(float)
        shares = (X != 0).astype(int) @ (W != 0).T > 0
        for i in range(N):
            n, lowest = int(rng.integers(1, 6)), float(rng.choice(exact[i])) + rng.choice([0.0, 1e-3])
            found = workspace[: lowest_found(kernel, view, i, np.int64(y[i]), np.float32(lowest), n, workspace)]
            slack = 1e-5 * (1 + np.abs(X[i].astype(float)) @ np.abs(W).max(axis=0))
            others = np.setdiff1d(np.flatnonzero(shares[i]), [*found, y[i]])
            worst = exact[i, found].min() if found.size == n else lowest
            assert (exact[i, others] <= max(worst, lowest) + slack).all()
            assert (exact[i, found] >= lowest - slack).all()


def test_what_a_bound_says_is_above_every_score_that_it_is_for():
    """The lift of the lists that are not walked is at least what any class gets from them, rounding included."""
    rng = np.random.default_rng(9)
    for kind in ("signed", "equal", "wide"):
        X, W = hard_problem(rng, kind)
        rows = csr_array(X)
        weights = empty_lists(K, D, False, False, 0.0).load(csc_array(W))
        kernel = Search().fit(TrainingSet(rows, np.zeros(N, np.int32), K)).kernel(rows)
        view = View(weights, features_of(rows, False))
        for i in range(N):
            lowest_found(kernel, view, i, np.int64(0), np.float32(0), 1, np.empty(1, np.int64))
            entries = kernel.order[: rows.indptr[i + 1] - rows.indptr[i]]
            columns, values = rows.indices[entries], rows.data[entries]
            for j in range(entries.size):
                assert kernel.rest[j] >= np.float32(np.max(W[:, columns[j:]] @ values[j:]))
            assert (np.diff(weights.sizes[columns]) >= 0).all()
