import numpy as np
import pytest
from scipy.optimize import minimize

from tree import naive_tree as naive
from tree.clusters import clustered
from xsoftmax.tree import node as nodes
from xsoftmax.tree import split
from xsoftmax.tree.fit import class_sums, fit_tree
from xsoftmax.tree.objective import evaluate


def make_node(X, y):
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    counts = np.bincount(y)
    sums = class_sums(X, np.concatenate([[0], np.cumsum(counts)]))
    right = np.arange(counts.size) % 2 == 0
    signs = np.where(right[y], 1, -1).astype(np.float32)
    return nodes.Node(X, counts, sums, right, signs, np.zeros(X.shape[1] + 1)), y


def naive_value(node, y, ridge):
    return naive.node_objective(node.X, y, node.right, node.w[:-1], node.w[-1], ridge)


def optimum(node, y, ridge):
    d = node.w.size
    found = minimize(
        lambda w: -naive.node_objective(node.X, y, node.right, w[:-1], w[-1], ridge), np.zeros(d), tol=1e-10
    )
    return -found.fun


@pytest.mark.parametrize("n_samples", [1, 30, 700])
def test_evaluate_agrees_with_naive_value_and_differences(n_samples):
    X, y = clustered(n_samples, min(6, n_samples), 3)
    node, y = make_node(X, y)
    work = nodes.scratch(3)
    w = np.array([0.7, -0.4, 1.1, 0.3])
    assert evaluate(node, w, 0.5, work) == pytest.approx(
        naive.node_objective(node.X, y, node.right, w[:3], w[3], 0.5), rel=2e-6
    )

    def gradient_at(w):
        slopes = []
        for i in range(4):
            ends = []
            for side in (1e-5, -1e-5):
                moved = w.copy()
                moved[i] += side
                ends.append(naive.node_objective(node.X, y, node.right, moved[:3], moved[3], 0.5))
            slopes.append((ends[0] - ends[1]) / 2e-5)
        return np.array(slopes)

    np.testing.assert_allclose(work.gradient, gradient_at(w), rtol=1e-4, atol=1e-3)
    hessian = -np.array([(gradient_at(w + e) - gradient_at(w - e)) / 2e-3 for e in 1e-3 * np.eye(4)])
    np.testing.assert_allclose(work.hessian, hessian, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(("low", "high"), [(3, 3), (2, 4), (0, 6)])
def test_resplit_is_the_best_split_and_reports_its_gain_and_gradient(low, high):
    X, y = clustered(200, 6, 3, seed=2)
    node, y = make_node(X, y)
    work = nodes.scratch(3)
    node.w[:] = [0.5, -1.0, 0.8, 0.2]
    before = evaluate(node, node.w, 0.6, work)
    delta = np.empty(6)
    gain = split.update_split(node, delta, delta, low, high, work)
    corrected = work.gradient.copy()
    best = naive.best_split(node.X, y, 6, node.w[:3], node.w[3], 0.6, low, high)
    assert before + gain == pytest.approx(best, rel=1e-6)
    assert naive_value(node, y, 0.6) == pytest.approx(best, rel=1e-12)
    assert low <= np.sum(~node.right) <= high
    evaluate(node, node.w, 0.6, work)
    np.testing.assert_allclose(corrected, work.gradient, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("low", "high"), [(5, 5), (4, 7), (0, 11)])
@pytest.mark.parametrize("seed", range(4))
def test_in_a_fixed_order_only_the_number_on_the_left_changes_and_only_for_the_better(low, high, seed):
    X, y = clustered(300, 11, 3, seed=seed)
    node, y = make_node(X, y)
    rng = np.random.default_rng(seed)
    node.w[:] = rng.standard_normal(4)
    keys, delta = rng.standard_normal(11), np.empty(11)
    split.mark_right(keys, 5, node.right)
    before, old = naive_value(node, y, 0.6), node.right.copy()
    gain = split.update_split(node, delta, keys, low, high, nodes.scratch(3))
    np.testing.assert_allclose(delta, node.sums @ node.w)
    n_left = np.clip(np.sum(node.sums @ node.w < 0), low, high)
    proposed = np.argsort(np.argsort(keys)) >= n_left
    better = delta[proposed].sum() > delta[old].sum()
    np.testing.assert_array_equal(node.right, proposed if better else old)
    assert naive_value(node, y, 0.6) == pytest.approx(before + gain, rel=1e-9)
    assert gain >= 0


@pytest.mark.parametrize("seed", range(3))
def test_without_resplits_the_root_keeps_the_order_of_the_initial_direction(seed):
    X, y = clustered(2000, 60, 8, seed=seed)
    in_order = {}
    for resplit in (True, False):
        tree = fit_tree(X, y, 60, resplit=resplit)
        node, _ = make_node(tree.project(X), y)
        delta = np.empty(60)
        split.initial_direction(node, delta)
        left = tree.leaf_of_class < 32
        in_order[resplit] = delta[left].max() < delta[~left].min()
    assert in_order == {True: False, False: True}


@pytest.mark.parametrize("resplit", [True, False])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ridge", [0.01, 2.0])
def test_no_alternation_lowers_the_objective(seed, ridge, resplit):
    X, y = clustered(300, 12, 4, seed=seed, noise=0.2)
    values = []
    for alternations in range(14):
        node, labels = make_node(X, y)
        value = nodes.fit_node(node, 4, 8, ridge, alternations, nodes.scratch(4), resplit)
        assert value == pytest.approx(naive_value(node, labels, ridge), rel=1e-5)
        values.append(naive_value(node, labels, ridge))
    assert np.all(np.diff(values) >= -1e-6 * abs(values[0]))
    assert values[-1] > values[1]


def test_newton_step_does_not_lower_the_objective_where_the_full_step_would():
    X, y = clustered(200, 4, 2, seed=5, noise=0.05)
    node, y = make_node(X * 30, y)
    work = nodes.scratch(2)
    node.w[:] = [2.0, -3.0, 1.0]
    value = evaluate(node, node.w, 1e-3, work)
    for _ in range(10):
        improved, _ = nodes.newton_step(node, value, 1e-3, work)
        assert improved >= value
        assert naive_value(node, y, 1e-3) == pytest.approx(improved, rel=1e-5, abs=1e-3)
        value = improved


def test_fit_ends_at_the_optimum_of_its_split():
    X, y = clustered(400, 10, 4, seed=1)
    node, y = make_node(X, y)
    value = nodes.fit_node(node, 5, 5, 1.0, 50, nodes.scratch(4))
    assert value == pytest.approx(optimum(node, y, 1.0), rel=1e-5)
    assert np.sum(~node.right) == 5


@pytest.mark.parametrize("seed", range(3))
def test_resplits_beat_the_frozen_initial_split(seed):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(16), rng.geometric(0.2, 400) % 16])
    X = (rng.standard_normal((16, 4))[y] + 0.3 * rng.standard_normal((416, 4))).astype(np.float32)
    node, y = make_node(X, y)
    delta = np.empty(16)
    split.initial_direction(node, delta)
    split.mark_right(delta, 8, node.right)
    frozen = optimum(node, y, 1.6)
    fitted = nodes.fit_node(node, 8, 8, 1.6, 50, nodes.scratch(4))
    assert fitted > frozen + 1


def test_initial_direction_is_the_dominant_eigenvector():
    X, y = clustered(500, 20, 5, seed=4)
    node, _ = make_node(X, y)
    delta = np.empty(20)
    split.initial_direction(node, delta)
    sums = node.sums[:, :5]
    vector = np.linalg.eigh(np.cov(sums.T))[1][:, -1]
    assert abs(np.corrcoef(sums @ vector, delta)[0, 1]) > 0.999


def test_selection_handles_ties_and_ranks():
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 10, 101):
        for values in (rng.standard_normal(size), rng.integers(0, 3, size).astype(float), np.zeros(size)):
            right = np.empty(size, np.bool_)
            for n_left in range(size + 1):
                split.mark_right(values, n_left, right)
                assert np.sum(~right) == n_left
                if 0 < n_left < size:
                    assert values[~right].max() <= values[right].min()
            for rank in range(size):
                assert split.smallest(values.copy(), rank) == np.sort(values)[rank]
