"""The sampled loop, step by step against a naive one that is given the same draws."""

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
from kernels.loops import run_steps
from problems import sparse_problem
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import empty_candidates, empty_draws, gather_repeats, weigh_by_probability, weigh_for
from xsoftmax.kernels.own_negatives import Own
from xsoftmax.kernels.protocol import Clock, draw, log_probability
from xsoftmax.kernels.random import stream
from xsoftmax.kernels.rows import features_of
from xsoftmax.kernels.walk import score_class
from xsoftmax.objectives.double_sum import DoubleSum
from xsoftmax.objectives.max_margin import MaxMargin
from xsoftmax.objectives.negative_sampling import NegativeSampling
from xsoftmax.objectives.one_vs_each import OneVsEach
from xsoftmax.optimizers.adagrad import Adagrad
from xsoftmax.optimizers.implicit import Implicit
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.optimizers.u_max import UMax
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.proposals.uniform import Uniform, UniformDraws

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


def fitted(proposal, X, y):
    return proposal.fit(TrainingSet(X, y, K))


def naive_steps(objective, optimizer, proposal, X, y, W, order, rate, n_sampled):
    """float64 W, accumulator and states after all steps; ``seen`` counts repeats and hits of the true class."""
    of, kernel = OBJECTIVES[objective], fitted(proposal, X, y).kernel(X)
    log_q = fitted(proposal, X, y).log_q(X, 0, K)
    log_q = np.full(K, -np.log(K)) if log_q is None else log_q[0].astype(float)
    if of.excludes_true and isinstance(kernel, UniformDraws):
        log_q = np.full(K, -np.log(K - 1))
    seen, batches = {"repeats": 0, "hits": 0}, []
    for t, i in enumerate(order):
        excluded = y[i] if of.excludes_true else -1
        classes = drawn(kernel, i, excluded, KEY, FIRST + t, 1, n_sampled)[0][0].tolist()
        seen["repeats"] += len(set(classes)) < len(classes)
        seen["hits"] += y[i] in classes
        batches.append([(i, classes, log_q)])
    inputs = naive.with_constant(X)
    if isinstance(optimizer, Implicit):
        return *naive_implicit_steps(inputs, y, W, batches, rate), seen
    squares = np.full(W.shape, optimizer.initial_accumulator) if isinstance(optimizer, Adagrad) else None
    threshold = optimizer.threshold if isinstance(optimizer, UMax) else None
    return *naive_loop.steps(of, inputs, y, W, batches, rate, squares, threshold), seen


def naive_implicit_steps(inputs, y, W, batches, rate):
    """The double sum's, of one drawn class each; as ``naive_loop.steps``."""
    W, u = W.astype(float), np.full(N, np.log(K))
    for [(i, [k], log_q)] in batches:
        s, rho, weight = W @ inputs[i], inputs[i] @ inputs[i], np.exp(-log_q[k]) * (k != y[i])
        if weight:
            u[i], step = naive.implicit_step(rate, rho, weight, s[k] - s[y[i]], u[i])
        else:
            u[i], step = naive.brentq(lambda v, old=u[i]: v - old - rate * np.expm1(-v), 0, 20), 0.0
        W[k] -= step * inputs[i]
        W[y[i]] += step * inputs[i]
    return W, None, u[:, None]


def run(objective, optimizer, proposal, X, y, W, order, rate, n_sampled, dense=True, first=FIRST):
    """Weights, accumulators (None without) and states after all steps of the compiled loop."""
    features = features_of(X if dense else csr_array(X), True)
    parameters = OBJECTIVES[objective]
    auxiliary = naive_loop.states_of(parameters, N, K)
    layout = laid_out(optimizer, W, dense)
    kernel = fitted(proposal, X, y).kernel(X if dense else csr_array(X))
    arguments = (features, y, auxiliary, layout, order, Clock(KEY, first, 0), np.float32(rate), n_sampled)
    used = run_steps(parameters, kernel, optimizer, *arguments)
    assert used == order.size
    return layout.weights(), accumulators(layout), auxiliary


OPTIMIZERS = {"sgd": Sgd(), "adagrad": Adagrad(), "u-max": UMax(), "implicit": Implicit()}
PROPOSALS = {"uniform": Uniform(), "frequency": Frequency()}
CASES = [
    (objective, optimizer, n_sampled, proposal, storage)
    for objective, optimizer, n_sampled, proposal, storage in product(
        OBJECTIVES, OPTIMIZERS, (5, 1), PROPOSALS, ("dense", "csr")
    )
    if optimizer in ("sgd", "adagrad") or (objective == "double-sum" and (n_sampled == 1 or optimizer == "u-max"))
]
FEW = [
    ("one-vs-each", "adagrad", 5, "uniform", "dense"),
    ("negative-sampling", "sgd", 5, "frequency", "dense"),
    ("double-sum", "u-max", 5, "frequency", "csr"),
    ("double-sum", "implicit", 1, "frequency", "dense"),
]


@pytest.mark.long_cases
@pytest.mark.parametrize(("objective", "optimizer", "n_sampled", "proposal", "storage"), in_tiers(CASES, FEW))
def test_sweep_is_the_naive_loop(objective, optimizer, n_sampled, proposal, storage):
    X, y, W = problem()
    rate, proposal, dense = 0.05, PROPOSALS[proposal], storage == "dense"
    for order in (np.array([4]), np.random.default_rng(1).permutation(N)):
        arguments = (objective, OPTIMIZERS[optimizer], proposal, X, y, W, order, rate, n_sampled)
        expected_W, expected_accumulator, expected_auxiliary, seen = naive_steps(*arguments)
        found_W, accumulator, auxiliary = run(*arguments, dense=dense)
        assert np.allclose(found_W, expected_W, rtol=1e-4, atol=2e-5)
        assert not np.allclose(found_W, W, atol=1e-3)
        if accumulator is not None:
            assert np.allclose(accumulator, expected_accumulator, rtol=1e-3, atol=1e-9)
        assert np.allclose(auxiliary, expected_auxiliary, rtol=1e-4, atol=1e-5)
        assert (auxiliary >= 0).all()
    if n_sampled == 5 and not (isinstance(proposal, Uniform) and objective != "negative-sampling"):
        assert min(seen.values()) > 0  # the comparison has met both special cases


@pytest.mark.parametrize("n_sampled", [1, 5])
def test_the_chunk_does_not_matter(n_sampled):
    X, y, W = problem()
    order = np.arange(N)
    whole, _, u = run("double-sum", UMax(), Frequency(), X, y, W, order, 0.05, n_sampled)
    first_half, _, first_u = run("double-sum", UMax(), Frequency(), X, y, W, order[:13], 0.05, n_sampled)
    second_half, _, second_u = run(
        "double-sum", UMax(), Frequency(), X, y, first_half, order[13:], 0.05, n_sampled, first=FIRST + 13
    )
    assert np.array_equal(whole, second_half)
    assert np.array_equal(u, np.where(np.arange(N)[:, None] < 13, first_u, second_u))


def test_it_stops_before_scores_that_are_not_finite():
    X, y, W = problem()
    W[:, 2] = np.inf
    X[:, 2] = np.arange(N) == 17
    auxiliary = np.zeros((N, 0))
    layout = laid_out(Sgd(), W)
    layout.W[:, 2] = np.float32(3e38)
    X[:, 2] *= 1e3
    used = run_steps(
        OneVsEach(),
        fitted(Frequency(), X, y).kernel(X),
        Sgd(),
        features_of(X, True),
        y,
        auxiliary,
        layout,
        np.arange(N),
        Clock(KEY, 0, 0),
        np.float32(0.1),
        1,
    )
    assert used == 17
    assert np.isfinite(layout.W).all()


def test_nan_weights_stop_it_too():
    X, y, _ = problem()
    layout = laid_out(Sgd(), np.full((K, D + 1), np.nan))
    arguments = (np.zeros((N, 0)), layout, np.arange(N), Clock(KEY, 0, 0), np.float32(0.1), 1)
    assert (
        run_steps(OneVsEach(), fitted(Frequency(), X, y).kernel(X), Sgd(), features_of(X, True), y, *arguments) == 0
    )


class Looking(NamedTuple):
    """A proposal that draws class 1, and notes what it saw: the lowest score, and that of class 1."""

    seen: np.ndarray


Looking.reads_weights = True


@implements(draw, Looking)
def _look(proposal, view, i, excluded, lowest, rng, draws):
    proposal.seen[i, 0] = lowest
    proposal.seen[i, 1] = score_class(view.weights, view.features, i, np.int64(1))
    draws.classes[:] = 1
    draws.weights[:] = 1


@implements(log_probability, Looking)
def _no_log_probability(proposal, view, i, k):
    return np.float32(0)


@pytest.mark.long_cases
@pytest.mark.parametrize("batch", [None, Own(1), Own(4)], ids=["single", "own 1", "own 4"])
def test_a_proposal_that_reads_weights_sees_those_of_its_step(batch):
    X, y, W = problem()
    kernel, order, layout = Looking(np.zeros((N, 2))), np.arange(N)[y != 1], laid_out(Sgd(), W)
    arguments = (np.zeros((N, 0)), layout, order, Clock(KEY, 0, 0), np.float32(0.5), 1)
    assert run_steps(MaxMargin(), kernel, Sgd(), features_of(X, True), y, *arguments, batch=batch) == order.size
    weights, ones, size, moved = W.astype(float), np.column_stack([X, np.ones(N)]), batch.size if batch else 1, 0
    for first in range(0, order.size, size):
        some = order[first : first + size]
        for i in some:
            s = weights @ ones[i]
            assert kernel.seen[i] == pytest.approx([s[y[i]] - 1, s[1]], abs=1e-5)
        step = np.zeros_like(weights)
        for i in some:
            s = weights @ ones[i]
            slope = min(max((s[1] + 1 - s[y[i]]) / 2, 0.0), 1.0)  # of one class: x = t
            moved += slope > 0
            step[1] -= 0.5 * slope * ones[i] / some.size
            step[y[i]] += 0.5 * slope * ones[i] / some.size
        weights += step
    assert moved > N / 4
    assert np.allclose(layout.W, weights, atol=1e-4)


def draws_of(classes, log_q):
    draws = empty_draws(len(classes))
    draws.classes[:], draws.log_q[:] = classes, log_q
    return draws


def test_repeated_classes_are_gathered_into_their_first():
    candidates = empty_candidates(6)
    candidates.classes[:], candidates.out[:] = [0, 3, 1, 3, 0, 1, 3], [64, 1, 2, 4, 8, 16, 32]
    candidates.weights[:] = [1, 2, 3, 2, 5, 3, 2]
    gather_repeats(candidates, 1)
    assert candidates.out.tolist() == [72, 37, 18, 0, 0, 0, 0]
    assert candidates.weights.tolist() == [1, 6, 6, 0, 0, 0, 0]
    assert candidates.draws.out.tolist() == [37, 18, 0, 0, 0, 0]


def test_what_repeats_a_label_of_the_sample_weighs_nothing():
    candidates = empty_candidates(4)
    candidates.classes[:], candidates.out[:] = [0, 3, 1, 3, 1], [64, 1, 2, 4, 8]
    candidates.weights[:] = [1, 1, 3, 2, 5]
    gather_repeats(candidates, 2)
    assert candidates.out.tolist() == [64, 5, 10, 0, 0]
    assert candidates.weights.tolist() == [1, 1, 8, 0, 0]


def test_weights_of_draws():
    draws = draws_of([2, 4, 2], np.log([0.25, 0.5, 0.25]))
    weigh_by_probability(draws)
    assert np.allclose(draws.weights, [4 / 3, 2 / 3, 4 / 3], rtol=1e-6)
    weigh_for(OneVsEach(), 4, draws)
    assert np.allclose(draws.weights, [4 / 3, 0, 4 / 3], rtol=1e-6)
    weigh_for(NegativeSampling(), 4, draws)
    assert np.allclose(draws.weights, 1 / 3, rtol=1e-6)
