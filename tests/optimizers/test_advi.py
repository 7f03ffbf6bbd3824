"""The lazy rule of advi against the dense one over all entries, and its parameters."""

import numpy as np
import pytest
from numba import njit
from scipy.sparse import csr_array

from kernels.layouts import accumulators, laid_out
from kernels.loops import run_batches, run_steps
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.protocol import Clock, Step
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.rows import features_of
from xsoftmax.kernels.walk import move
from xsoftmax.methods import build_method
from xsoftmax.objectives.one_vs_each import OneVsEach
from xsoftmax.optimizers.advi import Advi
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.uniform import Uniform

N, D, K = 40, 12, 6
KEY = np.uint64(stream(3, 1))


@njit(**OPTIONS)
def moved(weights, features, optimizer, i, rate, number, coefficient, k):
    move(weights, features, optimizer, i, Step(rate, number), coefficient, k)


def dense_rule(w, s, g, rate, t):
    """Every entry of w and s after step t = 1, 2, ...: float64, from the paper's equations."""
    s = g**2 if t == 1 else 0.1 * g**2 + 0.9 * s
    return w - rate * t**-0.5 * g / (1 + np.sqrt(s)), s


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.3)).astype(np.float32)
    return X, rng.integers(K, size=N).astype(np.int32)


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "csr"])
def test_lazy_steps_are_the_dense_rule(dense):
    """Long gaps between the steps of a class, and of a feature; a big scale, so that s counts beside the 1."""
    X, _ = rows()
    features = features_of(X if dense else csr_array(X), True)
    inputs = np.column_stack([X.astype(float), np.ones(N)])
    optimizer = Advi(gradient_scale=30.0)
    layout = laid_out(Advi(), np.zeros((K, D + 1)), dense)
    w, s = np.zeros((K, D + 1)), np.zeros((K, D + 1))
    rng = np.random.default_rng(1)
    for number in range(300):
        g = np.zeros((K, D + 1))
        i = int(rng.integers(N))
        for k in rng.choice(K, 1 + number % 3, p=[0.4, 0.3, 0.2, 0.06, 0.03, 0.01], replace=False):
            coefficient = rng.standard_normal()
            moved(layout, features, optimizer, i, np.float32(0.1), number, np.float32(coefficient), int(k))
            g[k] = 30.0 * coefficient * inputs[i]
        w, s = dense_rule(w, s, g, 0.1, number + 1)
    assert np.allclose(layout.weights(), w, rtol=2e-4, atol=2e-5)
    assert np.abs(w).max() > 0.1
    assert s[s > 0].min() < 1e-6 < 1 < s.max()  # some were left alone for long


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "csr"])
def test_the_first_step_of_all_takes_the_square_itself(dense):
    X = np.array([[0.5, -2.0]], np.float32)
    features = features_of(X if dense else csr_array(X), True)
    for number, share in ((0, 1.0), (1, 0.1), (24, 0.1)):
        layout = laid_out(Advi(), np.zeros((2, 3)), dense)
        moved(layout, features, Advi(gradient_scale=1.0), 0, np.float32(0.1), number, np.float32(3), 1)
        g = 3.0 * np.array([0.5, -2.0, 1.0])
        expected = -0.1 / np.sqrt(number + 1) * g / (1 + np.sqrt(share) * np.abs(g))
        assert np.allclose(layout.weights()[1], expected, rtol=1e-6)
        assert np.allclose(accumulators(layout)[1], share * g**2, rtol=1e-6)
        assert not layout.weights()[0].any()


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "csr"])
def test_a_gap_of_many_steps_leaves_nothing(dense):
    """Also where 0.9 to their power is no float32."""
    X = np.ones((1, 2), np.float32)
    features = features_of(X if dense else csr_array(X), True)
    for gap, kept in ((1, 0.9), (20, 0.9**20), (100_000_000, 0.0)):
        layout = laid_out(Advi(), np.zeros((1, 3)), dense)
        moved(layout, features, Advi(gradient_scale=1.0), 0, np.float32(0.1), 5, np.float32(2), 0)
        moved(layout, features, Advi(gradient_scale=1.0), 0, np.float32(0.1), 5 + gap, np.float32(1), 0)
        assert np.allclose(accumulators(layout)[0], 0.1 + kept * 0.4, rtol=1e-6)


@pytest.mark.parametrize("dense", [True, False], ids=["dense", "csr"])
def test_the_prior_pulls_touched_entries_alone(dense):
    X = np.array([[2.0, 0.0, 1.0]], np.float32)
    features = features_of(X if dense else csr_array(X), True)
    layout = laid_out(Advi(), np.zeros((2, 4)), dense)
    start = np.array([1.0, 2.0, 3.0, 4.0])
    layout.weights()[:] = start
    moved(layout, features, Advi(gradient_scale=1.0, prior_variance=0.5), 0, np.float32(0.1), 0, np.float32(1.5), 0)
    g = 1.5 * np.array([2.0, 0.0, 1.0, 1.0]) + np.array([1, 0, 1, 1]) * start / 0.5
    assert np.allclose(layout.weights()[0], start - 0.1 * g / (1 + np.abs(g)), rtol=1e-6)
    assert np.array_equal(layout.weights()[1], start)


def coefficients_of(X, y, i, W, position):
    """What one step of one-vs-each gives every class, from a step of SGD of rate 1 (the biases see 1)."""
    layout = laid_out(Sgd(), W)
    kernel = Uniform().fit(TrainingSet(X, y, K)).kernel(X)
    before = layout.W.copy()
    arguments = (np.zeros((N, 0)), layout, np.array([i]), Clock(KEY, position, 0), np.float32(1), 2)
    run_steps(OneVsEach(), kernel, Sgd(), features_of(X, True), y, *arguments)
    return before[:, -1].astype(float) - layout.W[:, -1]


@pytest.mark.parametrize(
    ("batch", "dense"),
    [(1, True), (4, False), *(pytest.param(*case, marks=pytest.mark.slow) for case in [(1, False), (4, True)])],
)
@pytest.mark.slow
def test_whole_fits_are_the_dense_rule(batch, dense):
    """In the loop of single steps and in that of minibatches, from the same draws; sums are float32."""
    X, y = rows()
    inputs = np.column_stack([X.astype(float), np.ones(N)])
    stored = X if dense else csr_array(X)
    order = np.random.default_rng(2).permutation(N)
    layout = laid_out(Advi(), np.zeros((K, D + 1)), dense)
    optimizer, rate = Advi(gradient_scale=5.0), 0.3
    kernel = Uniform().fit(TrainingSet(X, y, K)).kernel(stored)
    arguments = (OneVsEach(), kernel, optimizer, features_of(stored, True), y, np.zeros((N, 0)), layout)
    clock = Clock(KEY, 0, 0)
    if batch == 1:
        run_steps(*arguments, order, clock, np.float32(rate), 2)
    else:
        run_batches(*arguments, order, clock, np.float32(rate), 2, batch)
    w, s = np.zeros((K, D + 1)), np.zeros((K, D + 1))
    for t in range(N // batch):
        g = np.zeros_like(w)
        for b in range(batch):
            i = order[batch * t + b]
            g += 5.0 / batch * np.outer(coefficients_of(X, y, i, w, batch * t + b), inputs[i])
        w, s = dense_rule(w, s, g, rate, t + 1)
    assert np.allclose(layout.weights(), w, rtol=1e-3, atol=1e-4)
    assert np.abs(w).max() > 0.1


def test_what_cannot_be_is_refused():
    with pytest.raises(InputError, match="takes single steps"):
        build_method(
            "mine",
            {"objective": {"name": "softmax"}, "proposal": {"name": "all"}, "optimizer": {"name": "advi"}},
        )


def test_the_scale_of_gradients_is_the_number_of_training_rows_unless_it_is_given():
    data = TrainingSet(np.zeros((7, 1), np.float32), np.zeros(7, np.int32), 2)
    assert Advi().fit(data).gradient_scale == 7
    assert Advi(gradient_scale=3.0).fit(data).gradient_scale == 3
