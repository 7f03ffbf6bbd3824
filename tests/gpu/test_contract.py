"""What every method does that trains on PyTorch; a new file of objectives, proposals or optimizers is tested, too."""

import numpy as np
import pytest

from covering import covering
from gpu.problems import DEVICE, K, N, after, combinations, in_float64, method_of, solver_for, trains
from xsoftmax.gpu.device import OF_TORCH
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.fingerprint import ROOT
from xsoftmax.methods import AXES
from xsoftmax.solvers import _torch, solver_of, torch_sampled

pytest.importorskip("torch", reason="torch is not installed: nothing trains on its devices here")

COMBINATIONS = combinations()
FEW = covering(COMBINATIONS, 1)
MORE = covering(COMBINATIONS, 2, FEW)
few_and_more = pytest.mark.parametrize(
    "names", [*FEW, *(pytest.param(names, marks=pytest.mark.slow) for names in MORE)], ids=" ".join
)
# Compiled code for sparse rows takes another while; that dense rows equal sparse ones, of all these, is tested below
# and, of compiled code, in tests/test_contracts.py.
few_and_more_dense = pytest.mark.parametrize(
    ("names", "storage"),
    [
        *(pytest.param(names, "dense", id=" ".join(names)) for names in FEW),
        *(pytest.param(names, "csr", id=f"{' '.join(names)} csr", marks=pytest.mark.slow) for names in FEW),
        *(pytest.param(names, "dense", id=" ".join(names), marks=pytest.mark.slow) for names in MORE),
    ],
)
dense_and_csr = pytest.mark.parametrize("storage", ["dense", pytest.param("csr", marks=pytest.mark.slow)])
few = pytest.mark.parametrize("names", FEW, ids=" ".join)
# What there is code for, beside every objective.
KNOWN = {
    "objective": set(registry.names(AXES["objective"])),
    "proposal": {"all", *torch_sampled.PROPOSALS},
    "optimizer": set(_torch.OPTIMIZERS),
}


def test_all_members_train_there_that_there_is_code_for_and_the_page_names_the_others():
    page = (ROOT.parents[1] / "docs/gpu.md").read_text(encoding="utf-8")
    for axis, (name, package) in enumerate(AXES.items()):
        trained = {names[axis] for names in COMBINATIONS}
        assert trained == KNOWN[name]
        for other in set(registry.names(package)) - trained:
            assert f"`{other}`" in page


def test_every_two_members_that_go_together_train_there_if_each_does():
    able = [names for names in combinations("numba") if all(map(set.__contains__, KNOWN.values(), names))]
    assert able == COMBINATIONS


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("hinge", "search", "sgd"), "proposal search has no draws on PyTorch; take uniform, frequency, head"),
        (("one-vs-each", "uniform", "advi"), "optimizer advi has no rule on PyTorch; take optimizer sgd or adagrad"),
        (
            ("softmax", "all", "lbfgs"),
            f"device is {DEVICE}, where no solver trains objective softmax, .*optimizer lbfgs",
        ),
    ],
)
def test_what_does_not_train_there_says_so_by_name(names, said):
    assert trains(names, "numba")
    with pytest.raises(InputError, match=said):
        method_of(names)


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({"frequency_power": 0.5, "batch": {"size": 1}}, "frequency_power is 0.5, which PyTorch's solvers lack"),
        ({"weights": "sparse", "batch": {"size": 1}}, "no solver trains .*, weights: sparse; leave device out"),
    ],
)
def test_settings_that_are_not_there_are_named(others, said):
    names = ("one-vs-each", "uniform", "sgd")
    assert method_of(names, "numba", **others)
    with pytest.raises(InputError, match=said):
        method_of(names, **others)


@pytest.mark.long_cases
@few_and_more_dense
def test_a_step_in_float64_is_that_of_compiled_code(names, storage, monkeypatch):
    """One step of 8 samples from zero, and one from there: weights, and what is kept of each sample."""
    expected, state = after(solver_for(method_of(names, "numba"), storage), 16)
    in_float64(monkeypatch)
    solver = solver_for(method_of(names), storage)
    assert set(type(solver).devices) == set(OF_TORCH)
    found, found_state = after(solver, 16)
    assert np.abs(expected).max() > 1e-3
    assert np.allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert np.allclose(found_state, state, rtol=1e-6, atol=1e-6)


@pytest.mark.long_cases
@pytest.mark.parametrize(
    "others",
    [
        {"l2": 3.0},
        {"l2": 3.0, "batch": {"size": 1}},
        {"l2": 3.0, "batch": {"size": 8, "shared": True}},
        {"decay": 3.0, "average": "all"},
        {"bias_start": "minus-log-q", "average": "half"},
        {"batch": {"size": 5}, "bias": False},
    ],
    ids=str,
)
@dense_and_csr
def test_settings_mean_what_they_do_in_compiled_code(others, storage, monkeypatch):
    names = ("sampled-softmax", "frequency", "sgd")
    expected = after(solver_for(method_of(names, "numba", **others), storage), epochs=2)[0]
    in_float64(monkeypatch)
    found = after(solver_for(method_of(names, **others), storage), epochs=2)[0]
    assert np.allclose(found, expected, rtol=1e-5, atol=2e-6)
    without = after(solver_for(method_of(names), storage), epochs=2)[0]
    assert not np.allclose(found, without, atol=1e-3)


@few_and_more
def test_dense_equals_csr_and_the_same_seed_gives_the_same_bits(names, monkeypatch):
    method = method_of(names)
    once, again = (after(solver_for(method), epochs=2) for _ in range(2))
    assert np.array_equal(once[0], again[0])
    assert np.array_equal(once[1], again[1])
    in_float64(monkeypatch)
    dense, sparse = (after(solver_for(method, storage)) for storage in ("dense", "csr"))
    assert np.allclose(dense[0], sparse[0], rtol=1e-6, atol=1e-6)
    assert np.allclose(dense[1], sparse[1], rtol=1e-6, atol=1e-6)


@few
def test_what_a_checkpoint_holds_is_all_that_changes(names):
    method = method_of(names, average="none" if names[2] == "implicit" else "all")  # the former averages nothing
    first, second = solver_for(method), solver_for(method)
    after(first)
    kept = {name: array.copy() for name, array in first.arrays().items()}
    second.restore(kept)
    for solver in (first, second):
        solver.advance(np.arange(N), 1, 0, 0.2)
    assert np.array_equal(first.weights(), second.weights())
    assert np.array_equal(first.auxiliary, second.auxiliary)


@few
def test_scores_that_are_not_finite_end_the_steps(names):
    solver = solver_for(method_of(names))
    kept = {name: array.copy() for name, array in solver.arrays().items()}
    kept["W"][:] = np.nan
    solver.restore(kept)
    assert solver.advance(np.arange(N), 0, 0, 0.2) < N


def test_chosen_for_a_device_are_its_own_solvers():
    for names, expected in ((FEW[0], None), (("softmax", "all", "sgd"), "torch_full")):
        module = solver_of(method_of(names)).__module__.rsplit(".", 1)[1]
        assert module == (expected or ("torch_full" if names[1] == "all" else "torch_sampled"))
        assert not solver_of(method_of(names, "numba")).__module__.rsplit(".", 1)[1].startswith("torch")
    assert K > 2


@pytest.mark.parametrize(
    ("names", "others"),
    [
        (("sampled-softmax", "frequency", "sgd"), {}),
        (("sampled-softmax", "frequency", "sgd"), {"batch": {"size": 8, "shared": True}}),
        (("double-sum", "uniform", "u-max"), {"l2": 3.0}),
        (("sampled-softmax", "frequency", "adagrad"), {}),
        (("sampled-softmax", "frequency", "sgd"), {"average": "all"}),
        (("softmax", "all", "sgd"), {}),
    ],
    ids=str,
)
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_steps_in_any_order_are_those_in_order(names, others, storage, monkeypatch):
    """But for rounding; on a card sums are then made in whatever order terms arrive."""
    import torch

    seen, tell = [], torch.use_deterministic_algorithms
    monkeypatch.setattr(torch, "use_deterministic_algorithms", lambda on, **how: seen.append(on) or tell(on, **how))
    in_float64(monkeypatch)
    expected = after(solver_for(method_of(names, **others), storage), epochs=2)
    assert seen[0] is True
    seen.clear()
    found = after(solver_for(method_of(names, deterministic=False, **others), storage), epochs=2)
    assert not any(seen)
    assert np.allclose(found[0], expected[0], rtol=1e-6, atol=1e-6)
    assert np.allclose(found[1], expected[1], rtol=1e-9, atol=1e-9)


def test_bits_that_may_differ_are_asked_of_a_device():
    names = ("sampled-softmax", "uniform", "sgd")
    assert method_of(names, "auto", deterministic=False).settings["deterministic"] is False
    assert "deterministic" not in method_of(names).settings
    with pytest.raises(
        InputError, match="deterministic is false, which is for devices of PyTorch, and device is numba; take"
    ):
        method_of(names, "numba", deterministic=False)
