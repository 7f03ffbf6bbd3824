"""Ranks of several labels per row: how many classes score before each of them, counted block by block of classes.

A class that is no label of the row and scores no lower than a label comes before it; among themselves labels are in
order, by falling score, then by rising class. NaN counts against the model: a class without a number comes before all
labels, a label without one comes after all classes. Memory is a few numbers for each label.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.data.label_sets import LabelSets
from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.model import Model

# The rank of a label that can be no hit: more than any number of classes.
NO_HIT = 2**31 - 1
# Labels whose scores are computed in one go, and numbers of their rows that are copied for it.
LABELS_AT_A_TIME, NUMBERS_AT_A_TIME, FEWEST_LABELS = 2**14, 2**22, 2**9


class LabelRanks(NamedTuple):
    """Labels of rows, with the score and the rank so far of each; and classes that do not count for a row."""

    starts: np.ndarray
    classes: np.ndarray
    scores: np.ndarray
    rank: np.ndarray
    filtered_starts: np.ndarray
    filtered: np.ndarray


def no_ranks(label_sets: LabelSets, filtered: LabelSets | None) -> LabelRanks:
    """Ranks before the first block; ``filtered`` are classes of each row that do not count, perhaps none."""
    starts, classes = label_sets.starts, label_sets.classes
    n = len(classes)
    without = (np.zeros_like(starts), classes[:0]) if filtered is None else (filtered.starts, filtered.classes)
    return LabelRanks(starts, classes, np.zeros(n, np.float32), np.zeros(n, np.int64), *without)


def one_each(y: np.ndarray) -> LabelSets:
    """Make sets of one label each."""
    return LabelSets(np.arange(len(y) + 1, dtype=np.int64), y.astype(np.int32, copy=False))


def mean_of_labels(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Average values of labels, (n_labels,), over the labels of each row: float64 of shape (n_samples,)."""
    if not len(values):
        return np.zeros(0)
    with np.errstate(invalid="ignore"):
        return np.add.reduceat(values.astype(np.float64), starts[:-1]) / np.diff(starts)


def score_labels(model: Model, X: Any, labels: LabelRanks) -> None:
    """Write the scores of the labels of all rows, a few thousand at a time."""
    n_labels, rows = len(labels.classes), LabelSets(labels.starts, labels.classes).rows
    width = NUMBERS_AT_A_TIME // max(1, X.shape[1]) if isinstance(X, np.ndarray) else LABELS_AT_A_TIME
    step = min(LABELS_AT_A_TIME, max(FEWEST_LABELS, width))
    for first in range(0, n_labels, step):
        part = slice(first, first + step)
        labels.scores[part] = model.true_scores(X[rows[part]], labels.classes[part])


@njit(**OPTIONS)
def labels_between(labels, i, first, stop):
    """Where, among all labels, those of row i are whose classes are in ``first`` ... ``stop - 1``."""
    begin, end = labels.starts[i], labels.starts[i + 1]
    while begin < end and labels.classes[begin] < first:
        begin += 1
    stopped = begin
    while stopped < end and labels.classes[stopped] < stop:
        stopped += 1
    return begin, stopped


@njit(**OPTIONS)
def lowest_label(labels, i):
    """Lowest score of the labels of a row; NaN if one of them is."""
    lowest = np.float32(np.inf)
    for each in range(labels.starts[i], labels.starts[i + 1]):
        if math.isnan(labels.scores[each]):
            return labels.scores[each]
        lowest = min(lowest, labels.scores[each])
    return lowest


@njit(**OPTIONS)
def count_before(row, first_class, i, labels, begin, stopped):
    """Add the other classes of a block that come before each label of row i.

    ``begin`` ... ``stopped - 1`` are those labels that are in the block.
    """
    for each in range(labels.starts[i], labels.starts[i + 1]):
        score = labels.scores[each]
        before = no_lower(row, score)
        for other in range(begin, stopped):
            before -= not (labels.scores[other] < score)
        for place in range(labels.filtered_starts[i], labels.filtered_starts[i + 1]):
            k = labels.filtered[place] - first_class
            if 0 <= k < row.size and not holds(labels.classes, begin, stopped, labels.filtered[place]):
                before -= not (row[k] < score)
        labels.rank[each] += before


@njit(**OPTIONS)
def no_lower(row, score):
    """Count the scores of a row that are not below another one; NaN is not below anything."""
    found = np.int32(0)
    for k in range(row.size):
        found = np.int32(found + (not (row[k] < score)))
    return np.int64(found)


@njit(**OPTIONS)
def holds(classes, begin, stop, k):
    """Whether a class is among some."""
    found = False
    for place in range(begin, stop):
        found |= classes[place] == k
    return found


@njit(**OPTIONS)
def order_labels(labels):
    """Add the labels of a row that come before another one; one that does not count is before none, and no hit."""
    for i in range(labels.starts.size - 1):
        begin, end = labels.starts[i], labels.starts[i + 1]
        first, last = labels.filtered_starts[i], labels.filtered_starts[i + 1]
        for each in range(begin, end):
            if holds(labels.filtered, first, last, labels.classes[each]):
                labels.rank[each] = NO_HIT
                continue
            for other in range(begin, end):
                if comes_before(labels.scores, other, each) and not holds(
                    labels.filtered, first, last, labels.classes[other]
                ):
                    labels.rank[each] += 1


@njit(**OPTIONS)
def comes_before(scores, first, second):
    """Whether the first of two labels has the higher score, or an equal one and the lower class."""
    if math.isnan(scores[first]) or math.isnan(scores[second]):
        return math.isnan(scores[second]) and (first < second or not math.isnan(scores[first]))
    return scores[first] > scores[second] or (scores[first] == scores[second] and first < second)


def best_ranks(labels: LabelRanks) -> np.ndarray:
    """Give the lowest rank of each row's labels, int64 of shape (n_samples,)."""
    return np.minimum.reduceat(labels.rank, labels.starts[:-1]) if len(labels.rank) else labels.rank.copy()
