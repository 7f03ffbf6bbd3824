"""JAX on the CPU: full softmax, minibatches, Adagrad; one jitted step that reuses its buffers.

Sparse rows are padded to the longest one: their scores are a weighted sum of gathered rows of weights.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from protocol import Record, work

EPSILON = 1e-10


def dense_scores(weights: Any, x: Any) -> Any:
    """Scores of dense rows, shape (n, n_classes)."""
    W, b = weights
    return x @ W + b


def sparse_scores(weights: Any, x: Any) -> Any:
    """Scores of padded sparse rows; ``x`` is (indices, values), each (n, longest)."""
    W, b = weights
    indices, values = x
    return jnp.einsum("nj,njk->nk", values, W[indices]) + b


@partial(jax.jit, static_argnums=0, donate_argnums=(1, 2))
def step(scores: Any, weights: Any, sums: Any, x: Any, y: Any, learning_rate: Any) -> Any:
    """One step of Adagrad on the mean cross-entropy of a batch."""

    def loss(weights: Any) -> Any:
        found = scores(weights, x)
        return jnp.mean(jax.nn.logsumexp(found, axis=1) - jnp.take_along_axis(found, y[:, None], 1)[:, 0])

    gradients = jax.grad(loss)(weights)
    sums = jax.tree.map(lambda s, g: s + g * g, sums, gradients)
    move = jax.tree.map(lambda g, s: learning_rate * g / (jnp.sqrt(s) + EPSILON), gradients, sums)
    return jax.tree.map(jnp.subtract, weights, move), sums


def padded(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Indices and values of a csr_matrix, each (n_samples, longest); padding has the value zero."""
    lengths = np.diff(X.indptr)
    places = np.arange(max(1, lengths.max(initial=0)))[None] < lengths[:, None]
    indices, values = np.zeros(places.shape, np.int32), np.zeros(places.shape, np.float32)
    indices[places], values[places] = X.indices, X.data
    return indices, values


def train(record: Record) -> None:
    """Settings: ``learning_rate``, ``batch_size``."""
    X, y = record.data.X("train"), record.data.y("train")
    record.loaded()
    dense, n, size = record.data.is_dense, len(y), min(record.settings["batch_size"], len(y))
    scores = dense_scores if dense else sparse_scores
    rows = (X,) if dense else padded(X)
    rate = jnp.float32(record.settings["learning_rate"])

    def batch(chosen: np.ndarray) -> tuple[Any, Any]:
        parts = tuple(part[chosen] for part in rows)
        return (parts[0] if dense else parts), y[chosen]

    def start() -> tuple[Any, Any]:
        shapes = (record.data.n_features, record.data.n_classes), (record.data.n_classes,)
        return tuple(jnp.zeros(shape) for shape in shapes), tuple(jnp.zeros(shape) for shape in shapes)

    with record.warm_up():
        jax.block_until_ready(step(scores, *start(), *batch(np.arange(size)), rate))
    rng = np.random.default_rng(record.job["seed"])
    with record.training():
        weights, sums = jax.block_until_ready(start())
    order, place, used = np.empty(0, np.int64), n, 0
    while record.goes_on():
        with record.training():
            while not record.due():
                if place + size > n:  # whole batches only: another size would be compiled anew
                    order, place = rng.permutation(n), 0
                weights, sums = step(scores, weights, sums, *batch(order[place : place + size]), rate)
                place, used = place + size, used + size
                jax.block_until_ready(weights)
        W, b = (np.asarray(part) for part in weights)
        record.look(used / n, lambda block, W=W, b=b: block @ W + b)
        if record.curve[-1].get("not_finite"):
            return


if __name__ == "__main__":
    work(train)
