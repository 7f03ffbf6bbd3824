"""Generated training rows of a given shape, and steps of a method on them, as a fit takes them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from xsoftmax.data.dataset import Split
from xsoftmax.data.store import write_prepared
from xsoftmax.data.training_set import TrainingSet
from xsoftmax.data.transform import Transform
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.methods import Method, build_method
from xsoftmax.solvers import Solver, make_solver

ADAGRAD = {"name": "adagrad", "learning_rate": 0.03}


class Rows(NamedTuple):
    """Features and labels; every class is equally likely, and none is easier than the others."""

    X: Any
    y: np.ndarray


def dense_rows(n_samples: int, n_features: int, n_classes: int, seed: int = 0) -> Rows:
    """Gaussian rows of about unit length."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features), np.float32)
    X *= np.float32(n_features**-0.5)
    return Rows(X, rng.integers(0, n_classes, n_samples, np.int32))


def sparse_rows(n_samples: int, n_features: int, n_classes: int, n_nonzeros: int, seed: int = 0) -> Rows:
    """Rows of ``n_nonzeros`` features each, all equally likely, of about unit length."""
    rng = np.random.default_rng(seed)
    stride = n_features // n_nonzeros  # one feature from each stretch: in order, and no feature twice
    indices = rng.integers(0, stride, (n_samples, n_nonzeros), np.int32) + stride * np.arange(
        n_nonzeros, dtype=np.int32
    )
    data = rng.standard_normal((n_samples, n_nonzeros), np.float32) * np.float32(n_nonzeros**-0.5)
    indptr = np.arange(n_samples + 1, dtype=np.int64) * n_nonzeros
    X = csr_array((data.ravel(), indices.ravel(), indptr), shape=(n_samples, n_features))
    return Rows(X, rng.integers(0, n_classes, n_samples, np.int32))


def clustered_rows(n_samples: int, n_features: int, n_classes: int, seed: int = 0) -> Rows:
    """Rows around a centre for each class, so that there is something to learn."""
    rows = dense_rows(n_samples, n_features, n_classes, seed)
    centres = np.random.default_rng(seed + 1).standard_normal((n_classes, n_features), np.float32)
    return rows._replace(X=rows.X + np.float32(1.5 * n_features**-0.5) * centres[rows.y])


def method_of(objective: Any, proposal: Any = "uniform", optimizer: Any = None, **others: Any) -> Method:
    """Build a method from its members, each given by name or with parameters; Adagrad if no optimizer is given."""
    axes = {"objective": objective, "proposal": proposal, "optimizer": optimizer or ADAGRAD}
    settings = {axis: {"name": value} if isinstance(value, str) else value for axis, value in axes.items()}
    return build_method("benchmark", settings | others)


def solver_of(method: Method, rows: Rows, n_classes: int, threads: int = 1, objective: Any = None) -> Solver:
    """Make the solver of a fit; ``objective`` stands in for that of the method."""
    data = TrainingSet(rows.X, rows.y, n_classes, n_sampled=method.n_sampled)
    objective = method.objective.fit(data) if objective is None else objective
    return make_solver(method, objective, method.proposal.fit(data), data, ThreadPool(threads))


class Steps:
    """Steps of a solver, ``n`` for each call, going through the rows in an order of their own for each epoch.

    Parameters
    ----------
    solver : Solver
    n_samples : int
    n : int
        Steps of a call, at most ``n_samples``.
    rate : float
    """

    def __init__(self, solver: Solver, n_samples: int, n: int, rate: float) -> None:
        self.n = n
        self._solver, self._rate = solver, rate
        self._order = np.random.default_rng(1).permutation(n_samples)
        self._epoch = self._first = 0

    def __call__(self) -> None:
        """Take them, a chunk of the solver at a time."""
        if self._first + self.n > self._order.size:
            self._epoch, self._first = self._epoch + 1, 0
        stop = self._first + self.n
        for first in range(self._first, stop, self._solver.chunk):
            samples = self._order[first : min(first + self._solver.chunk, stop)]
            used = self._solver.advance(samples, self._epoch, first, self._rate)
            if used < samples.size:
                raise FloatingPointError(f"the benchmark's steps diverged after {used} of {samples.size}")
        self._first = stop


def steps_of(
    method: Method | Mapping[str, Any],
    rows: Rows,
    n_classes: int,
    n: int,
    threads: int = 1,
    objective: Any = None,
    layout: Any = None,
) -> tuple[Solver, Steps]:
    """Make a solver, and its steps at the method's rate; ``layout`` takes the place of that of its weights."""
    chosen = method if isinstance(method, Method) else method_of(**method)
    solver: Any = solver_of(chosen, rows, n_classes, threads, objective)
    if layout is not None:
        solver._weights = layout(solver._weights.W)
    return solver, Steps(solver, rows.y.size, n, chosen.optimizer.learning_rate)


def write_problem(path: Path, rows: Rows, n_classes: int, n_test: int = 0) -> None:
    """Write rows as a prepared file, the last ``n_test`` for the test."""
    n_train = rows.y.size - n_test
    ends = {"train": slice(0, n_train), "validation": slice(0, 0), "test": slice(n_train, None)}
    write_prepared(
        path,
        dataset="benchmark",
        splits={name: Split(rows.X[part], rows.y[part]) for name, part in ends.items()},
        class_names=[str(k) for k in range(n_classes)],
        class_counts=np.bincount(rows.y[:n_train], minlength=n_classes),
        transform=Transform("sparse" if issparse(rows.X) else "dense", n_columns=rows.X.shape[1]),
        parameters={},
        source_sha256={},
        dropped={},
    )
