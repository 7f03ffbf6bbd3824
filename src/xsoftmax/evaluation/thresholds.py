"""Which labels a row is given: all whose values reach one threshold, the one of the highest micro-F1.

    micro-F1  =  2 hits / (given + labels),    over all pairs of a row and a class together

The value of a class is its score where the model's link is the sigmoid. Else it is the logarithm of its share
e^s_k / sum of e^s, as scores of different rows do not compare. A probability of the sigmoid, and a share, rise with
the value, so that a threshold on one is a threshold on the other.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import logsumexp

from xsoftmax.data.label_sets import LabelSets
from xsoftmax.evaluation.likelihood import visit_whole_rows
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels.scores import ScoreBlock
from xsoftmax.model import Model

# Scores, at most, that choose a threshold: of as many rows as that makes, which settles it to three digits.
MOST_SCORES = 2**26


def values(link: str, scores: np.ndarray) -> np.ndarray:
    """Give what a threshold is compared with, float32 of the shape of ``scores``, all classes of each row."""
    if link == "sigmoid":
        return scores
    wide = scores.astype(np.float64)
    return (wide - logsumexp(wide, axis=1, keepdims=True)).astype(np.float32)


def best_threshold(model: Model, X: Any, labels: LabelSets, pool: ThreadPool | None = None) -> float:
    """Find the threshold that gives these rows labels of the highest micro-F1.

    It lies half-way between the lowest value that reaches it and the next one below; of equally good ones it is the
    highest. The first ``MOST_SCORES`` scores decide, and of one row all of them.

    Parameters
    ----------
    model : Model
    X : sparse array or ndarray of shape (n_samples, n_features), float32
        At least one row.
    labels : LabelSets
    pool : ThreadPool, optional
    """
    n_samples = max(1, MOST_SCORES // model.n_classes)
    X, labels = X[:n_samples], labels.of_rows(slice(0, n_samples))
    candidates, n_labels = np.unique(_of_labels(model, X, labels, pool), return_counts=True)
    counts = []

    def count(block: ScoreBlock) -> None:
        places = np.searchsorted(candidates, values(model.link, block.scores).ravel(), side="right")
        counts.append(np.bincount(places, minlength=len(candidates) + 1))

    visit_whole_rows(model, X, count, pool)
    hits, given = (np.cumsum(each[::-1]) for each in (n_labels, np.sum(counts, axis=0)[1:]))
    lowest = float(candidates[::-1][np.argmax(2 * hits / (given + labels.classes.size))])
    return _between(model, X, lowest, pool)


def _of_labels(model: Model, X: Any, labels: LabelSets, pool: ThreadPool | None) -> np.ndarray:
    """Give the value of each label, float32 of shape (n_labels,)."""
    found, rows = np.empty(labels.classes.size, np.float32), labels.rows

    def visit(block: ScoreBlock) -> None:
        first, last = block.first_row, block.first_row + len(block.scores)
        at = slice(labels.starts[first], labels.starts[last])
        found[at] = values(model.link, block.scores)[rows[at] - first, labels.classes[at]]

    visit_whole_rows(model, X, visit, pool)
    return found


def _between(model: Model, X: Any, lowest: float, pool: ThreadPool | None) -> float:
    """Go half-way down to the next value: rounding, which differs with the rows beside a row, then moves no label."""
    below = []

    def visit(block: ScoreBlock) -> None:
        of_block = values(model.link, block.scores)
        below.append(np.max(of_block, initial=-np.inf, where=of_block < lowest))

    visit_whole_rows(model, X, visit, pool)
    next_one = float(max(below))
    return (lowest + next_one) / 2 if np.isfinite(next_one) else lowest


def labels_above(model: Model, X: Any, threshold: float, pool: ThreadPool | None = None) -> csr_array:
    """Give each row the classes whose values reach a threshold: an int64 indicator, shape (n_samples, n_classes)."""
    found: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def visit(block: ScoreBlock) -> None:
        rows, classes = np.nonzero(values(model.link, block.scores) >= threshold)
        found[block.first_row] = rows + block.first_row, classes.astype(np.int32)

    visit_whole_rows(model, X, visit, pool)
    rows, classes = (np.concatenate(each) for each in zip(*found.values(), strict=True))
    return csr_array((np.ones(rows.size, np.int64), (rows, classes)), shape=(X.shape[0], model.n_classes))
