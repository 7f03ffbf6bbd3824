"""Draws come with the probabilities that the tree tells, one at a time or many."""

import numpy as np
import pytest
from numba import njit
from scipy.stats import chi2

from tree.clusters import clustered
from xsoftmax.kernels.protocol import draw, draw_ahead
from xsoftmax.kernels.random import skip
from xsoftmax.kernels.run_steps import empty_draws_ahead
from xsoftmax.proposals.tree import TreeDraws
from xsoftmax.tree.draws import (
    LANES,
    STRICT,
    bernoulli_draws,
    descend,
    descend_block,
    log_probability_block,
    log_probability_of,
    n_words,
)
from xsoftmax.tree.fit import fit_tree
from xsoftmax.tree.model import Tree, on_cache_lines
from xsoftmax.tree.projection import Projection


def random_tree(n_classes, dimension, scale=1.0, seed=0):
    """A tree that nobody fitted, with leaves without a class out of reach, and as many rows as classes."""
    rng = np.random.default_rng(seed)
    n_leaves = 1 << (n_classes - 1).bit_length()
    weights = scale * rng.standard_normal((n_leaves, dimension + 1)).astype(np.float32)
    class_of_leaf = np.full(n_leaves, -1, np.int32)
    leaves = np.append(rng.permutation(n_leaves - 1)[: n_classes - 1], n_leaves - 1)
    class_of_leaf[leaves] = rng.permutation(n_classes)
    occupied = np.zeros(2 * n_leaves, bool)
    occupied[n_leaves:] = class_of_leaf >= 0
    for node in range(n_leaves - 1, 0, -1):
        left, right = occupied[2 * node : 2 * node + 2]
        occupied[node] = left or right
        if not (left and right):
            weights[node] = 0
            weights[node, -1] = -1000 if left else 1000
    projection = Projection(np.zeros(dimension, np.float32), np.eye(dimension, dtype=np.float32))
    return Tree(projection, weights, class_of_leaf), rng.standard_normal((n_classes, dimension)).astype(np.float32)


def drawn(tree, Z, samples, states, n_per_sample=1):
    classes = np.empty((samples.size, n_per_sample), np.int64)
    log_q = np.empty((samples.size, n_per_sample), np.float32)
    descend_block(tree.view, on_cache_lines(Z), samples, states, n_per_sample, classes, log_q)
    return classes, log_q


def states_of(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


def chi_squared(observed, expected):
    """Probability of so large a statistic, cells with fewer than ten expected taken together."""
    rare = expected < 10
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    occupied = expected > 1
    statistic = np.sum((observed - expected)[occupied] ** 2 / expected[occupied])
    return chi2.sf(statistic, occupied.sum() - 1)


@pytest.mark.parametrize("n_per_sample", [1, 3])
@pytest.mark.parametrize(("n_classes", "dimension"), [(1, 3), (2, 5), (300, 16), (1000, 0), (1000, 37)])
def test_blocks_draw_what_single_draws_do(n_classes, dimension, n_per_sample):
    tree, Z = random_tree(n_classes, dimension)
    rows = on_cache_lines(Z)
    samples = np.random.default_rng(1).integers(0, n_classes, 2 * LANES + 7)
    states = states_of(samples.size)
    classes, log_q = drawn(tree, Z, samples, states, n_per_sample)
    for b, i in enumerate(samples):
        state = states[b]
        for j in range(n_per_sample):
            label, of_label, after = descend(tree.view, rows, i, state)
            assert (classes[b, j], log_q[b, j]) == (label, of_label)
            state = skip(state, np.uint64(n_words(tree.view)))
            assert state == after
            state = np.uint64(state)
    if n_classes > 2:
        assert np.unique(classes).size > 30


@pytest.mark.parametrize("n", [1, LANES // 2, LANES, LANES + 1])
def test_draws_do_not_depend_on_their_neighbours(n):
    tree, Z = random_tree(500, 8)
    samples, states = np.random.default_rng(1).integers(0, 500, 3 * LANES), states_of(3 * LANES)
    whole = drawn(tree, Z, samples, states, 2)
    part = drawn(tree, Z, samples[-n:], states[-n:], 2)
    for of_whole, of_part in zip(whole, part, strict=True):
        np.testing.assert_array_equal(of_whole[-n:], of_part)


@pytest.mark.parametrize("scale", [0.3, 3])
def test_log_q_is_the_log_probability_to_the_bit(scale):
    tree, Z = random_tree(700, 16, scale)
    samples = np.random.default_rng(1).integers(0, 700, 500)
    classes, log_q = drawn(tree, Z, samples, states_of(500))
    given = np.empty(500, np.float32)
    log_probability_block(tree.view, on_cache_lines(Z), samples, classes[:, 0], given)
    np.testing.assert_array_equal(given, log_q[:, 0])
    for b in range(0, 500, 7):
        assert log_probability_of(tree.view, on_cache_lines(Z), samples[b], classes[b, 0]) == given[b]
    exact = tree.log_probability(Z, dtype=np.float64)[samples, classes[:, 0]]
    np.testing.assert_allclose(log_q[:, 0], exact, rtol=1e-6, atol=2e-6 * scale)


def test_a_class_is_drawn_with_its_probability():
    X, y = clustered(4000, 200, 8, noise=1.5)
    tree = fit_tree(X, y, 200)
    z = 2 * tree.project(X[:1])
    n_draws = 1_000_000
    classes, _ = drawn(tree, z, np.zeros(n_draws // 4, np.int64), states_of(n_draws // 4), 4)
    probabilities = np.exp(tree.log_probability(z, dtype=np.float64)[0])
    assert probabilities.max() > 1000 * probabilities.min()
    assert chi_squared(np.bincount(classes.ravel(), minlength=200), n_draws * probabilities) > 1e-4


def test_draws_of_a_sample_are_independent():
    tree, Z = random_tree(11, 4)
    n = 200_000
    classes, _ = drawn(tree, Z, np.zeros(n, np.int64), states_of(n), 2)
    q = np.exp(tree.log_probability(Z[:1], dtype=np.float64)[0])
    observed = np.bincount(11 * classes[:, 0] + classes[:, 1], minlength=121)
    assert chi_squared(observed, n * np.outer(q, q).ravel()) > 1e-4


@njit(**(STRICT | {"cache": False}))
def numbers_that_decide(distance):
    """How many of the 2^32 numbers make the unlikely choice: those below a bound, found by bisection."""
    low, high = np.int64(0), np.int64(2**32)
    while low < high:
        middle = (low + high) // 2
        if bernoulli_draws(distance, np.uint64(middle)):
            low = middle + 1
        else:
            high = middle
    return low


def test_every_number_counted_choices_have_their_probabilities():
    """Enumerate what all random numbers decide: no branch is cut off or rounded up above 2^-33."""
    for distance in np.concatenate([np.linspace(0, 22, 200), [1e-6, 1e-3]]).astype(np.float32):
        share = numbers_that_decide(distance) / 2**32
        assert share == pytest.approx(1 / (1 + np.exp(np.float64(distance))), rel=1e-6, abs=2.0**-33)
    assert numbers_that_decide(np.float32(1000)) == 0
    assert bernoulli_draws(np.float32(0), np.uint64(2**33)) == bernoulli_draws(np.float32(0), np.uint64(0))


def test_every_number_counted_classes_have_their_probabilities():
    tree, Z = random_tree(8, 3)
    scores = Z.astype(np.float64) @ tree.weights[:, :-1].T + tree.weights[:, -1]
    for i in range(4):
        for label in range(8):
            node, share = tree.leaf_of_class[label] + 8, 1.0
            while node > 1:
                right, node = node & 1, node // 2
                rare = numbers_that_decide(np.float32(abs(scores[i, node]))) / 2**32
                share *= rare if right != (scores[i, node] > 0) else 1 - rare
            assert np.exp(tree.log_probability(Z[i : i + 1]))[0, label] == pytest.approx(share, rel=2e-6)


def test_extreme_scores_are_slow_no_more_and_padding_is_out_of_reach():
    X, y = clustered(4000, 70, 6)
    tree = fit_tree(X, y, 70)
    Z = 300 * tree.project(X[:50])
    classes, log_q = drawn(tree, Z, np.arange(50), states_of(50), 40)
    assert 0 <= classes.min() <= classes.max() < 70
    exact = np.take_along_axis(tree.log_probability(Z, dtype=np.float64), classes, axis=1)
    np.testing.assert_allclose(log_q, exact, rtol=1e-5, atol=1e-5)


def test_rows_that_are_no_numbers_have_no_probabilities():
    tree, Z = random_tree(40, 5)
    Z[0, 2] = np.nan
    classes, log_q = drawn(tree, Z, np.zeros(3, np.int64), states_of(3))
    assert 0 <= classes.min() <= classes.max() < 40
    assert np.all(np.isnan(log_q))


@njit
def ahead_of_steps(proposal, samples, ahead):
    draw_ahead(proposal, None, samples, ahead)


@njit
def by_steps(proposal, samples, states, draws, classes, log_q, weights):
    for b in range(samples.size):
        draw(proposal, None, samples[b], np.int64(-1), np.float32(-np.inf), states[b], draws)
        classes[b] = draws.classes
        log_q[b] = draws.log_q
        weights[b] = draws.weights


@pytest.mark.parametrize(("n_steps", "n_draws"), [(150, 1), (32, 1), (20, 5)])
def test_a_proposal_draws_ahead_what_it_draws_step_by_step(n_steps, n_draws):
    tree, Z = random_tree(900, 16)
    proposal = TreeDraws(*tree.view, on_cache_lines(Z))
    samples = np.random.default_rng(1).integers(0, 900, n_steps)
    found, expected = (empty_draws_ahead(n_steps + 3, n_draws) for _ in range(2))
    found.rng_states[:n_steps] = states_of(n_steps)
    ahead_of_steps(proposal, samples, found)
    by_steps(
        proposal, samples, found.rng_states, expected.step.draws, expected.classes, expected.log_q, expected.weights
    )
    for name in ("classes", "log_q"):
        np.testing.assert_array_equal(getattr(found, name)[:n_steps], getattr(expected, name)[:n_steps])
    # Where exp32's products are joined with its sums is the compiler's choice, in each loop and for each processor.
    np.testing.assert_array_max_ulp(found.weights[:n_steps], expected.weights[:n_steps], maxulp=2)
    np.testing.assert_allclose(found.weights[:n_steps], np.exp(-found.log_q[:n_steps]) / n_draws, rtol=1e-6)
