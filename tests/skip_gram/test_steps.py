"""Every step goes along its loss's gradient, by finite differences in float64."""

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from skip_gram.made_up import COUNTS, D, N, in_float64, vectors_of
from skip_gram.naive_skip_gram import negative_sampling_loss, path_loss, slopes, softmax_objective
from xsoftmax.internal.compiled import njit
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.skip_gram.collapsed import CollapsedDescent, softmax_slopes
from xsoftmax.skip_gram.counts import counted
from xsoftmax.skip_gram.huffman import huffman
from xsoftmax.skip_gram.kernels import Negatives, Workspace, step
from xsoftmax.skip_gram.pair_steps import ImplicitStep, Noise, Pairs, PairSteps, UMaxStep, coefficient, take_steps
from xsoftmax.skip_gram.settings import Settings
from xsoftmax.skip_gram.text_walk import noise_table
from xsoftmax.skip_gram.vectors import by_cache_lines


@njit
def one_step(output, vectors, workspace, x, y, rate):
    step(output, vectors, workspace, x, y, rate, np.uint64(7))


def moved(before, vectors, rate):
    return [(was - now) / rate for was, now in zip(before, in_float64(vectors), strict=True)]


@pytest.mark.parametrize("seed", range(4))
def test_negative_sampling(seed):
    vectors, x, y, rate = vectors_of(seed), seed, (seed + 2) % N, 1e-3
    before = in_float64(vectors)
    workspace = Workspace(np.empty(1, np.int32), np.empty(4, np.int64), by_cache_lines(1, 16))
    one_step(
        Negatives(noise_table(np.array([9, 7, 5, 3, 2, 1]), 0.75), 4), vectors, workspace, x, y, np.float32(rate)
    )
    of_inputs, of_outputs = moved(before, vectors, rate)
    drawn = workspace.drawn.tolist()
    for table, found in zip(before, (of_inputs, of_outputs), strict=True):
        expected = slopes(lambda: negative_sampling_loss(*before, x, y, drawn), table)
        np.testing.assert_allclose(found, expected, atol=0.02)
    assert not workspace.change.any()


@pytest.mark.parametrize("y", range(N))
def test_hierarchical_softmax(y):
    tree, vectors, x, rate = huffman(np.array([40, 20, 9, 5, 3, 1])), vectors_of(y), 3, 1e-3
    before = in_float64(vectors)
    workspace = Workspace(np.empty(1, np.int32), np.empty(1, np.int64), by_cache_lines(1, 16))
    one_step(tree, vectors, workspace, x, y, np.float32(rate))
    path = slice(*tree.starts[y : y + 2])
    for table, found in zip(before, moved(before, vectors, rate), strict=True):
        expected = slopes(lambda: path_loss(*before, x, tree.nodes[path], tree.sides[path]), table)
        np.testing.assert_allclose(found, expected, atol=0.01)


def test_slopes_of_the_softmax_with_several_positives():
    vectors = vectors_of(0)
    inputs, outputs = in_float64(vectors)
    scores = np.float32(inputs @ outputs.T)
    value = softmax_slopes(scores, 0, counted(csr_array(COUNTS)))
    assert value == pytest.approx(softmax_objective(inputs, outputs, COUNTS), rel=1e-6)
    by_inputs = slopes(lambda: softmax_objective(inputs, outputs, COUNTS), inputs)
    by_outputs = slopes(lambda: softmax_objective(inputs, outputs, COUNTS), outputs)
    np.testing.assert_allclose(scores @ outputs, by_inputs, atol=1e-6)
    np.testing.assert_allclose(scores.T @ inputs, by_outputs, atol=1e-6)


def test_descent_never_goes_up_at_rate_1():
    vectors = vectors_of(3)
    method = CollapsedDescent(csr_array(COUNTS), Settings(loss="softmax", dimension=D, learning_rate=1.0), vectors)
    values = [softmax_objective(*in_float64(vectors), COUNTS)]
    for epoch in range(200):
        method.run(epoch, 0, method.n_units, ThreadPool())
        values.append(softmax_objective(*in_float64(vectors), COUNTS))
    assert np.all(np.diff(values) < 1e-6)
    shares = COUNTS / np.maximum(COUNTS.sum(axis=1, keepdims=True), 1)
    entropy = -np.sum(COUNTS / COUNTS.sum() * np.log(np.where(shares > 0, shares, 1)))
    assert values[-1] == pytest.approx(entropy, abs=0.1)  # five dimensions hold all of six words' distributions
    assert method.objective[0] == pytest.approx(values[-2], abs=1e-4)


def double_sum(inputs, outputs, x, y, k, u, weight):
    s = inputs[x] @ outputs[k] - inputs[x] @ outputs[y]
    return u + math.exp(-u) + weight * math.exp(s - u) - 1


@pytest.mark.parametrize("method", [ImplicitStep(), UMaxStep(50.0)])
def test_short_steps_of_pairs_follow_the_double_sum(method):
    """At a small rate both are steps along the gradient of eq. 5, by the vectors and by u."""
    rate, u = 1e-4, 1.5
    vectors = vectors_of(4, 0.5)
    before = in_float64(vectors)
    x, y, k, weight = 0, 1, 2, 3.0
    pairs = Pairs(np.array([0xFFFFFFFF], np.uint64), np.array([x], np.int32), np.array([y], np.int32), np.array([u]))
    noise = Noise(np.full(N, (k << 32), np.uint64), np.full(N, weight))  # each word's alias is k, always
    take_steps(method, vectors, pairs, noise, by_cache_lines(1, 16), 1, rate, 0, 0, 0)
    for table, found in zip(before, moved(before, vectors, rate), strict=True):
        expected = slopes(lambda: double_sum(*before, x, y, k, u, weight), table)
        assert abs(expected).max() > 0.1
        np.testing.assert_allclose(found, expected, atol=0.01)
    of_u = (double_sum(*before, x, y, k, u + 1e-6, weight) - double_sum(*before, x, y, k, u - 1e-6, weight)) / 2e-6
    assert (u - pairs.u[0]) / rate == pytest.approx(of_u, rel=2e-3)


@njit
def one_coefficient(method, rate, weight, s, rho, u):
    return coefficient(method, rate, weight, s, rho, u, 0)


@pytest.mark.parametrize(("s", "rate", "weight"), [(0.5, 0.1, 3.0), (30.0, 5.0, 1000.0), (-20.0, 1.0, 10.0)])
def test_the_implicit_step_ends_where_its_gradient_is_taken(s, rate, weight):
    u, rho, before = np.array([2.0]), 0.7, 2.0
    c = one_coefficient(ImplicitStep(), rate, weight, s, rho, u)
    at_end = weight * math.exp(s - 2 * rho * c - u[0])
    assert c == pytest.approx(rate * at_end, rel=1e-6)
    assert u[0] - before == pytest.approx(-rate * (1 - math.exp(-u[0]) - at_end), abs=1e-6 * max(1, u[0]))


def test_u_max_lifts_u_first():
    u = np.array([0.0])
    c = one_coefficient(UMaxStep(1.0), 0.1, 2.0, 9.0, 1.0, u)
    proven = math.log1p(math.exp(9.0))
    assert c == pytest.approx(0.1 * 2.0 * math.exp(9.0 - proven), rel=1e-6)
    assert u[0] == pytest.approx(proven - 0.1 * (1 - math.exp(-proven) - 2.0 * math.exp(9.0 - proven)), rel=1e-6)


def test_words_and_pairs_are_drawn_by_their_shares():
    """The mean gradient of many draws is the softmax's, at the best u: unbiased, as the paper says."""
    counts = COUNTS + 1
    vectors = vectors_of(5, 0.4)
    inputs, outputs = in_float64(vectors)
    settings = Settings(loss="u-max", dimension=D, learning_rate=1e-7, power=0.5, threshold=99.0, epochs=1)
    method = PairSteps(csr_array(counts), settings, vectors)
    scores = inputs @ outputs.T
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    method._pairs.u[:] = -log_p.ravel()
    n_steps = 200_000
    take_steps(
        method._method,
        vectors,
        method._pairs,
        method._noise,
        by_cache_lines(1, 16),
        n_steps,
        1e-3 / n_steps * 1e2,
        0,
        0,
        0,
    )
    expected = slopes(lambda: softmax_objective(inputs, outputs, counts), outputs)
    found = moved([inputs, outputs], vectors, 1e-1)[1]
    np.testing.assert_allclose(found, expected, atol=0.05 * abs(expected).max() + 0.01)
