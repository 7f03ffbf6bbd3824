"""The likeliest classes of new rows, with their exact probabilities, in blocks of classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from xsoftmax.evaluation import links
from xsoftmax.evaluation.likelihood import whole_rows
from xsoftmax.model import Model


@dataclass(frozen=True)
class Prediction:
    """Top classes of some rows, the likeliest first.

    Attributes
    ----------
    classes : ndarray of shape (n_samples, k), int64
    probabilities : ndarray of shape (n_samples, k), float64
        Of the model's link, in most cases the full softmax: over all classes they sum to one.
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
    n_samples = X.shape[0]
    if model.link != "softmax":
        return _top_k_of_link(model, X, k)
    best_classes = np.zeros((n_samples, k), np.int64)
    best_scores = np.full((n_samples, k), -np.inf)
    log_total = np.full(n_samples, -np.inf)
    for block in model.score_blocks(X, **blocks):
        rows = slice(block.first_row, block.first_row + len(block.scores))
        scores = block.scores.astype(np.float64)
        log_total[rows] = np.logaddexp(log_total[rows], logsumexp(scores, axis=1))
        numbers = np.broadcast_to(np.arange(scores.shape[1]) + block.first_class, scores.shape)
        scores, numbers = np.hstack([best_scores[rows], scores]), np.hstack([best_classes[rows], numbers])
        best_scores[rows], best_classes[rows] = _largest(scores, numbers, k)
    return Prediction(best_classes, np.exp(best_scores - log_total[:, None]))


def _top_k_of_link(model: Model, X: Any, k: int) -> Prediction:
    """As ``top_k``; noise that is alike for all classes leaves the order of probabilities that of the scores."""
    link = links.load(model.link)
    found = Prediction(np.zeros((X.shape[0], k), np.int64), np.zeros((X.shape[0], k)))
    for block in whole_rows(model, X):
        rows = slice(block.first_row, block.first_row + len(block.scores))
        numbers = np.broadcast_to(np.arange(model.n_classes), block.scores.shape)
        found.classes[rows] = _largest(block.scores, numbers, k)[1]
        found.probabilities[rows] = np.exp(link.log_probabilities(block.scores, found.classes[rows]))
    return found


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
