"""Greedy message passing: which classes have a slope, told by scores of blocks of columns.

Yen et al., Loss decomposition for fast learning in large output spaces, ICML 2018, algorithm 2, for their smoothed
margin L (eq. 10). With z_jk what block j of B adds to the score of class k, and z_k the sum over blocks,

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
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.bisimplex import threshold


class Messages(NamedTuple):
    """What is known of n classes that some of B blocks retrieved; the true class comes last, and is always known.

    Attributes
    ----------
    classes : ndarray of shape (n + 1,), int64
    parts : ndarray of shape (n_blocks, n + 1), float32
        The z_jk.
    known : ndarray of shape (n_blocks, n + 1), float32
        1 where ``parts`` has it, 0 where it is missing.
    sums : ndarray of shape (n + 1,), float32
        The z_k, of classes that were in A, and the true one.
    ways : ndarray of shape (n + 1,), float32
        How far the messages of a class have gone, 0 to 1.
    chosen : ndarray of shape (n + 1,), uint8
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
    """Room for so many classes and the true one, of which nothing is known."""
    return Messages(
        np.empty(n + 1, np.int64),
        np.zeros((n_blocks, n + 1), np.float32),
        np.zeros((n_blocks, n + 1), np.float32),
        np.zeros(n + 1, np.float32),
        np.zeros(n + 1, np.float32),
        np.zeros(n + 1, np.uint8),
    )


@njit(**OPTIONS)
def step_size(eta, t):
    """How far round t, from 1 on, goes: ``eta``, or of an eta of 0 the paper's 2 / (t + 2)."""
    return np.float32(eta) if eta > 0 else np.float32(2.0 / (t + 2.0))


@njit(**OPTIONS)
def choose(messages, smoothing, least_slope):
    """Find the classes with a slope above ``least_slope`` in some block; tell whether there are any.

    The true class is among them wherever another is.
    """
    n, n_blocks = messages.classes.size - 1, messages.parts.shape[0]
    scores, workspace = np.empty(n + 1, np.float32), np.empty(n, np.float32)
    for c in range(n + 1):
        messages.chosen[c] = 2 * (messages.chosen[c] > 0)
    inverse, any_is = np.float32(1.0 / smoothing), False
    for j in range(n_blocks):
        scores_of_block(messages, j, scores)
        highest, gap, theta = threshold(scores[n], scores[:n], messages.known[j, :n], inverse, workspace)
        if gap > np.float32(0):
            for c in range(n):
                slope = (scores[c] - highest) * inverse - theta
                if messages.known[j, c] > 0 and slope > np.float32(least_slope):
                    messages.chosen[c], any_is = 1, True
    if any_is:
        messages.chosen[n] = 1
    return any_is


@njit(**OPTIONS)
def scores_of_block(messages, j, scores):
    """Write B (z_jk + lambda_jk) of all classes; of those that are missing, nothing that counts."""
    n_blocks = np.float32(messages.parts.shape[0])
    for c in range(scores.size):
        way = messages.ways[c]
        scores[c] = n_blocks * (np.float32(1) - way) * messages.parts[j, c] + way * messages.sums[c]


@njit(**OPTIONS)
def pass_on(messages, eta):
    """Move the messages of the classes that were chosen in this round."""
    for c in range(messages.ways.size):
        if messages.chosen[c] == 1:
            messages.ways[c] = eta + (np.float32(1) - eta) * messages.ways[c]
