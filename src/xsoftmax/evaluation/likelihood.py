"""Exact likelihoods and ranks, in blocks of classes: the full softmax of every row, whatever was trained."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.mathematics import exp32
from xsoftmax.model import CLASSES_AT_A_TIME, Model


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
        Passed to ``Model.score_blocks``.
    """
    n_samples = len(y)
    sums = RunningSums(
        y,
        np.empty(n_samples, np.float32),
        np.full(n_samples, -np.inf),
        np.zeros(n_samples),
        np.zeros(n_samples, int),
    )
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


class RunningSums(NamedTuple):
    """Per row: the true class and its score, the highest score so far, sum e^(score - highest), and the rank."""

    y: np.ndarray
    score_true: np.ndarray
    highest: np.ndarray
    total: np.ndarray
    rank: np.ndarray


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
