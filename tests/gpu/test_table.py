"""Rows behind a trained table on PyTorch, with all classes or drawn ones: against compiled code, resumed."""

import numpy as np
import pytest
from scipy.sparse import csr_array

pytest.importorskip("torch", reason="torch is not installed: nothing trains on its devices here")

from dataclasses import replace

from gpu.problems import DEVICE, PARAMETERS, D, K, N, in_float64, method_of, training_set
from training.interruptions import KillAfter, KilledError
from xsoftmax.data.dataset import Dataset
from xsoftmax.data.label_sets import LabelSets
from xsoftmax.internal.errors import InputError
from xsoftmax.proposals import TrainingSet, fitted
from xsoftmax.solvers import make_solver
from xsoftmax.solvers.torch_encoded import TorchEncodedSolver
from xsoftmax.solvers.torch_encoded_full import TorchEncodedFullSolver
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan

ENCODER = {"dimension": 4}
METHODS = {
    "sgd": ("softmax", "all", "sgd"),
    "adagrad": ("softmax", "all", "adagrad"),
    "of all scores": ("one-vs-each", "all", "adagrad"),
}


def solver_of(names, device, data, W=None, **others):
    method = method_of(names, device, **{"encoder": ENCODER} | others)
    solver = make_solver(method, method.objective.fit(data), fitted(method.proposal, data), data)
    if W is not None:
        solver.restore({**solver.arrays(), "W": W})
    return solver


def take_the_same_steps(found, expected, frozen):
    """Let both solvers take an epoch, and compare where it leads; a frozen table stays."""
    before = found.weights().table.copy()
    for solver in (found, expected):
        assert solver.advance(np.arange(N), 0, 0, 0.25) == N
    for one, other in zip(found.weights(), expected.weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)
    assert np.array_equal(found.weights().table, before) == frozen


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("others", [{}, {"average": "all"}, {"encoder": ENCODER | {"frozen": True}}], ids=str)
def test_steps_are_those_of_compiled_code(name, storage, others):
    data = training_set(storage)
    W = np.random.default_rng(0).normal(0, 1, (K, ENCODER["dimension"] + 1)).astype(np.float32)
    found, expected = (solver_of(METHODS[name], device, data, W, **others) for device in (DEVICE, "numba"))
    assert isinstance(found, TorchEncodedFullSolver)
    assert np.array_equal(found.weights().table, expected.weights().table)
    take_the_same_steps(found, expected, frozen="encoder" in others)


@pytest.mark.parametrize("positives", ["mean", "sum"])
def test_rows_may_have_several_labels(positives):
    data, rng = training_set("csr"), np.random.default_rng(1)
    others = np.sort(np.stack([data.y, (data.y + rng.integers(1, K, N)) % K], axis=1), axis=1)
    sets = LabelSets(np.arange(0, 2 * N + 1, 2), others.ravel().astype(np.int32))
    data = replace(data, y=others[:, 0].astype(np.int32), label_sets=sets)
    W = rng.normal(0, 1, (K, 5)).astype(np.float32)
    found, expected = (
        solver_of(METHODS["sgd"], device, data, W, positives=positives) for device in (DEVICE, "numba")
    )
    for solver in (found, expected):
        solver.advance(np.arange(N), 0, 0, 0.25)
    for one, other in zip(found.weights(), expected.weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


def dataset(n=300):
    """Texts of which each has words of its class, and words of none."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % K
    X = np.zeros((n, 3 * K), np.float32)
    X[np.arange(n), y], X[np.arange(n), K + rng.integers(0, 2 * K, n)] = 1, 1
    return Dataset.from_arrays(csr_array(X), y, classes=range(K), test=(csr_array(X[:90]), y[:90]))


def test_a_fit_learns_is_repeated_and_goes_on_with_the_same_bits(tmp_path):
    chosen, plan = method_of(METHODS["adagrad"], encoder=ENCODER), Plan(epochs=12)
    whole = fit(dataset(), chosen, 0, plan)
    assert whole.state.history[-1]["test_accuracy"] > 0.9
    kept = Plan(epochs=12, checkpoint=tmp_path / "checkpoint.h5", checkpoint_seconds=0)
    with pytest.raises(KilledError):
        fit(dataset(), chosen, 0, kept, callbacks=[KillAfter(5)])
    for again in (fit(dataset(), chosen, 0, kept), fit(dataset(), chosen, 0, plan)):
        assert np.array_equal(again.model.rows, whole.model.rows)
        assert np.array_equal(again.model.encoder, whole.model.encoder)


def test_memory_is_asked_for_weights_behind_the_table(monkeypatch):
    """200,000 features and as many classes: 160 GB without a table, 5 MB behind one of four columns."""
    X = csr_array((np.ones(50, np.float32), np.arange(50), np.arange(51)), shape=(50, 200_000))
    data, asked = TrainingSet(X, np.arange(50, dtype=np.int32), 200_000), []
    monkeypatch.setattr("xsoftmax.solvers._torch.check_room", lambda *given: asked.append(given[2]))
    method = method_of(METHODS["sgd"], encoder=ENCODER)
    make_solver(method, method.objective.fit(data), fitted(method.proposal, data), data)
    assert asked[0]["weights and what the optimizer keeps"] == 4 * 200_000 * (4 + 1)
    assert asked[0]["the table"] == 4 * 200_000 * 4
    assert sum(asked[0].values()) < 10**9


DRAWN = {
    "own draws": ("one-vs-each", "uniform", "adagrad"),
    "a tree of the rows themselves": ("sampled-softmax", "tree", "sgd"),
    "a variable per sample": ("double-sum", "frequency", "u-max"),
    "solved": ("double-sum", "uniform", "implicit"),
}


def drawing(name, device, data, **others):
    """A solver of a method that draws."""
    names = DRAWN[name]
    proposal = {"name": names[1], "n_sampled": 1 if names[2] == "implicit" else 3} | PARAMETERS.get(names[1], {})
    given = {"encoder": ENCODER, "proposal": proposal, "batch": {"size": 1}} | others
    return solver_of(names, device, data, **given)


@pytest.mark.long_cases
@pytest.mark.parametrize("storage", ["dense", pytest.param("csr", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "others"),
    [
        *((name, {}) for name in DRAWN),
        ("own draws", {"average": "all"}),
        ("own draws", {"encoder": ENCODER | {"frozen": True}}),
    ],
    ids=str,
)
def test_steps_on_drawn_classes_are_those_of_compiled_code(name, storage, others):
    data = training_set(storage)
    found, expected = (drawing(name, device, data, **others) for device in (DEVICE, "numba"))
    assert isinstance(found, TorchEncodedSolver)
    take_the_same_steps(found, expected, frozen="encoder" in others)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_a_minibatch_moves_by_the_mean_of_its_samples_steps(shared, storage, monkeypatch):
    """All from the same weights, by SGD; of shared draws, each sample has those of the first."""
    in_float64(monkeypatch)
    data = training_set(storage)
    names, n = ("sampled-softmax", "uniform", "sgd"), 8
    W = np.random.default_rng(0).normal(0, 1, (K, ENCODER["dimension"] + 1))

    def moved(samples, position, size, shared=False):
        given = {"batch": {"size": size, "shared": shared}, "proposal": {"name": "uniform", "n_sampled": 3}}
        solver = solver_of(names, DEVICE, data, W, **given)
        before = solver.arrays()
        solver.advance(samples, 0, position, 0.01)
        after = solver.arrays()
        return [after[name] - before[name] for name in ("W", "table_W")]

    batch = moved(np.arange(n), 0, n, shared)
    if shared:
        repeated = moved(np.zeros(n, np.int64), 0, n, True)
        single = moved(np.zeros(1, np.int64), 0, 2, True)
        for one, other in zip(repeated, single, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-8)
        assert max(np.abs(part).max() for part in batch) > 1e-4
        return
    singles = [moved(np.array([i]), i, 1) for i in range(n)]
    for part, each in enumerate(zip(*singles, strict=True)):
        np.testing.assert_allclose(batch[part], np.mean(each, axis=0), rtol=1e-4, atol=1e-7)
    assert np.abs(batch[1]).max() > 1e-4


def test_a_fit_on_drawn_classes_goes_on_with_the_same_bits(tmp_path):
    given = {"encoder": ENCODER, "batch": {"size": 16, "shared": True}}
    chosen, plan = method_of(("sampled-softmax", "uniform", "adagrad"), **given), Plan(epochs=30)
    whole = fit(dataset(), chosen, 0, plan)
    assert whole.state.history[-1]["test_accuracy"] > 0.9
    kept = Plan(epochs=30, checkpoint=tmp_path / "checkpoint.h5", checkpoint_seconds=0)
    with pytest.raises(KilledError):
        fit(dataset(), chosen, 0, kept, callbacks=[KillAfter(5)])
    again = fit(dataset(), chosen, 0, kept)
    assert np.array_equal(again.model.rows, whole.model.rows)
    assert np.array_equal(again.model.encoder, whole.model.encoder)


def test_what_no_solver_does_behind_a_table_says_so():
    with pytest.raises(InputError, match="optimizer implicit solves for one drawn class of one sample where"):
        method_of(("double-sum", "uniform", "implicit"), encoder=ENCODER)
    assert training_set().X.shape[1] == D
