"""Bouchard's bound: alpha, the bound, its slopes, and where it settles."""

import h5py
import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import naive
import naive_bounds
from objectives.one_sample import evaluate
from training.problems import method, rows
from xsoftmax.data.store import open_prepared
from xsoftmax.evaluation.likelihood import evaluate as metrics_of
from xsoftmax.objectives.bouchard import Bouchard
from xsoftmax.proposals import TrainingSet
from xsoftmax.solvers import make_solver
from xsoftmax.training.checkpoint import read_checkpoint, write_checkpoint
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan


def wild(n, seed=0, largest=4.0):
    """Scores of 2 to 40 classes, up to 10^largest apart; a class; an alpha to begin with, good or not."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        n_classes = int(rng.integers(2, 41))
        s = rng.standard_normal(n_classes) * 10 ** rng.uniform(-3, largest)
        yield s, int(rng.integers(n_classes)), 100 * rng.standard_normal(1)


def test_alpha_lies_in_the_bracket_and_solves_the_equation():
    for s, y, start in wild(2000):
        found = evaluate(Bouchard(), s, y, start).state[0]
        low, high = naive_bounds.alpha_bracket(s)
        slack = 1e-12 * np.abs(s).max()
        assert low - slack <= found <= high + slack
        assert found == pytest.approx(naive_bounds.alpha(s), rel=1e-11, abs=1e-11)


def test_loss_and_slopes_are_equation_12_at_the_best_alpha():
    for s, y, start in wild(1000, seed=1):
        found = evaluate(Bouchard(), s, y, start)
        value, slopes = naive_bounds.bouchard(s, y)
        assert found.loss == pytest.approx(value, rel=1e-12, abs=1e-12)
        assert np.allclose(found.slopes, slopes, rtol=1e-9, atol=1e-12)


def test_float32_scores_give_slopes_to_float32():
    """Scores up to 100 apart, whose float32 digits both sides are given."""
    for s, y, start in wild(1000, seed=2, largest=1.5):
        s = s.astype(np.float32)
        found = evaluate(Bouchard(), s, y, start, np.float32)
        value, slopes = naive_bounds.bouchard(s.astype(float), y)
        assert found.slopes.dtype == np.float32
        assert found.loss == pytest.approx(value, rel=1e-5, abs=1e-5)
        assert np.allclose(found.slopes, slopes, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("y", [0, 1, 2])
def test_scores_far_apart_keep_their_digits(dtype, y):
    """One class 10^4 above the others: alpha lies half way, and what is wrong by 10^4 costs 10^4 and a half."""
    s = np.array([1e4, 0.0, -1e4])
    found = evaluate(Bouchard(), s, y, [0.0], dtype)
    expected, slopes = naive_bounds.bouchard(s, y)
    assert found.state[0] == pytest.approx(5000.0, rel=1e-6)
    assert found.loss == pytest.approx(expected, rel=1e-6, abs=1e-12)
    assert np.allclose(found.slopes, slopes, atol=1e-12)


def test_of_two_classes_alpha_is_the_mean():
    for gap in (0.0, 1e-3, 1.0, 30.0, 1e4):
        found = evaluate(Bouchard(), [2.0 + gap, 2.0], 1, [7.0])
        assert found.state[0] == pytest.approx(2.0 + gap / 2, rel=1e-13)


def test_equal_scores_begin_at_their_solution():
    """log(K - 1) above the scores, which is where alpha starts, as weights start at zero."""
    for n_classes in (2, 3, 1000):
        start = Bouchard().initial_auxiliary(1, n_classes)[0]
        found = evaluate(Bouchard(), np.zeros(n_classes), 0, start)
        assert found.state[0] == pytest.approx(start[0], rel=1e-14)
        assert found.slopes.sum() == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("start", [np.nan, np.inf, -np.inf, 1e300])
def test_any_start_gives_the_same_alpha(start):
    s = np.array([0.3, -2.0, 1.0, 4.0])
    assert evaluate(Bouchard(), s, 2, [start]).state[0] == pytest.approx(naive_bounds.alpha(s), rel=1e-12)


def test_it_bounds_the_likelihood_and_no_alpha_is_better():
    rng = np.random.default_rng(3)
    for s, y, start in wild(500, seed=4, largest=2.0):
        found = evaluate(Bouchard(), s, y, start)
        assert found.loss >= naive.softmax(s, y)[0] - 1e-12
        other = found.state[0] + rng.standard_normal()
        assert found.loss <= naive_bounds.bouchard_at(s, y, other) + 1e-12


# In training.


@pytest.fixture(scope="module")
def digits(prepare):
    X, y = load_digits(return_X_y=True)
    return prepare((X / 16).astype(np.float32), y, 10)


@pytest.mark.parametrize("l2", [pytest.param(3.0, marks=pytest.mark.slow), 30.0])
def test_lbfgs_meets_an_optimum_found_elsewhere(digits, l2):
    """scipy's minimizer over weights and all alphas; to 1e-5 of the value. The softmax's optimum is another."""
    with open_prepared(digits) as data:
        chosen = method("bouchard", "all", {"name": "lbfgs", "tolerance": 1e-7}, l2=l2)
        result, train = fit(data, chosen, 0, Plan(epochs=3000)), data.split("train")
    X, y = train.X.astype(float), train.y
    assert result.state.message.startswith("converged")
    W, best = naive_bounds.bouchard_optimum(X, y, 10, l2)
    alphas = np.array([naive_bounds.alpha(s) for s in naive.scores(X, result.model.rows)])
    found = naive_bounds.bouchard_objective(X, y, result.model.rows.astype(float), alphas, l2)[0]
    assert found == pytest.approx(best, rel=1e-5)
    assert np.allclose(naive.scores(X, W - W.mean(axis=0)), centred_scores(X, result.model.rows), atol=0.01)
    assert result.state.history[-1]["objective"] == pytest.approx(best, rel=1e-5)
    softmax = LogisticRegression(C=1 / l2, tol=1e-6, max_iter=1000).fit(X, y)
    least = naive.softmax_objective(X, y, np.column_stack([softmax.coef_, softmax.intercept_]), l2)[0]
    assert naive.softmax_objective(X, y, W, l2)[0] > 1.03 * least


def centred_scores(X, W):
    W = np.asarray(W, float)
    return naive.scores(X, W - W.mean(axis=0))


def test_two_classes_without_features_get_twice_their_log_frequencies(dataset):
    """Titsias 2016, Proposition 3."""
    data = dataset(np.zeros((120, 0)), np.repeat([0, 1], [90, 30]), 2)
    result = fit(data, method("bouchard", "all", {"name": "lbfgs", "tolerance": 1e-9}), 0, Plan(epochs=200))
    b = result.model.rows[:, 0].astype(float)
    assert b[0] - b[1] == pytest.approx(2 * np.log(3), abs=1e-4)


@pytest.mark.parametrize(
    ("optimizer", "rate", "sparse"),
    [("sgd", 10.0, False), pytest.param("adagrad", 1.0, True, marks=pytest.mark.slow)],
)
def test_minibatches_come_near_the_optimum(optimizer, rate, sparse, prepare):
    X, y = rows(1500)
    with open_prepared(prepare(X, y, 8, n_test=300, sparse=sparse)) as data:
        chosen = method(
            "bouchard", "all", {"name": optimizer, "learning_rate": rate},
            schedule={"name": "exponential", "decay": 0.97},
        )  # fmt: skip
        result, train, test = fit(data, chosen, 0, Plan(epochs=100)), data.split("train"), data.split("test")
    X, y = train.X.toarray() if sparse else train.X, train.y
    best = naive_bounds.bouchard_optimum(X.astype(float), y, 8, 0.0)[1]
    first, last = result.state.history[0], result.state.history[-1]
    assert last["test_accuracy"] > first["test_accuracy"] + 0.3
    assert best < last["objective"] < 1.01 * best < first["objective"] / 1.3
    assert metrics_of(result.model, test.X, test.y)["accuracy"] == last["test_accuracy"]


def test_alphas_survive_a_checkpoint(tmp_path):
    """Where the solver begins to look for alpha is part of what is resumed: the same bits follow."""
    X, y = rows(200)
    data = TrainingSet(X.astype(np.float32), y.astype(np.int32), 8)
    chosen = method("bouchard", "all", "lbfgs", l2=1.0)
    solvers = [make_solver(chosen, chosen.objective, chosen.proposal.fit(data), data) for _ in range(2)]
    samples, path = np.arange(200), tmp_path / "kept.h5"
    for epoch in range(5):
        solvers[0].advance(samples, epoch, 0, 1.0)
    write_checkpoint(path, "me", dict(solvers[0].arrays()), {})
    with h5py.File(path) as file:
        assert any(np.array_equal(each[()], solvers[0].auxiliary) for each in arrays_of(file))
    assert np.abs(solvers[0].auxiliary - np.log(7)).min() > 1e-6  # they have moved
    assert read_checkpoint(path, "me", solvers[1].restore) == {}
    for epoch in range(5, 10):
        for solver in solvers:
            solver.advance(samples, epoch, 0, 1.0)
    assert np.array_equal(solvers[0].weights(), solvers[1].weights())
    assert np.array_equal(solvers[0].auxiliary, solvers[1].auxiliary)


def arrays_of(file):
    found = []
    file.visititems(lambda _, item: found.append(item) if isinstance(item, h5py.Dataset) else None)
    return found
