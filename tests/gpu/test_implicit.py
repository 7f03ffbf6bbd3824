"""Implicit steps on PyTorch: those of compiled code, sample by sample and for minibatches."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing trains on its devices here")

import torch
from scipy.special import wrightomega

from gpu.problems import DEVICE, after, in_float64, method_of, solver_for
from problems import sparse_problem
from training.interruptions import KillAfter, KilledError
from xsoftmax.data.dataset import Dataset
from xsoftmax.gpu.omega import wright_omega
from xsoftmax.internal.errors import InputError
from xsoftmax.solvers.torch_implicit import TorchImplicitSolver
from xsoftmax.solvers.torch_sampled import SOLVED, TorchSampledSolver
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

DOUBLE_SUM = ("double-sum", "uniform", "implicit")
ONE = {"batch": {"size": 1}, "proposal": {"name": "uniform", "n_sampled": 1}}
dense_and_csr = pytest.mark.parametrize("storage", ["dense", pytest.param("csr", marks=pytest.mark.slow)])


def compared(names, others, storage, monkeypatch, n_samples=16, rate=0.2):
    """Weights and what is kept of each sample after some steps, here and by compiled code."""
    expected = after(solver_for(method_of(names, "numba", **others), storage), n_samples, rate)
    in_float64(monkeypatch)
    solver = solver_for(method_of(names, **others), storage)
    found = after(solver, n_samples, rate)
    assert np.abs(expected[0]).max() > 1e-3
    for one, other in zip(found, expected, strict=True):
        assert np.allclose(one, other, rtol=2e-6, atol=2e-6)
    return solver


@pytest.mark.parametrize("objective", SOLVED)
@dense_and_csr
def test_steps_for_one_class_are_those_of_compiled_code(objective, storage, monkeypatch):
    solver = compared((objective, "uniform", "implicit"), ONE, storage, monkeypatch, 24, 2.0)
    assert type(solver) is TorchSampledSolver


@pytest.mark.long_cases
@pytest.mark.parametrize(
    "others",
    [
        {"batch": {"size": 1}},
        {"l2": 3.0},
        {"l2": 3.0, "bias": False, "batch": {"size": 5}},
        {"l2": 3.0, "proposal": {"name": "frequency", "n_sampled": 3}},
        {"proposal": {"name": "head", "n_head": 2, "n_sampled": 3}},
    ],
    ids=str,
)
@dense_and_csr
def test_steps_for_minibatches_are_those_of_compiled_code(others, storage, monkeypatch):
    """48 samples of an epoch, of which 5 do not divide: the last batch is shorter."""
    given = {"batch": {"size": 8}} | others
    solver = compared(DOUBLE_SUM, given, storage, monkeypatch, 48, 2.0)
    assert type(solver) is TorchImplicitSolver


def test_long_steps_end_where_those_of_compiled_code_do(monkeypatch):
    """At a rate of 10,000, scores lie far apart, and sums are smoothed first."""
    compared(DOUBLE_SUM, {"batch": {"size": 8}}, "dense", monkeypatch, 48, 1e4)


def test_omega_is_that_of_scipy():
    z = torch.cat(
        [torch.linspace(-60, 60, 2401, dtype=torch.float64), torch.logspace(2, 300, 50, dtype=torch.float64)]
    )
    expected = wrightomega(z.numpy())
    np.testing.assert_allclose(wright_omega(z.to(DEVICE)).cpu().numpy(), expected, rtol=3e-14)
    assert float(wright_omega(torch.tensor([-torch.inf], dtype=torch.float64))) == 0


@pytest.mark.fault(
    "a fit by implicit steps on PyTorch is killed, and goes on from its checkpoint",
    happens="it ends with the bits of one that was not killed",
    user="nothing",
)
def test_a_fit_comes_to_where_compiled_code_does_and_goes_on_with_the_same_bits(tmp_path):
    X, y, _ = sparse_problem(np.random.default_rng(2), 200, 7, 5)
    data, given = (
        Dataset.from_arrays(X, y, classes=range(5), test=(X[:50], y[:50])),
        {"batch": {"size": 8}, "l2": 0.1},
    )
    plan, chosen = Plan(epochs=20), method_of(DOUBLE_SUM, **given)
    whole, compiled = (fit(data, each, 0, plan) for each in (chosen, method_of(DOUBLE_SUM, "numba", **given)))
    reached, expected = (each.state.history[-1]["train_log_likelihood"] for each in (whole, compiled))
    assert expected > whole.state.history[0]["train_log_likelihood"] + 0.1
    assert reached == pytest.approx(expected, abs=1e-4)
    kept = Plan(epochs=20, checkpoint=tmp_path / "checkpoint.h5", checkpoint_seconds=0)
    with pytest.raises(KilledError):
        fit(data, chosen, 0, kept, callbacks=[KillAfter(5)])
    again = fit(data, chosen, 0, kept)
    assert np.array_equal(again.model.rows, whole.model.rows)


def test_objectives_that_have_no_such_step_are_named():
    with pytest.raises(InputError, match="optimizer implicit solves objective hinge for one sample and one class"):
        method_of(("hinge", "uniform", "implicit"))
