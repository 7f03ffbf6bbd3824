"""The likeliest classes of new rows, with their exact probabilities, in blocks of classes."""

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from scipy.special import logsumexp

from xsoftmax.model import Model


@dataclass(frozen=True)
class Prediction:
    """Top classes of some rows, the likeliest first.

    Attributes
    ----------
    classes : ndarray of shape (n_samples, k), int64
    probabilities : ndarray of shape (n_samples, k), float64
        Of the full softmax: over all classes they sum to one.
    """

    classes: np.ndarray
    probabilities: np.ndarray


def top_k(model: Model, X: Any, k: int, **blocks: int) -> Prediction:
    """Find the ``k`` likeliest classes of every row; among equal scores the lower class comes first.

    Parameters
    ----------
    model : Model
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    k : int
        At least 1; more than there are classes gives all of them.
    **blocks
        Passed to ``Model.score_blocks``.
    """
    k = min(k, model.n_classes)
    classes = np.empty((X.shape[0], k), np.int64)
    log_probabilities = np.empty((X.shape[0], k))
    for first, blocks_of_rows in groupby(model.score_blocks(X, **blocks), lambda block: block.first_row):
        best_scores, best_classes, log_total = np.empty((0, 0)), np.empty((0, 0), np.int64), np.empty(0)
        for block in blocks_of_rows:
            scores = block.scores.astype(np.float64)
            numbers = np.broadcast_to(np.arange(scores.shape[1]) + block.first_class, scores.shape)
            total = logsumexp(scores, axis=1)
            if block.first_class:
                scores = np.hstack([best_scores, scores])
                numbers = np.hstack([best_classes, numbers])
                total = np.logaddexp(log_total, total)
            best_scores, best_classes = _largest(scores, numbers, k)
            log_total = total
        rows = slice(first, first + len(log_total))
        classes[rows], log_probabilities[rows] = best_classes, best_scores - log_total[:, None]
    return Prediction(classes, np.exp(log_probabilities))


def _largest(scores: np.ndarray, numbers: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest scores of each row, in falling order, with their numbers; the first of equals comes first."""
    if 4 * k < scores.shape[1]:
        kth = np.partition(scores, scores.shape[1] - k, axis=1)[:, -k]
        candidates = (scores >= kth[:, None]).sum(axis=1).max()
        keep = np.argpartition(-scores, candidates - 1, axis=1)[:, :candidates]
        keep.sort(axis=1)
        scores, numbers = np.take_along_axis(scores, keep, 1), np.take_along_axis(numbers, keep, 1)
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(scores, order, 1), np.take_along_axis(numbers, order, 1)
