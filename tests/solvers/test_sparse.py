"""Fits with weights of which only those that are not zero are held."""

import threading

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse

from training.problems import D, K, curve, method, rows
from xsoftmax.data.dataset import Dataset
from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.internal.errors import InputError, StoppedError
from xsoftmax.kernels import lists
from xsoftmax.model import Model, load_model, save_model
from xsoftmax.training.fit import fit
from xsoftmax.training.memory import estimate
from xsoftmax.training.plan import Plan

PLAN = Plan(epochs=3, at=(1, 2))
METHODS = {
    "drawn": ("sampled-softmax", {"name": "frequency", "n_sampled": 3}, "adagrad", {}),
    "averaged": ("one-vs-each", "uniform", "sgd", {"average": "half"}),
    "found": ("hinge", "search", "implicit", {"bias": False, "average": "all", "start": "class-means"}),
    "found, softmax": (
        *("sampled-softmax", {"name": "search", "n_sampled": 4}, "sgd"),
        {"bias": False, "start": "class-means"},
    ),
    "shortlist": (
        *("hinge", {"name": "search", "shortlist": 5}, "implicit"),
        {"bias": False, "average": "half", "start": "class-means", "frequency_power": 0.5},
    ),
    "shortlist, softmax": (
        *("sampled-softmax", {"name": "search", "n_sampled": 5, "shortlist": 5}, "adagrad"),
        {"start": "class-means"},
    ),
    "decay": (
        *("sampled-softmax", {"name": "uniform", "n_sampled": 3}, "adagrad"),
        {"decay": 30.0, "average": "half", "start": "class-means"},
    ),
    "found, decay": (
        *("hinge", "search", "sgd"),
        {"bias": False, "decay": 300.0, "average": "all", "start": "class-means"},
    ),
    "biases": ("negative-sampling", "frequency", "sgd", {"bias_start": "minus-log-q"}),
    "temperature": ("hinge", "uniform", "sgd", {"calibration": "temperature", "start": "class-means"}),
}


def dataset(sparse=True):
    X, y = rows(500)
    X = X.astype(np.float32) * (np.random.default_rng(5).random(X.shape) < 0.5)
    store = csr_array if sparse else np.asarray
    return Dataset.from_arrays(
        store(X[:400]), y[:400], classes=range(K), validation=(store(X[400:]), y[400:]), test=(store(X[:90]), y[:90])
    )


def of_both(name, plan=PLAN):
    objective, proposal, optimizer, others = METHODS[name]
    return [
        fit(dataset(), method(objective, proposal, optimizer, weights=weights, **others), 0, plan)
        for weights in ("sparse", "dense")
    ]


@pytest.mark.long_cases
@pytest.mark.parametrize("name", METHODS)
def test_a_fit_is_that_of_dense_weights(name, monkeypatch):
    monkeypatch.setattr(lists, "SPARE", 0)  # so that they have to grow
    sparse, dense = of_both(name)
    assert issparse(sparse.model.W)
    assert not issparse(dense.model.W)
    assert np.allclose(sparse.model.rows, dense.model.rows, rtol=1e-3, atol=2e-4)
    assert sparse.model.bias == dense.model.bias
    for found, expected in zip(sparse.state.history, dense.state.history, strict=True):
        for key in ("epoch", "step", "objective", "train_log_likelihood", "validation_log_likelihood"):
            assert found[key] == pytest.approx(expected[key], rel=1e-3, abs=1e-4)
    assert sparse.kept["epoch"] == dense.kept["epoch"]


@pytest.mark.long_cases
@pytest.mark.parametrize("name", METHODS)
def test_a_model_survives_its_file_and_says_the_same(name, tmp_path):
    model, data = of_both(name, Plan(epochs=1))[0].model, dataset()
    model.attributes["status"] = "finished"
    save_model(model, tmp_path / "model.h5")
    loaded, test = load_model(tmp_path / "model.h5"), data.split("test")
    assert issparse(loaded.W)
    assert np.array_equal(loaded.rows, model.rows)
    dense = Model.of_rows(model.rows, model.class_names, D, bias=model.bias, correction=model.correction)
    if model.calibration is None:
        expected = score_rows(dense, test.X, test.y)
        for X in (test.X, test.X.toarray()):
            found = score_rows(loaded, X, test.y)
            assert np.allclose(found.log_likelihood, expected.log_likelihood, atol=1e-5)
            small = score_rows(loaded, X, test.y, classes_at_a_time=3, rows_at_a_time=7)
            assert np.allclose(small.log_likelihood, expected.log_likelihood, atol=1e-5)


@pytest.mark.long_cases
@pytest.mark.fault(
    "a killed fit of sparse weights",
    happens="lists, their decay, their average and the best weights so far come back as they were",
    user="starts it again",
    lost="nothing but the time since the last checkpoint",
)
@pytest.mark.parametrize("name", METHODS)
def test_a_stopped_fit_resumes_with_the_same_bits(name, tmp_path, monkeypatch):
    monkeypatch.setattr("xsoftmax.solvers.sampled.DEFAULT_CHUNK", 150)
    objective, proposal, optimizer, others = METHODS[name]
    chosen, stop = method(objective, proposal, optimizer, weights="sparse", **others), threading.Event()
    if chosen.proposal.adaptive:
        monkeypatch.setattr("xsoftmax.proposals.Adaptive.refresh_steps", 150)
    whole = fit(dataset(), chosen, 0, PLAN)
    stop.set()
    broken = Plan(epochs=3, at=(1, 2), checkpoint=tmp_path / "checkpoint.h5")
    for _ in range(6):
        with pytest.raises(StoppedError):
            fit(dataset(), chosen, 0, broken, stop=stop)
    resumed = fit(dataset(), chosen, 0, broken)
    assert curve(resumed) == curve(whole)
    assert np.array_equal(resumed.model.rows, whole.model.rows)
    assert resumed.model.calibration == whole.model.calibration


def test_found_classes_leave_most_weights_zero():
    """A hinge that searches moves two classes at most, where a row's features are."""
    found = of_both("found", Plan(epochs=1))[0].model.W
    drawn = fit(dataset(), method("one-vs-each", "uniform", "sgd", weights="sparse"), 0, Plan(epochs=1)).model.W
    assert found.nnz <= drawn.nnz == K * D


def test_rates_that_are_too_high_diverge_and_lists_that_are_full_do_not(monkeypatch):
    monkeypatch.setattr(lists, "SPARE", 0)
    result = fit(
        dataset(), method("one-vs-each", "uniform", {"name": "sgd", "learning_rate": 3e38}, weights="sparse"), 0, PLAN
    )
    assert result.state.status == "diverged"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"proposal": "all", "objective": "softmax"},
            "proposal all moves every class, after which none of them is zero",
        ),
        ({"batch": {"size": 4}}, "weights are sparse, which move sample by sample; leave batch out"),
        ({"l2": 1.0}, "sparse weights shrink all together; set l2: 0 and decay: 1"),
        ({"optimizer": "advi"}, "what optimizer advi accumulates fades in every step"),
        (
            {"objective": "hinge", "proposal": "search", "bias": False},
            "proposal search finds nothing where all weights are zero; set start: class-means",
        ),
        ({"weights": "thin"}, "weights is 'thin'; set it to dense or sparse"),
        (
            {"objective": "hinge", "proposal": {"name": "uniform", "n_sampled": 2}, "optimizer": "implicit"},
            "optimizer implicit solves its step for one drawn class; set n_sampled: 1",
        ),
    ],
)
def test_what_they_cannot_do_is_refused(changes, message):
    chosen = {"objective": "one-vs-each", "proposal": "uniform", "optimizer": "sgd", "weights": "sparse"}
    with pytest.raises(InputError, match=message):
        method(**chosen | changes)


def test_dense_rows_are_refused():
    with pytest.raises(InputError, match="weights are sparse, and the rows are dense; take weights: dense"):
        fit(dataset(sparse=False), method("hinge", "uniform", "sgd", weights="sparse"), 0, PLAN)


def test_they_are_not_counted_as_dense_ones():
    """A million classes, ten thousand features: 40 GB as an array."""
    X = csr_array(np.eye(50, 10_000, dtype=np.float32))
    data = Dataset.from_arrays(X, np.arange(50), classes=range(10**6), validation=(X, np.arange(50)))
    needed = {
        w: sum(estimate(method("hinge", "uniform", "sgd", weights=w), data, True).values())
        for w in ("sparse", "dense")
    }
    assert needed["dense"] > 7e10
    assert needed["sparse"] < 4e8  # scores of rows are 216 MB, room that each class has spare 176 MB
