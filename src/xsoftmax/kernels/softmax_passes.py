"""Exact softmax where the scores of a minibatch for all classes would be too many to hold: two passes over blocks.

The first pass sums exponentials, block by block, each relative to its own highest score; the second scores every
block once more, and moves its classes by the probabilities. A third matrix product buys that no more than a block of
scores exists. Sums are kept per block and added in their order: bits do not depend on who worked on which.
"""

import math
from typing import NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.full_softmax import classes_of_a_block, move_classes, score_classes
from xsoftmax.kernels.layout import array_of
from xsoftmax.kernels.log_sum_exp import INFINITY, scan, sum_exp, write_exp


class Sums(NamedTuple):
    """What the first pass leaves of a batch of n samples.

    Attributes
    ----------
    highest : ndarray of shape (n_blocks, n), float32
        Score of the classes of a block, the true one left out; minus infinity if no other is there.
    others : ndarray of shape (n_blocks, n), float64
        Sum of e^(score - highest) over these.
    true : ndarray of shape (n,), float32
        Score of the true class.
    """

    highest: np.ndarray
    others: np.ndarray
    true: np.ndarray


class Shares(NamedTuple):
    """What the second pass needs, of shape (n,): p_k = factor e^(s_k - highest); ``of_true`` is -(1 - p_y)."""

    highest: np.ndarray
    factor: np.ndarray
    of_true: np.ndarray


def empty_sums(n_samples: int, n_classes: int) -> Sums:
    """Room for the first pass."""
    shape = (-(-n_classes // classes_of_a_block(n_classes)), n_samples)
    return Sums(np.empty(shape, np.float32), np.empty(shape), np.empty(n_samples, np.float32))


@njit(**OPTIONS)
def sum_classes(batch, W, labels, workspace, sums, size, first, last):
    """The first pass over classes first..last - 1, in blocks of ``size``; tell whether all scores are finite.

    ``labels`` are those of the batch, ``workspace`` is float32 of shape (n, size); ``first`` is a multiple of
    ``size``.
    """
    for start in range(first, last, size):
        stop = min(start + size, last)
        if not score_classes(batch, W, start, stop, workspace, start):
            return False
        block = start // size
        for b in range(labels.size):
            row = workspace[b, : stop - start]
            own = labels[b] - start
            if 0 <= own < row.size:
                sums.true[b] = row[own]
                row[own] = -INFINITY
            highest = scan(row, np.float32(0)).highest
            sums.highest[block, b] = highest
            sums.others[block, b] = sum_exp(row, highest) if highest > -INFINITY else 0.0
    return True


@njit(**OPTIONS)
def shares_of(sums):
    """Add up the blocks."""
    n_blocks, n = sums.highest.shape
    found = Shares(np.empty(n, np.float32), np.empty(n, np.float32), np.empty(n, np.float32))
    for b in range(n):
        highest = sums.true[b]
        for block in range(n_blocks):
            highest = max(highest, sums.highest[block, b])
        others = 0.0
        for block in range(n_blocks):
            if sums.others[block, b] > 0:
                others += sums.others[block, b] * math.exp(np.float64(sums.highest[block, b] - highest))
        total = others + math.exp(np.float64(sums.true[b] - highest))
        found.highest[b], found.factor[b], found.of_true[b] = highest, 1 / total, -others / total
    return found


@njit(**OPTIONS)
def move_by_shares(batch, optimizer, pace, weights, labels, workspace, shares, size, first, last):
    """The second pass over classes first..last - 1; parameters as for the first."""
    for start in range(first, last, size):
        stop = min(start + size, last)
        score_classes(batch, array_of(weights), start, stop, workspace, start)
        for b in range(labels.size):
            row = workspace[b, : stop - start]
            write_exp(row, shares.highest[b])
            for k in range(row.size):
                row[k] *= shares.factor[b]
            own = labels[b] - start
            if 0 <= own < row.size:
                row[own] = shares.of_true[b]
        move_classes(batch, optimizer, pace, workspace, weights, start, stop, start)
