"""Implicit steps on PyTorch: those of compiled code, sample by sample and for minibatches."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing trains on its devices here")

import torch
from scipy.special import wrightomega

from gpu.problems import after, in_float64, method_of, solver_for
from xsoftmax.gpu.omega import wright_omega
from xsoftmax.internal.errors import InputError
from xsoftmax.solvers.torch_implicit import TorchImplicitSolver
from xsoftmax.solvers.torch_sampled import SOLVED, TorchSampledSolver

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
    np.testing.assert_allclose(wright_omega(z).numpy(), expected, rtol=3e-14)
    assert float(wright_omega(torch.tensor([-torch.inf], dtype=torch.float64))) == 0


def test_objectives_that_have_no_such_step_are_named():
    with pytest.raises(InputError, match="optimizer implicit solves objective hinge for one sample and one class"):
        method_of(("hinge", "uniform", "implicit"))
