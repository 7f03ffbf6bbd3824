from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chi2

from kernels.drawing import drawn, log_probabilities_of
from kernels.layouts import decayed, laid_out
from proposals import naive_proposals as naive
from proposals.weighing import KEY, assert_each_counts_one, mean_weights
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels.protocol import View
from xsoftmax.kernels.rows import features_of
from xsoftmax.methods import build_method
from xsoftmax.optimizers.adagrad import Adagrad
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals import quadratic_kernel as module
from xsoftmax.proposals.quadratic_kernel import FittedQuadraticKernel, QuadraticKernel, empty_tree, n_blocks_of
from xsoftmax.solvers import make_solver

SHAPES = [(2, 3), (5, 0), (11, 20), (64, 1), (61, 5), (200, 3)]


def problem(n_classes, n_features, sparse=False, n_samples=40):
    rng = np.random.default_rng(n_classes)
    X = (rng.standard_normal((n_samples, n_features)) * (rng.random((n_samples, n_features)) < 0.7)).astype(
        np.float32
    )
    W = (0.3 * rng.standard_normal((n_classes, n_features + 1))).astype(np.float32)
    y = rng.integers(n_classes, size=n_samples).astype(np.int32)
    return TrainingSet(csr_array(X) if sparse else X, y, n_classes), X, W


class Fitted(NamedTuple):
    proposal: FittedQuadraticKernel
    kernel: NamedTuple
    view: View
    X: np.ndarray
    W: np.ndarray

    def log_q(self, i):
        said = np.empty(len(self.W), np.float32)
        log_probabilities_of(self.kernel, i, said, self.view)
        return said.astype(float)


def fitted(n_classes, n_features, sparse=False, **parameters):
    data, X, W = problem(n_classes, n_features, sparse)
    found, weights = QuadraticKernel(**parameters).fit(data), laid_out(Sgd(), W)
    found.refresh(weights)
    return Fitted(found, found.kernel(data.X), View(weights, features_of(data.X, True)), X, W)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize(("n_classes", "n_features"), SHAPES)
def test_log_q_is_the_papers(n_classes, n_features, sparse, alpha):
    found = fitted(n_classes, n_features, sparse, alpha=alpha)
    for i in (0, 17):
        assert np.exp(found.log_q(i)).sum() == pytest.approx(1, abs=1e-5)
        assert np.allclose(np.exp(found.log_q(i)), naive.quadratic_kernel(found.X[i], found.W, alpha), rtol=1e-4)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize(("n_classes", "n_features"), SHAPES)
def test_draws_follow_the_papers_distribution(n_classes, n_features, sparse):
    found = fitted(n_classes, n_features, sparse)
    for i in (3, 29):
        q = naive.quadratic_kernel(found.X[i], found.W, 100.0)
        classes, log_q = drawn(found.kernel, i, -1, KEY, 0, 50_000, 2, found.view)
        assert np.allclose(log_q, np.log(q)[classes], rtol=1e-4, atol=1e-5)
        expected, counts = 100_000 * q, np.bincount(classes.ravel(), minlength=n_classes)
        rare = expected < 10
        cells = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum() + 1e-9)
        used = cells[1] > 5
        statistic = ((cells[0] - cells[1]) ** 2 / cells[1])[used].sum()
        assert statistic < chi2.isf(1e-6, max(1, used.sum() - 1))


@pytest.mark.parametrize("moved", [False, True], ids=["as refreshed", "moved since"])
@pytest.mark.parametrize("n_sampled", [1, 3])
def test_each_class_counts_one_in_expectation(n_sampled, moved):
    found = fitted(13, 4, alpha=10.0)
    if moved:
        found.view.weights.W[:] = 0.3 * np.random.default_rng(1).standard_normal(found.W.shape)
    mean, error, _ = mean_weights(found.kernel, 5, -1, 13, n_sampled, 200_000, found.view)
    assert_each_counts_one(mean, error)
    assert error.max() < (0.5 if moved else 0.2)


@pytest.mark.parametrize(("n_classes", "n_features"), [*SHAPES, (1000, 7), (10, 64)])
def test_nodes_hold_the_squares_of_their_left_children(n_classes, n_features):
    found = fitted(n_classes, n_features)
    tree, width, W = found.proposal.tree, n_features + 1, found.W
    n_blocks = len(tree.bounds) - 1
    assert n_blocks == n_blocks_of(n_classes, n_features)
    assert np.diff(tree.bounds).min() >= 1
    assert n_blocks == 1 or width / 2 <= n_classes / n_blocks <= 2 * width
    factor = np.array([1.0 if i == j else 2.0 for i in range(width) for j in range(i + 1)])
    for node in range(1, n_blocks):
        level = node.bit_length() - 1
        first = (node - (1 << level)) * (n_blocks >> level)
        of_left = W[tree.bounds[first] : tree.bounds[first + (n_blocks >> level) // 2]].astype(float)
        assert np.allclose(tree.left[node], factor * (of_left.T @ of_left)[np.tril_indices(width)], rtol=1e-9)
    whole = W.astype(float).T @ W.astype(float)
    assert np.allclose(tree.left[0], factor * whole[np.tril_indices(width)], rtol=1e-9)


def test_blocks_are_drawn_as_of_the_last_refresh_and_classes_as_of_now():
    found, other = fitted(30, 4), np.random.default_rng(1).standard_normal((30, 5)).astype(np.float32)
    then, now = (naive.quadratic_kernel(found.X[7], W, 100.0) for W in (found.W, other))
    found.view.weights.W[:] = other
    first = found.proposal.tree.bounds[:-1]
    blocks, within = (
        np.add.reduceat(then, first),
        now / np.repeat(np.add.reduceat(now, first), np.diff(first, append=30)),
    )
    expected = np.repeat(blocks, np.diff(first, append=30)) * within
    assert len(first) > 1
    assert np.allclose(np.exp(found.log_q(7)), expected, rtol=1e-4)
    assert np.exp(found.log_q(7)).sum() == pytest.approx(1, abs=1e-5)
    classes, log_q = drawn(found.kernel, 7, -1, KEY, 0, 1000, 2, found.view)
    assert np.allclose(log_q, np.log(expected)[classes], rtol=1e-4, atol=1e-5)
    found.proposal.refresh(found.view.weights)
    assert np.allclose(np.exp(found.log_q(7)), now, rtol=1e-4)


@pytest.mark.long_cases
@pytest.mark.parametrize("layout", ["decayed", "with accumulators"])
def test_it_reads_any_layout(layout):
    found = fitted(30, 4)
    if layout == "decayed":
        weights = decayed(laid_out(Sgd(), found.W), 0.1)
        weights.factors[:] = np.linspace(0.5, 2, 30)
    else:
        weights = laid_out(Adagrad(), found.W)
    found.proposal.refresh(weights)
    moved = found._replace(view=View(weights, found.view.features))
    assert np.allclose(
        np.exp(moved.log_q(3)), naive.quadratic_kernel(found.X[3], weights.weights(), 100.0), rtol=1e-4
    )


def test_before_the_first_refresh_all_classes_are_alike():
    data, _, _ = problem(9, 3)
    view = View(laid_out(Sgd(), np.zeros((9, 4))), features_of(data.X, True))
    said = np.empty(9, np.float32)
    log_probabilities_of(QuadraticKernel().fit(data).kernel(data.X), 2, said, view)
    assert np.allclose(said, -np.log(9))


def method(**changes):
    parts = {"objective": {"name": "double-sum"}, "optimizer": {"name": "u-max"}}
    return build_method(
        "test", parts | {"proposal": {"name": "quadratic-kernel", "refresh": 10, "n_sampled": 2}} | changes
    )


def solver_of(data, settings):
    return make_solver(settings, settings.objective, settings.proposal.fit(data), data)


@pytest.mark.parametrize("bias", [True, False])
def test_a_resumed_solver_draws_what_an_uninterrupted_one_does(bias):
    data, _, _ = problem(30, 4)
    settings = method(bias=bias)
    whole, begun, resumed = (solver_of(data, settings) for _ in range(3))
    assert whole.chunk == 10
    for first in (0, 10, 20):
        whole.advance(np.arange(first, first + 10), 0, first, 0.5)
    for first in (0, 10):
        begun.advance(np.arange(first, first + 10), 0, first, 0.5)
    resumed.restore(begun.arrays())
    resumed.advance(np.arange(20, 30), 0, 20, 0.5)
    assert np.array_equal(resumed.weights(), whole.weights())
    never_refreshed = solver_of(data, settings)
    never_refreshed._refresh = lambda: None
    for first in (0, 10, 20):
        never_refreshed.advance(np.arange(first, first + 10), 0, first, 0.5)
    assert not np.array_equal(never_refreshed.weights(), whole.weights())


def test_an_objective_that_learns_a_contrast_is_refused():
    with pytest.raises(InputError, match="proposal quadratic-kernel changes with the weights"):
        method(objective={"name": "negative-sampling"})


def test_too_many_features_are_refused():
    data = TrainingSet(csr_array((3, module.MAX_FEATURES + 1), dtype=np.float32), np.array([0, 1, 1]), 2)
    with pytest.raises(InputError, match=r"the data have 513 features, .* takes 512 at most; .*pca: 64"):
        QuadraticKernel().fit(data)


def test_too_little_memory_is_refused_before_it_is_taken(monkeypatch):
    tree = empty_tree(50, 6)
    assert module.memory(50, 6) == tree.left.nbytes
    monkeypatch.setattr(module, "free_bytes", lambda: 2**20)
    data = TrainingSet(np.zeros((3, 64), np.float32), np.array([0, 1, 1]), 20_000)
    with pytest.raises(InputError, match=r"20000 classes x 64 features need 4 MB for its tree, 1 MB are free"):
        QuadraticKernel().fit(data)
