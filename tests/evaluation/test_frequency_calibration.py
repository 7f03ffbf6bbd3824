"""The temperature and the offset by class frequency under which rows are likeliest."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import log_softmax

import naive
from training.problems import K as CLASSES
from training.problems import method, rows
from xsoftmax.data.dataset import Dataset
from xsoftmax.evaluation.calibration import fit_calibration, rows_for
from xsoftmax.evaluation.frequency_calibration import (
    fit_with_frequencies,
    frequencies_of,
    likelihood_at,
    log_counts_of,
)
from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.evaluation.weight_distance import weight_distance
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.scores import Calibration
from xsoftmax.model import MOST_HELD, Model, load_model, save_model
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

N, D, K = 300, 6, 23


def problem(t=0.5, c=1.0, storage=np.asarray):
    """Labels that follow t s + c log n; a model that has the scores s."""
    rng = np.random.default_rng(4)
    X = (rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.7)).astype(np.float32)
    W, counts = rng.standard_normal((K, D + 1)).astype(np.float32), (1000 / np.arange(1, K + 1) ** 1.2).astype(int)
    s = naive.scores(X, W)
    p = np.exp(log_softmax(t * s + c * np.log(counts), axis=1))
    y = np.array([rng.choice(K, p=row) for row in p / p.sum(axis=1, keepdims=True)])
    return Model.of_rows(W, [str(k) for k in range(K)], D), storage(X), y.astype(np.int32), s, counts


def log_likelihood(s, y, counts, t, c):
    return log_softmax(t * s.astype(float) + c * np.log(np.maximum(counts, 1)), axis=1)[np.arange(len(y)), y].mean()


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
def test_the_likelihood_and_its_slopes_are_exact(storage):
    model, X, y, s, counts = problem(storage=storage)
    at, h = np.array([0.7, 0.4]), 1e-4
    found = likelihood_at(model, X, y, log_counts_of(counts), at)
    value = lambda a: log_likelihood(s, y, counts, *a)  # noqa: E731
    e = h * np.eye(2)
    assert found.value == pytest.approx(value(at), rel=1e-6)
    assert np.allclose(found.gradient, [(value(at + d) - value(at - d)) / (2 * h) for d in e], rtol=1e-3, atol=1e-5)
    second = [[value(at + a + b) - value(at + a - b) - value(at - a + b) + value(at - a - b) for a in e] for b in e]
    assert np.allclose(found.hessian, np.array(second) / (4 * h * h), rtol=1e-2, atol=1e-4)
    assert likelihood_at(model, X, y, log_counts_of(counts), at, ThreadPool(2)).value == found.value


@pytest.mark.parametrize(("t", "c"), [(0.02, 0.5), (1.0, 0.0), (5.0, 1.0), (1.0, -0.7)])
def test_it_is_the_best_there_is(t, c):
    model, X, y, s, counts = problem(t, c)
    found = fit_with_frequencies(model, X, y, counts)
    best = minimize(lambda a: -log_likelihood(s, y, counts, *a), (1.0, 0.0), method="Nelder-Mead", tol=1e-9)
    assert log_likelihood(s, y, counts, found.inverse_temperature, found.frequency) >= -best.fun - 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_it_never_lowers_the_likelihood(seed):
    """Nor is it below that of the temperature alone; of classes without rows, too."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((50, D)).astype(np.float32), rng.integers(K, size=50).astype(np.int32)
    W = ((10.0 ** rng.uniform(-4, 4)) * rng.standard_normal((K, D))).astype(np.float32)
    model, counts = Model(W, [str(k) for k in range(K)], D), rng.integers(0, 9, K) ** 3
    both, alone = fit_with_frequencies(model, X, y, counts), fit_calibration(model, X, y)
    values = [
        score_rows(replace(model, calibration=each), X, y).log_likelihood.mean() for each in (both, alone, None)
    ]
    assert values[0] >= values[1] - 1e-6 * abs(values[1])
    assert values[0] >= values[2] - 1e-6 * abs(values[2])


def test_scores_that_are_not_finite_and_no_rows_leave_them_alone():
    model, X, y, _, counts = problem()
    assert fit_with_frequencies(model, X[:0], y[:0], counts) == Calibration(1.0)
    model.W[3, 2] = np.nan
    assert fit_with_frequencies(model, X, y, counts) == Calibration(1.0)


@pytest.mark.parametrize("blocks", [{}, {"classes_at_a_time": 3, "rows_at_a_time": 7}])
def test_a_model_file_has_it_wherever_scores_are_taken(blocks, tmp_path):
    model, X, y, s, counts = problem()
    calibration = Calibration(0.5, 0.8, log_counts_of(counts))
    save_model(replace(model, calibration=calibration, attributes={"status": "finished"}), tmp_path / "model.h5")
    loaded, expected = load_model(tmp_path / "model.h5"), log_softmax(0.5 * s + 0.8 * np.log(counts), axis=1)
    assert loaded.calibration == calibration
    found = score_rows(loaded, X, y, **blocks)
    assert np.allclose(found.log_likelihood, expected[np.arange(N), y], rtol=1e-4, atol=1e-5)
    assert np.array_equal(top_k(loaded, X, 1, **blocks).classes[:, 0], expected.argmax(axis=1))
    shifted = Model.of_rows(0.5 * model.rows, model.class_names, D)
    shifted.b[:] += np.float32(0.8) * calibration.log_counts
    assert weight_distance(loaded, shifted) == pytest.approx(0, abs=1e-5)


@pytest.mark.fault(
    "a model whose calibration counts the rows of other classes, or has counts that are no numbers",
    happens="it is refused as it is read",
    user="`error: …: not what xsoftmax writes (…)`",
)
@pytest.mark.parametrize("log_counts", [np.zeros(K - 1, np.float32), np.full(K, np.inf, np.float32)])
def test_counts_of_other_classes_are_refused(log_counts, tmp_path):
    model = replace(problem()[0], calibration=Calibration(0.5, 0.8, log_counts), attributes={"status": "finished"})
    save_model(model, tmp_path / "model.h5")
    with pytest.raises(InputError, match="not what xsoftmax writes"):
        load_model(tmp_path / "model.h5")


@pytest.mark.parametrize(("frequency", "log_counts"), [(np.nan, np.zeros(3, np.float32)), (1.0, None)])
def test_what_is_no_number_or_stands_alone_is_refused(frequency, log_counts):
    with pytest.raises(InputError, match="calibration: frequency is"):
        Calibration(1.0, frequency, log_counts)


def test_a_fit_is_judged_calibrated_at_every_evaluation():
    """So it is early stopping that compares calibrated likelihoods."""
    X, y = rows(700)
    X = X.astype(np.float32)
    data = Dataset.from_arrays(X[:400], y[:400], classes=range(CLASSES), validation=(X[400:], y[400:]))
    parts, plan = ("negative-sampling", "uniform", "sgd"), Plan(epochs=2, at=(1,), keep="last")
    found, plain = (
        fit(data, method(*parts, calibration=how), 0, plan) for how in ("temperature-and-frequency", "none")
    )
    validation, counts = data.split("validation"), np.bincount(y[:400], minlength=CLASSES)
    expected = fit_with_frequencies(plain.model, validation.X, validation.y, counts)
    assert found.model.calibration == expected
    value = score_rows(found.model, validation.X, validation.y).log_likelihood.mean()
    assert found.state.history[-1]["validation_log_likelihood"] == pytest.approx(value, rel=1e-6)
    for calibrated, other in zip(found.state.history, plain.state.history, strict=True):
        assert calibrated["validation_log_likelihood"] >= other["validation_log_likelihood"] - 1e-6


def test_counts_that_vary_less_than_by_chance_are_of_a_design():
    """As of classes with 20 rows each, cut at random: those with more for training have fewer for validation."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(np.arange(50), 20))
    train, validation = np.bincount(y[:800], minlength=50), y[800:]
    assert np.ptp(train) > 0
    assert frequencies_of(train, validation) is None
    drawn = rng.choice(50, 1000, p=rng.dirichlet(np.ones(50)))
    counts = np.bincount(drawn[:800], minlength=50)
    assert frequencies_of(counts, drawn[800:]) is counts


def test_of_many_classes_few_rows_decide_so_that_their_scores_are_held():
    assert [rows_for(n_classes) for n_classes in (10, 18910, 10**6)] == [4096, MOST_HELD // 18910, 512]
