"""Exact likelihoods and ranks of every row, whatever was trained: of the full softmax, or of the model's own link.

The softmax goes through blocks of classes; other links look at all scores of a row at once.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.data.dataset import Split
from xsoftmax.data.label_sets import LabelSets
from xsoftmax.data.rows import csr_of
from xsoftmax.evaluation import links, metrics
from xsoftmax.evaluation.label_ranks import (
    LabelRanks,
    best_ranks,
    count_before,
    labels_between,
    lowest_label,
    mean_of_labels,
    no_ranks,
    one_each,
    order_labels,
    score_labels,
)
from xsoftmax.evaluation.metrics import RowScores
from xsoftmax.evaluation.part_of_model import PartOfModel, join_rows, join_sums
from xsoftmax.gpu.device import NUMBA
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
    model: Model,
    X: Any,
    y: np.ndarray,
    pool: ThreadPool | None = None,
    confident: bool = False,
    label_sets: LabelSets | None = None,
    filtered: LabelSets | None = None,
    **blocks: int,
) -> RowScores:
    """Compute the exact log-likelihood and rank of the true class of every row, or of all its labels.

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
    label_sets : LabelSets, optional
        All labels of each row, which count instead of ``y``: the likelihood of a row is the mean over its labels of
        log p(label | x), or, where a row may have any number of classes, as of link sigmoid, that of having these and
        no others; its rank that of its best label, and ``label_ranks`` are known (see ``label_ranks``).
    filtered : LabelSets, optional
        Classes that do not count for a row, perhaps none: they take no rank, and are no hit if they are labels.
        Likelihoods are those of all classes.
    **blocks
        Passed to ``Model.visit_scores``; links other than the softmax look at whole rows.

    Returns
    -------
    RowScores

    Raises
    ------
    InputError
        If the rows do not have the model's number of features.
    """
    if label_sets is None and filtered is not None:
        found = score_rows(model, X, y, pool, confident, one_each(y), filtered, **blocks)
        return replace(found, label_sets=None, label_ranks=None)
    sums = no_sums(y)
    labels = None if label_sets is None else no_ranks(label_sets, filtered)
    if model.link != "softmax":
        return _row_scores(*_score_rows_of_link(model, X, sums, labels, pool, confident), sums, labels)
    one_block = model.n_classes <= blocks.get("classes_at_a_time", CLASSES_AT_A_TIME)
    one_block &= not isinstance(model, PartOfModel)
    if not one_block and labels is None:
        sums.score_true[:] = model.true_scores(X, y)
    elif not one_block and labels is not None:
        score_labels(model, X, labels)
    if model.place != NUMBA and labels is None:
        sums = sums_on_device(model.pass_on_device(X, pool, y=y, score_true=sums.score_true), y)
    else:
        model.visit_scores(X, lambda block: _add_block(block, sums, labels, one_block), pool, **blocks)
        join_sums(model, sums, labels)
    scores = sums.score_true if labels is None else mean_of_labels(labels.scores, labels.starts)
    with np.errstate(divide="ignore"):
        return _row_scores(scores - log_totals(sums), 1 / sums.total, sums, labels)


def _add_block(block: ScoreBlock, sums: "RunningSums", labels: LabelRanks | None, takes_true: bool) -> None:
    if labels is None:
        accumulate(block, sums, takes_true)
    else:
        accumulate_sets(block, sums, labels, takes_true)


def _row_scores(
    log_likelihood: np.ndarray, confidence: np.ndarray, sums: "RunningSums", labels: LabelRanks | None
) -> RowScores:
    if labels is None:
        return RowScores(log_likelihood, sums.rank, confidence, sums.y)
    order_labels(labels)
    sets = LabelSets(labels.starts, labels.classes)
    return RowScores(log_likelihood, best_ranks(labels), confidence, sums.y, label_sets=sets, label_ranks=labels.rank)


def evaluate(model: Model, X: Any, y: np.ndarray, pool: ThreadPool | None = None) -> dict[str, float]:
    """Score rows by the model's link, in most cases the full softmax; give their metrics, as along a fit, by column.

    Metrics that need what is not known of rows with one label each are left out.

    Parameters
    ----------
    model : Model
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32
        Class of each row, by number from 0.
    pool : ThreadPool, optional
        Of threads; results do not depend on how many.

    Returns
    -------
    dict of str to float
        ``log_likelihood``, the mean of log p(y | x) in nats, ``accuracy`` and others, from 0 to 1.

    Raises
    ------
    InputError
        If the rows do not have the model's number of features.
    """
    rows = score_rows(model, X, y, pool)
    measured = metrics.measure(rows, "fit")
    return {column: value for column, value in measured.items() if not metrics.known()[column].lacks(rows)}


def score_together(
    model: Model,
    splits: Sequence[Split],
    pool: ThreadPool | None = None,
    confident: bool = False,
) -> list[RowScores]:
    """Score several sets of rows, with all their labels; sparse ones as one, as their scores copy the weights."""
    if any(isinstance(split.X, np.ndarray) for split in splits):
        return [
            score_rows(model, split.X, split.y, pool, confident, split.label_sets, split.filtered) for split in splits
        ]
    parts: list[Any] = [split.X for split in splits]
    starts = np.cumsum([0, *(X.nnz for X in parts)], dtype=np.int64)
    indptr = [np.zeros(1, np.int64), *(X.indptr[1:] + first for X, first in zip(parts, starts, strict=False))]
    data, indices = (np.concatenate([getattr(X, part) for X in parts]) for part in ("data", "indices"))
    rows = csr_of(data, indices, np.concatenate(indptr), model.n_features)
    y = np.concatenate([split.y for split in splits])
    labels, without = (_joined(sets, splits) for sets in _sets_of(splits))
    found = score_rows(model, rows, y, pool, confident, labels, without)
    ends = np.cumsum([0, *(split.n_samples for split in splits)])
    return [_part(found, start, stop, split) for split, (start, stop) in zip(splits, pairwise(ends), strict=True)]


def _sets_of(splits: Sequence[Split]) -> Iterator[list[LabelSets | None]]:
    """Give the labels of all splits, one each where one of them has several; then what does not count in each."""
    labels = [split.label_sets for split in splits]
    if any(sets is not None for sets in labels):
        labels = [one_each(split.y) if split.label_sets is None else split.label_sets for split in splits]
    yield labels
    yield [split.filtered for split in splits]


def _joined(parts: Sequence[LabelSets | None], splits: Sequence[Split]) -> LabelSets | None:
    """Join sets of classes of several splits; None where none has any."""
    if all(sets is None for sets in parts):
        return None
    counts = [
        np.zeros(split.n_samples, np.int64) if sets is None else np.diff(sets.starts)
        for sets, split in zip(parts, splits, strict=True)
    ]
    starts = np.concatenate([[0], np.cumsum(np.concatenate(counts), dtype=np.int64)])
    return LabelSets(starts, np.concatenate([sets.classes for sets in parts if sets is not None]))


def _part(found: RowScores, start: int, stop: int, split: Split) -> RowScores:
    """Take the scores of a split's rows out of those of all."""
    rows = slice(start, stop)
    part = RowScores(found.log_likelihood[rows], found.rank[rows], found.confidence[rows], split.y)
    if found.label_sets is None or split.label_sets is None:
        return part
    first, last = found.label_sets.starts[[start, stop]]
    return replace(part, label_sets=split.label_sets, label_ranks=found.label_ranks[first:last])


def _score_rows_of_link(
    model: Model,
    X: Any,
    sums: "RunningSums",
    labels: LabelRanks | None,
    pool: ThreadPool | None,
    confident: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    log_likelihood, link = np.empty(len(sums.y)), links.load(model.link)
    confidence = np.full(len(sums.y), np.nan)
    sets = one_each(sums.y) if labels is None else LabelSets(labels.starts, labels.classes)

    def visit(block: ScoreBlock) -> None:
        rows = slice(block.first_row, block.first_row + len(block.scores))
        own = sets.of_rows(rows)
        if hasattr(link, "log_likelihoods"):
            log_likelihood[rows] = link.log_likelihoods(block.scores, own.starts, own.classes)
        else:
            log_likelihood[rows] = _mean_log_probabilities(link, block.scores, own)
        if confident:
            likeliest = block.scores.argmax(axis=1)[:, None]
            confidence[rows] = np.exp(link.log_probabilities(block.scores, likeliest)[:, 0])
        _add_block(block, sums, labels, True)

    visit_whole_rows(model, X, visit, pool)
    return log_likelihood, confidence


def _mean_log_probabilities(link: ModuleType, scores: np.ndarray, label_sets: LabelSets) -> np.ndarray:
    """Mean over a row's labels of their log-probabilities; rows with fewer labels repeat their last, uncounted."""
    counts = np.diff(label_sets.starts)[:, None]
    places = np.arange(counts.max(initial=0))
    classes = label_sets.classes[label_sets.starts[:-1, None] + np.minimum(places, counts - 1)]
    return np.where(places < counts, link.log_probabilities(scores, classes), 0).sum(axis=1) / counts[:, 0]


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
            join_rows(model, whole[: rows.shape[0]])
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


def sums_on_device(found: Any, y: np.ndarray) -> RunningSums:
    """Read sums from what a pass on a device has found, a ``Pass``."""
    return RunningSums(y, found.score_true, found.highest, found.total, found.rank)


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
        _add_exponentials(sums, i, row, seen)


@njit(**OPTIONS)
def accumulate_sets(block, sums, labels, takes_true):
    """As ``accumulate``, with the ranks of all labels of each row, a ``LabelRanks``, instead of that of one."""
    for b in range(block.scores.shape[0]):
        row = block.scores[b]
        i = block.first_row + b
        begin, stopped = labels_between(labels, i, block.first_class, block.first_class + row.size)
        for each in range(begin, stopped):
            k = labels.classes[each] - block.first_class
            if takes_true:
                labels.scores[each] = row[k]
            else:
                row[k] = labels.scores[each]
        seen = scan(row, lowest_label(labels, i))
        if seen.no_lower > stopped - begin:  # others than labels may come before one of them
            count_before(row, block.first_class, i, labels, begin, stopped)
        _add_exponentials(sums, i, row, seen)


@njit(**OPTIONS)
def _add_exponentials(sums, i, row, seen):
    """Go on with the log-sum-exp of row i, of whose scores in this block a ``Scan`` is known."""
    if seen.not_finite:  # NaN or infinity anywhere makes the likelihood NaN
        sums.total[i] = np.nan
        return
    highest = np.float64(seen.highest)
    if highest > sums.highest[i]:
        sums.total[i] *= math.exp(sums.highest[i] - highest)
        sums.highest[i] = highest
    if sums.highest[i] > -np.inf:  # else: classes of probability zero only
        sums.total[i] += sum_exp(row, np.float32(sums.highest[i]))
