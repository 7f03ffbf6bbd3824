"""Methods and data of the tests of training on PyTorch: on its CPU device, unless ``DEVICE`` says otherwise."""

import os
from itertools import product

import numpy as np
from scipy.sparse import csr_array

from problems import sparse_problem
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.methods import AXES, build_method
from xsoftmax.proposals import TrainingSet, fitted
from xsoftmax.solvers import make_solver
from xsoftmax.solvers._torch import TorchSolver

# On a machine with a card, XSOFTMAX_TEST_DEVICE=cuda runs these tests there.
DEVICE = os.environ.get("XSOFTMAX_TEST_DEVICE", "cpu")
K, D, N = 9, 7, 48
PARAMETERS = {
    "tree": {"dimension": 2, "regularizer": 10.0},
    "all": {"batch_size": 8},
    "head": {"n_head": 2},
    "found-and-uniform": {"n_found": 2},
    "one-vs-each-joint": {"n_joint": 2},
    # From 1e-8, compiled code's float32 gradients near 0 would make whole steps of what is rounded.
    "adagrad": {"initial_accumulator": 0.1},
}


def settings_of(names, **others):
    """Settings of a method, given by the names of its objective, its proposal and its optimizer."""
    axes = {axis: {"name": name} | PARAMETERS.get(name, {}) for axis, name in zip(AXES, names, strict=True)}
    if names[1] != "all":
        axes["proposal"]["n_sampled"] = 3
        axes["batch"] = {"size": 8}
    return axes | others


def method_of(names, device=DEVICE, **others):
    return build_method("mine", settings_of(names, **others) | {"device": device})


def trains(names, device):
    """Whether some solver there takes a method."""
    try:
        method_of(names, device)
    except InputError:
        return False
    return True


def combinations(device=DEVICE):
    """All that train on a device."""
    names = product(*(registry.names(package) for package in AXES.values()))
    return [each for each in names if trains(each, device)]


def training_set(storage="dense", method=None, seed=5):
    """Rows with zeros among their entries, and labels of which low classes are common."""
    X, y, _ = sparse_problem(np.random.default_rng(seed), N, D, K)
    return TrainingSet(csr_array(X) if storage == "csr" else X, y, K, seed, method.n_sampled if method else 1)


def solver_for(method, storage="dense", **changes):
    """Make a method's solver on that data; proposals are fitted to dense rows, so that none differs by rounding."""
    data, proposal = training_set(storage, method), fitted(method.proposal, training_set("dense", method))
    return make_solver(method, method.objective.fit(data), proposal, data, **changes)


def after(solver, n_samples=N, rate=0.2, epochs=1):
    """Weights and what the objective keeps after some samples, in order, of some epochs."""
    samples = np.arange(n_samples)
    for epoch in range(epochs):
        assert solver.advance(samples, epoch, 0, rate) == n_samples
    return solver.weights().astype(np.float64), solver.auxiliary


def in_float64(monkeypatch):
    """Let solvers on PyTorch compute in float64."""
    monkeypatch.setattr(TorchSolver, "dtype", "float64")
