"""Log-probabilities of blocks of classes, against all paths in float64."""

import numpy as np
import pytest

from tree.test_tree_draws import random_tree


def by_paths(tree, Z):
    """Heap order: the log-probability of each node is its parent's and one decision's."""
    scores = Z.astype(np.float64) @ tree.weights[:, :-1].T.astype(np.float64) + tree.weights[:, -1]
    n_leaves = tree.class_of_leaf.size
    totals = np.zeros((Z.shape[0], 2 * n_leaves))
    for node in range(2, 2 * n_leaves):
        score = scores[:, node // 2] if node % 2 else -scores[:, node // 2]
        totals[:, node] = totals[:, node // 2] - np.logaddexp(0, -score)
    return totals[:, n_leaves + tree.leaf_of_class]


@pytest.mark.parametrize("n_rows", [1, 16, 33])
@pytest.mark.parametrize(("n_classes", "dimension"), [(1, 2), (2, 16), (129, 0), (1500, 16), (1500, 35)])
def test_all_blocks_of_classes_agree_with_their_paths(n_classes, dimension, n_rows):
    tree, Z = random_tree(n_classes, dimension)
    Z = np.resize(Z, (n_rows, dimension))
    expected = by_paths(tree, Z)
    whole = tree.log_probability(Z)
    assert whole.shape == (n_rows, n_classes)
    np.testing.assert_allclose(whole, expected, rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(tree.log_probability(Z, dtype=np.float64), expected, rtol=1e-12, atol=1e-12)
    for width in (1, 15, 16, 130, 1000):
        for start in range(0, n_classes, 3 * width):
            block = tree.log_probability(Z, start, start + width)
            np.testing.assert_array_equal(block, whole[:, start : start + width])


def test_far_scores_stay_exact():
    tree, Z = random_tree(300, 8, scale=30)
    expected = by_paths(tree, Z[:40])
    assert expected.min() < -500
    np.testing.assert_allclose(tree.log_probability(Z[:40]), expected, rtol=2e-6, atol=2e-4)


def test_rows_that_are_no_numbers_have_no_probabilities():
    tree, Z = random_tree(40, 5)
    Z[3, 2] = np.nan
    found = tree.log_probability(Z[:8])
    assert np.all(np.isnan(found[3]))
    assert not np.any(np.isnan(np.delete(found, 3, axis=0)))
