"""Greedy message passing: which classes have a slope, told by scores of blocks of columns.

Yen et al., Loss decomposition for fast learning in large output spaces, ICML 2018, algorithm 2, for their smoothed
margin L (eq. 10), or for the softmax. With z_jk what block j of B adds to the score of class k, and z_k the sum over
blocks,

    min over messages lambda of  (1 / B) sum_j L(B (z_j + lambda_j)),  sum_j lambda_j = 0,   is   L(z)

at lambda*_jk = z_k / B - z_jk. A round finds the classes A that have a slope in some block, and moves their messages
by eta of the way to lambda*: as all of them begin at 0, each class has one number, the way it has gone. With eta = 1
the classes of A are exact at once; the paper's eta is 2 / (t + 2) in round t.

A class that a block did not retrieve is missing there, where the paper takes 0 for its score; once it is in A, all of
its scores are computed.
"""

from typing import NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, OPTIONS
from xsoftmax.kernels.bisimplex import threshold
from xsoftmax.kernels.dispatch import declared, implements
from xsoftmax.kernels.log_sum_exp import INFINITY, scan, write_exp


class Margin(NamedTuple):
    """The margin of one true class, which is the last, smoothed by ``smoothing``."""

    smoothing: float


class Softmax(NamedTuple):
    """The softmax: the slope of a class is its probability, less its share among the true ones if it is of these."""


class Messages(NamedTuple):
    """What is known of n classes that some of B blocks retrieved, or that are true, and always known.

    Attributes
    ----------
    classes : ndarray of shape (n,), int64
    parts : ndarray of shape (n_blocks, n), float32
        The z_jk.
    known : ndarray of shape (n_blocks, n), float32
        1 where ``parts`` has it, 0 where it is missing.
    sums : ndarray of shape (n,), float32
        The z_k, of classes that were in A, and the true ones.
    ways : ndarray of shape (n,), float32
        How far the messages of a class have gone, 0 to 1.
    chosen : ndarray of shape (n,), uint8
        1 for classes in A of the last round, 2 for others that were in A before, 0 for the rest.
    """

    classes: np.ndarray
    parts: np.ndarray
    known: np.ndarray
    sums: np.ndarray
    ways: np.ndarray
    chosen: np.ndarray


@njit(**OPTIONS)
def empty_messages(n, n_blocks):
    """Room for so many classes, of which nothing is known."""
    return Messages(
        np.empty(n, np.int64),
        np.zeros((n_blocks, n), np.float32),
        np.zeros((n_blocks, n), np.float32),
        np.zeros(n, np.float32),
        np.zeros(n, np.float32),
        np.zeros(n, np.uint8),
    )


@njit(**OPTIONS)
def step_size(eta, t):
    """How far round t, from 1 on, goes: ``eta``, or of an eta of 0 the paper's 2 / (t + 2)."""
    return np.float32(eta) if eta > 0 else np.float32(2.0 / (t + 2.0))


@njit(**OPTIONS)
def choose(loss, messages, least_slope):
    """Find the classes with a slope above ``least_slope`` in some block; tell whether there are any."""
    n, n_blocks = messages.classes.size, messages.parts.shape[0]
    scores, any_is = np.empty(n, np.float32), False
    for c in range(n):
        messages.chosen[c] = 2 * (messages.chosen[c] > 0)
    for j in range(n_blocks):
        scores_of_block(messages, j, scores)
        any_is |= mark(loss, scores, messages.known[j], np.float32(least_slope), messages.chosen)
    return any_is


@declared
def mark(loss, scores, known, least_slope, chosen):
    """Set ``chosen`` to 1 for classes with a slope above ``least_slope`` in a block; tell whether there are any."""


@implements(mark, Margin)
def _mark_margin(loss, scores, known, least_slope, chosen):
    """The true class is among them wherever another is."""
    n, any_is, inverse = scores.size - 1, False, np.float32(1.0 / loss.smoothing)
    highest, gap, theta = threshold(scores[n], scores[:n], known[:n], inverse, np.empty(n, np.float32))
    if gap > np.float32(0):
        for c in range(n):
            if known[c] > 0 and (scores[c] - highest) * inverse - theta > least_slope:
                chosen[c], any_is = 1, True
    if any_is:
        chosen[n] = 1
    return any_is


@implements(mark, Softmax)
def _mark_softmax(loss, scores, known, least_slope, chosen):
    for c in range(scores.size):
        scores[c] = scores[c] if known[c] > 0 else -INFINITY
    least, n = np.float32(least_slope * write_exp(scores, scan(scores, np.float32(0)).highest)), 0
    for c in range(scores.size):
        above = scores[c] > least
        chosen[c] = np.uint8(1) if above else chosen[c]
        n += above
    return n > 0


@njit(**LEAN)
def scores_of_block(messages, j, scores):
    """Write B (z_jk + lambda_jk) of all classes; of those that are missing, nothing that counts."""
    n_blocks = np.float32(messages.parts.shape[0])
    for c in range(scores.size):
        way = messages.ways[c]
        scores[c] = n_blocks * (np.float32(1) - way) * messages.parts[j, c] + way * messages.sums[c]


@njit(**LEAN)
def pass_on(messages, eta):
    """Move the messages of the classes that were chosen in this round."""
    for c in range(messages.ways.size):
        if messages.chosen[c] == 1:
            messages.ways[c] = eta + (np.float32(1) - eta) * messages.ways[c]
