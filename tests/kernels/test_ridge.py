"""The L2 penalty on sampled steps: step by step against a naive one, over long runs, and its mean over all draws."""

from itertools import product

import numpy as np
import pytest
from numba import njit
from scipy.sparse import csr_array

import naive
import naive_loop
from covering import in_tiers
from kernels.layouts import decayed, laid_out
from kernels.loops import run_batches, run_steps
from kernels.test_own_negatives import FIRST, KEY, OPTIMIZERS, PROPOSALS, D, K, N, batches_of, problem
from training.problems import method
from xsoftmax.internal import registry
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.layout import scale_class
from xsoftmax.kernels.protocol import Clock, Step
from xsoftmax.kernels.rows import features_of
from xsoftmax.kernels.walk import move
from xsoftmax.objectives.double_sum import DoubleSum
from xsoftmax.optimizers.sgd import Sgd
from xsoftmax.optimizers.u_max import UMax
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.proposals.uniform import Uniform
from xsoftmax.solvers import make_solver
from xsoftmax.solvers.sampled import inverse_inclusion_of

L2 = 8.0


def run(optimizer, decay, table, kernel, X, y, W, order, rate, size, dense=True):
    """Weights and u after the compiled loop, in single steps or batches of draws of their own."""
    features = features_of(X if dense else csr_array(X), True)
    arranged = decayed(laid_out(optimizer, W, dense), decay, table)
    auxiliary = np.full((N, 1), np.log(K))
    arguments = (features, y, auxiliary, arranged, order, Clock(KEY, FIRST, 0), np.float32(rate), 4)
    if size == 1:
        assert run_steps(DoubleSum(), kernel, optimizer, *arguments) == order.size
    else:
        assert run_batches(DoubleSum(), kernel, optimizer, *arguments, size) == order.size
    return arranged.weights(), auxiliary[:, 0]


def inclusion(proposal, counts, n):
    """Probability that n draws for a row of another class hold class k: distinct, or independent ones."""
    return np.full(K, n / (K - 1)) if isinstance(proposal, Uniform) else 1 - (1 - counts / N) ** n


CASES = list(product(PROPOSALS, ["sgd", "u-max"], ["beta", "draws", "draws of batches"], ["dense", "csr"]))
FEW = [("uniform", "sgd", "beta", "dense"), ("frequency", "u-max", "draws of batches", "csr")]


@pytest.mark.parametrize(("proposal", "inner", "weighed_by", "storage"), in_tiers(CASES, FEW))
def test_shrunk_steps_are_the_naive_loop(proposal, inner, weighed_by, storage):
    """Eq. 6's inverse probabilities, or 1 / (n q): the biases are left alone."""
    X, y, W = problem()
    proposal, inner, dense = PROPOSALS[proposal], OPTIMIZERS[inner], storage == "dense"
    size = 8 if weighed_by == "draws of batches" else 1
    rate, order = 0.1, np.random.default_rng(1).permutation(N)
    counts = np.bincount(y, minlength=K)
    kernel = proposal.fit(TrainingSet(X, y, K)).kernel(X)
    share = counts / N
    betas = 1 / (share + (1 - share) * inclusion(proposal, counts, 4)) if weighed_by == "beta" else None
    table = () if betas is None else betas
    found, u_found = run(inner, L2 / N, table, kernel, X, y, W, order, rate, size, dense)
    threshold = inner.threshold if isinstance(inner, UMax) else None
    batches = batches_of(kernel, X, y, order, size, 4, True)
    expected, _, auxiliary = naive_loop.steps(
        DoubleSum(), naive.with_constant(X), y, W, batches, rate, None, threshold, L2, betas
    )
    assert np.allclose(found, expected, rtol=1e-4, atol=2e-5)
    assert np.allclose(u_found, auxiliary[:, 0], rtol=1e-4, atol=1e-5)
    without, _ = run(inner, 0, table, kernel, X, y, W, order, rate, size, dense)
    assert np.abs(found - without).max() > 0.05


@pytest.mark.parametrize("proposal", [Uniform(), Frequency()], ids=["uniform", "frequency"])
def test_the_table_is_equation_6(proposal):
    X, y, _ = problem()
    counts = np.bincount(y, minlength=K)
    chosen = method("double-sum", {"name": registry_name(proposal), "n_sampled": 3}, "sgd", l2=L2)
    data = TrainingSet(X, y, K)
    fitted = proposal.fit(data)
    found = inverse_inclusion_of(chosen, fitted, counts, len(y))
    expected = N / (counts + (N - counts) * inclusion(proposal, counts, 3))
    assert np.allclose(found, expected, rtol=1e-5)
    weights = make_solver(chosen, chosen.objective, fitted, data)._weights
    assert np.array_equal(weights.inverse_inclusion, found)
    assert weights.decay == np.float32(L2 / N)


def registry_name(proposal):
    return type(proposal).__name__.lower()


@njit(**OPTIONS)
def move_up(weights, optimizer, features):
    """One step of length 1 along the sample, for class 0."""
    move(weights, features, optimizer, 0, Step(np.float32(1), 0), np.float32(-1), 0)


@njit(**OPTIONS)
def scale(weights, by):
    scale_class(weights, 0, by)


@pytest.mark.parametrize("by", [0.93, 0.9999, 1.02, -0.6, 1e-9])
def test_long_runs_keep_factors_in_range(by):
    """Thousands of shrinkages, a step now and then: what the row stands for is what float64 has of it."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(D).astype(np.float32)
    weights = decayed(laid_out(Sgd(), np.ones((1, D + 1))), 0)
    expected, bias = np.ones(D), 1.0
    features = features_of(x[None], True)
    for t in range(3000):
        scale(weights, np.float32(by))
        expected *= np.float64(np.float32(by))
        assert 2.0**-60 <= abs(weights.factors[0]) <= 2.0**60
        if t % 1000 == 0:
            weights.fold()
            assert 2.0**-20 <= abs(weights.factors[0]) <= 2.0**20
        if t % 10 == 0:
            move_up(weights, Sgd(), features)
            expected += x.astype(float)
            bias += 1.0
        if np.abs(expected).max() > 1e30:
            break
    row = weights.weights()[0]
    assert np.allclose(row[:D], expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max() + 1e-37)
    assert row[-1] == pytest.approx(bias, rel=1e-6)


@pytest.mark.parametrize("dense", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["dense", "csr"])
def test_long_fits_stay_where_float64_has_them(dense):
    """30 epochs of a strong ridge, which multiplies the factors out many times."""
    X, y, W = problem()
    order = np.tile(np.random.default_rng(1).permutation(N), 30)
    kernel = Uniform().fit(TrainingSet(X, y, K)).kernel(X)
    betas = np.full(K, 1.5)
    found, _ = run(Sgd(), 60 / N, betas, kernel, X, y, W, order, 0.1, 1, dense)
    batches, inputs = batches_of(kernel, X, y, order, 1, 4, True), naive.with_constant(X)
    expected, _, _ = naive_loop.steps(DoubleSum(), inputs, y, W, batches, 0.1, l2=60.0, betas=betas)
    assert np.allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert np.abs(expected[:, :-1]).max() > 0.01


# Its mean, for every proposal.

MEMBERS = {name: registry.load("xsoftmax.proposals", name).MEMBER for name in registry.names("xsoftmax.proposals")}
SETTINGS = {"head": {"n_head": 2}, "tree": {"dimension": 2, "regularizer": 10.0}}


SIZES = {"single": (1, False), "own": (5, False), "shared": (5, True)}
SOONER = {("uniform", "single"), ("frequency", "single")}
PULLS = [
    pytest.param(
        proposal, *sizes, id=f"{proposal}-{name}", marks=[pytest.mark.slow] * ((proposal, name) not in SOONER)
    )
    for proposal, member in MEMBERS.items()
    if member.draws and not member.finds  # what is found says nothing of how often a class is touched
    for name, sizes in SIZES.items()
    if not (sizes[1] and member.by_row)  # these draw differently for each sample
]


@pytest.mark.long_cases
@pytest.mark.parametrize(("proposal", "size", "shared"), PULLS)
def test_the_mean_pull_is_the_gradient_of_the_full_ridge(proposal, size, shared):
    """ridge w / n_samples for every class, within 5 standard errors: seen in a feature that all rows have at 0."""
    rng = np.random.default_rng(3)
    X, y, W = problem()
    X[:, D - 1], W[:, D - 1] = 0, 1 + np.arange(K)
    chosen = method(
        "double-sum", {"name": proposal, "n_sampled": 2} | SETTINGS.get(proposal, {}), "sgd",
        l2=L2, batch={"size": size, "shared": shared},
    )  # fmt: skip
    data = TrainingSet(X, y, K)
    solver = make_solver(chosen, chosen.objective, chosen.proposal.fit(data), data)
    arrays, rate, pulls = solver.arrays(), 1e-3, []
    for t in range(3000 if size == 1 else 1500):
        for first in range(0, N, size) if size > 1 else range(5):
            order = rng.permutation(N)[:size]
            arrays["W"][:], arrays["factors"][:] = W, 1
            solver.auxiliary[:] = np.log(K)
            assert solver.advance(order, t, first, rate) == size
            pulls.append((W[:, D - 1] - solver.weights()[:, D - 1]).astype(float) / rate)
    expected = L2 / N * W[:, D - 1]
    error = np.std(pulls, axis=0) / np.sqrt(len(pulls))
    assert (np.abs(np.mean(pulls, axis=0) - expected) <= 5 * error + 1e-3 * expected).all()
    assert (error < 0.05 * expected).all()
