"""Search finds what scores highest, as the weights are."""

import sys
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit
from scipy.sparse import csc_array, csr_array

from kernels.layouts import laid_out
from kernels.loops import run_steps
from problems import sparse_problem
from xsoftmax.internal.errors import InputError, as_line
from xsoftmax.kernels import OPTIONS, shortlist
from xsoftmax.kernels.draws import empty_draws
from xsoftmax.kernels.lists import empty_lists, grown
from xsoftmax.kernels.protocol import Clock, View, draw
from xsoftmax.kernels.rows import features_of
from xsoftmax.kernels.shortlist import nearest_classes
from xsoftmax.methods import build_method
from xsoftmax.objectives.hinge import Hinge
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.search import Search
from xsoftmax.starts import Start

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


@pytest.mark.long_cases
@LAYOUTS
def test_it_is_brute_force_after_thousands_of_steps(layout):
    found, y = problem(layout)
    weights, features = found.view
    order, used = np.random.default_rng(5).integers(0, N, 3000), 0
    while used < order.size:
        arguments = (np.zeros((N, 0)), weights, order[used:], Clock(np.uint64(1), used, used), np.float32(0.1), 1)
        used += run_steps(Hinge(0.5), found.kernel, Sgd(), features, y.astype(np.int32), *arguments)
        if used < order.size:
            assert weights.full[0]
            weights = grown([weights])
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
        method("hinge", l2=0.1)
    assert method("hinge", decay=0.1, average="half").decay == 0.1  # of all weights, touched or not
    with pytest.raises(InputError, match="whatever the biases of others; set bias: false"):
        method("hinge", weights="sparse")
    assert method("hinge", weights="sparse", bias=False, start="class-means").weights == "sparse"
    assert method("hinge", optimizer={"name": "implicit"}).optimizer.needs == "proximal"


@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_shortlists_are_the_highest_where_weights_begin(storage):
    X, y, W = sparse_problem(np.random.default_rng(1), N, D, K, filled=0.2)
    W = np.abs(W[:, :-1]) * (np.random.default_rng(2).random((K, D)) < 0.3)
    X = np.abs(X)
    stored = (X, W) if storage == "dense" else (csr_array(X), csr_array(W.astype(np.float32)))
    found = nearest_classes(stored[0], y, stored[1], 4, budget=10**6)
    for i in range(N):
        s = X[i].astype(float) @ W.T
        s[y[i]] = -np.inf
        expected = np.sort(s)[::-1][:4]
        n_found = (found[i] >= 0).sum()
        assert n_found == (4 if storage == "dense" else (expected > 0).sum())
        assert np.allclose(s[found[i][:n_found]], expected[:n_found], atol=1e-5)
        assert (found[i][n_found:] == -1).all()


def clustered_rows(n_classes=5000):
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((50, 16))
    W = (centres[rng.integers(50, size=n_classes)] + rng.standard_normal((n_classes, 16))).astype(np.float32)
    y = rng.integers(n_classes, size=300).astype(np.int32)
    return (W[y] + 0.2 * rng.standard_normal((300, 16))).astype(np.float32), y, W


def test_dense_rows_among_many_classes_look_in_the_nearest_clusters(monkeypatch):
    X, y, W = clustered_rows()
    found = nearest_classes(X, y, W, 5, seed=7)
    assert (found == nearest_classes(X, y, W, 5, seed=7)).all()
    monkeypatch.setattr(shortlist, "_SCORES_AT_ONCE", 128 * 141)  # 128 rows at a time, the last time fewer
    assert (found == nearest_classes(X, y, W, 5, seed=7)).mean() > 0.99  # but for sums in another order
    monkeypatch.setattr(shortlist, "CLUSTERED", len(W) + 1)
    exact = nearest_classes(X, y, W, 5)
    shared = np.mean([len(set(a) & set(b)) for a, b in zip(exact, found, strict=True)]) / 5
    assert 0.9 < shared < 1  # it leaves something out
    assert (found != y[:, None]).all()
    assert all(len(set(each)) == 5 for each in found)
    scores = np.take_along_axis(X @ W.T, found.astype(int), axis=1)
    assert (np.diff(scores, axis=1) <= 1e-4).all()


def test_faiss_finds_about_what_our_clusters_find():
    pytest.importorskip("faiss")
    X, y, W = clustered_rows()
    found, ours = (nearest_classes(X, y, W, 5, seed=7, found_by=by) for by in ("faiss", "clusters"))
    exact = np.argsort(-(X @ W.T) + 1e9 * (np.arange(len(W)) == y[:, None]), axis=1)[:, :5]
    recalls = [
        np.mean([len(set(a) & set(b)) for a, b in zip(exact, each, strict=True)]) / 5 for each in (found, ours)
    ]
    assert min(recalls) > 0.9
    assert abs(recalls[0] - recalls[1]) < 0.08
    assert (found != y[:, None]).all()
    scores = np.take_along_axis(X @ W.T, found.astype(int), axis=1)
    assert (np.diff(scores, axis=1) <= 1e-4).all()


def test_faiss_is_for_dense_rows_and_installed(monkeypatch):
    X, y, W = clustered_rows()
    faiss = Search(n_sampled=2, shortlist=5, found_by="faiss")
    data = TrainingSet(X, y, len(W), start=Start(W, 2.0))
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ModuleNotFoundError, match="faiss") as error:
        faiss.fit(data)
    assert "pip install 'xsoftmax[search]'" in as_line(error.value)
    monkeypatch.undo()
    pytest.importorskip("faiss")
    assert faiss.fit(data).shortlists.shape == (len(y), 5)
    with pytest.raises(InputError, match="found_by faiss, which is for dense rows; these are sparse"):
        faiss.fit(replace(data, X=csr_array(X)))
    settings = {"source": "test", "objective": {"name": "hinge"}, "optimizer": {"name": "sgd"}}
    for by, message in (("annoy", "set it to clusters or faiss"), ("faiss", "shortlist is 0; set it to 20")):
        with pytest.raises(InputError, match=message):
            build_method("mine", settings | {"proposal": {"name": "search", "found_by": by}})


@pytest.mark.fault(
    "dense weights of many classes of which most lie in one cluster, such as those without a training row",
    happens="shortlists score a few rows at a time, however large a cluster is: 64 MB of scores at most",
    user="nothing",
)
def test_classes_that_all_lie_in_one_cluster_are_scored_a_few_rows_at_a_time(monkeypatch):
    """As those without a training row do, whose weights are zero."""
    rng, largest, keep = np.random.default_rng(0), [], shortlist._keep_highest
    X, y, W = (
        np.abs(rng.standard_normal((60, 8), dtype=np.float32)),
        np.zeros(60, np.int32),
        np.zeros((5000, 8), "f4"),
    )
    W[:20] = np.abs(rng.standard_normal((20, 8)))
    monkeypatch.setattr(shortlist, "_SCORES_AT_ONCE", 20_000)
    monkeypatch.setattr(
        shortlist, "_keep_highest", lambda scores, *rest: largest.append(scores.size) or keep(scores, *rest)
    )
    found = nearest_classes(X, y, W, 3)
    assert max(largest) <= 20_000
    assert (found[:, 0] > 0).all()
    assert (found[:, 0] < 20).all()


def test_a_budget_leaves_few_classes_out_and_scores_are_whole():
    X, y, W = sparse_problem(np.random.default_rng(1), 200, 400, 300, filled=0.05)
    X, W = csr_array(np.abs(X)), csr_array(np.abs(W[:, :-1]) * (np.random.default_rng(2).random((300, 400)) < 0.1))
    exact, quick = (nearest_classes(X, y, W, 5, budget) for budget in (10**6, 400))
    shared = np.mean([len(set(a) & set(b)) for a, b in zip(exact, quick, strict=True)]) / 5
    assert 0.6 < shared < 1
    s = (X @ W.T).toarray()
    of_quick = np.take_along_axis(s, quick.astype(int), axis=1)
    assert (np.diff(of_quick, axis=1) <= 1e-6).all()


def test_a_shortlist_is_searched_as_weights_are_now():
    X, y, W = sparse_problem(np.random.default_rng(1), N, D, K, filled=0.2)
    start = Start(csr_array(np.abs(W[:, :-1])), float(K))
    kernel = Search(n_sampled=2, shortlist=6).fit(TrainingSet(csr_array(X), y, K, start=start)).kernel(X)
    W[:, -1] = 0
    view = View(laid_out(Sgd(), W, dense=False), features_of(csr_array(X), False))
    for i in range(N):
        classes, weights, _ = searched(kernel, view, i, np.int64(y[i]), np.float32(-0.1), 2)
        of_list = [k for k in kernel.shortlists[i] if k >= 0]
        s = W[:, :-1] @ X[i]
        expected = sorted((s[k] for k in of_list if s[k] > -0.1), reverse=True)[:2]
        assert weights.sum() == len(expected)
        assert np.allclose(s[classes[: len(expected)]], expected, atol=1e-5)


def test_a_shortlist_needs_a_start_and_is_no_shorter_than_what_is_taken_of_it():
    X, y, _ = sparse_problem(np.random.default_rng(1), N, D, K, filled=0.2)
    with pytest.raises(InputError, match="begin at zero; set start: class-means"):
        Search(shortlist=3).fit(TrainingSet(csr_array(X), y, K))
    settings = {
        "objective": {"name": "sampled-softmax"},
        "proposal": {"name": "search", "n_sampled": 5, "shortlist": 3},
        "optimizer": {"name": "sgd"},
    }
    with pytest.raises(InputError, match="shortlist is 3, n_sampled 5; set shortlist to 5 or more"):
        build_method("m", settings)
