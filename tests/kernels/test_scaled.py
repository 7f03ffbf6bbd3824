"""Decay of all weights together, whichever a step touches: against a loop in float64 that writes it out."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from kernels.layouts import laid_out
from kernels.loops import run_steps
from kernels.test_own_negatives import FIRST, KEY, D, K, N, problem
from training.problems import method
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.layout import averaged
from xsoftmax.kernels.protocol import Clock
from xsoftmax.kernels.rows import features_of
from xsoftmax.kernels.scaled import fold, later, scaled, steps_of_a_stretch
from xsoftmax.objectives.one_vs_each import OneVsEach
from xsoftmax.optimizers.adagrad import Adagrad
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.uniform import Uniform
from xsoftmax.solvers import make_solver

RATE = np.float32(0.1)


@pytest.mark.parametrize("dense", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["dense", "csr"])
def test_every_weight_shrinks_in_every_step_and_adagrads_gradient_is_left_alone(dense):
    """And the average is the mean over steps, though small factors are multiplied in on the way."""
    X, y, W = problem()
    features, kernel = features_of(X if dense else csr_array(X), True), Uniform().fit(TrainingSet(X, y, K)).kernel(X)
    weights, decay, left = averaged(scaled(laid_out(Adagrad(), W, dense), 0.8)), 0.8, np.float32(1 - 0.1 * 0.8)
    plain, seen, n_folded = laid_out(Adagrad(), W, dense), [], 0
    for step, i in enumerate(np.random.default_rng(1).permutation(N)):
        rest = (np.array([i]), Clock(KEY, FIRST + step, step), RATE, 3)
        before = plain.weights().astype(np.float64)
        run_steps(OneVsEach(), kernel, Adagrad(), features, y, np.zeros((N, 0)), plain, *rest)
        move = plain.weights() - before
        before[:, :-1] *= left
        plain.weights()[:] = before + move
        seen.append(plain.weights().astype(np.float64))
        run_steps(OneVsEach(), kernel, Adagrad(), features, y, np.zeros((N, 0)), weights, *rest)
        factor = weights.inner.scale[0]
        fold(weights)
        n_folded += weights.inner.scale[0] > factor
    weights.period[1] = N
    assert n_folded > 2
    assert steps_of_a_stretch(weights, float(RATE)) == 58  # 0.92^58 is above 2^-7, 0.92^59 below
    assert np.allclose(weights.inner.weights(), plain.weights(), rtol=1e-3, atol=1e-4)
    assert np.allclose(weights.average(), np.mean(seen, axis=0), rtol=1e-3, atol=1e-4)
    assert np.abs(seen[-1][:, :D]).max() < np.abs(W[:, :D]).max()
    assert decay == pytest.approx(float(weights.inner.decay))


def test_a_thread_begins_with_the_scale_of_its_first_step():
    weights = scaled(laid_out(Adagrad(), np.ones((2, 3))), 0.5)
    weights.scale[:] = 0.6, 1 / 0.6, 7.0
    factor, total = 0.6, 7.0
    for _ in range(9):
        factor *= 1 - float(np.float32(0.1)) * 0.5
        total += factor
    found = later(weights, 9, 0.1).scale
    assert np.allclose(found, [factor, 1 / factor, total], rtol=1e-12)
    assert np.array_equal(weights.scale, [0.6, 1 / 0.6, 7.0])
    assert np.allclose(later(scaled(weights.inner, 0.0), 9, 0.1).scale, [1, 1, 9])


@pytest.mark.fault(
    "a decay so strong that a step would leave less than nothing of the weights",
    happens="a step leaves 1/128 of them, so that no weight is NaN for it; others are still a matter of the rate",
    user="a model of weights near zero",
)
@pytest.mark.parametrize("weights", ["dense", "sparse"])
def test_any_decay_shrinks_and_none_makes_numbers_that_are_none(weights):
    """One that leaves less than nothing, too: a step leaves a little."""
    X, y, _ = problem()
    chosen = method("one-vs-each", "uniform", "sgd", decay=1e6, average="all", weights=weights)
    data = TrainingSet(csr_array(X), y, K)
    solver = make_solver(chosen, chosen.objective, chosen.proposal.fit(data), data)
    assert solver.advance(np.arange(N), 0, 0, 0.1) == N
    found = solver.weights() if weights == "dense" else solver.weights().toarray()
    assert np.isfinite(found).all()


@pytest.mark.slow
def test_two_threads_shrink_weights_as_one_does():
    """Their moves meet without locks, so that only what no step moves is told for sure: features that are 0."""
    X, y, _ = problem()
    X[:, 0] = 0
    chosen = method("one-vs-each", "uniform", "sgd", decay=30.0, average="all")
    found = []
    for n_threads in (1, 2):
        data = TrainingSet(X, y, K)
        solver = make_solver(chosen, chosen.objective, chosen.proposal.fit(data), data, ThreadPool(n_threads))
        solver._weights.inner.inner.weights()[:, 0] = 1 + np.arange(K)
        assert solver.advance(np.arange(N), 0, 0, 0.1) == N
        found.append((solver.weights()[:, 0], solver._weights.weights()[:, 0]))
    expected = (1 - float(np.float32(0.1)) * 30 / N) ** np.arange(1, N + 1)
    for average, last in found:
        assert np.allclose(last, (1 + np.arange(K)) * expected[-1], rtol=1e-4)
        assert np.allclose(average, (1 + np.arange(K)) * expected.mean(), rtol=1e-4)
