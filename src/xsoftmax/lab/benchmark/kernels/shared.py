"""Minibatches that share their draws, against their two matrix products and against draws of their own."""

from collections.abc import Callable, Iterator

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.products import inner_product
from xsoftmax.lab.benchmark.case import Case
from xsoftmax.lab.benchmark.problems import Rows, dense_rows, method_of, sparse_rows, steps_of

OBJECTIVES = ("sampled-softmax", "negative-sampling", "one-vs-each", "augment-reduce")
FLOOR = (
    "samples and drawn rows gathered, two matrix products, true rows read, all of these rows and their accumulators "
    "written; classes known in advance, no objective, nothing moves"
)
OWN = 64  # draws of a single step, where each sample has its own
N_PLANS = 8
_NOTHING = np.float32(0)


def cases(small: bool) -> Iterator[Case]:
    """Yield the comparisons, the products first."""
    if small:
        rows = dense_rows(2**12, 256, 20_000)
        yield products(rows, 20_000, 128, 64, OBJECTIVES[:1], 1.5)
        yield against_own(rows, 20_000, 128, 64, 1 / 4)
        yield against_own(sparse_rows(2**12, 2_000, 2_000, 50), 2_000, 128, 64, 1 / 2)
        return
    rows = dense_rows(2**16, 512, 200_000)
    yield products(rows, 200_000, 256, 64, OBJECTIVES, 1.5)
    yield products(rows, 200_000, 1024, 1024, OBJECTIVES, 1.5)
    for batch_size, n_sampled, limit in ((64, 64, None), (256, 64, 1 / 9), (256, 256, None), (1024, 1024, 1 / 20)):
        yield against_own(rows, 200_000, batch_size, n_sampled, limit)
    del rows
    yield against_own(sparse_rows(2**15, 10_000, 20_000, 100), 20_000, 256, 64, None)
    yield against_own(sparse_rows(2**15, 10_000, 20_000, 100), 20_000, 1024, 1024, None)


def products(
    rows: Rows, n_classes: int, batch_size: int, n_sampled: int, objectives: tuple[str, ...], limit: float
) -> Case:
    """Steps of several objectives against the floor of one."""
    n = 2048 // batch_size * batch_size
    runs: dict[str, Callable[[], object]] = {}
    for name in objectives:
        solver, runs[name] = shared_steps(name, rows, n_classes, batch_size, n_sampled, n)
    floor = products_floor(rows, solver.arrays()["W"], batch_size, n_sampled, n)
    return Case(
        f"shared draws, {_shape(rows, n_classes, batch_size, n_sampled)}",
        "pair of a sample and a class",
        n * n_sampled,
        {"floor": floor, **runs},
        dict.fromkeys(objectives, limit),
        FLOOR,
    )


def against_own(rows: Rows, n_classes: int, batch_size: int, n_sampled: int, limit: float | None) -> Case:
    """As many pairs of a sample and a drawn class, in single steps and in batches."""
    n = 2048 // batch_size * batch_size
    own = method_of("one-vs-each", {"name": "uniform", "n_sampled": OWN})
    single = steps_of(own, rows, n_classes, n * n_sampled // OWN)[1]
    shared = shared_steps("one-vs-each", rows, n_classes, batch_size, n_sampled, n)[1]
    return Case(
        f"shared draws against own ones, {_shape(rows, n_classes, batch_size, n_sampled)}",
        "pair of a sample and a class",
        n * n_sampled,
        {"own draws": single, "shared draws": shared},
        {} if limit is None else {"shared draws": limit},
        f"single steps of one-vs-each, {OWN} classes drawn for each",
    )


def _shape(rows: Rows, n_classes: int, batch_size: int, n_sampled: int) -> str:
    storage = "dense" if isinstance(rows.X, np.ndarray) else f"sparse, {rows.X.nnz // rows.y.size} non-zeros"
    return (
        f"{storage}, {rows.X.shape[1]:,} features, {n_classes:,} classes, batches of {batch_size:,}, "
        f"{n_sampled:,} draws"
    )


def shared_steps(objective: str, rows: Rows, n_classes: int, batch_size: int, n_sampled: int, n: int):
    """Make a solver with shared draws, and ``n`` steps of it per call."""
    batch = {"size": batch_size, "shared": True}
    return steps_of(
        method_of(objective, {"name": "uniform", "n_sampled": n_sampled}, batch=batch), rows, n_classes, n
    )


def products_floor(
    rows: Rows, W: np.ndarray, batch_size: int, n_sampled: int, n: int, seed: int = 0
) -> Callable[[], object]:
    """``n`` samples in batches, other ones with each call; ``W`` of dense rows and Adagrad."""
    rng = np.random.default_rng(seed)
    plans = [
        (rng.permutation(rows.y.size)[:n], rng.integers(0, W.shape[0], (n // batch_size, n_sampled)))
        for _ in range(N_PLANS)
    ]
    turn = iter(range(10**9))
    return lambda: _products(rows.X, rows.y, W, *plans[next(turn) % N_PLANS], batch_size, _NOTHING)


@njit(**OPTIONS)
def _products(X, y, W, samples, drawn, batch_size, nothing):
    width, n_sampled = X.shape[1], drawn.shape[1]
    inputs, slopes = np.empty((batch_size, width), np.float32), np.empty((batch_size, n_sampled), np.float32)
    rows = np.empty((n_sampled, width), np.float32)
    total = np.float32(0)
    for t in range(drawn.shape[0]):
        batch = samples[t * batch_size : (t + 1) * batch_size]
        for b in range(batch_size):
            inputs[b] = X[batch[b]]
        for j in range(n_sampled):
            rows[j] = W[drawn[t, j], 0, :width]
        np.dot(inputs, rows.T, slopes)
        for b in range(batch_size):
            total += inner_product(inputs[b], W[y[batch[b]], 0])
        np.dot(slopes.T, inputs, rows)
        for j in range(n_sampled):
            _write(rows[j], W[drawn[t, j], 0], W[drawn[t, j], 1], nothing)
        for b in range(batch_size):
            _write(inputs[b], W[y[batch[b]], 0], W[y[batch[b]], 1], nothing)
    return total


@njit(**OPTIONS)
def _write(gradient, w, a, nothing):
    """Read and write a row; it stays as it is."""
    for d in range(gradient.size):
        w[d] += nothing * gradient[d]
        a[d] += nothing * gradient[d]
