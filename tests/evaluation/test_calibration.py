"""The temperature under which rows are likeliest."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

import naive
from xsoftmax.evaluation.calibration import fit_calibration, likelihood_at
from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.scores import Calibration
from xsoftmax.model import Model

N, D, K = 200, 6, 23
TEMPERATURES = [0.003, 0.2, 1.0, 7.0, 300.0]


def problem(temperature, storage=np.asarray, n_classes=K):
    """Labels that follow the softmax of scores times the inverse temperature; a model that has these scores."""
    rng = np.random.default_rng(4)
    X = (rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.7)).astype(np.float32)
    W = rng.standard_normal((n_classes, D + 1)).astype(np.float32)
    s = naive.scores(X, W)
    y = np.array([rng.choice(n_classes, p=np.exp(naive.log_probabilities(temperature * row))) for row in s])
    return Model.of_rows(W, [str(k) for k in range(n_classes)], D), storage(X), y.astype(np.int32), s


def log_likelihood(s, y, t):
    return np.mean([naive.log_probabilities(t * row)[k] for row, k in zip(s.astype(float), y, strict=True)])


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
@pytest.mark.parametrize("t", [0.1, 1.0, 4.0])
def test_the_likelihood_and_its_slopes_are_exact(storage, t):
    model, X, y, s = problem(1.0, storage)
    found, h = likelihood_at(model, X, y, t), 1e-4
    low, here, high = (log_likelihood(s, y, t + step) for step in (-h, 0, h))
    assert found.value == pytest.approx(here, rel=1e-6)
    assert found.slope == pytest.approx((high - low) / (2 * h), rel=1e-3, abs=1e-4)
    assert found.curvature == pytest.approx((high - 2 * here + low) / h**2, rel=1e-2, abs=1e-3)


def test_it_is_that_of_a_calibrated_model_whatever_the_blocks_and_threads(monkeypatch):
    model, X, y, _ = problem(1.0)
    found = likelihood_at(model, X, y, 2.5)
    calibrated = Model(model.W, model.class_names, D, model.b, calibration=Calibration(2.5))
    assert found.value == pytest.approx(score_rows(calibrated, X, y).log_likelihood.mean(), rel=1e-6)
    assert likelihood_at(model, X, y, 2.5, ThreadPool(2)) == found
    visit = Model.visit_scores
    monkeypatch.setattr(
        Model, "visit_scores", lambda self, X, see, pool: visit(self, X, see, pool, classes_at_a_time=3)
    )
    assert likelihood_at(model, X, y, 2.5) == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_it_is_the_best_there_is(temperature):
    model, X, y, s = problem(temperature)
    found = fit_calibration(model, X, y).inverse_temperature
    best = minimize_scalar(
        lambda log_t: -log_likelihood(s, y, np.exp(log_t)), bounds=(-9, 9), method="bounded", options={"xatol": 1e-7}
    )
    assert log_likelihood(s, y, found) == pytest.approx(-best.fun, rel=1e-5, abs=1e-6)
    assert log_likelihood(s, y, found) >= log_likelihood(s, y, 1.0) - 1e-7
    if 0.1 < temperature < 10:
        assert found == pytest.approx(np.exp(best.x), rel=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_it_never_lowers_the_likelihood(seed):
    rng = np.random.default_rng(seed)
    X, W = rng.standard_normal((50, D)).astype(np.float32), (10.0 ** rng.uniform(-4, 4)) * rng.standard_normal((K, D))
    y = rng.integers(K, size=50).astype(np.int32)
    model = Model(W.astype(np.float32), [str(k) for k in range(K)], D)
    found = fit_calibration(model, X, y).inverse_temperature
    assert likelihood_at(model, X, y, found).value >= likelihood_at(model, X, y, 1.0).value


def test_scores_that_are_not_finite_and_no_rows_leave_1():
    model, X, y, _ = problem(1.0)
    assert fit_calibration(model, X[:0], y[:0]) == Calibration(1.0)
    model.W[3, 2] = np.nan
    assert np.isnan(likelihood_at(model, X, y, 1.0).value)
    assert fit_calibration(model, X, y) == Calibration(1.0)


def test_rows_that_are_all_alike_or_all_right_end():
    """Of equal scores no temperature is better; of rows that are all right the likelihood rises for ever."""
    names = ["a", "b"]
    alike = Model(np.zeros((2, 1), np.float32), names, 1)
    X, y = np.ones((4, 1), np.float32), np.array([0, 1, 0, 1], np.int32)
    assert fit_calibration(alike, X, y) == Calibration(1.0)
    right = Model(np.array([[1.0], [-1.0]], np.float32), names, 1)
    found = fit_calibration(right, np.array([[1.0], [-1.0]], np.float32), np.array([0, 1], np.int32))
    assert 5 < found.inverse_temperature < 1e6
