"""Scores, likelihoods, ranks and best classes made on PyTorch: those of the host, up to rounding."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

pytest.importorskip("torch", reason="torch is not installed: nothing is scored on its devices here")

from gpu.problems import DEVICE, method_of
from xsoftmax.data.dataset import Dataset
from xsoftmax.data.label_sets import LabelSets
from xsoftmax.evaluation.likelihood import evaluate, score_rows
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.gpu import device, scoring
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.scores import Calibration
from xsoftmax.model import Model
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.proposals.tree import Tree
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

N, D, K = 37, 12, 23
CLOSE = {"rtol": 3e-6, "atol": 3e-6}


def problem(seed=0, n_classes=K, spread=2.0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.5)).astype(np.float32)
    W = (spread * rng.standard_normal((n_classes, D + 1))).astype(np.float32)
    return X, rng.integers(n_classes, size=N).astype(np.int32), W


def model_of(W, n_features=D, **others):
    return Model.of_rows(W, [f"class {k}" for k in range(len(W))], n_features, **others)


def in_small_blocks(monkeypatch):
    """Let a block have few rows and classes, and let few weights be held."""
    monkeypatch.setattr(scoring, "ROWS_AT_A_TIME", 7)
    monkeypatch.setattr(scoring, "MOST_SCORES", 35)
    monkeypatch.setattr(scoring, "HELD_ON_CPU", 120)
    monkeypatch.setattr(scoring, "SENT_AT_ONCE", 30)


def variants():
    """Models and rows, by name."""
    X, y, W = problem()
    counts = np.arange(1, K + 1, dtype=np.float32)
    data = TrainingSet(X, y, K, 1)
    calibration = Calibration(0.7, 0.3, np.log(counts))
    table = np.random.default_rng(1).standard_normal((D, 4)).astype(np.float32)
    return {
        "dense": (model_of(W), X),
        "csr": (model_of(W), csr_array(X)),
        "no biases": (model_of(W, bias=False), csr_array(X)),
        "calibrated": (model_of(W, calibration=calibration), X),
        "log q": (model_of(W, correction=Frequency().fit(data)), csr_array(X)),
        "a tree's log q": (model_of(W, correction=Tree(dimension=2, regularizer=10.0).fit(data)), X),
        "encoder": (replace(model_of(W[:, :5], 4), n_features=D, encoder=table), X),
        "encoder, csr": (replace(model_of(W[:, :5], 4), n_features=D, encoder=table), csr_array(X)),
    }


VARIANTS = variants()
each = pytest.mark.parametrize("name", VARIANTS)


@each
@pytest.mark.parametrize("small", [False, True])
def test_likelihoods_ranks_and_best_classes_are_the_hosts(name, small, monkeypatch):
    model, X = VARIANTS[name]
    y = problem()[1]
    if small:
        in_small_blocks(monkeypatch)
    there = model.scored_on(DEVICE)
    expected, found = (score_rows(each, X, y, classes_at_a_time=5) for each in (model, there))
    np.testing.assert_allclose(found.log_likelihood, expected.log_likelihood, **CLOSE)
    np.testing.assert_allclose(found.confidence, expected.confidence, **CLOSE)
    assert np.array_equal(found.rank, expected.rank)
    for k in (1, 4, K + 5):
        expected_best, found_best = top_k(model, X, k), top_k(there, X, k)
        assert np.array_equal(found_best.classes, expected_best.classes)
        np.testing.assert_allclose(found_best.probabilities, expected_best.probabilities, **CLOSE)


@each
def test_blocks_that_the_host_looks_at_are_its_own(name, monkeypatch):
    """Links other than the softmax, several labels and objectives are the host's, of scores made there."""
    model, X = VARIANTS[name]
    in_small_blocks(monkeypatch)
    found, expected = (np.full((N, K), np.nan) for _ in range(2))
    for each, into in ((model, expected), (model.scored_on(DEVICE), found)):

        def keep(block, into=into):
            rows, classes = block.scores.shape
            into[block.first_row :, block.first_class :][:rows, :classes] = block.scores

        each.visit_scores(X, keep, ThreadPool(2))
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=5e-6)


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
def test_rows_with_several_labels_and_other_links(link):
    X, _, W = problem()
    sets = LabelSets(np.arange(0, 2 * N + 1, 2), np.tile([3, 11], N).astype(np.int32))
    model = model_of(W, link=link)
    y = sets.classes[::2]
    expected, found = (score_rows(each, X, y, label_sets=sets) for each in (model, model.scored_on(DEVICE)))
    np.testing.assert_allclose(found.log_likelihood, expected.log_likelihood, **CLOSE)
    assert np.array_equal(found.label_ranks, expected.label_ranks)
    best = [top_k(each, X, 3).classes for each in (model, model.scored_on(DEVICE))]
    assert np.array_equal(*best)


@pytest.mark.parametrize("small", [False, True])
def test_equal_scores_and_those_that_are_no_numbers(small, monkeypatch):
    if small:
        in_small_blocks(monkeypatch)
    scores = np.array([1.0, 0.0, -0.0, 1.0, 0.0, -np.inf, 1.0], np.float32)
    X = np.zeros((3, 0), np.float32)
    y = np.array([3, 2, 5], np.int32)
    for values in (scores, np.where(np.arange(7) == 4, np.nan, scores), np.where(np.arange(7) == 4, np.inf, scores)):
        model = model_of(values[:, None].astype(np.float32), 0)
        expected, found = (score_rows(each, X, y) for each in (model, model.scored_on(DEVICE)))
        assert np.array_equal(found.rank, expected.rank)
        np.testing.assert_allclose(found.log_likelihood, expected.log_likelihood, **CLOSE)
        best = [top_k(each, X, 7) for each in (model, model.scored_on(DEVICE))]
        assert np.array_equal(best[0].classes, best[1].classes)
        np.testing.assert_allclose(best[1].probabilities, best[0].probabilities, **CLOSE)


def test_weights_are_sent_once_while_they_do_not_change(monkeypatch):
    X, y, W = problem()
    sent, weights = [], scoring.DeviceScorer._weights
    monkeypatch.setattr(scoring.DeviceScorer, "_weights", lambda self, *at: sent.append(at) or weights(self, *at))
    model = model_of(W).scored_on(DEVICE)
    with model.unchanging():
        for _ in range(3):
            score_rows(model, X, y)
        top_k(model, X, 1)
    assert len(sent) == 1
    score_rows(model, X, y)
    assert len(sent) == 2


def test_sparse_weights_are_the_hosts():
    W = problem()[2]
    with pytest.raises(
        InputError, match=f"device is {DEVICE}, and the model has sparse weights, scored by compiled code"
    ):
        model_of(W).to_sparse().scored_on(DEVICE)
    assert model_of(W).scored_on(DEVICE).to_sparse().place == "numba"


def test_a_fit_on_a_device_is_evaluated_there(monkeypatch):
    """Its curve, but for rounding, is that of its model on the host."""
    X, y, _ = problem()
    made, begin = [], scoring.DeviceScorer.__init__
    monkeypatch.setattr(
        scoring.DeviceScorer, "__init__", lambda self, *given: made.append(given[2]) or begin(self, *given)
    )
    data = Dataset.from_arrays(X, y % 5, classes=range(5), test=(X, y % 5))
    found = fit(data, method_of(("softmax", "all", "sgd")), 0, Plan(epochs=1))
    assert set(made) == {DEVICE}
    assert found.model.place == "numba"
    last, expected = found.state.history[-1], evaluate(found.model, X, (y % 5).astype(np.int32))
    for column, value in expected.items():
        assert last[f"test_{column}"] == pytest.approx(value, rel=1e-6)


@pytest.mark.fault(
    "`evaluate` or `predict` with `--device`, and the device has too little memory for a block",
    happens="refused before anything is allocated there",
    user="one line: the megabytes needed, of what, and those that are free",
)
def test_memory_is_asked_for_before_it_is_taken(monkeypatch):
    X, y, W = problem()
    monkeypatch.setattr(scoring, "free_on", lambda place: 10)
    monkeypatch.setattr(device, "free_on", lambda place: 10)
    with pytest.raises(
        InputError, match=rf"device is {DEVICE}, which has 0 MB free, and scoring rows takes .* for weights;"
    ):
        score_rows(model_of(W).scored_on(DEVICE), X, y)
