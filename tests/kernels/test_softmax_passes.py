"""Two passes over blocks of classes against one over all of them."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array

from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.full_softmax import CLASSES_OF_A_BLOCK, classes_of_a_block
from xsoftmax.methods import build_method
from xsoftmax.proposals import TrainingSet
from xsoftmax.solvers import full as minibatches
from xsoftmax.solvers import make_solver
from xsoftmax.solvers.full import in_passes

N, D, K = 70, 12, 2 * CLASSES_OF_A_BLOCK + 100


def method_of(optimizer="adagrad", batch_size=32, objective="softmax", **others):
    axes = {
        "objective": {"name": objective},
        "proposal": {"name": "all", "batch_size": batch_size},
        "optimizer": {"name": optimizer, "learning_rate": 0.5},
    }
    return build_method("mine", axes | others)


def solver_of(X, y, method, threads=1, n_classes=K):
    data = TrainingSet(X, y, n_classes)
    return make_solver(method, method.objective, method.proposal.fit(data), data, ThreadPool(threads))


@pytest.fixture(params=["dense", pytest.param("csr", marks=pytest.mark.slow)])
def rows(request):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((N, D)).astype(np.float32)
    if request.param == "csr":
        X = csr_array(X * (rng.random(X.shape) < 0.4).astype(np.float32))
    y = rng.integers(0, K, N).astype(np.int32)
    y[:3] = 0, classes_of_a_block(K), K - 1  # ends of blocks
    return X, y


def trained(rows, method, threads=1, epochs=3):
    solver = solver_of(*rows, method, threads)
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(N)
        assert solver.advance(order, epoch, 0, 0.5) == N
    return solver


@pytest.mark.parametrize(("optimizer", "others"), [("adagrad", {}), ("sgd", {"l2": 1.0}), ("sgd", {"bias": False})])
def test_they_train_the_same(rows, monkeypatch, optimizer, others):
    method = method_of(optimizer, **others)
    expected = trained(rows, method).weights()
    monkeypatch.setattr(minibatches, "MOST_SCORES", 32 * K - 1)
    found = trained(rows, method)
    assert found._scores.shape == (32, classes_of_a_block(K))
    assert np.abs(found.weights() - expected).max() < 2e-5
    assert np.abs(expected).max() > 0.1


def test_threads_change_no_bit(rows, monkeypatch):
    monkeypatch.setattr(minibatches, "MOST_SCORES", 0)
    one, two = (trained(rows, method_of(), threads).weights() for threads in (1, 2))
    assert np.array_equal(one, two)


def test_large_scores_neither_overflow_nor_cancel(monkeypatch):
    """Scores of hundreds: the probability of the true class is 1 to the last bit, the slopes of the others tiny."""
    rows = np.eye(4, dtype=np.float32), np.arange(4, dtype=np.int32)
    monkeypatch.setattr(minibatches, "MOST_SCORES", 0)
    solver = solver_of(*rows, method_of("sgd", 4), n_classes=4)
    solver.weights()[:, :4] = 300 * np.eye(4, dtype=np.float32) - 10
    before = solver.weights().copy()
    assert solver.advance(np.arange(4), 0, 0, 0.5) == 4
    assert np.abs(solver.weights() - before).max() < 1e-30
    solver.weights()[:, :4] = np.where(np.eye(4), -300, 0).astype(np.float32)
    before = solver.weights().copy()
    solver.advance(np.arange(4), 0, 0, 4.0)
    change = solver.weights()[:, :4] - before[:, :4]
    assert np.allclose(change, np.where(np.eye(4), 1, -1 / 3), rtol=1e-6)


def test_scores_that_are_not_finite_stop_it(rows, monkeypatch):
    monkeypatch.setattr(minibatches, "MOST_SCORES", 0)
    solver = solver_of(*rows, method_of(batch_size=32))
    solver.weights()[-1, -1] = np.nan
    assert solver.advance(np.arange(N), 0, 0, 0.5) == 0


def test_no_more_than_blocks_of_scores_are_held(monkeypatch):
    monkeypatch.setattr(minibatches, "MOST_SCORES", 0)
    K, n = 40_000, 256
    rows = np.ones((n, 2), np.float32), np.arange(n, dtype=np.int32)
    solver_of(*rows, method_of("sgd", n), n_classes=K).advance(np.arange(n), 0, 0, 0.1)  # compiled
    tracemalloc.start()
    solver_of(*rows, method_of("sgd", n), n_classes=K).advance(np.arange(n), 0, 0, 0.1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * n * K / 4


def test_only_the_softmax_and_only_large_batches_go_in_passes():
    most = minibatches.MOST_SCORES
    assert not in_passes(method_of(), 1, most)
    assert in_passes(method_of(), 2, most)
    assert not in_passes(method_of(objective="one-vs-each"), 2, most)
