import h5py
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chi2

from kernels.drawing import drawn, log_probabilities_of
from proposals import naive_proposals as naive
from proposals.weighing import KEY, assert_each_counts_one, mean_weights
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import build_method
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals import quadratic_kernel as module
from xsoftmax.proposals.quadratic_kernel import QuadraticKernel, empty_tree, n_blocks_of, restore
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


def fitted(n_classes, n_features, sparse=False, **parameters):
    data, X, W = problem(n_classes, n_features, sparse)
    found = QuadraticKernel(**parameters).fit(data)
    found.refresh(W)
    return found, data, X, W


@pytest.mark.parametrize("alpha", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize(("n_classes", "n_features"), SHAPES)
def test_log_q_is_the_papers(n_classes, n_features, sparse, alpha):
    found, data, X, W = fitted(n_classes, n_features, sparse, alpha=alpha)
    log_q, kernel = found.log_q(data.X, 0, n_classes), found.kernel(data.X)
    assert np.allclose(np.exp(log_q.astype(float)).sum(axis=1), 1, atol=1e-5)
    assert np.allclose(found.log_q(data.X, 1, n_classes), log_q[:, 1:], rtol=1e-6, atol=1e-6)
    for i in (0, 17):
        expected = naive.quadratic_kernel(X[i], W, alpha)
        assert np.allclose(np.exp(log_q[i]), expected, rtol=1e-4)
        said = np.empty(n_classes, np.float32)
        log_probabilities_of(kernel, i, said)
        assert np.allclose(np.exp(said), expected, rtol=1e-4)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize(("n_classes", "n_features"), SHAPES)
def test_draws_follow_the_papers_distribution(n_classes, n_features, sparse):
    found, data, X, W = fitted(n_classes, n_features, sparse)
    for i in (3, 29):
        q = naive.quadratic_kernel(X[i], W, 100.0)
        classes, log_q = drawn(found.kernel(data.X), i, -1, KEY, 0, 50_000, 2)
        assert np.allclose(log_q, np.log(q)[classes], rtol=1e-4, atol=1e-5)
        expected, counts = 100_000 * q, np.bincount(classes.ravel(), minlength=n_classes)
        rare = expected < 10
        cells = np.append(counts[~rare], counts[rare].sum()), np.append(expected[~rare], expected[rare].sum() + 1e-9)
        used = cells[1] > 5
        statistic = ((cells[0] - cells[1]) ** 2 / cells[1])[used].sum()
        assert statistic < chi2.isf(1e-6, max(1, used.sum() - 1))


@pytest.mark.parametrize("n_sampled", [1, 3])
def test_each_class_counts_one_in_expectation(n_sampled):
    found, data, _, _ = fitted(13, 4, alpha=10.0)
    mean, error, _ = mean_weights(found.kernel(data.X), 5, -1, 13, n_sampled, 200_000)
    assert_each_counts_one(mean, error)
    assert error.max() < 0.2


@pytest.mark.parametrize(("n_classes", "n_features"), [*SHAPES, (1000, 7), (10, 64)])
def test_nodes_hold_the_squares_of_their_left_children(n_classes, n_features):
    found, _, _, W = fitted(n_classes, n_features)
    tree, width = found.tree, n_features + 1
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


def test_it_is_of_the_last_refresh_and_kernels_follow_it():
    found, data, X, W = fitted(30, 4)
    kernel, before = found.kernel(data.X), found.log_q(data.X, 0, 30)
    W *= 2  # as a step would
    assert np.array_equal(found.log_q(data.X, 0, 30), before)
    found.refresh(W)
    said = np.empty(30, np.float32)
    log_probabilities_of(kernel, 7, said)
    assert np.allclose(np.exp(said), naive.quadratic_kernel(X[7], W, 100.0), rtol=1e-4)
    assert not np.allclose(said, before[7], atol=0.01)


def test_before_the_first_refresh_all_classes_are_alike():
    data, _, _ = problem(9, 3)
    assert np.allclose(QuadraticKernel().fit(data).log_q(data.X, 0, 9), -np.log(9))


def test_it_survives_being_stored(tmp_path):
    found, data, _, _ = fitted(30, 4, alpha=3.0, refresh=77)
    with h5py.File(tmp_path / "kernel.h5", "w") as file:
        found.save(file.create_group("correction"))
    with h5py.File(tmp_path / "kernel.h5") as file:
        restored = restore(file["correction"], 30, 4)
    assert np.array_equal(restored.log_q(data.X, 0, 30), found.log_q(data.X, 0, 30))
    assert np.array_equal(restored.tree.left, found.tree.left)
    assert restored.refresh_steps == 77


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
    never_refreshed._refresh = lambda W: None
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
    assert module.memory(50, 6) == tree.weights.nbytes + tree.left.nbytes
    monkeypatch.setattr(module, "free_bytes", lambda: 2**20)
    data = TrainingSet(np.zeros((3, 64), np.float32), np.array([0, 1, 1]), 20_000)
    with pytest.raises(InputError, match=r"20000 classes x 64 features need 9 MB for its tree, 1 MB are free"):
        QuadraticKernel().fit(data)
