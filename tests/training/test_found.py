"""Columns of a history that tell how much a search finds."""

import numpy as np
import pytest

import naive_bounds
from training.problems import method
from xsoftmax.proposals import TrainingSet
from xsoftmax.solvers import make_solver
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

K, N = 40, 300
CLUSTERS = {"name": "clustered-search", "n_clusters": 8, "budget": 10, "n_sampled": 3, "refresh": 50}
COLUMNS = {"search_recall", "gradient_found"}


def problem():
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=N).astype(np.int32)
    X = (rng.standard_normal((K, 6))[y] + 0.5 * rng.standard_normal((N, 6))).astype(np.float32)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def chosen(objective, proposal):
    return method({"name": objective}, proposal, {"name": "sgd", "learning_rate": 0.5})


@pytest.mark.parametrize("n_sampled", [3, K - 1])
def test_they_are_shares_of_what_all_scores_tell(n_sampled):
    X, y = problem()
    of = chosen("max-margin", {"name": "search", "n_sampled": n_sampled})
    data = TrainingSet(X, y, K)
    solver = make_solver(of, of.objective, of.proposal.fit(data), data)
    solver.advance(np.arange(N), 0, 0, 0.5)
    some, W, expected = np.arange(0, N, 5), solver.weights(), []
    for i in some:
        s = W[:, :-1].astype(float) @ X[i] + W[:, -1]
        slopes = np.delete(naive_bounds.max_margin(s, y[i], 1.0)[1], y[i])
        highest = np.argsort(-np.delete(s, y[i]))[:n_sampled]
        if slopes.sum() > 1e-4:
            expected.append(slopes[highest].sum() / slopes.sum())
    found = solver.found(some)
    assert found["search_recall"] == 1
    assert found["gradient_found"] == pytest.approx(np.mean(expected), abs=1e-3)
    assert n_sampled > 3 or found["gradient_found"] < 0.99


def test_a_history_has_them_where_there_is_a_search(dataset):
    """Others have not: tests/training/test_fit.py."""
    data = dataset(*problem(), K, n_test=20)
    history = fit(data, chosen("hinge", CLUSTERS), 0, Plan(epochs=3)).state.history
    assert all(0 <= row[name] <= 1 for row in history for name in COLUMNS)


@pytest.mark.fault(
    "a fit whose search is measured more often: a search marks which classes may have moved",
    happens="what is marked while a search is measured is put back: the fit ends with the same bits",
    user="more rows in `history.csv`",
)
def test_looking_more_often_does_not_change_what_is_learned(dataset):
    data = dataset(*problem(), K, n_test=20)
    of = chosen("hinge", CLUSTERS)
    once, often = (fit(data, of, 0, Plan(epochs=2, at=at)).model.W for at in ((), (0.5, 0.8, 1.0, 1.5)))
    assert np.array_equal(once, often)
