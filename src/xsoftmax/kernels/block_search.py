"""Search by blocks of columns: each retrieves classes, and messages between them tell which of these have a slope.

Yen et al., Loss decomposition for fast learning in large output spaces, ICML 2018, algorithm 2: ``clusters`` is the
index that each block has, ``messages`` what is passed. Cost for a sample: the centroids, a row of the weights for
every ``budget`` classes, all blocks together, and a row for each class that has a slope in some block.
"""

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, OPTIONS, PART
from xsoftmax.kernels.clusters import partial_score, retrieve
from xsoftmax.kernels.messages import Messages, choose, empty_messages, pass_on, step_size


@njit(**OPTIONS)
def retrieved(index, weights, features, i, budget, excluded, given):
    """Ask each block for classes, up to a budget, and score these by its columns.

    Parameters
    ----------
    excluded : int
        A class that no block is to retrieve, and that comes last, known as a whole; -1: none.
    given : ndarray of int32
        True classes that come first, known as a whole; blocks may retrieve them.

    Returns
    -------
    Messages
        The true classes are chosen already.
    """
    n_blocks, n_classes = index.members.shape
    budget = min(budget, n_classes)
    most = min(n_classes, n_blocks * budget + given.size)
    messages, table, n = empty_messages(most + 1, n_blocks), np.full(_table_size(most), -1), 0
    for k in given:
        n = _place_of(table, messages.classes, np.int64(k), n) + 1
        complete(weights, features, i, index.bounds, messages, n - 1)
    messages.chosen[:n] = 1
    reach, found = np.empty(index.centroids.shape[1], np.float32), np.empty(budget, np.int64)
    for b in range(n_blocks):
        for k in found[: retrieve(index, b, features, i, budget, excluded, reach, found)]:
            c = _place_of(table, messages.classes, k, n)
            n = max(n, c + 1)
            if messages.known[b, c] == 0:
                _note(messages, b, c, weights, features, i, k, index.bounds)
    if excluded >= 0:
        messages.classes[n] = excluded
        complete(weights, features, i, index.bounds, messages, n)
        n += 1
    _, parts, known, sums, ways, chosen = messages
    return Messages(messages.classes[:n], parts[:, :n], known[:, :n], sums[:n], ways[:n], chosen[:n])


@njit(**OPTIONS)
def find_slopes(given, messages, rounds, eta, least_slope):
    """Pass messages so many rounds, or as many as bring new classes; ``messages.chosen`` tells who has a slope then.

    ``given`` is a tuple: the loss, weights, features, the sample's number and the bounds of blocks; an ``eta`` of 0
    is the paper's.
    """
    loss, weights, features, i, bounds = given
    for t in range(1, rounds + 1):
        if not choose(loss, messages, least_slope):
            return
        if t == rounds or not (_complete_new(weights, features, i, bounds, messages) or eta < 1):
            return
        pass_on(messages, step_size(eta, t))


@njit(**LEAN)
def _complete_new(weights, features, i, bounds, messages):
    """Complete the classes that were chosen for the first time; tell whether there are any."""
    any_is = False
    for c in range(messages.classes.size):
        if messages.chosen[c] == 1 and messages.ways[c] == 0:
            complete(weights, features, i, bounds, messages, c)
            any_is = True
    return any_is


@njit(**PART)
def complete(weights, features, i, bounds, messages, c):
    """Score a class by the columns of all blocks."""
    messages.sums[c] = np.float32(0)
    for b in range(messages.parts.shape[0]):
        if messages.known[b, c] == 0:
            _note(messages, b, c, weights, features, i, messages.classes[c], bounds)
        messages.sums[c] += messages.parts[b, c]


@njit(**PART)
def _note(messages, b, c, weights, features, i, k, bounds):
    messages.parts[b, c] = partial_score(weights, features, i, k, bounds[b], bounds[b + 1])
    messages.known[b, c] = np.float32(1)


@njit(**LEAN)
def _table_size(n):
    """Places of a table that is at most half full, a power of two."""
    size = 4
    while size < 2 * n:
        size *= 2
    return size


@njit(**PART)
def _place_of(table, classes, k, n):
    """Look a class up in ``table``, by its number and then place by place; put it at ``n`` if it is not there."""
    at = k & (table.size - 1)
    while table[at] >= 0:
        if classes[table[at]] == k:
            return table[at]
        at = (at + 1) & (table.size - 1)
    table[at], classes[n] = n, k
    return n
