"""Minibatches of draws of their own against slow ones that are given the same draws."""

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array

import naive
import naive_loop
from covering import in_tiers
from kernels.drawing import drawn
from kernels.layouts import accumulators, laid_out
from kernels.loops import run_batches, run_steps
from problems import sparse_problem
from training.problems import method
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.protocol import Clock, updated
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.rows import features_of
from xsoftmax.objectives.double_sum import DoubleSum
from xsoftmax.objectives.negative_sampling import NegativeSampling
from xsoftmax.objectives.one_vs_each import OneVsEach
from xsoftmax.optimizers import optimizer
from xsoftmax.optimizers.adagrad import Adagrad
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.optimizers.u_max import UMax
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.proposals.uniform import Uniform
from xsoftmax.solvers import make_solver

N, D, K = 30, 9, 7
KEY = np.uint64(stream(5, 3))
FIRST = 11
OBJECTIVES = {
    "one-vs-each": OneVsEach(),
    "negative-sampling": NegativeSampling(0.05),
    "double-sum": DoubleSum(),
}


def problem(seed=0):
    return sparse_problem(np.random.default_rng(seed), N, D, K)


def batches_of(kernel, X, y, order, size, n_sampled, excludes):
    """What the loop draws: per batch its samples, each with classes and the log_q of all classes."""
    all_q = np.log(np.bincount(y, minlength=K) / N) if hasattr(kernel, "table") else np.full(K, -np.log(K))
    batches = []
    for first in range(0, order.size, size):
        batch = []
        for b, i in enumerate(order[first : first + size]):
            excluded = y[i] if excludes else -1
            classes = drawn(kernel, i, excluded, KEY, FIRST + first + b, 1, n_sampled)[0][0].tolist()
            leaves_out = excluded >= 0 and not hasattr(kernel, "table")
            batch.append((i, classes, np.full(K, -np.log(K - 1)) if leaves_out else all_q))
        batches.append(batch)
    return batches


def run(objective, optimizer, kernel, X, y, W, order, rate, n_sampled, size, dense=True):
    """Weights, accumulators (None without), states after the compiled loop; that of single steps for a size of 0."""
    features = features_of(X if dense else csr_array(X), True)
    parameters = OBJECTIVES[objective]
    auxiliary = naive_loop.states_of(parameters, N, K)
    layout = laid_out(optimizer, W, dense)
    arguments = (features, y, auxiliary, layout, order, Clock(KEY, FIRST, 0), np.float32(rate), n_sampled)
    if size:
        assert run_batches(parameters, kernel, optimizer, *arguments, size) == order.size
    else:
        assert run_steps(parameters, kernel, optimizer, *arguments) == order.size
    return layout.weights(), accumulators(layout), auxiliary


PROPOSALS = {"uniform": Uniform(), "frequency": Frequency()}
OPTIMIZERS = {"sgd": Sgd(), "u-max": UMax(), "adagrad": Adagrad()}
CASES = [
    (*case, proposal, storage)
    for case, proposal, storage in product(
        [("double-sum", name) for name in OPTIMIZERS] + [(name, "adagrad") for name in OBJECTIVES],
        PROPOSALS,
        ["dense", "csr"],
    )
]
FEW = [("double-sum", "u-max", "frequency", "dense"), ("negative-sampling", "adagrad", "uniform", "csr")]


@pytest.mark.long_cases
@pytest.mark.parametrize(("objective", "optimizer", "proposal", "storage"), in_tiers(CASES, FEW))
def test_batches_are_the_naive_loop(objective, optimizer, proposal, storage):
    """Three full batches and a remainder: classes that several samples touch, and hits of true classes among them."""
    optimizer, proposal, dense = OPTIMIZERS[optimizer], PROPOSALS[proposal], storage == "dense"
    X, y, W = problem()
    rate, size, n_sampled = 0.2, 8, 4
    order = np.random.default_rng(1).permutation(N)
    kernel = proposal.fit(TrainingSet(X, y, K)).kernel(X)
    batches = batches_of(kernel, X, y, order, size, n_sampled, objective != "negative-sampling")
    starting = np.full(W.shape, 1e-8) if isinstance(optimizer, Adagrad) else None
    threshold = optimizer.threshold if isinstance(optimizer, UMax) else None
    of, inputs = OBJECTIVES[objective], naive.with_constant(X)
    W_naive, squares, auxiliary_naive = naive_loop.steps(of, inputs, y, W, batches, rate, starting, threshold)
    found, accumulator, auxiliary = run(objective, optimizer, kernel, X, y, W, order, rate, n_sampled, size, dense)
    # Adagrad's first steps are of the full rate wherever a gradient is not zero, however small.
    assert np.allclose(found, W_naive, rtol=1e-4, atol=1e-3 if accumulator is not None else 2e-5)
    assert not np.allclose(found, W, atol=0.02)
    assert np.allclose(auxiliary, auxiliary_naive, rtol=1e-4, atol=1e-3 if accumulator is not None else 1e-5)
    if accumulator is not None:
        assert np.allclose(accumulator, squares, rtol=1e-2, atol=1e-6)
    hits = sum(int(y[i]) in classes for batch in batches for i, classes, _ in batch)
    assert (hits > 0) == (not isinstance(proposal, Uniform) or objective == "negative-sampling")


@pytest.mark.parametrize("optimizer", ["u-max", pytest.param("adagrad", marks=pytest.mark.slow)])
def test_batches_of_one_are_single_steps(optimizer):
    X, y, W = problem()
    kernel = Frequency().fit(TrainingSet(X, y, K)).kernel(X)
    arguments = ("double-sum", OPTIMIZERS[optimizer], kernel, X, y, W, np.arange(N), 0.1, 3)
    one, single = run(*arguments, 1), run(*arguments, 0)
    assert np.allclose(one[0], single[0], rtol=1e-5, atol=1e-6)
    assert np.allclose(one[2], single[2], rtol=1e-6)


def test_a_chunk_of_whole_batches_does_not_matter():
    X, y, _ = problem()
    settings = {"batch": {"size": 4}, "l2": 1.0}
    chosen = method("double-sum", {"name": "frequency", "n_sampled": 3}, "u-max", **settings)
    data = TrainingSet(csr_array(X), y, K, 3)
    solvers = [make_solver(chosen, chosen.objective, chosen.proposal.fit(data), data) for _ in range(2)]
    order = np.random.default_rng(1).permutation(N)
    solvers[0].advance(order, 2, 0, 0.1)
    solvers[1].advance(order[:12], 2, 0, 0.1)
    solvers[1].advance(order[12:], 2, 12, 0.1)
    assert np.array_equal(solvers[0].weights(), solvers[1].weights())
    assert np.array_equal(solvers[0].auxiliary, solvers[1].auxiliary)
    assert solvers[0].weights().any()


@pytest.mark.parametrize("proposal", ["frequency", pytest.param("uniform", marks=pytest.mark.slow)])
def test_the_mean_step_is_along_the_exact_gradient(proposal):
    """Of the double sum, averaged over a batch, within 5 standard errors; biases show the coefficients."""
    X, y, W = problem()
    batch, u, kernel = np.array([0, 4, 9, 21]), 1.2, PROPOSALS[proposal].fit(TrainingSet(X, y, K)).kernel(X)
    features, moves = features_of(X, True), []
    for position in range(20000):
        layout, auxiliary = laid_out(Sgd(), W), np.full((N, 1), u)
        clock = Clock(KEY, 4 * position, 0)
        run_batches(DoubleSum(), kernel, Sgd(), features, y, auxiliary, layout, batch, clock, np.float32(1), 3, 4)
        moves.append((W - layout.W).astype(float))
    expected = np.zeros(W.shape)
    for i in batch:
        slopes = naive.double_sum(naive.scores(X, W)[i], y[i], u)[1]
        expected += np.outer(slopes, naive.with_constant(X)[i]) / len(batch)
    error = np.std(moves, axis=0) / np.sqrt(len(moves))
    assert (np.abs(np.mean(moves, axis=0) - expected) <= 5 * error + 1e-5).all()
    assert error.max() < 0.03
    assert np.abs(expected).max() > 0.1


def test_it_stops_before_a_batch_whose_scores_are_not_finite():
    X, y, W = problem()
    X[17, 2] = 1e3
    X[np.arange(N) != 17, 2] = 0
    W[:, 2] = np.float32(3e38)
    arguments = (np.ones((N, 1)), laid_out(Sgd(), W), np.arange(N), Clock(KEY, 0, 0), np.float32(0.1), 1, 4)
    kernel = Frequency().fit(TrainingSet(X, y, K)).kernel(X)
    assert run_batches(DoubleSum(), kernel, Sgd(), features_of(X, True), y, *arguments) == 16


# Steps are counted in batches, over chunks and epochs.


@optimizer(takes_l2=True)
class Counting(NamedTuple):
    """Writes the number of the step into the weights that it moves."""

    learning_rate: float = 1.0


@implements(updated, Counting)
def _updated(optimizer, step, w, a, g):
    return np.float32(step.number), a


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_steps_are_counted_in_batches_across_chunks_and_epochs(size):
    X, y, _ = problem()
    chosen = method("double-sum", {"name": "frequency", "n_sampled": 3}, "sgd", batch={"size": size})
    data = TrainingSet(X, y, K)
    solver = make_solver(chosen, chosen.objective, chosen.proposal.fit(data), data)
    solver._parts = solver._parts._replace(optimizer=Counting())
    order, per_epoch = np.arange(N), -(-N // size)
    for epoch in range(3):
        for first in range(0, N, 12):
            used = order[first : first + 12]
            solver.advance(used, epoch, first, 1.0)
            last = epoch * per_epoch + first // size + -(-used.size // size) - 1
            assert solver.weights()[:, 0].max() == last
    assert last == 3 * per_epoch - 1
