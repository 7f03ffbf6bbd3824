import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array

from evaluation import naive_signal_to_noise as naive
from xsoftmax.evaluation import signal_to_noise as module
from xsoftmax.evaluation.signal_to_noise import IDEAL, pairs_of, signal_to_noise
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.proposals.mixture import Mixture
from xsoftmax.proposals.tree import Tree
from xsoftmax.proposals.uniform import Uniform

COUNTS = np.array([[10, 3, 1, 6], [2, 2, 9, 4], [1, 12, 5, 5]])  # of classes, by distinct row
ROWS = np.array([[1, 0, 2], [0, 1, 0], [3, 0, -1]], np.float32)
MEMBERS = {
    "uniform": Uniform(),
    "frequency": Frequency(),
    "tree": Tree(dimension=2, regularizer=0.5),
    "mixture": Mixture(Tree(dimension=1), Uniform(), 0.7),
}


def training_set(counts=COUNTS, rows=ROWS, sparse=False):
    """Rows in disorder, each as often as it occurs with each class."""
    x, y = (index.repeat(counts.ravel()) for index in np.indices(counts.shape).reshape(2, -1))
    order = np.random.default_rng(0).permutation(len(y))
    X = rows[x][order]
    return TrainingSet(csr_array(X) if sparse else X, y[order].astype(np.int32), counts.shape[1])


def frequencies(counts=COUNTS):
    return counts / counts.sum(axis=1, keepdims=True)


class Given(NamedTuple):
    """A proposal that is wanted as a member, and its fitted self."""

    fitted: object

    def fit(self, data):
        return self.fitted


@pytest.fixture(scope="module")
def found():
    return {each.proposal: each for each in signal_to_noise(training_set(), MEMBERS, 400_000)}


@pytest.mark.parametrize("name", [IDEAL, *MEMBERS])
def test_the_formula_is_the_trace_by_enumeration(name, found):
    p = frequencies()
    q = p
    if name != IDEAL:
        log_q = MEMBERS[name].fit(training_set()).log_q(ROWS, 0, 4)
        q = np.full((3, 4), 0.25) if log_q is None else np.broadcast_to(np.exp(log_q.astype(float)), (3, 4))
    trace, variance = naive.traces(COUNTS.sum(axis=1), p, q / q.sum(axis=1, keepdims=True))
    assert found[name].variance == pytest.approx(variance / COUNTS.sum() ** 2, rel=1e-5)
    assert found[name].eta == pytest.approx(1 / trace, rel=1e-5)
    assert found[name].relative == pytest.approx(COUNTS.sum() * 3 * 3 / trace, rel=1e-5)
    assert found[name].overlap == pytest.approx((2 * p * q / (p + q)).sum(axis=1).mean(), rel=1e-5)


@pytest.mark.parametrize("name", [IDEAL, *MEMBERS])
def test_what_is_measured_agrees_with_the_formula(name, found):
    each = found[name]
    assert abs(each.measured - each.relative) <= 5 * each.measured_error
    assert 0 < each.measured_error < 0.004


def test_the_ideal_proposal_is_the_best_there_is(found):
    """Theorem 2."""
    assert found[IDEAL].relative == pytest.approx(1, abs=1e-12)
    for name in MEMBERS:
        assert 3 / 4 < found[name].relative < 1 - 1e-4, name
    for name in ("uniform", "frequency"):
        assert found[name].measured < 1 - 5 * found[name].measured_error


@pytest.mark.parametrize("seed", range(5))
def test_no_random_proposal_is_better_or_below_the_bound(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 30, size=(4, 5))
    p, q = frequencies(counts), rng.dirichlet(np.full(5, 0.5), size=4)
    lowest = 4 * 4 * counts.sum()
    trace = naive.noise(counts.sum(axis=1), p, q)
    assert 4 / 5 < lowest / trace < 1
    alpha = module.alpha_of(np.log(p), np.log(q))
    assert counts.sum() * (20 - 2 * alpha.sum()) == pytest.approx(trace, rel=1e-5)
    assert naive.noise(counts.sum(axis=1), p, p) == pytest.approx(lowest, rel=1e-5)


def test_draws_from_another_distribution_than_was_said_would_be_noticed():
    uniform, tree = Uniform().fit(training_set()), MEMBERS["tree"].fit(training_set())

    class Wrong:
        def kernel(self, X):
            return tree.kernel(X)

        def log_q(self, X, start, stop):
            return uniform.log_q(X, start, stop)

    [_, each] = signal_to_noise(training_set(), {"wrong": Given(Wrong())}, 400_000)
    assert abs(each.measured - each.relative) > 5 * each.measured_error


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_equal_rows_are_grouped(sparse):
    data = training_set(sparse=sparse)
    pairs = pairs_of(data.X, data.y, 4)
    X = data.X.toarray() if sparse else data.X
    assert pairs.first.size == 3
    for g in range(3):
        members = pairs.group == g
        assert (X[members] == X[pairs.first[g]]).all()
        assert np.array_equal(np.sort(data.y[members]), np.sort(pairs.labels[pairs.starts[g] : pairs.starts[g + 1]]))
    which = [int(np.flatnonzero((X[i] == ROWS).all(axis=1))[0]) for i in pairs.first]
    expected = frequencies()[np.array(which)[pairs.codes // 4], pairs.codes % 4]
    assert np.allclose(np.exp(pairs.log_p), expected)


def test_zeros_of_both_signs_are_equal():
    X = np.array([[0.0, 1.0], [-0.0, 1.0]], np.float32)
    assert pairs_of(X, np.array([0, 1], np.int32), 2).first.size == 1


def test_dense_and_sparse_rows_agree():
    dense, sparse = (
        signal_to_noise(training_set(sparse=sparse), {"frequency": Frequency()}, 1000) for sparse in (False, True)
    )
    assert dense == sparse


def test_what_never_occurs_counts_as_in_the_limit():
    """p -> 0: the formula and the enumeration go to the same, and what no draw can show is added."""
    rare = np.array([[10, 3, 0, 6], [2, 0, 9, 4], [1, 12, 5, 5]])
    data = training_set(rare)
    results = {each.proposal: each for each in signal_to_noise(data, {"uniform": Uniform()}, 400_000)}
    p = frequencies(rare)
    p[0, 2] = p[1, 1] = 1e-7
    limit = naive.noise(rare.sum(axis=1), p / p.sum(axis=1, keepdims=True), np.full((3, 4), 0.25))
    each = results["uniform"]
    assert each.n_infinite == 2
    assert each.eta == pytest.approx(1 / limit, rel=1e-3)
    assert abs(each.measured - each.relative) <= 5 * each.measured_error
    assert math.isfinite(each.measured_error)
    assert results[IDEAL].relative == pytest.approx(1, abs=1e-12)
    assert abs(results[IDEAL].measured - 1) <= 5 * results[IDEAL].measured_error


def test_rows_that_are_all_distinct_have_no_noise_but_the_limits():
    data = TrainingSet(np.eye(6, 3, dtype=np.float32) + np.arange(6)[:, None], np.arange(6, dtype=np.int32) % 3, 3)
    ideal, uniform = signal_to_noise(data, {"uniform": Uniform()}, 1000)
    assert ideal.n_infinite == 6 * 2
    assert ideal.relative == pytest.approx(1)
    assert uniform.noise == pytest.approx(6 * 3 - 2 * 6 * (1 / 3) / (1 + 1 / 3), rel=1e-6)


def test_blocks_change_nothing(monkeypatch):
    whole = signal_to_noise(training_set(), MEMBERS, 1000, seed=3)
    monkeypatch.setattr(module, "BLOCK_SCORES", 4)
    monkeypatch.setattr(module, "_DRAWS_AT_A_TIME", 300)
    for each, before in zip(signal_to_noise(training_set(), MEMBERS, 1000, seed=3), whole, strict=True):
        assert each.noise == pytest.approx(before.noise, rel=1e-6)
        assert each.measured_noise == before.measured_noise
    assert signal_to_noise(training_set(), MEMBERS, 1000, seed=4) != whole
