"""Huffman's tree over the words: frequent ones have short paths, so that a step of the hierarchical softmax is short.

-log p(y | x) = sum over inner nodes n on the path to y of softplus(-+ <in_x, out_n>)       (Mikolov et al. 2013)
"""

from typing import NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS


class Huffman(NamedTuple):
    """Paths from the root: word k goes by ``nodes[starts[k] : starts[k + 1]]``, to the side that ``sides`` has there.

    Attributes
    ----------
    starts : ndarray of shape (n_words + 1,), int64
    nodes : ndarray of shape (total length,), int32
        Inner nodes, n_words - 1 of them; the root is the last.
    sides : ndarray of shape (total length,), uint8
    """

    starts: np.ndarray
    nodes: np.ndarray
    sides: np.ndarray


@njit(**OPTIONS)
def huffman(counts):
    """Build the tree for counts that fall, int64 of shape (n_words,): the two rarest are joined, again and again.

    Joined nodes come in rising order by themselves, so that two queues do, without a heap.
    """
    n = counts.size
    weights, parents, side = np.empty(2 * n - 1), np.zeros(2 * n - 1, np.int64), np.zeros(2 * n - 1, np.uint8)
    for k in range(n):
        weights[k] = np.float64(counts[k])
    word, joined = n - 1, n
    for new in range(n, 2 * n - 1):
        weights[new] = 0.0
        for which in range(2):
            if word >= 0 and (joined >= new or weights[word] <= weights[joined]):
                child = word
                word -= 1
            else:
                child = joined
                joined += 1
            weights[new] += weights[child]
            parents[child], side[child] = new, np.uint8(which)
    return _paths(parents, side, n)


@njit(**OPTIONS)
def _paths(parents, side, n):
    root = 2 * n - 2
    depths = np.zeros(2 * n - 1, np.int64)
    for node in range(root - 1, -1, -1):
        depths[node] = depths[parents[node]] + 1
    starts = np.zeros(n + 1, np.int64)
    for k in range(n):
        starts[k + 1] = starts[k] + depths[k]
    nodes, sides = np.empty(starts[n], np.int32), np.empty(starts[n], np.uint8)
    for k in range(n):
        node, place = k, starts[k + 1]
        while node != root:
            place -= 1
            nodes[place], sides[place] = np.int32(parents[node] - n), side[node]
            node = parents[node]
    return Huffman(starts, nodes, sides)
