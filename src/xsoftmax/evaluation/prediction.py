"""The likeliest classes of new rows, with their exact probabilities, in blocks of classes."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.evaluation import links
from xsoftmax.evaluation.likelihood import accumulate, log_totals, no_sums, sums_on_device, visit_whole_rows
from xsoftmax.gpu.device import NUMBA
from xsoftmax.internal.compiled import njit
from xsoftmax.internal.free_memory import check_free
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.log_sum_exp import scan
from xsoftmax.kernels.scores import ScoreBlock
from xsoftmax.model import Model

# Scores that are looked at together, to see whether one of them is high enough.
AT_A_GLANCE = 64
BYTES = 48  # of one of the best: its class and score among twice as many, its probability


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


def top_k(model: Model, X: Any, k: int, pool: ThreadPool | None = None, **blocks: int) -> Prediction:
    """Find the ``k`` likeliest classes of every row; among equal scores the lower class comes first.

    Parameters
    ----------
    model : Model
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    k : int
        At least 1; more than there are classes gives all of them.
    pool : ThreadPool, optional
        Of threads; results do not depend on how many.
    **blocks
        Passed to ``Model.visit_scores``.

    Returns
    -------
    Prediction

    Raises
    ------
    InputError
        If memory does not hold the best classes, or the rows do not have the model's number of features.
    """
    k = min(k, model.n_classes)
    check_free(BYTES * X.shape[0] * k, f"the {k} best classes of {X.shape[0]} rows", "ask for fewer (--top)")
    best = no_best(X.shape[0], k)
    if model.link != "softmax":
        return _top_k_of_link(model, X, best, pool)
    y = np.full(X.shape[0], -1, np.int32)
    if model.place != NUMBA:
        found = model.pass_on_device(X, pool, k=k)
        totals = log_totals(sums_on_device(found, y))
        return Prediction(found.classes, np.exp(found.scores - totals[:, None]))
    sums = no_sums(y)

    def visit(block: ScoreBlock) -> None:
        accumulate(block, sums, True)
        keep_best(block, best)

    model.visit_scores(X, visit, pool, **blocks)
    classes, scores = best_of(best, 0, X.shape[0])
    return Prediction(classes, np.exp(scores - log_totals(sums)[:, None]))


def _top_k_of_link(model: Model, X: Any, best: "Best", pool: ThreadPool | None) -> Prediction:
    """As ``top_k``; noise that is alike for all classes leaves the order of probabilities that of the scores."""
    link, shape = links.load(model.link), (X.shape[0], best.k)
    found = Prediction(np.zeros(shape, np.int64), np.zeros(shape))

    def visit(block: ScoreBlock) -> None:
        rows = slice(block.first_row, block.first_row + len(block.scores))
        keep_best(block, best)
        found.classes[rows] = best_of(best, rows.start, rows.stop)[0]
        found.probabilities[rows] = np.exp(link.log_probabilities(block.scores, found.classes[rows]))

    visit_whole_rows(model, X, visit, pool)
    return found


class Best(NamedTuple):
    """Classes of each row that may be among the best: more than ``k``, so that sorting is rare.

    Attributes
    ----------
    k : int
    classes : ndarray of shape (n_samples, capacity), int64
        Among equal scores, the lower class comes first.
    scores : ndarray of shape (n_samples, capacity), float32
    n_kept : ndarray of shape (n_samples,), int64
        How many there are.
    least : ndarray of shape (n_samples,), float32
        What a score must exceed to count: the k-th best so far, or NaN for anything.
    """

    k: int
    classes: np.ndarray
    scores: np.ndarray
    n_kept: np.ndarray
    least: np.ndarray


def no_best(n_samples: int, k: int) -> Best:
    """Before the first block."""
    shape = (n_samples, 2 * k)
    nothing = np.full(n_samples, np.nan, np.float32)
    return Best(k, np.empty(shape, np.int64), np.empty(shape, np.float32), np.zeros(n_samples, np.int64), nothing)


@njit(**OPTIONS)
def keep_best(block, best):
    """Keep those classes of a block that may be among the k best; NaN counts as lowest."""
    for b in range(block.scores.shape[0]):
        row, i = block.scores[b], block.first_row + b
        for first in range(0, row.size, AT_A_GLANCE):
            glance = row[first : first + AT_A_GLANCE]
            if scan(glance, best.least[i]).no_lower:
                for j in range(glance.size):
                    if not (glance[j] <= best.least[i]):
                        _keep(best, i, block.first_class + first + j, glance[j])


@njit(**OPTIONS)
def _keep(best, i, k, score):
    n = best.n_kept[i]
    best.classes[i, n] = k
    best.scores[i, n] = np.float32(-np.inf) if math.isnan(score) else score
    best.n_kept[i] = n + 1
    if n + 1 == best.scores.shape[1]:
        _sort(best, i)
        best.least[i] = best.scores[i, best.k - 1]


@njit(**OPTIONS)
def _sort(best, i):
    """Sort what is kept of a row by falling score, then by rising class, and drop all but the k best (Shell 1959)."""
    classes, scores, n = best.classes[i], best.scores[i], best.n_kept[i]
    gap = n // 2
    while gap > 0:
        for j in range(gap, n):
            k, score, place = classes[j], scores[j], j
            while place >= gap and _is_behind(scores[place - gap], classes[place - gap], score, k):
                classes[place], scores[place] = classes[place - gap], scores[place - gap]
                place -= gap
            classes[place], scores[place] = k, score
        gap = 1 if gap == 2 else gap * 5 // 11
    best.n_kept[i] = min(n, best.k)


@njit(**OPTIONS)
def _is_behind(score, k, other_score, other):
    return score < other_score or (score == other_score and k > other)


@njit(**OPTIONS)
def best_of(best, start, stop):
    """Classes of the rows from ``start`` to ``stop``, int64 of shape (n, k), and their scores, the best first."""
    for i in range(start, stop):
        _sort(best, i)
    return best.classes[start:stop, : best.k].copy(), best.scores[start:stop, : best.k].copy()
