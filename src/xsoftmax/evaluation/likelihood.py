"""Exact likelihoods and ranks of every row, whatever was trained: of the full softmax, or of the model's own link.

The softmax goes through blocks of classes; other links look at all scores of a row at once.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xsoftmax.evaluation import links
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.mathematics import exp32
from xsoftmax.model import CLASSES_AT_A_TIME, ROWS_AT_A_TIME, Model, ScoreBlock

# Scores that are held at once where a link needs all those of a row.
BLOCK_SCORES = 2**22


@dataclass(frozen=True)
class RowScores:
    """What is known of each row once all its scores were seen.

    Attributes
    ----------
    log_likelihood : ndarray of shape (n_samples,), float64
        log p(y | x), in nats.
    rank : ndarray of shape (n_samples,), int64
        Classes that score no lower than the true one: 0 is a hit. Ties, and NaN, count against the model.
    """

    log_likelihood: np.ndarray
    rank: np.ndarray


def score_rows(model: Model, X: Any, y: np.ndarray, **blocks: int) -> RowScores:
    """Compute the exact log-likelihood and rank of the true class of every row.

    Parameters
    ----------
    model : Model
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32
    **blocks
        Passed to ``Model.score_blocks``; links other than the softmax take all classes at once.
    """
    sums = _no_sums(y)
    if model.link != "softmax":
        log_likelihood, link = np.empty(len(y)), links.load(model.link)
        for block in whole_rows(model, X):
            take_true(block, sums)
            accumulate(block, sums)
            rows = slice(block.first_row, block.first_row + len(block.scores))
            log_likelihood[rows] = link.log_probabilities(block.scores, y[rows, None])[:, 0]
        return RowScores(log_likelihood, sums.rank)
    one_block = model.n_classes <= blocks.get("classes_at_a_time", CLASSES_AT_A_TIME)
    if not one_block:  # ranks need the true score before the first block of classes is counted
        for block in model.score_blocks(X, **blocks):
            take_true(block, sums)
    for block in model.score_blocks(X, **blocks):
        if one_block:
            take_true(block, sums)
        accumulate(block, sums)
    with np.errstate(invalid="ignore", divide="ignore"):
        log_likelihood = sums.score_true.astype(np.float64) - sums.highest - np.log(sums.total)
    return RowScores(log_likelihood, sums.rank)


def whole_rows(model: Model, X: Any) -> Iterator[ScoreBlock]:
    """Score rows, all classes in one block, as many rows at a time as ``BLOCK_SCORES`` allows."""
    rows = max(1, min(ROWS_AT_A_TIME, BLOCK_SCORES // model.n_classes))
    return model.score_blocks(X, classes_at_a_time=model.n_classes, rows_at_a_time=rows)


class RunningSums(NamedTuple):
    """Per row: the true class and its score, the highest score so far, sum e^(score - highest), and the rank."""

    y: np.ndarray
    score_true: np.ndarray
    highest: np.ndarray
    total: np.ndarray
    rank: np.ndarray


def _no_sums(y: np.ndarray) -> RunningSums:
    n = len(y)
    return RunningSums(y, np.empty(n, np.float32), np.full(n, -np.inf), np.zeros(n), np.zeros(n, int))


@njit(**OPTIONS)
def take_true(block, sums):
    """Copy the scores of true classes that lie in this block."""
    for b in range(block.scores.shape[0]):
        i = block.first_row + b
        k = sums.y[i] - block.first_class
        if 0 <= k < block.scores.shape[1]:
            sums.score_true[i] = block.scores[b, k]


@njit(**OPTIONS)
def accumulate(block, sums):
    """Go on with the log-sum-exp, in float64 and relative to the highest score so far, and with the ranks."""
    for b in range(block.scores.shape[0]):
        row = block.scores[b]
        i = block.first_row + b
        score_true = sums.score_true[i]
        top = row[0]
        no_lower = 0
        not_below_infinity = 0
        for k in range(row.size):
            top = max(top, row[k])
            no_lower += not (row[k] < score_true)
            not_below_infinity += not (row[k] < np.inf)
        k = sums.y[i] - block.first_class
        sums.rank[i] += no_lower - (0 <= k < row.size)
        if not_below_infinity:  # NaN or infinity anywhere makes the likelihood NaN
            sums.total[i] = np.nan
            continue
        if top > sums.highest[i]:
            sums.total[i] *= math.exp(sums.highest[i] - top)
            sums.highest[i] = top
        if sums.highest[i] == -np.inf:  # classes of probability zero only
            continue
        reference = np.float32(sums.highest[i])
        part = 0.0
        for k in range(row.size):
            part += exp32(row[k] - reference)
        sums.total[i] += part
