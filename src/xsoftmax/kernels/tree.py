"""The adversarial tree inside compiled loops: draw a class, log-probability of a class, of all classes.

Bamler and Mandt 2020, section 3: log p(y|x) = sum over the path to y of log sigma(+-(w.z + b)), z the
projected row.

Node 1 is the root, the children of node i are 2 i (left) and 2 i + 1 (right), leaf l is node n_leaves + l. A
draw costs log2(n_leaves) scores of ``dimension`` products; a node's weights are one cache line for up to 16
dimensions, the biases a dense array of their own. The walk branches on purpose: the processor then fetches
the next node ahead of the decision.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.mathematics import exp32
from xsoftmax.kernels.random import next_u64, start, stream

_ZERO = np.float32(0)
_ONE = np.float32(1)
_TWO = np.float32(2)
# Beyond this, log sigma(t) = t to float32, and e^-t would leave its range.
_LINEAR = np.float32(-80)
_LARGE_PRODUCT = 1e200
# 2 atanh(t) = 2 t (1 + t^2 / 3 + ...), t <= 1/3: the first term left out is below 1e-8.
_A1 = np.float32(1 / 3)
_A2 = np.float32(1 / 5)
_A3 = np.float32(1 / 7)
_A4 = np.float32(1 / 9)
_A5 = np.float32(1 / 11)
_A6 = np.float32(1 / 13)

ROWS = 32
_TILE = 256


class TreeView(NamedTuple):
    """The arrays of a tree, laid out for the kernels.

    Attributes
    ----------
    weights : ndarray of shape (n_leaves, width), float32
        Row i belongs to node i, row 0 to none; rows begin at cache lines and are padded with zeros.
    bias : ndarray of shape (n_leaves,), float32
    class_of_leaf : ndarray of shape (n_leaves,), int32
        -1 for padding.
    leaf_of_class : ndarray of shape (n_classes,), int32
    """

    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    class_of_leaf: NDArray[np.int32]
    leaf_of_class: NDArray[np.int32]


def log1p_exp_of_negative(distance):
    """log(1 + e^-distance) for distance >= 0, in the precision of the argument."""
    raise NotImplementedError("for compiled code only")


@overload(log1p_exp_of_negative, inline="always")
def _log1p_exp_of_negative(distance):
    if distance == types.float32:

        def implementation(distance):
            e = exp32(-distance)
            t = e / (_TWO + e)
            u = t * t
            series = ((((_A6 * u + _A5) * u + _A4) * u + _A3) * u + _A2) * u + _A1
            return _TWO * (t + t * u * series)
    else:

        def implementation(distance):
            return math.log1p(math.exp(-distance))

    return implementation


@njit(**OPTIONS)
def _score(view, node, z_row):
    score = view.bias[node]
    for j in range(z_row.size):
        score += view.weights[node, j] * z_row[j]
    return score


@njit(**OPTIONS)
def _above_zero(bits):
    """Uniform float32 in (0, 1), both ends left out: a branch of probability below 2^-24 is never taken."""
    return np.float32(bits >> np.uint64(41)) * np.float32(2.0**-23) + np.float32(2.0**-24)


@njit(**OPTIONS)
def _accumulate(log_q, product, t, inverse):
    """Add log sigma(t) to ``log_q - log(product)``: by a multiplication with 1 / sigma(t) wherever that can be."""
    if t < _LINEAR:
        return log_q + t, product
    product *= inverse
    if product > _LARGE_PRODUCT:
        return log_q - math.log(product), 1.0
    return log_q, product


@njit(**OPTIONS)
def descend(view, z_row, state):
    """Draw a class for a projected row.

    Parameters
    ----------
    view : TreeView
    z_row : ndarray of shape (dimension,), float32
    state : uint64
        Of ``kernels.random``; one number is drawn per level.

    Returns
    -------
    class : int64
    log_q : float32
        Log-probability of that class.
    state : uint64
    """
    n_leaves = view.bias.size
    node = 1
    log_q = 0.0
    product = 1.0
    while node < n_leaves:
        t = _score(view, node, z_row)
        state, bits = next_u64(state)
        node = 2 * node
        inverse = _ONE + exp32(-t)
        if _above_zero(bits) * inverse < _ONE:
            node += 1
            log_q, product = _accumulate(log_q, product, t, inverse)
        else:
            log_q, product = _accumulate(log_q, product, -t, _ONE + exp32(t))
    return np.int64(view.class_of_leaf[node - n_leaves]), np.float32(log_q - math.log(product)), state


@njit(**OPTIONS)
def log_probability_of(view, z_row, y):
    """Log-probability, float32, of class ``y`` for a projected row."""
    n_leaves = view.bias.size
    node = np.int64(view.leaf_of_class[y]) + n_leaves
    log_q = 0.0
    product = 1.0
    while node > 1:
        right = node & 1
        node >>= 1
        t = _score(view, node, z_row)
        t = t if right else -t
        log_q, product = _accumulate(log_q, product, t, _ONE + exp32(-t))
    return np.float32(log_q - math.log(product))


@njit(**OPTIONS)
def log_probability_of_rows(view, Z, y, out):
    """Log-probability of one class per row; ``out`` has shape (n_samples,)."""
    for i in range(y.size):
        out[i] = log_probability_of(view, Z[i], y[i])


@njit(**OPTIONS)
def draw_rows(view, Z, seed, classes, log_q):
    """Draw one class per row, each from random numbers of its own position."""
    key = stream(seed, 0)
    for i in range(Z.shape[0]):
        classes[i], log_q[i], _ = descend(view, Z[i], start(key, i))


@njit(**OPTIONS)
def log_probabilities(view, Z, leaves, columns, out):
    """Log-probabilities of many classes for many rows, in the precision of ``out``.

    Walks the part of the tree above the given leaves depth first, ROWS rows at a time; each node is scored
    once, and only the path to the present leaf is kept.

    Parameters
    ----------
    view : TreeView
    Z : ndarray of shape (n_samples, dimension), float32
    leaves : ndarray of int32, ascending
    columns : ndarray of int32
        Where in a row of ``out`` each leaf goes.
    out : ndarray of shape (n_samples, n_columns), float32 or float64
    """
    depth = _depth(view)
    z = np.zeros((view.weights.shape[1], ROWS), out.dtype)
    scores = np.empty(ROWS, out.dtype)
    totals = np.zeros((depth + 1, 2, ROWS), out.dtype)
    tile = np.empty((_TILE, ROWS), out.dtype)
    for begin in range(0, Z.shape[0], ROWS):
        n_rows = min(ROWS, Z.shape[0] - begin)
        for r in range(n_rows):
            for j in range(Z.shape[1]):
                z[j, r] = Z[begin + r, j]
        previous = np.int64(-1)
        for first in range(0, leaves.size, _TILE):
            n_leaves = min(_TILE, leaves.size - first)
            for i in range(n_leaves):
                leaf = np.int64(leaves[first + i])
                _walk(view, z, depth, previous, leaf, scores, totals)
                tile[i] = totals[depth, leaf & 1]
                previous = leaf
            for r in range(n_rows):
                for i in range(n_leaves):
                    out[begin + r, columns[first + i]] = tile[i, r]


@njit(inline="always", **OPTIONS)
def _depth(view):
    depth = 0
    while (1 << depth) < view.bias.size:
        depth += 1
    return depth


@njit(**OPTIONS)
def _walk(view, z, depth, previous, leaf, scores, totals):
    """Move the current path from one leaf to another.

    ``totals[l]`` holds the log-probabilities of the two nodes of level l below the path, left and right.
    """
    level = 0
    if previous >= 0:
        level = 1
        while level < depth and (previous >> (depth - level)) == (leaf >> (depth - level)):
            level += 1
    while level < depth:
        node = (np.int64(1) << level) + (leaf >> (depth - level))
        _score_rows(view, node, z, scores)
        _branch_rows(scores, totals, level, node & 1)
        level += 1


@njit(inline="always", **OPTIONS)
def _score_rows(view, node, z, scores):
    """Score a node for ROWS rows.

    ``z`` has a column per row; its height is padded like the weights, so four products share a load and a
    store.
    """
    weights = view.weights
    bias = view.bias[node]
    for r in range(ROWS):
        scores[r] = bias
    for j in range(0, z.shape[0], 4):
        w0, w1, w2, w3 = weights[node, j], weights[node, j + 1], weights[node, j + 2], weights[node, j + 3]
        for r in range(ROWS):
            scores[r] += w0 * z[j, r] + w1 * z[j + 1, r] + w2 * z[j + 2, r] + w3 * z[j + 3, r]


@njit(inline="always", **OPTIONS)
def _branch_rows(scores, totals, level, side):
    """Write the log-probabilities of both children of a node, given its own, for ROWS rows.

    One array for all, and inlined: with two, or called, this loop does not vectorise (6 ns for 2.6).
    """
    zero = scores.dtype.type(0)
    for r in range(ROWS):
        score = scores[r]
        base = totals[level, side, r] - log1p_exp_of_negative(abs(score))
        totals[level + 1, 1, r] = base + min(score, zero)
        totals[level + 1, 0, r] = base + min(-score, zero)
