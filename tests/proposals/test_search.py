"""Search finds what scores highest, as the weights are."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from scipy.sparse import csc_array, csr_array

from kernels.layouts import laid_out
from kernels.loops import sweep
from problems import sparse_problem
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.draws import empty_draws
from xsoftmax.kernels.lists import empty_lists
from xsoftmax.kernels.rows import features_of
from xsoftmax.kernels.steps import Clock, View, draw
from xsoftmax.methods import build_method
from xsoftmax.objectives.hinge import Hinge
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.search import Search

N, D, K = 80, 25, 40


@njit(**OPTIONS)
def searched(kernel, view, i, excluded, lowest, n):
    draws = empty_draws(n)
    draw(kernel, view, i, excluded, lowest, np.uint64(0), draws)
    return draws.classes, draws.weights, draws.log_q


class Problem(NamedTuple):
    kernel: NamedTuple
    view: View
    rows: np.ndarray

    def scores(self, i):
        """Of all classes for row i, as they are now; that a class shares a feature with it."""
        W = self.view.weights.weights()
        W = W.toarray() if hasattr(W, "toarray") else W
        s = W[:, :-1].astype(float) @ self.rows[i] + W[:, -1]
        return s, (W[:, :-1] != 0)[:, self.rows[i] != 0].any(axis=1)


def problem(layout):
    X, y, W = sparse_problem(np.random.default_rng(1), N, D, K, filled=0.2)
    W = W * (np.random.default_rng(2).random(W.shape) < 0.2)
    W[:, -1] = 0
    kernel = Search().fit(TrainingSet(X, y, K)).kernel(X if layout == "dense" else csr_array(X))
    if layout == "lists":
        weights = empty_lists(K, D, False, False, 0.0).load(csc_array(W[:, :-1]))
        return Problem(kernel, View(weights, features_of(csr_array(X), False)), X), y
    weights = laid_out(Sgd(), W, layout == "dense")
    rows = X if layout == "dense" else csr_array(X)
    return Problem(kernel, View(weights, features_of(rows, False)), X), y


LAYOUTS = pytest.mark.parametrize("layout", ["lists", "dense", "csr"])


def assert_is_brute_force(found, i, excluded, lowest, n):
    classes, weights, _ = searched(found.kernel, found.view, i, np.int64(excluded), np.float32(lowest), n)
    s, shares = found.scores(i)
    allowed = (s > lowest) & (np.arange(K) != excluded)
    if hasattr(found.view.weights, "sizes"):
        allowed &= shares
    expected = sorted(s[allowed], reverse=True)[:n]
    n_found = int(weights.sum())
    assert n_found == len(expected)
    assert np.allclose(s[classes[:n_found]], expected, atol=1e-5)
    assert len(set(classes[:n_found])) == n_found
    assert excluded not in classes[:n_found]
    assert (weights[n_found:] == 0).all()
    assert (classes[n_found:] == max(excluded, 0)).all()


@LAYOUTS
@pytest.mark.parametrize("n", [1, 3, K + 5])
def test_it_is_brute_force(layout, n):
    found, y = problem(layout)
    for i in range(0, N, 7):
        for lowest in (-np.inf, 0.05, 100.0):
            for excluded in (-1, int(y[i])):
                assert_is_brute_force(found, i, excluded, lowest, n)


@LAYOUTS
def test_it_is_brute_force_after_thousands_of_steps(layout):
    found, y = problem(layout)
    weights, features = found.view
    order, used = np.random.default_rng(5).integers(0, N, 3000), 0
    while used < order.size:
        arguments = (np.zeros((N, 0)), weights, order[used:], Clock(np.uint64(1), used, used), np.float32(0.1), 1)
        used += sweep(Hinge(0.5), found.kernel, Sgd(), features, y.astype(np.int32), *arguments)
        if used < order.size:
            assert weights.full[0]
            weights = weights.grown()
    moved = found._replace(view=View(weights, features))
    assert not np.allclose(moved.scores(3)[0], found.scores(3)[0]) or layout != "lists"
    for i in range(N):
        for n in (1, 4):
            assert_is_brute_force(moved, i, int(y[i]), -0.2, n)


def test_what_follows_the_sum_over_all_classes_is_refused():
    def method(objective, **others):
        axes = {"objective": {"name": objective}, "proposal": {"name": "search"}, "optimizer": {"name": "sgd"}}
        return build_method("mine", axes | others)

    with pytest.raises(InputError, match="objective double-sum keeps a variable per sample that follows the sum"):
        method("double-sum")
    with pytest.raises(InputError, match="is a mean over draws from one distribution"):
        method("nce")
    with pytest.raises(InputError, match="what proposal search finds says nothing of how often a class is touched"):
        method("hinge", decay=0.1)
    with pytest.raises(InputError, match="whatever the biases of others; set bias: false"):
        method("hinge", weights="sparse")
    assert method("hinge", weights="sparse", bias=False, start="class-means").weights == "sparse"
    assert method("hinge", optimizer={"name": "implicit"}).optimizer.needs == "proximal"
