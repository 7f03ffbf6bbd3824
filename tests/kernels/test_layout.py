"""Layouts: what they begin with, averages that look at touched entries only, decay apart from the gradient."""

import numpy as np
import pytest
from numba import njit
from scipy.sparse import csr_array

from kernels.layouts import accumulators, decayed, laid_out
from kernels.loops import run_steps
from kernels.test_own_negatives import FIRST, KEY, D, K, N, problem
from training.problems import method
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.layout import allocate, scale_class
from xsoftmax.kernels.protocol import Clock
from xsoftmax.kernels.rows import features_of
from xsoftmax.objectives.one_vs_each import OneVsEach
from xsoftmax.optimizers.adagrad import Adagrad
from xsoftmax.proposals import TrainingSet
from xsoftmax.proposals.uniform import Uniform
from xsoftmax.solvers import make_solver
from xsoftmax.training.checkpoint import read_checkpoint, write_checkpoint

STEPPING = [
    name
    for name in registry.names("xsoftmax.optimizers")
    if registry.load("xsoftmax.optimizers", name).MEMBER.needs != "full_gradient"
]
storages = pytest.mark.parametrize("dense", [True, False], ids=["dense", "csr"])


@storages
@pytest.mark.parametrize("name", STEPPING)
def test_weights_begin_at_zero_and_are_seen_as_they_lie(name, dense):
    optimizer = registry.load("xsoftmax.optimizers", name).MEMBER()
    found = allocate(optimizer, 3, 5, dense)
    weights, beside = found.weights(), accumulators(found)
    assert weights.shape == (3, 5)
    assert not weights.any()
    assert (beside is not None) == optimizer.accumulates
    assert beside is None or np.all(beside == np.float32(getattr(optimizer, "initial_accumulator", 0)))
    weights[2, 4] = 7
    assert (found.W == 7).sum() == 1


def solver_of(chosen, dense, seed=3):
    X, y, _ = problem()
    data = TrainingSet(X if dense else csr_array(X), y, K, seed)
    return make_solver(chosen, chosen.objective.fit(data), chosen.proposal.fit(data), data)


METHODS = {
    "sgd": ("one-vs-each", "uniform", "sgd", {}),
    "adagrad": ("one-vs-each", "uniform", "adagrad", {}),
    "advi": ("one-vs-each", "uniform", {"name": "advi", "gradient_scale": 5.0}, {}),
    "batches": ("one-vs-each", "uniform", "adagrad", {"batch": {"size": 4}}),
    "decay": ("one-vs-each", "uniform", "adagrad", {"decay": 30.0}),
    "batches, decay": ("negative-sampling", "uniform", "sgd", {"batch": {"size": 4}, "decay": 30.0}),
    "shared batches": ("one-vs-each", "uniform", "sgd", {"batch": {"size": 4, "shared": True}}),
    "all classes": ("softmax", {"name": "all", "batch_size": 4}, "adagrad", {}),
    "all classes, decay": ("softmax", {"name": "all", "batch_size": 4}, "adagrad", {"decay": 3.0}),
}


@pytest.mark.long_cases
@pytest.mark.parametrize(
    ("name", "dense"),
    [
        pytest.param(name, dense, marks=[pytest.mark.slow] * ((n % 2 == 0) == dense), id=f"{name} {dense}")
        for n, name in enumerate(METHODS)
        for dense in (True, False)
    ],
)
def test_the_average_is_that_of_the_weights_after_every_step(name, dense):
    """And training goes on as without, up to how a compiler orders sums."""
    objective, proposal, optimizer, others = METHODS[name]
    plain = solver_of(method(objective, proposal, optimizer, **others), dense)
    averaging = solver_of(method(objective, proposal, optimizer, average="all", **others), dense)
    order, size = np.random.default_rng(1).permutation(N), 4 if "batch" in others or objective == "softmax" else 1
    seen = []
    for epoch in range(2):
        for first in range(0, N, size):
            plain.advance(order[first : first + size], epoch, first, 0.1)
            seen.append(plain.weights().astype(float))
        averaging.advance(order[: 5 * size], epoch, 0, 0.1)
        averaging.advance(order[5 * size :], epoch, 5 * size, 0.1)
    assert np.allclose(averaging.weights(), np.mean(seen, axis=0), rtol=1e-4, atol=1e-5)
    assert np.abs(averaging.weights() - seen[-1]).max() > 0.02
    stored = averaging._weights.weights()
    found = stored if stored.shape == seen[0].shape else stored.T
    assert np.allclose(found, plain.weights(), rtol=1e-4, atol=1e-5)


def test_half_of_the_epochs_are_averaged_by_doubling():
    """From after 0, 1, 2 and 4 epochs: over the last epoch at least, over half of them at most."""
    plain = solver_of(method("one-vs-each", "uniform", "sgd"), True)
    averaging = solver_of(method("one-vs-each", "uniform", "sgd", average="half"), True)
    order, seen = np.arange(N), []
    for epoch in range(6):
        for first in range(N):
            plain.advance(order[first : first + 1], epoch, first, 0.1)
            seen.append(plain.weights().astype(float))
        averaging.advance(order, epoch, 0, 0.1)
        averaging.advance(order[:0], 0, 0, 0.1)  # no samples, as when code is compiled: nothing begins anew
        since = {0: 0, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4}[epoch]
        assert np.allclose(averaging.weights(), np.mean(seen[since * N :], axis=0), rtol=1e-4, atol=1e-5)


@pytest.mark.long_cases
@pytest.mark.fault(
    "a fit that averages its weights is killed in the middle of an epoch",
    happens="totals, and the steps that they are of, are in the checkpoint: the average ends with the same bits",
    user="`resumed … at epoch …`",
)
@pytest.mark.parametrize("name", ["adagrad", "decay", "all classes, decay"])
def test_an_average_survives_a_checkpoint(name, tmp_path):
    objective, proposal, optimizer, others = METHODS[name]
    chosen = method(objective, proposal, optimizer, average="half", **others)
    whole, resumed = solver_of(chosen, True), solver_of(chosen, True)
    order = np.arange(N)
    whole.advance(order, 0, 0, 0.1)
    whole.advance(order[:8], 1, 0, 0.1)
    write_checkpoint(tmp_path / "kept.h5", "me", dict(whole.arrays()), {})
    assert read_checkpoint(tmp_path / "kept.h5", "me", resumed.restore) == {}
    for solver in (whole, resumed):
        solver.advance(order[8:], 1, 8, 0.1)
    assert np.array_equal(whole.weights(), resumed.weights())
    assert not np.array_equal(whole.weights(), whole._weights.weights())


@pytest.mark.long_cases
@storages
def test_decay_leaves_adagrads_gradient_alone(dense):
    """A step moves weights as without it, after they shrank by rate x decay x b; accumulators know nothing of it."""
    X, y, W = problem()
    features = features_of(X if dense else csr_array(X), True)
    kernel, betas = Uniform().fit(TrainingSet(X, y, K)).kernel(X), np.linspace(1, 3, K)
    weights, decay, rate, expected = decayed(laid_out(Adagrad(), W, dense), 0.4, betas), 0.4, np.float32(0.1), W
    beside = accumulators(weights.inner).copy()
    for step, i in enumerate(np.random.default_rng(1).permutation(N)):
        of_step = (features, y, np.zeros((N, 0)))
        rest = (np.array([i]), Clock(KEY, FIRST + step, step), rate, 3)
        arranged = laid_out(Adagrad(), expected, dense)
        accumulators(arranged)[:] = beside
        run_steps(OneVsEach(), kernel, Adagrad(), *of_step, arranged, *rest)
        move = arranged.weights() - expected
        touched = move.any(axis=1)
        expected = expected.copy()
        expected[touched, :-1] *= (1 - rate * decay * betas[touched, None]).astype(np.float32)
        expected, beside = expected + move, accumulators(arranged).copy()
        run_steps(OneVsEach(), kernel, Adagrad(), *of_step, weights, *rest)
    assert np.allclose(weights.weights(), expected, rtol=1e-3, atol=1e-4)
    assert np.allclose(accumulators(weights.inner), beside, rtol=1e-3, atol=1e-6)
    assert np.abs(weights.weights()[:, :D]).max() < np.abs(W[:, :D]).max()


@njit(**OPTIONS)
def _shrunk_until(weights, by, n):
    for _ in range(n):
        scale_class(weights, 0, by)


@pytest.mark.parametrize("optimizer", STEPPING)
def test_factors_are_folded_only_where_nobody_reads(optimizer):
    """Within a chunk a factor stays in its bounds, and what is stored shrinks in its place."""
    member = registry.load("xsoftmax.optimizers", optimizer).MEMBER()
    weights = decayed(laid_out(member, np.full((2, 4), 3.0)), 0)
    _shrunk_until(weights, np.float32(0.5), 100)
    assert 2.0**-60 <= weights.factors[0] < 2.0**-58
    expected = np.array([*[3 * 2.0**-100] * 3, 3], np.float32)
    assert np.array_equal(weights.weights()[0], expected)
    weights.fold()
    assert weights.factors.tolist() == [1, 1]
    assert np.array_equal(weights.weights(), [expected, np.full(4, 3)])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (("one-vs-each", "uniform", "sgd", {"l2": 1.0, "average": "all"}), "shrink when they are touched"),
        (("one-vs-each", "uniform", "adagrad", {"l2": 1.0}), "and decay: 1, which leaves the gradient alone"),
        (("one-vs-each", "uniform", "sgd", {"l2": 1.0, "decay": 2.0}), "l2 is 1 and decay 2"),
        (("negative-sampling", "uniform", "sgd", {"l2": 2.0}), "l2 is 2, but draws of objective"),
        (("softmax", "all", "lbfgs", {"average": "all"}), "goes to the optimum itself"),
        (("double-sum", "uniform", "implicit", {"l2": 1.0, "average": "all"}), "leave one of them out"),
        (("double-sum", "uniform", "implicit", {"batch": {"size": 4}, "decay": 1.0}), "leave decay and average out"),
    ],
)
def test_what_does_not_go_together_is_refused(parts, message):
    objective, proposal, optimizer, others = parts
    with pytest.raises(InputError, match=message):
        method(objective, proposal, optimizer, **others)
