"""JAX on the CPU: full softmax, minibatches, Adagrad; one jitted step that reuses its buffers.

Dense rows: a matrix product. Sparse rows: only the rows of weights whose features occur in the batch are taken out,
used, and put back, as the gradient is zero for all others. Of three ways to write this step, the fastest here.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from protocol import Record, work
from scipy.sparse import csr_matrix

EPSILON = 1e-10
ROOM = 1.15  # for more different features in a batch than in those of one epoch


def moved(weights: Any, sums: Any, gradient: Any, rate: Any) -> Any:
    """Adagrad."""
    sums = sums + gradient * gradient
    return weights - rate * gradient / (jnp.sqrt(sums) + EPSILON), sums


@partial(jax.jit, donate_argnums=(0, 1))
def dense_step(weights: Any, sums: Any, x: Any, y: Any, rate: Any) -> Any:
    """One step on the mean cross-entropy of a batch of dense rows."""

    def loss(weights: Any) -> Any:
        scores = x @ weights[0] + weights[1]
        return jnp.mean(jax.nn.logsumexp(scores, axis=1) - jnp.take_along_axis(scores, y[:, None], 1)[:, 0])

    gradients = jax.grad(loss)(weights)
    (W, W_sums), (b, b_sums) = (moved(*parts, rate) for parts in zip(weights, sums, gradients, strict=True))
    return (W, b), (W_sums, b_sums)


@partial(jax.jit, donate_argnums=(0, 1))
def sparse_step(weights: Any, sums: Any, x: Any, y: Any, rate: Any) -> Any:
    """The same for sparse rows.

    ``x``: the features that occur, padded; for the j-th entry of each row the place of its feature among them, and
    its value, both (longest, n); and how many entries the longest row of this batch has.
    """
    (W, b), (W_sums, b_sums) = weights, sums
    features, places, values, longest = x
    rows, n = W[features], y.shape[0]
    scores = jax.lax.fori_loop(
        0, longest, lambda j, found: found + values[j][:, None] * rows[places[j]], jnp.broadcast_to(b, (n, b.size))
    )
    errors = (jax.nn.softmax(scores, axis=1) - jax.nn.one_hot(y, b.size)) / n
    gradient = jax.lax.fori_loop(
        0, longest, lambda j, found: found.at[places[j]].add(values[j][:, None] * errors), jnp.zeros_like(rows)
    )
    rows, row_sums = moved(rows, W_sums[features], gradient, rate)
    b, b_sums = moved(b, b_sums, errors.sum(axis=0), rate)
    return (W.at[features].set(rows), b), (W_sums.at[features].set(row_sums), b_sums)


class DenseRows:
    """Batches of dense rows."""

    step = staticmethod(dense_step)

    def __init__(self, X: np.ndarray, size: int) -> None:
        self.X = X

    def batch(self, chosen: np.ndarray) -> np.ndarray:
        """Rows."""
        return self.X[chosen]


class SparseRows:
    """Batches of sparse rows, all of one shape, so that nothing is compiled twice."""

    step = staticmethod(sparse_step)

    def __init__(self, X: csr_matrix, size: int) -> None:
        self.X = X
        self.longest = max(1, int(np.diff(X.indptr).max()))
        order = np.random.default_rng(0).permutation(X.shape[0])
        batches = (X[order[i : i + size]] for i in range(0, len(order), size))
        most = max(len(np.unique(batch.indices)) for batch in batches)
        self.n_features = min(int(ROOM * most) + 64, X.shape[1])

    def batch(self, chosen: np.ndarray) -> tuple[Any, ...]:
        """See ``sparse_step``; padding points at a row of weights beyond the last feature."""
        X = self.X[chosen]
        found, inverse = np.unique(X.indices, return_inverse=True)
        features = np.full(max(self.n_features, len(found)), X.shape[1], np.int32)
        features[: len(found)] = found
        lengths = np.diff(X.indptr)
        there = np.arange(self.longest)[None] < lengths[:, None]
        places, values = np.zeros(there.shape, np.int32), np.zeros(there.shape, np.float32)
        places[there], values[there] = inverse, X.data
        return features, np.ascontiguousarray(places.T), np.ascontiguousarray(values.T), np.int32(lengths.max())


def train(record: Record) -> None:
    """Settings: ``learning_rate``, ``batch_size``."""
    X, y = record.data.features("train"), record.data.classes("train")
    record.loaded()
    n, size = len(y), min(record.settings["batch_size"], len(y))
    rows = (DenseRows if record.data.is_dense else SparseRows)(X, size)
    rate = jnp.float32(record.settings["learning_rate"])

    def start() -> tuple[Any, Any]:
        shapes = (record.data.n_features + 1 - record.data.is_dense, record.data.n_classes), (record.data.n_classes,)
        return tuple(jnp.zeros(shape) for shape in shapes), tuple(jnp.zeros(shape) for shape in shapes)

    with record.warm_up():
        jax.block_until_ready(rows.step(*start(), rows.batch(np.arange(size)), y[:size], rate))
    rng = np.random.default_rng(record.job["seed"])
    with record.training():
        weights, sums = jax.block_until_ready(start())
    order, place, used = np.empty(0, np.int64), n, 0
    while record.goes_on():
        with record.training():
            while not record.due():
                if place + size > n:  # whole batches only: another size would be compiled anew
                    order, place = rng.permutation(n), 0
                chosen = order[place : place + size]
                weights, sums = rows.step(weights, sums, rows.batch(chosen), y[chosen], rate)
                place, used = place + size, used + size
                jax.block_until_ready(weights)
        W, b = np.asarray(weights[0])[: record.data.n_features], np.asarray(weights[1])
        record.evaluate(used / n, lambda block, W=W, b=b: block @ W + b)
        if record.curve[-1].get("not_finite"):
            return


if __name__ == "__main__":
    work(train)
