"""The adversarial tree beside what it serves: draws beside a step, all classes beside a product, the fit by itself.

The labels are leaves of a random tree of centres, as in data with a structure; the tree is fitted to them, so that
its branches are as certain as those of a real one.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from xsoftmax.data.readers import hierarchy
from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.protocol import draw_ahead
from xsoftmax.kernels.random import start, stream
from xsoftmax.kernels.run_steps import AHEAD, empty_draws_ahead
from xsoftmax.lab.benchmark.case import Case, Quantity
from xsoftmax.lab.benchmark.problems import dense_rows, method_of, steps_of
from xsoftmax.proposals.tree import TreeDraws
from xsoftmax.tree.draws import log_probability_block
from xsoftmax.tree.fit import class_sums, fit_projected
from xsoftmax.tree.model import Tree, on_cache_lines
from xsoftmax.tree.projection import Projection, principal_components

DIMENSION = 16
STEPS = 2**15


def cases(small: bool) -> Iterator[Case | Quantity]:
    """Yield the comparisons; the large fit is timed once, a small one against a floor."""
    n_classes, n_samples, n_features = (10_000, 30_000, 32) if small else (200_000, 500_000, 512)
    Z, y = projected(n_samples, n_features, n_classes)
    tree, seconds = timed_fit(Z, y, n_classes)
    yield draws(tree, Z, y, n_features)
    yield all_classes(tree, Z, 32 if small else 128)
    if small:
        yield fit(Z, y, n_classes)
    else:
        name = f"fit of the tree, {y.size:,} rows, {n_classes:,} classes, {DIMENSION} components"
        note = "one fit, after the projection and compiled before; processor's time of all threads together"
        yield Quantity(name, "CPU s", lambda: seconds, 15.0, note)


def projected(n_samples: int, n_features: int, n_classes: int) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Principal components of rows around a random binary tree of centres; frequencies fall as rank^-0.7."""
    rows = hierarchy.read(
        n_samples=n_samples, n_features=n_features, n_classes=n_classes, branching=2, label_noise=0.0, skew=0.7
    )
    projection = principal_components(rows.features, DIMENSION)
    return projection(rows.features), rows.labels.astype(np.int32)


def draws(tree: Tree, Z: NDArray[np.float32], y: NDArray[np.int32], n_features: int) -> Case:
    """Draws as the training loop makes them, and log-probabilities of labels, beside a step with a uniform draw."""
    rows = dense_rows(2**16, n_features, tree.n_classes)
    _, steps = steps_of(method_of("negative-sampling"), rows, tree.n_classes, STEPS)
    n = steps.n
    proposal = TreeDraws(*tree.view, on_cache_lines(Z))
    samples = np.random.default_rng(0).integers(0, y.size, n)
    name = f"a draw from the tree, {tree.n_classes:,} classes, {DIMENSION} components"
    runs: dict[str, Callable[[], object]] = {
        "floor": steps,
        "drawn": partial(draws_ahead, proposal, samples, np.uint64(stream(0, 0)), empty_draws_ahead(AHEAD, 1)),
        "of a label": partial(_look_up, tree, proposal.Z, samples, y[samples]),
    }
    limits = {} if n_features < 512 else {"drawn": 0.29}
    return Case(name, "draw", n, runs, limits, f"a whole step with a uniform draw, {n_features} features")


@njit(**OPTIONS)
def draws_ahead(proposal, samples, key, ahead):
    """Draw for all samples, as many at a time as the training loop does."""
    for first in range(0, samples.size, AHEAD):
        for b in range(AHEAD):
            ahead.rng_states[b] = start(key, first + b)
        draw_ahead(proposal, None, samples[first : first + AHEAD], ahead)


def _look_up(tree: Tree, Z: NDArray[np.float32], samples: NDArray[np.int64], y: NDArray[np.int32]) -> None:
    log_probability_block(tree.view, Z, samples, y, np.empty(samples.size, np.float32))


def all_classes(tree: Tree, Z: NDArray[np.float32], n_rows: int) -> Case:
    """Log-probabilities of all classes for a block of rows, beside the product that scores all nodes for them."""
    rows = np.ascontiguousarray(Z[:n_rows])
    weights = np.ascontiguousarray(tree.weights[:, :-1])
    runs: dict[str, Callable[[], object]] = {
        "floor": lambda: rows @ weights.T,
        "all classes": lambda: tree.log_probability(rows),
    }
    name = f"log-probabilities of {tree.n_classes:,} classes by the tree, {n_rows} rows"
    note = f"sgemm of {DIMENSION} components with all nodes, result allocated like that of the tree"
    return Case(name, "row", n_rows, runs, {"all classes": 3.0}, note)


def fit(Z: NDArray[np.float32], y: NDArray[np.int32], n_classes: int) -> Case:
    """Fit a tree, beside what no level can do without: one weighted second moment of all rows."""
    depth = (n_classes - 1).bit_length()
    weights = np.random.default_rng(0).random(y.size, np.float32)
    offsets = np.searchsorted(np.sort(y), np.arange(n_classes + 1))

    def floor() -> None:
        class_sums(Z, offsets)
        for _ in range(depth):
            _ = (Z * weights[:, None]).T @ Z

    name = f"fit of the tree, {y.size:,} rows, {n_classes:,} classes"
    note = f"sums by class, and {depth} times, once a level, the weighted second moments of all rows (sgemm)"
    return Case(name, "row", y.size, {"floor": floor, "fit": partial(_fit, Z, y, n_classes)}, {}, note)


def timed_fit(Z: NDArray[np.float32], y: NDArray[np.int32], n_classes: int) -> tuple[Tree, float]:
    """Fit a tree; tell the processor's time that it took, compilation left out."""
    _fit(Z[:100], y[:100] % 10, 10)
    begin = time.process_time()
    return _fit(Z, y, n_classes), time.process_time() - begin


def _fit(Z: NDArray[np.float32], y: NDArray[np.int32], n_classes: int) -> Tree:
    dimension = Z.shape[1]
    identity = Projection(np.zeros(dimension, np.float32), np.eye(dimension, dtype=np.float32))
    return fit_projected(identity, Z, y, n_classes, 0.1)
