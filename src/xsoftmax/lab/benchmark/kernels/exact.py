"""The softmax over all classes, against the products or sums of rows that it cannot do without."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from xsoftmax.evaluation.likelihood import score_rows
from xsoftmax.evaluation.prediction import top_k
from xsoftmax.internal.compiled import njit
from xsoftmax.internal.threads import ThreadPool, split_evenly
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.full_softmax import (
    CLASSES_OF_A_BLOCK,
    Pace,
    classes_of_a_block,
    gather_block,
    move_classes_block,
    score_classes_block,
)
from xsoftmax.kernels.layout import Plain
from xsoftmax.kernels.products import columns_times_columns, rows_times_rows
from xsoftmax.kernels.protocol import Step
from xsoftmax.kernels.rows import features_of
from xsoftmax.kernels.scores import CLASSES_AT_A_TIME, ROWS_AT_A_TIME
from xsoftmax.lab.benchmark.case import Case
from xsoftmax.lab.benchmark.problems import dense_rows, method_of, sparse_rows, steps_of
from xsoftmax.model import Model
from xsoftmax.optimizers.sgd import Sgd

D = 512
PRODUCTS = "the matrix products of the same blocks, on as many threads"


def cases(small: bool) -> Iterator[Case]:
    """Yield the comparisons: evaluation, then minibatches of several sizes, then sparse rows."""
    K = 2_000 if small else 20_000
    for threads in (1, 2):
        yield evaluation(K, 1024 if small else 2048, threads)
    yield training(2_000, 512, 1 if small else 4, 1.25)
    if not small:
        yield training(20_000, 512, 1, 1.25)
        yield training(2_000, 512, 4, 1.25, threads=2)
        yield training(20_000, 64, 4, None)
    yield sparse(1_000 if small else 4_000, 2_000 if small else 10_000, 256 if small else 1024)


def evaluation(n_classes: int, n: int, threads: int) -> Case:
    """Likelihoods and ranks of dense rows; the best five classes of each."""
    rows, pool = dense_rows(n, D, n_classes), ThreadPool(threads)
    W = np.random.default_rng(0).standard_normal((n_classes, D + 1)).astype(np.float32)
    model = Model.of_rows(W, [str(k) for k in range(n_classes)], D)
    floor = partial(pool.run, [partial(_score_products, rows.X[part], W) for part in split_evenly(n, threads)])
    runs: dict[str, Callable[[], object]] = {
        "floor": floor,
        "likelihoods": partial(score_rows, model, rows.X, rows.y, pool),
        "best five": partial(top_k, model, rows.X, 5, pool),
    }
    name = f"evaluation, dense, {D} features, {n_classes:,} classes, {_number(threads)}"
    return Case(name, "score", n * n_classes, runs, {"likelihoods": 1.25}, PRODUCTS)


def training(n_classes: int, batch_size: int, batches: int, limit: float | None, threads: int = 1) -> Case:
    """Minibatches of the softmax on dense rows, by Adagrad and by SGD."""
    n = batches * batch_size
    rows, pool = dense_rows(n, D, n_classes), ThreadPool(threads)
    proposal = {"name": "all", "batch_size": batch_size}
    W = np.zeros((n_classes, D + 1), np.float32)
    inputs, scores = np.ones((batch_size, D + 1), np.float32), np.zeros((batch_size, n_classes), np.float32)
    size = classes_of_a_block(n_classes)
    parts = [slice(size * cut.start, size * cut.stop) for cut in split_evenly(-(-n_classes // size), threads)]
    both = [partial(_both_products, inputs, W[part], scores[:, part], size, batches) for part in parts]
    runs: dict[str, Callable[[], object]] = {"floor": partial(pool.run, both)}
    for name in ("adagrad", "sgd"):
        method = method_of("softmax", proposal, {"name": name, "learning_rate": 0.01})
        runs[name] = steps_of(method, rows, n_classes, n, threads)[1]
    limits = {} if limit is None else {"adagrad": limit, "sgd": limit}
    name = f"softmax, dense, {D} features, {n_classes:,} classes, batches of {batch_size}, {_number(threads)}"
    return Case(name, "row", n, runs, limits, PRODUCTS)


def sparse(n_classes: int, n_features: int, n: int) -> Case:
    """Minibatches of the softmax on rows of 100 non-zeros."""
    rows = sparse_rows(n, n_features, n_classes, 100)
    W, scores = np.zeros((n_features + 1, n_classes), np.float32), np.zeros((64, n_classes), np.float32)
    floor = partial(_both_passes, features_of(rows.X, True), W, scores, n)
    runs: dict[str, Callable[[], object]] = {"floor": floor}
    for name in ("adagrad", "sgd"):
        method = method_of("softmax", {"name": "all", "batch_size": 64}, {"name": name, "learning_rate": 0.01})
        runs[name] = steps_of(method, rows, n_classes, n)[1]
    name = f"softmax, 100 non-zeros, {n_features:,} features, {n_classes:,} classes, batches of 64, one thread"
    note = (
        "the passes over the rows of weights for scores and for moves by SGD, without exponentials and accumulators"
    )
    return Case(name, "row", n, runs, {}, note)


def _number(threads: int) -> str:
    return "one thread" if threads == 1 else f"{threads} threads"


def _score_products(X: np.ndarray, W: np.ndarray) -> None:
    """Products of blocks as those of ``Model.visit_scores``; nothing is kept."""
    workspace = np.empty(ROWS_AT_A_TIME * CLASSES_AT_A_TIME, np.float32)
    for row in range(0, len(X), ROWS_AT_A_TIME):
        inputs = X[row : row + ROWS_AT_A_TIME]
        for first in range(0, len(W), CLASSES_AT_A_TIME):
            weights = W[first : first + CLASSES_AT_A_TIME, :-1]
            np.matmul(
                inputs, weights.T, out=workspace[: len(inputs) * len(weights)].reshape(len(inputs), len(weights))
            )


@njit(**OPTIONS)
def _both_products(inputs, W, scores, size, batches):
    """Scores of a batch, and the gradient from what stands for slopes, in blocks as those of ``run_all_classes``."""
    workspace = np.empty((CLASSES_OF_A_BLOCK, inputs.shape[1]), np.float32)
    for _ in range(batches):
        for first in range(0, len(W), size):
            rows_times_rows(inputs, W[first : first + size], scores[:, first : first + size])
        for first in range(0, len(W), CLASSES_OF_A_BLOCK):
            slopes = scores[:, first : first + CLASSES_OF_A_BLOCK]
            columns_times_columns(slopes, inputs, np.float32(1), workspace[: slopes.shape[1]])


def _both_passes(features: Any, W: np.ndarray, scores: np.ndarray, n: int) -> None:
    """Batches of as many rows as ``scores`` has, whose scores pass for slopes; at a rate of 0 no weight changes."""
    still, n_classes = Pace(Step(np.float32(0), 0), np.float32(0)), scores.shape[1]
    for samples in np.split(np.arange(n), range(len(scores), n, len(scores))):
        workspace, batch = scores[: samples.size], gather_block(features, samples)
        score_classes_block(batch, W, 0, n_classes, workspace)
        move_classes_block(batch, Sgd(), still, workspace, Plain(W), 0, n_classes)
