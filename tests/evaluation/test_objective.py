import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import naive
from xsoftmax.evaluation import likelihood
from xsoftmax.evaluation.objective import mean_loss
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels import scores as scores_module
from xsoftmax.model import Model
from xsoftmax.objectives.double_sum import DoubleSum
from xsoftmax.objectives.negative_sampling import NegativeSampling
from xsoftmax.objectives.one_vs_each import OneVsEach
from xsoftmax.objectives.softmax import Softmax
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.all import All
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.proposals.tree import Tree
from xsoftmax.proposals.uniform import Uniform

N, D, K = 31, 6, 9


def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)).astype(np.float32)
    y = np.concatenate([np.arange(K), rng.integers(K, size=N - K)]).astype(np.int32)
    return X, y, rng.standard_normal((K, D + 1)).astype(np.float32), rng.random((N, 1)) * 3


def model_of(W, correction=None):
    return Model.of_rows(W, [str(k) for k in range(K)], D, correction=correction)


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
@pytest.mark.parametrize("rows", [1, 4, 1000])
@pytest.mark.parametrize("objective", [Softmax(), OneVsEach(), DoubleSum()], ids=lambda o: type(o).__name__)
def test_sums_over_the_other_classes(objective, rows, storage, monkeypatch):
    monkeypatch.setattr(likelihood, "BLOCK_SCORES", rows * K)
    X, y, W, u = problem()
    s = naive.scores(X, W)
    losses = {
        Softmax: lambda i: naive.softmax(s[i], y[i])[0],
        OneVsEach: lambda i: naive.one_vs_each(s[i], y[i])[0],
        DoubleSum: lambda i: naive.double_sum(s[i], y[i], u[i, 0])[0],
    }
    expected = np.mean([losses[type(objective)](i) for i in range(N)])
    proposal = All() if isinstance(objective, Softmax) else Uniform()
    fitted, auxiliary = proposal.fit(TrainingSet(X, y, K)), u if objective.n_auxiliary else np.zeros((N, 0))
    found = mean_loss(model_of(W), objective, fitted, storage(X), y, auxiliary)
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("rows", [1, 4, 1000])
@pytest.mark.parametrize("proposal", [Uniform(), Frequency(), Tree(dimension=3)], ids=lambda p: type(p).__name__)
def test_expectations_under_the_proposal(proposal, rows, monkeypatch):
    monkeypatch.setattr(likelihood, "BLOCK_SCORES", rows * K)
    X, y, W, _ = problem()
    fitted = proposal.fit(TrainingSet(X, y, K))
    log_q = fitted.log_q(X, 0, K)
    log_q = np.broadcast_to(np.full((1, K), -np.log(K)) if log_q is None else log_q, (N, K)).astype(float)
    s = naive.scores(X, W)
    expected = np.mean([naive.negative_sampling(s[i], y[i], log_q[i], 0.1)[0] for i in range(N)])
    # The model's own correction is not part of what the method trains.
    found = mean_loss(model_of(W, fitted), NegativeSampling(0.1), fitted, X, y, np.zeros((N, 0)))
    assert found == pytest.approx(expected, rel=1e-5)


def test_bounds_lie_above_the_loss():
    X, y, W, u = problem()
    fitted = Uniform().fit(TrainingSet(X, y, K))
    exact = mean_loss(model_of(W), Softmax(), fitted, X, y, np.zeros((N, 0)))
    assert exact == pytest.approx(-naive.log_likelihood(naive.scores(X, W), y), rel=1e-6)
    assert mean_loss(model_of(W), OneVsEach(), fitted, X, y, np.zeros((N, 0))) > exact
    assert mean_loss(model_of(W), DoubleSum(), fitted, X, y, u) > exact


def test_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr(likelihood, "BLOCK_SCORES", 4 * K)
    X, y, W, u = problem()
    for objective, proposal in ((OneVsEach(), Uniform()), (DoubleSum(), Uniform()), (NegativeSampling(), Tree(3))):
        fitted, auxiliary = proposal.fit(TrainingSet(X, y, K)), u if objective.n_auxiliary else np.zeros((N, 0))
        one = mean_loss(model_of(W), objective, fitted, X, y, auxiliary)
        for n_threads in (2, 3):
            assert mean_loss(model_of(W), objective, fitted, X, y, auxiliary, ThreadPool(n_threads)) == one


def test_no_copy_of_large_weights_is_made(monkeypatch):
    """Sparse rows go through copies of a block of classes at a time, whole rows of scores through a few rows."""
    monkeypatch.setattr(scores_module, "SMALL_MODEL", 2**16)
    monkeypatch.setattr(scores_module, "FEWEST_WEIGHTS", 2**14)
    monkeypatch.setattr(likelihood, "BLOCK_SCORES", 2**14)
    copies, copied = [], scores_module.Scorer._copied

    def noted(self, classes):
        copy = copied(self, classes)
        copies.append(copy.nbytes)
        return copy

    monkeypatch.setattr(scores_module.Scorer, "_copied", noted)
    n, n_classes, n_features = 20, 20_000, 100
    rng = np.random.default_rng(0)
    X = csr_array(random_array((n, n_features), density=0.05, rng=rng, dtype=np.float32))
    y = rng.integers(n_classes, size=n).astype(np.int32)
    W = rng.standard_normal((n_classes, n_features + 1)).astype(np.float32)
    model = Model.of_rows(W, [str(k) for k in range(n_classes)], n_features)
    arguments = OneVsEach(), Uniform().fit(TrainingSet(X, y, n_classes)), X, y, np.zeros((n, 0))
    mean_loss(model, *arguments)
    tracemalloc.start()
    found = mean_loss(model, *arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    scores = naive.scores(X.toarray(), W)
    assert found == pytest.approx(
        np.mean([naive.one_vs_each(s, k)[0] for s, k in zip(scores, y, strict=True)]), rel=1e-5
    )
    copy, whole_rows = W.nbytes // 32, 4 * n_classes * (n_features // 16)
    assert copy - W[0].nbytes < max(copies) <= copy
    assert peak < 1.2 * (copy + whole_rows) < 0.15 * W.nbytes
