"""Fits that begin at class means, and models with a temperature of their validation rows."""

import threading

import numpy as np
import pytest
from scipy.sparse import csr_array

from training.problems import D, K, curve, method, rows
from xsoftmax.data.dataset import Dataset
from xsoftmax.evaluation.calibration import fit_calibration, likelihood_at
from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.internal.errors import InputError, StoppedError
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.model import Model
from xsoftmax.proposals import TrainingSet
from xsoftmax.solvers import make_solver
from xsoftmax.starts import Start
from xsoftmax.starts.class_means import ClassMeans
from xsoftmax.training.beginning import find_beginning, mean_length
from xsoftmax.training.callbacks.show_progress import ShowProgress
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

MEANS = {"start": "class-means"}
SOLVERS = {
    "sgd": ("one-vs-each", "uniform", "sgd", {}),
    "adagrad": ("one-vs-each", "uniform", "adagrad", {}),
    "decay": ("one-vs-each", "frequency", "adagrad", {"decay": 1.0}),
    "average": ("one-vs-each", "uniform", "sgd", {"average": "all"}),
    "implicit batches": ("double-sum", "uniform", "implicit", {"l2": 1.0, "batch": {"size": 4}}),
    "all classes": ("softmax", "all", "adagrad", {}),
    "lbfgs": ("softmax", "all", "lbfgs", {}),
}


def dataset(sparse=False, n_validation=100):
    X, y = rows(500)
    X = X.astype(np.float32) * (np.random.default_rng(5).random(X.shape) < 0.8)
    cut = len(y) - n_validation
    store = csr_array if sparse else np.asarray
    others = {"validation": (store(X[cut:]), y[cut:])} if n_validation else {}
    return Dataset.from_arrays(store(X[:cut]), y[:cut], classes=range(K), **others)


@pytest.mark.long_cases
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_begins_there(name, sparse):
    objective, proposal, optimizer, others = SOLVERS[name]
    chosen, train = method(objective, proposal, optimizer, **others), dataset(sparse).split("train")
    W = 3 * ClassMeans().directions(train.X, train.y, K)
    data = TrainingSet(train.X, train.y, K, start=Start(W, 2.5))
    solver = make_solver(chosen, chosen.objective, chosen.proposal.fit(data), data)
    assert np.allclose(solver.weights()[:, :-1], W.toarray() if sparse else W)
    assert not solver.weights()[:, -1].any()
    if chosen.objective.n_auxiliary:
        assert np.allclose(solver.auxiliary[:, 0], np.log(2.5))
    assert solver.advance(np.arange(len(train.y)), 0, 0, 1.0 if optimizer == "lbfgs" else 0.01) == len(train.y)
    assert 0 < np.abs(solver.weights()[:, :-1] - (W.toarray() if sparse else W)).max() < 3


def test_biases_begin_where_they_are_told():
    chosen, train = method("one-vs-each", "frequency", "sgd", bias_start="minus-log-q"), dataset().split("train")
    data = TrainingSet(train.X, train.y, K, start=Start(ClassMeans().directions(train.X, train.y, K), 2.0))
    weights = make_solver(chosen, chosen.objective, chosen.proposal.fit(data), data).weights()
    assert np.allclose(weights[:, -1], -np.log(np.bincount(train.y, minlength=K) / len(train.y)), atol=1e-5)
    assert np.allclose(np.linalg.norm(weights[:, :-1], axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_validation_rows_choose_the_scale_and_what_states_begin_at(sparse):
    data = dataset(sparse)
    train, validation = data.split("train"), data.split("validation")
    found = find_beginning(method("double-sum", "uniform", "sgd", **MEANS), data, train, ThreadPool())
    means = Model(ClassMeans().directions(train.X, train.y, K), data.class_names, D)
    scale = fit_calibration(means, validation.X, validation.y).inverse_temperature
    assert found.scale == scale != 1
    at_start = Model(found.start.W, data.class_names, D)
    assert likelihood_at(at_start, validation.X, validation.y, 1.0).slope == pytest.approx(0, abs=2e-3)
    uncertain = np.exp(-score_rows(at_start, validation.X, validation.y).log_likelihood.mean())
    assert found.start.n_alike == pytest.approx(uncertain, rel=1e-5)
    assert 1 < uncertain < K


def test_a_scale_that_is_set_needs_no_validation_rows():
    data, means = dataset(n_validation=0), {"start": {"name": "class-means", "scale": 4.0}}
    train = data.split("train")
    found = find_beginning(method("softmax", "all", "sgd", **means), data, train, ThreadPool())
    length = np.sqrt(np.mean(np.sum(train.X.astype(float) ** 2, axis=1)))
    assert np.allclose(np.linalg.norm(found.start.W, axis=1) * length, 4)
    with pytest.raises(InputError, match=r"has none; set one, as in start: \{name: class-means, scale: 10\}"):
        fit(data, method("softmax", "all", "sgd", **MEANS), 0, Plan(epochs=1))


def test_zero_is_zero():
    data = dataset()
    train = data.split("train")
    assert find_beginning(method("softmax", "all", "sgd"), data, train, ThreadPool()).start is None


def test_a_fit_that_begins_at_the_means_is_ahead_and_says_so(capfd):
    data = dataset()
    chosen = method("softmax", "all", "adagrad", **MEANS)
    means, zero = (
        fit(data, m, 0, Plan(epochs=1), callbacks=[ShowProgress()])
        for m in (chosen, method("softmax", "all", "adagrad"))
    )
    first, of_zero = (result.state.history[0] for result in (means, zero))
    assert of_zero["validation_log_likelihood"] == pytest.approx(-np.log(K), rel=1e-5)
    assert first["validation_log_likelihood"] > of_zero["validation_log_likelihood"] + 0.2
    assert means.setup_seconds > 0
    assert "weights begin at class-means times" in capfd.readouterr().err


@pytest.mark.fault(
    "a budget in seconds that is spent before the first step, with weights at class means",
    happens="the model is class means, calibrated; its files are as those of other fits, at step 0",
    user="`… no time is left for a step: the model is class-means; give more than … s` in the log",
)
def test_a_budget_that_is_spent_before_the_first_step_gives_the_means(capfd):
    data = dataset()
    result = fit(data, method("softmax", "all", "adagrad", **MEANS), 0, Plan(seconds=1.0, spent=1.5))
    (only,) = result.state.history
    assert (result.state.status, only["step"], result.kept["epoch"]) == ("finished", 0, 0)
    assert only["validation_log_likelihood"] > -np.log(K) + 0.2
    assert "no time is left for a step: the model is class-means; give more than 1.5" in capfd.readouterr().err


@pytest.mark.fault(
    "a killed fit that began at class means, with a temperature",
    happens="weights, states and the temperature of every look are those of a fit that was not killed",
    user="starts it again",
    lost="nothing but the time since the last checkpoint",
)
def test_a_stopped_fit_resumes_with_the_same_bits(tmp_path):
    chosen = method("sampled-softmax", "frequency", "adagrad", calibration="temperature", **MEANS)
    data, plan = dataset(), Plan(epochs=4, at=(1, 2, 3))
    whole, stop = fit(data, chosen, 0, plan), threading.Event()
    stop.set()
    broken = Plan(epochs=4, at=(1, 2, 3), checkpoint=tmp_path / "checkpoint.h5")
    for _ in range(3):
        with pytest.raises(StoppedError):
            fit(data, chosen, 0, broken, stop=stop)
    resumed = fit(data, chosen, 0, broken)
    assert curve(resumed) == curve(whole)
    assert np.array_equal(resumed.model.rows, whole.model.rows)
    assert resumed.model.calibration == whole.model.calibration


def test_models_and_looks_have_the_temperature_of_the_validation_rows():
    data = dataset()
    plain, calibrated = (
        fit(data, method("one-vs-each", "uniform", "sgd", calibration=how), 0, Plan(epochs=2, keep="last"))
        for how in ("none", "temperature")
    )
    assert np.array_equal(plain.model.rows, calibrated.model.rows)
    validation = data.split("validation")
    expected = fit_calibration(plain.model, validation.X, validation.y)
    assert calibrated.model.calibration == expected
    assert plain.model.calibration is None
    for before, after in zip(plain.state.history, calibrated.state.history, strict=True):
        assert after["validation_log_likelihood"] >= before["validation_log_likelihood"] - 1e-6
        assert after["objective"] == before["objective"]
        assert after["train_accuracy"] == before["train_accuracy"]
    last = score_rows(calibrated.model, validation.X, validation.y).log_likelihood.mean()
    assert calibrated.state.history[-1]["validation_log_likelihood"] == pytest.approx(last, rel=1e-6)
    assert last > plain.state.history[-1]["validation_log_likelihood"] + 1e-4


def test_the_objective_of_a_softmax_is_without_its_temperature():
    data = dataset()
    plain, calibrated = (
        fit(data, method("softmax", "all", "sgd", calibration=how), 0, Plan(epochs=1))
        for how in ("none", "temperature")
    )
    for before, after in zip(plain.state.history, calibrated.state.history, strict=True):
        assert after["objective"] == pytest.approx(before["objective"], rel=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": "class-mean"}, "unknown start 'class-mean'; known: class-means, zero; did you mean 'class-means'"),
        ({"start": 3}, r"start is 3; write it as start: \{name: ...\}"),
        ({"start": {"name": "class-means", "scale": -1}}, "start class-means: scale is -1; set it to 0 or more"),
        ({"start": {"name": "zero", "scale": 1}}, "start zero: unknown parameter 'scale'"),
        ({"calibration": "isotonic"}, "calibration is 'isotonic'; set it to none or temperature"),
        (
            {"objective": "augment-reduce-probit", "calibration": "temperature"},
            r"augment-reduce-probit has those of another model \(probit\); leave calibration out",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        method(**{"objective": "one-vs-each", "proposal": "uniform", "optimizer": "sgd"} | changes)


def test_a_temperature_without_validation_rows_is_refused():
    with pytest.raises(InputError, match="which validation rows decide, and arrays has none"):
        fit(dataset(n_validation=0), method("softmax", "all", "sgd", calibration="temperature"), 0, Plan(epochs=1))


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_a_scale_that_is_set_is_the_same_in_any_unit_of_the_features(sparse):
    X, y = rows(200)
    store, scores = csr_array if sparse else np.asarray, []
    chosen = method("one-vs-rest", "all", "sgd", start={"name": "class-means", "scale": 3.0})
    for unit in (1.0, 8.0):
        data = Dataset.from_arrays(store(np.float32(unit) * X), y, classes=range(K))
        start = find_beginning(chosen, data, data.split("train"), ThreadPool()).start
        scores.append(np.asarray(np.float32(unit) * X @ (start.W.toarray() if sparse else start.W).T))
    assert np.abs(scores[0]).max() > 1
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-4, atol=1e-5)
    assert mean_length(csr_array((3, 2), dtype=np.float32)) == 1
