"""Exact likelihoods and ranks of every row, whatever was trained: of the full softmax, or of the model's own link.

The softmax goes through blocks of classes; other links look at all scores of a row at once.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.data.rows import csr_of
from xsoftmax.evaluation import links, metrics
from xsoftmax.evaluation.metrics import RowScores
from xsoftmax.internal.compiled import njit
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.log_sum_exp import scan, sum_exp
from xsoftmax.kernels.scores import BLOCKS_OF_ROWS, CLASSES_AT_A_TIME, ROWS_AT_A_TIME, ScoreBlock
from xsoftmax.model import Model

# Scores that are held at once where all those of a row are needed, or this part of the weights if that is more; it is
# larger where all weights are copied for each block of rows.
BLOCK_SCORES = 2**21
PART_OF_WEIGHTS, PART_OF_COPIED_WEIGHTS = 64, 16


def score_rows(
    model: Model, X: Any, y: np.ndarray, pool: ThreadPool | None = None, confident: bool = False, **blocks: int
) -> RowScores:
    """Compute the exact log-likelihood and rank of the true class of every row.

    Where all classes are not one block, the true class's score is a sum of its own, and ranks are those of scores
    that are equal up to rounding; scores that are sums of nothing but zeros are equal exactly.

    Parameters
    ----------
    model : Model
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32
    pool : ThreadPool, optional
        Of threads; results do not depend on how many.
    confident : bool
        Whether the confidence is asked for where it costs something: of links other than the softmax.
    **blocks
        Passed to ``Model.visit_scores``; links other than the softmax look at whole rows.
    """
    sums = no_sums(y)
    if model.link != "softmax":
        return _score_rows_of_link(model, X, sums, pool, confident)
    one_block = model.n_classes <= blocks.get("classes_at_a_time", CLASSES_AT_A_TIME)
    if not one_block:
        sums.score_true[:] = model.true_scores(X, y)
    model.visit_scores(X, lambda block: accumulate(block, sums, one_block), pool, **blocks)
    with np.errstate(divide="ignore"):
        return RowScores(sums.score_true - log_totals(sums), sums.rank, 1 / sums.total, y)


def evaluate(model: Model, X: Any, y: np.ndarray, pool: ThreadPool | None = None) -> dict[str, float]:
    """Score rows by the model's link, in most cases the full softmax, and give their metrics, as along a fit."""
    return metrics.measure(score_rows(model, X, y, pool), "fit")


def score_together(
    model: Model, sets: Sequence[tuple[Any, np.ndarray]], pool: ThreadPool | None = None, confident: bool = False
) -> list[RowScores]:
    """Score several sets of rows, X and y; sparse ones as one set, since their scores take a copy of the weights."""
    if any(isinstance(X, np.ndarray) for X, _ in sets):
        return [score_rows(model, X, y, pool, confident) for X, y in sets]
    indptr = [np.zeros(1, np.int64)]
    for X, _ in sets:
        indptr.append(X.indptr[1:] + indptr[-1][-1])
    data, indices = (np.concatenate([getattr(X, part) for X, _ in sets]) for part in ("data", "indices"))
    rows = csr_of(data, indices, np.concatenate(indptr), model.n_features)
    y = np.concatenate([y for _, y in sets])
    found = score_rows(model, rows, y, pool, confident)
    cuts = np.cumsum([len(y) for _, y in sets])[:-1]
    parts = (np.split(each, cuts) for each in (found.log_likelihood, found.rank, found.confidence, y))
    return [RowScores(*of_set) for of_set in zip(*parts, strict=True)]


def _score_rows_of_link(
    model: Model, X: Any, sums: "RunningSums", pool: ThreadPool | None, confident: bool = False
) -> RowScores:
    log_likelihood, link = np.empty(len(sums.y)), links.load(model.link)
    confidence = np.full(len(sums.y), np.nan)

    def visit(block: ScoreBlock) -> None:
        rows = slice(block.first_row, block.first_row + len(block.scores))
        log_likelihood[rows] = link.log_probabilities(block.scores, sums.y[rows, None])[:, 0]
        if confident:
            likeliest = block.scores.argmax(axis=1)[:, None]
            confidence[rows] = np.exp(link.log_probabilities(block.scores, likeliest)[:, 0])
        accumulate(block, sums, True)

    visit_whole_rows(model, X, visit, pool)
    return RowScores(log_likelihood, sums.rank, confidence, sums.y)


def visit_whole_rows(
    model: Model, X: Any, visit: Callable[[ScoreBlock], Any], pool: ThreadPool | None = None
) -> None:
    """Score rows and show ``visit`` blocks of all classes; with several threads, it is called from all of them.

    Blocks do not depend on how many threads there are: a product of other rows may have other bits.
    """
    pool, n_samples = pool or ThreadPool(), X.shape[0]
    n_rows = min(n_samples, rows_at_a_time(model.n_classes, model.n_features, not isinstance(X, np.ndarray)))
    whole = np.empty((n_rows, model.n_classes), np.float32)

    def keep(block: ScoreBlock) -> None:
        rows, classes = block.scores.shape
        whole[block.first_row :, block.first_class :][:rows, :classes] = block.scores

    with model.unchanging():
        for first in range(0, n_samples, max(1, n_rows)):
            rows = X[first : first + n_rows]
            model.visit_scores(rows, keep, pool)
            step = min(ROWS_AT_A_TIME, -(-rows.shape[0] // BLOCKS_OF_ROWS))
            starts = range(0, rows.shape[0], step)
            blocks = [ScoreBlock(first + i, 0, whole[: rows.shape[0]][i : i + step]) for i in starts]
            pool.run([partial(visit, block) for block in blocks])


def rows_at_a_time(n_classes: int, n_features: int, sparse: bool) -> int:
    """Count the rows whose scores ``visit_whole_rows`` holds at once."""
    part = PART_OF_COPIED_WEIGHTS if sparse else PART_OF_WEIGHTS
    return max(1, BLOCK_SCORES // n_classes, n_features // part)


class RunningSums(NamedTuple):
    """Per row: the true class and its score, the highest score so far, sum e^(score - highest), and the rank."""

    y: np.ndarray
    score_true: np.ndarray
    highest: np.ndarray
    total: np.ndarray
    rank: np.ndarray


def no_sums(y: np.ndarray) -> RunningSums:
    """Sums before the first block; a ``y`` of -1 stands for no class."""
    n = len(y)
    return RunningSums(y, np.zeros(n, np.float32), np.full(n, -np.inf), np.zeros(n), np.zeros(n, int))


def log_totals(sums: RunningSums) -> np.ndarray:
    """Log of the sum of e^score, float64 of shape (n,); NaN if a score was."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return sums.highest + np.log(sums.total)


@njit(**OPTIONS)
def accumulate(block, sums, takes_true):
    """Go on with the log-sum-exp, relative to the highest score so far, and with the ranks.

    ``takes_true`` says where the score of the true class comes from: the block, or else ``sums``.
    """
    for b in range(block.scores.shape[0]):
        row = block.scores[b]
        i = block.first_row + b
        k = sums.y[i] - block.first_class
        holds_true = 0 <= k < row.size
        if holds_true and takes_true:
            sums.score_true[i] = row[k]
        elif holds_true:
            row[k] = sums.score_true[i]  # so that it is equal to itself, and no likelihood above 1
        seen = scan(row, sums.score_true[i])
        sums.rank[i] += seen.no_lower - holds_true
        if seen.not_finite:  # NaN or infinity anywhere makes the likelihood NaN
            sums.total[i] = np.nan
            continue
        highest = np.float64(seen.highest)
        if highest > sums.highest[i]:
            sums.total[i] *= math.exp(sums.highest[i] - highest)
            sums.highest[i] = highest
        if sums.highest[i] > -np.inf:  # else: classes of probability zero only
            sums.total[i] += sum_exp(row, np.float32(sums.highest[i]))
