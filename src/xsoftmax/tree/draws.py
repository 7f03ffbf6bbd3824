"""The adversarial tree inside compiled loops: draw a class, log-probability of a class, of all classes.

Bamler and Mandt 2020, section 3: log p(y|x) = sum over the path to y of log sigma(+-(w.z + b)), z the
projected row.

Node 1 is the root, the children of node i are 2 i (left) and 2 i + 1 (right), leaf l is node n_leaves + l. A
draw costs log2(n_leaves) scores of ``dimension`` products; a node's weights are one cache line for up to 16
dimensions, the biases a dense array of their own. Each level of one draw waits for the one above, and at the
lower levels for memory: so a block of samples has many draws under way at once.

Probabilities are those with which draws are really made, to float32, as one function decides and tells the
log-probability; blocks, single draws and given classes come to the same bits, as all sums have one order.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from xsoftmax.internal.compiled import njit, overload, types
from xsoftmax.kernels import LEAN, OPTIONS
from xsoftmax.kernels.cache_lines import inner, prefetch
from xsoftmax.kernels.dispatch import declared
from xsoftmax.kernels.mathematics import exp32
from xsoftmax.kernels.random import next_u64, skip, start, stream

_ZERO = np.float32(0)
_ONE = np.float32(1)
_TO_UNIT = np.float32(2.0**-32)
_HALF_UNIT = np.float32(2.0**-33)
# Log-odds beyond which a side is never taken, as 2^-33 is the smallest number drawn.
_RAREST = np.float32(-28)
# Minimax polynomial of log(1 + e) / e on [0, 1]: relative error 3e-8, and no division.
_L0 = np.float32(0.9999999698757188)
_L1 = np.float32(-0.4999949312140336)
_L2 = np.float32(0.3331909652937876)
_L3 = np.float32(-0.2484298038488246)
_L4 = np.float32(0.19106000371372625)
_L5 = np.float32(-0.13663233121823856)
_L6 = np.float32(0.07822580872962974)
_L7 = np.float32(-0.029505153030716304)
_L8 = np.float32(0.005232673134184143)

# Sums keep their order, so that all kernels come to the same bits.
STRICT = LEAN | {"fastmath": {"nsz"}}
_STRICT_BLOCK = OPTIONS | {"fastmath": {"nsz"}}
LANES = 64
_HALF = LANES // 2
# Nodes of the levels above these are as good as always in the second level of the cache.
_CACHED_LEVELS = 9

# Stands for infinity where all classes are on one side: sigma(-1000) and log sigma(1000) are 0, exactly.
CERTAIN = np.float32(1000)


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


@declared
def log1p_exp_of_negative(distance):
    """log(1 + e^-distance) for distance >= 0, in the precision of the argument."""


@overload(log1p_exp_of_negative, inline="always")
def _log1p_exp_of_negative(distance):
    if distance == types.float32:

        def implementation(distance):
            e = exp32(max(-distance, _RAREST))
            high = ((_L8 * e + _L7) * e + _L6) * e + _L5
            return e * (((((high * e + _L4) * e + _L3) * e + _L2) * e + _L1) * e + _L0)
    else:

        def implementation(distance):
            return math.log1p(math.exp(-distance))

    return implementation


@njit(**LEAN)
def depth_of(view):
    """Decisions above a leaf."""
    depth = 0
    while (1 << depth) < view.bias.size:
        depth += 1
    return depth


@njit(inline="always", **STRICT)
def bernoulli_draws(distance, bits):
    """Decide, by 32 random bits, whether to take the unlikely side of a node whose |score| is ``distance``.

    With e = e^-distance its probability is e / (1 + e). As small probabilities are compared with small numbers,
    they are exact to float32 down to 2^-33; what is less likely is never taken.
    """
    e = exp32(max(-distance, _RAREST))
    return (np.float32(np.uint32(bits)) * _TO_UNIT + _HALF_UNIT) * (_ONE + e) < e


@njit(inline="always", **STRICT)
def _log_sigmoid(unlikely, distance):
    """Log-probability of a node's likely or unlikely side, where |score| is ``distance``."""
    return (-distance if unlikely else _ZERO) - log1p_exp_of_negative(distance)


@njit(**LEAN)
def n_words(view):
    """Random numbers of 64 bits that one draw takes: one for two levels."""
    return np.uint64((depth_of(view) + 1) // 2)


@njit(**STRICT)
def descend(view, Z, i, state):
    """Draw a class for one row: what ``descend_block`` does, one draw at a time.

    It branches on purpose: the processor then goes on with the next node ahead of the decision.

    Parameters
    ----------
    view : TreeView
    Z : ndarray of shape (n_samples, width), float32
        Projected rows, laid out like the weights.
    i : int64
        Row of ``Z``.
    state : uint64
        Of ``kernels.random``; ``n_words`` numbers are drawn.

    Returns
    -------
    class : int64
    log_q : float32
        Log-probability of that class.
    state : uint64
    """
    n_leaves = view.bias.size
    node = np.int64(1)
    log_q = 0.0
    bits = np.uint64(0)
    level = 0
    while node < n_leaves:
        if level & 1:
            bits >>= np.uint64(32)
        else:
            state, bits = next_u64(state)
        child = min(2 * node, n_leaves - 2)
        prefetch(view.weights, child)
        prefetch(view.weights, child + 1)
        score = inner(view.weights, node, Z, i) + view.bias[node]
        distance = abs(score)
        if bernoulli_draws(distance, bits):
            node = 2 * node + (1 if score <= _ZERO else 0)
            log_q += np.float64(_log_sigmoid(True, distance))
        else:
            node = 2 * node + (0 if score <= _ZERO else 1)
            log_q += np.float64(_log_sigmoid(False, distance))
        level += 1
    return np.int64(view.class_of_leaf[node - n_leaves]), np.float32(log_q), state


@njit(**_STRICT_BLOCK)
def descend_block(view, Z, samples, states, n_per_sample, classes, log_q):
    """Draw classes for a block of samples, LANES draws at a time.

    While the nodes of one half of the draws come from memory, the other half decides. What is drawn does not
    depend on which draws go together: draw j of a sample takes the numbers of its state that ``descend`` takes
    the j-th time.

    Parameters
    ----------
    view : TreeView
    Z : ndarray of shape (n_samples, width), float32
        Projected rows, laid out like the weights.
    samples : ndarray of shape (n,), int64
        Rows of ``Z``.
    states : ndarray of shape (n,), uint64
        Of ``kernels.random``, one per sample.
    n_per_sample : int
    classes : ndarray of shape (n, n_per_sample), int64
        Written.
    log_q : ndarray of shape (n, n_per_sample), float32
        Written: the log-probabilities of ``classes``.
    """
    n_leaves, depth, words = view.bias.size, depth_of(view), n_words(view)
    nodes = np.empty((2, _HALF), np.int32)
    rows = np.empty((2, _HALF), np.int64)
    state = np.empty((2, _HALF), np.uint64)
    bits = np.empty((2, _HALF), np.uint64)
    parts = np.empty((2, _HALF), np.float32)
    totals = np.empty((2, _HALF))
    n = samples.size * n_per_sample
    for begin in range(0, n, LANES):
        for lane in range(LANES):
            b, j = divmod(min(begin + lane, n - 1), n_per_sample)
            h, g = divmod(lane, _HALF)
            rows[h, g] = samples[b]
            prefetch(Z, rows[h, g])
            state[h, g] = skip(states[b], np.uint64(j) * words)
        nodes.fill(1)
        totals.fill(0.0)
        n_halves = 2 if n - begin > _HALF else 1
        for level in range(depth):
            for h in range(n_halves):
                for g in range(_HALF):
                    if level & 1:
                        bits[h, g] >>= np.uint64(32)
                    else:
                        state[h, g], bits[h, g] = next_u64(state[h, g])
                for g in range(_HALF):
                    node = np.int64(nodes[h, g])
                    parts[h, g] = inner(view.weights, node, Z, rows[h, g]) + view.bias[node]
                for g in range(_HALF):
                    unlikely = bernoulli_draws(abs(parts[h, g]), bits[h, g])
                    right = unlikely == (parts[h, g] <= _ZERO)
                    nodes[h, g] = np.int32(2) * nodes[h, g] + np.int32(right)
                    parts[h, g] = _log_sigmoid(unlikely, abs(parts[h, g]))
                for g in range(_HALF):
                    totals[h, g] += np.float64(parts[h, g])
                if _CACHED_LEVELS <= level < depth - 1:
                    for g in range(_HALF):
                        prefetch(view.weights, np.int64(nodes[h, g]))
        for lane in range(min(LANES, n - begin)):
            b, j = divmod(begin + lane, n_per_sample)
            h, g = divmod(lane, _HALF)
            classes[b, j] = view.class_of_leaf[nodes[h, g] - n_leaves]
            log_q[b, j] = np.float32(totals[h, g])


@njit(**STRICT)
def log_probability_of(view, Z, i, y):
    """Log-probability, float32, of class ``y`` for row ``i`` of ``Z``, laid out like the weights."""
    depth = depth_of(view)
    leaf = np.int64(view.leaf_of_class[y]) + view.bias.size
    log_q = 0.0
    for level in range(_CACHED_LEVELS, depth):
        prefetch(view.weights, leaf >> (depth - level))
    for level in range(depth):
        node = leaf >> (depth - level)
        score = inner(view.weights, node, Z, i) + view.bias[node]
        right = (leaf >> (depth - level - 1)) & 1
        log_q += np.float64(_log_sigmoid((right == 1) == (score <= _ZERO), abs(score)))
    return np.float32(log_q)


@njit(**_STRICT_BLOCK)
def log_probability_block(view, Z, samples, y, out):
    """Log-probability of one class for each of a block of samples: ``log_probability_of``, LANES at a time.

    Parameters
    ----------
    view : TreeView
    Z : ndarray of shape (n_samples, width), float32
        Projected rows, laid out like the weights.
    samples : ndarray of shape (n,), int64
        Rows of ``Z``.
    y : ndarray of shape (n,), int32 or int64
        Classes.
    out : ndarray of shape (n,), float32
        Written.
    """
    n_leaves, depth = view.bias.size, depth_of(view)
    leaves = np.empty(LANES, np.int32)
    parts = np.zeros(LANES, np.float32)
    totals = np.empty(LANES)
    for begin in range(0, samples.size, LANES):
        n_lanes = min(LANES, samples.size - begin)
        leaves.fill(n_leaves)
        for g in range(n_lanes):
            leaves[g] += view.leaf_of_class[y[begin + g]]
            prefetch(Z, samples[begin + g])
        totals.fill(0.0)
        for level in range(depth):
            ahead = depth - level - 2
            for g in range(n_lanes):
                node = np.int64(leaves[g] >> (depth - level))
                parts[g] = inner(view.weights, node, Z, samples[begin + g]) + view.bias[node]
                if level >= _CACHED_LEVELS and ahead > 0:
                    prefetch(view.weights, np.int64(leaves[g] >> ahead))
            for g in range(LANES):
                right = (leaves[g] >> np.int32(depth - level - 1)) & np.int32(1)
                parts[g] = _log_sigmoid((right == 1) == (parts[g] <= _ZERO), abs(parts[g]))
            for g in range(LANES):
                totals[g] += np.float64(parts[g])
        for g in range(n_lanes):
            out[begin + g] = np.float32(totals[g])


@njit(**OPTIONS)
def draw_rows(view, Z, seed, classes, log_q):
    """Draw one class per row, each from random numbers of its own position; as ``descend_block`` otherwise."""
    key = stream(seed, 0)
    states = np.empty(Z.shape[0], np.uint64)
    for i in range(states.size):
        states[i] = start(key, i)
    descend_block(view, Z, np.arange(Z.shape[0]), states, 1, classes, log_q)
