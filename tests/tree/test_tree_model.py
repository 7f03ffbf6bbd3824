import h5py
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chi2

from tree import naive_tree as naive
from tree.clusters import clustered
from xsoftmax.internal.errors import InputError
from xsoftmax.tree.draws import descend, log_probability_of
from xsoftmax.tree.fit import fit_tree
from xsoftmax.tree.model import Tree, on_cache_lines

SIZES = [2, 3, 5, 8, 1000]


@pytest.fixture(scope="module")
def fitted():
    X, y = clustered(3000, 37, 8)
    tree = fit_tree(X, y, 37, dimension=5)
    return tree, X, y


@pytest.mark.parametrize("n_classes", SIZES)
@pytest.mark.parametrize("n_features", [0, 6])
def test_probabilities_sum_to_one_and_agree_with_naive(n_classes, n_features):
    X, y = clustered(2 * n_classes + 40, n_classes, n_features)
    tree = fit_tree(X, y, n_classes)
    Z = tree.project(X[:5])
    precise = tree.log_probability(Z, dtype=np.float64)
    rounded = tree.log_probability(Z)
    assert rounded.dtype == np.float32
    np.testing.assert_allclose(np.exp(precise).sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.exp(rounded.astype(np.float64)).sum(axis=1), 1, rtol=1e-6)
    for i in range(2):
        expected, padding = naive.log_probabilities(Z[i], tree.weights, tree.class_of_leaf)
        np.testing.assert_allclose(precise[i], expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(rounded[i], expected, rtol=1e-5, atol=1e-5)
        assert padding.size == tree.class_of_leaf.size - n_classes
        assert np.all(np.exp(padding.astype(np.float32)) == 0)


def test_every_class_has_one_leaf(fitted):
    tree, _, _ = fitted
    assert sorted(tree.class_of_leaf[tree.class_of_leaf >= 0]) == list(range(37))
    assert tree.depth == 6
    assert tree.n_classes == 37


@pytest.mark.parametrize("n_features", [0, 3])
def test_one_class_is_certain(n_features):
    X = np.random.default_rng(0).standard_normal((6, n_features)).astype(np.float32)
    tree = fit_tree(X, np.zeros(6, np.int32), 1)
    Z = tree.project(X)
    assert tree.depth == 0
    np.testing.assert_array_equal(tree.log_probability(Z), np.zeros((6, 1)))
    np.testing.assert_array_equal(tree.log_probability_of(Z, np.zeros(6, np.int32)), np.zeros(6))
    np.testing.assert_array_equal(tree.sample(Z), np.zeros(6))


def test_class_ranges_are_columns_of_all(fitted):
    tree, X, _ = fitted
    Z = tree.project(X[:70])
    complete = tree.log_probability(Z)
    assert complete.shape == (70, 37)
    for begin, end in [(0, 37), (0, 1), (5, 20), (36, 37), (30, None), (4, 4)]:
        np.testing.assert_array_equal(tree.log_probability(Z, begin, end), complete[:, begin:end])
    assert tree.log_probability(Z[:0]).shape == (0, 37)


def test_kernels_agree_with_each_other(fitted):
    tree, X, y = fitted
    Z = tree.project(X)
    complete = tree.log_probability(Z, dtype=np.float64)
    np.testing.assert_allclose(tree.log_probability_of(Z, y), complete[np.arange(len(y)), y], rtol=1e-5, atol=1e-5)
    rows = on_cache_lines(Z)
    for i in range(50):
        drawn, log_q, _ = descend(tree.view, rows, i, np.uint64(1000 + i))
        assert log_q == pytest.approx(complete[i, drawn], rel=1e-5, abs=1e-5)
        assert log_q == log_probability_of(tree.view, rows, i, drawn)


def test_log_probability_survives_extreme_scores(fitted):
    tree, X, y = fitted
    Z = 200 * tree.project(X[:64])
    complete = tree.log_probability(Z, dtype=np.float64)
    assert np.all(np.isfinite(complete))
    assert complete.min() < -1000
    np.testing.assert_allclose(np.exp(complete).sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(
        tree.log_probability_of(Z, y[:64]), complete[np.arange(64), y[:64]], rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(tree.log_probability(Z), complete, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n_classes", [3, 37])
def test_draws_follow_the_probabilities(n_classes):
    X, y = clustered(1500, n_classes, 6, noise=1.5)
    tree = fit_tree(X, y, n_classes)
    n_draws = 60000
    for row in (0, 7):
        z = tree.project(X[row : row + 1])
        draws = tree.sample(np.repeat(z, n_draws, axis=0), seed=row)
        expected = n_draws * np.exp(tree.log_probability(z, dtype=np.float64)[0])
        observed = np.bincount(draws, minlength=n_classes)
        rare = expected < 10
        statistic = np.sum((observed[~rare] - expected[~rare]) ** 2 / expected[~rare])
        n_cells = np.sum(~rare)
        if rare.any() and expected[rare].sum() > 1:
            statistic += (observed[rare].sum() - expected[rare].sum()) ** 2 / expected[rare].sum()
            n_cells += 1
        assert chi2.sf(statistic, n_cells - 1) > 1e-4


@pytest.mark.parametrize("n_classes", [2, 3, 5, 9, 1025])
def test_draws_never_reach_padding(n_classes):
    X, y = clustered(2 * n_classes, n_classes, 4)
    tree = fit_tree(X, y, n_classes)
    draws = tree.sample(np.tile(tree.project(X), (50, 1)), seed=4)
    assert draws.min() >= 0
    assert draws.max() < n_classes


def test_sampling_depends_on_the_seed_only(fitted):
    tree, X, _ = fitted
    Z = tree.project(X)
    np.testing.assert_array_equal(tree.sample(Z, 5), tree.sample(Z, 5))
    np.testing.assert_array_equal(tree.sample(Z[:10], 5), tree.sample(Z, 5)[:10])
    assert np.any(tree.sample(Z, 5) != tree.sample(Z, 6))


def test_better_than_frequencies_on_new_data():
    X, y = clustered(6000, 50, 10)
    tree = fit_tree(X[:5000], y[:5000], 50)
    frequencies = np.bincount(y[:5000], minlength=50) / 5000
    gain = tree.log_likelihood(tree.project(X[5000:]), y[5000:]) - np.log(frequencies[y[5000:]]).mean()
    assert gain > 0.8


@pytest.mark.parametrize("seed", range(3))
def test_the_same_rows_give_the_same_tree(seed):
    """And re-splits are what it does by default."""
    X, y = clustered(6000, 100, 16, seed=seed)
    first, again, explicit = fit_tree(X, y, 100), fit_tree(X.copy(), y, 100), fit_tree(X, y, 100, resplit=True)
    for other in (again, explicit):
        np.testing.assert_array_equal(first.projection.mean, other.projection.mean)
        np.testing.assert_array_equal(first.projection.components, other.projection.components)
        np.testing.assert_array_equal(first.project(X), other.project(X))
        np.testing.assert_array_equal(first.class_of_leaf, other.class_of_leaf)
        np.testing.assert_array_equal(first.weights, other.weights)


@pytest.mark.parametrize("seed", range(3))
def test_resplits_make_the_training_rows_likelier(seed):
    X, y = clustered(6000, 100, 16, seed=seed)
    default, without = fit_tree(X, y, 100), fit_tree(X, y, 100, resplit=False)
    Z = default.project(X)
    assert default.log_likelihood(Z, y) > without.log_likelihood(Z, y) + 0.1


def test_without_features_it_learns_the_frequencies():
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(100), rng.zipf(1.5, 20000) % 100]).astype(np.int32)
    X = csr_array((y.size, 0), dtype=np.float32)
    tree = fit_tree(X, y, 100, regularizer=1e-6)
    log_q = tree.log_probability(tree.project(X[:1]))[0]
    np.testing.assert_allclose(log_q, np.log(np.bincount(y) / y.size), atol=2e-2)
    assert tree.dimension == 0
    regular = fit_tree(X, y, 100)
    assert regular.log_likelihood(regular.project(X), y) > np.log(np.bincount(y) / y.size)[y].mean() - 0.05


def test_a_class_without_points_keeps_a_probability():
    X, y = clustered(200, 6, 3)
    tree = fit_tree(X, np.where(y == 4, 0, y).astype(np.int32), 7)
    log_q = tree.log_probability(tree.project(X))
    assert np.all(np.isfinite(log_q))
    assert np.all(log_q[:, [4, 6]].max(axis=0) < 0)


def test_dense_equals_csr():
    X, y = clustered(1000, 20, 7)
    X[np.abs(X) < 1] = 0
    dense = fit_tree(X, y, 20, dimension=4, standardize=False)
    sparse = fit_tree(csr_array(X), y, 20, dimension=4, standardize=False)
    np.testing.assert_array_equal(dense.class_of_leaf, sparse.class_of_leaf)
    np.testing.assert_allclose(
        dense.log_probability(dense.project(X)),
        sparse.log_probability(sparse.project(csr_array(X))),
        rtol=1e-2,
        atol=1e-2,
    )


def test_same_seed_same_bits():
    X, y = clustered(800, 30, 6)
    first, second = (fit_tree(csr_array(X), y, 30, dimension=3, seed=1) for _ in range(2))
    np.testing.assert_array_equal(first.weights, second.weights)
    np.testing.assert_array_equal(first.class_of_leaf, second.class_of_leaf)
    np.testing.assert_array_equal(first.projection.components, second.projection.components)


def test_order_of_samples_does_not_matter():
    X, y = clustered(500, 11, 4)
    order = np.random.default_rng(0).permutation(500)
    first, second = fit_tree(X, y, 11), fit_tree(X[order], y[order], 11)
    assert first.log_likelihood(first.project(X), y) == pytest.approx(
        second.log_likelihood(second.project(X), y), abs=1e-3
    )


def test_weights_lie_on_cache_lines(fitted):
    tree, _, _ = fitted
    assert tree.view.weights.ctypes.data % 64 == 0
    assert tree.view.weights.strides[0] % 64 == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dimension": -1}, "dimension of the tree is -1"),
        ({"regularizer": 0.0}, "regularizer of the tree is 0.0"),
        ({"regularizer": float("nan")}, "regularizer of the tree is nan"),
        ({"n_classes": 3}, "labels run from 0 to 4; with 3 classes"),
        ({"n_classes": 0}, "a tree over 0 classes"),
        ({"y": np.zeros(4, np.int32)}, "50 rows but 4 labels"),
    ],
)
def test_bad_input_is_named(change, message):
    X, y = clustered(50, 5, 3)
    with pytest.raises(InputError, match=message):
        fit_tree(**{"X": X, "y": y, "n_classes": 5} | change)


@pytest.mark.parametrize("n_features", [0, 4])
def test_any_group_holds_a_tree(n_features, tmp_path):
    X, y = clustered(60, 3, n_features)
    tree = fit_tree(X, y, 3)
    with h5py.File(tmp_path / "model.h5", "w") as file:
        tree.to_group(file.create_group("proposal/tree"))
        found = Tree.from_group(file["proposal/tree"], 3, n_features)
    np.testing.assert_array_equal(found.log_probability(found.project(X)), tree.log_probability(tree.project(X)))
