"""Log-probabilities of many classes of the tree for many rows, level by level.

Leaves are taken in chunks, rows in groups of ROWS. For each level above a chunk, all nodes are scored, then all
their log-sigmoids taken, then the sums along the paths: three loops that vectorise over rows and nodes, beside
which little remains. The chunk's levels stay in the nearest caches.

Results come out leaf by leaf, ROWS rows side by side, and are turned into rows of classes last.
"""

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.cache_lines import FLOATS, prefetch, score_lines, turn_lines
from xsoftmax.tree.draws import depth_of, log1p_exp_of_negative

ROWS = 32
_CHUNK = 128
_AHEAD = 32


@njit(**OPTIONS)
def log_probabilities(view, Z, leaves, columns, lines, out):
    """Log-probabilities of many classes for many rows, in the precision of ``out``.

    Each node above the leaves is scored once per chunk.

    Parameters
    ----------
    view : TreeView
    Z : ndarray of shape (n_samples, dimension), float32
    leaves : ndarray of int32, ascending
    columns : ndarray of int32
        Where in a row of ``out`` each leaf goes: a permutation.
    lines : ndarray of shape (n_columns, ROWS), of the type of ``out``
        Room for results; from numpy, which asks for large pages.
    out : ndarray of shape (n_samples, n_columns), float32 or float64
    """
    depth = depth_of(view)
    nodes, slots, bounds = _above(leaves, depth)
    positions = np.empty(leaves.size, np.int32)
    for i in range(leaves.size):
        positions[columns[i]] = i
    z = np.zeros((view.weights.shape[1], ROWS), out.dtype)
    scores = np.empty((_CHUNK, ROWS), out.dtype)
    tails = np.empty((_CHUNK, ROWS), out.dtype)
    totals = np.zeros((2, 2 * _CHUNK, ROWS), out.dtype)
    for begin in range(0, Z.shape[0], ROWS):
        n_rows = min(ROWS, Z.shape[0] - begin)
        for r in range(n_rows):
            for j in range(Z.shape[1]):
                z[j, r] = Z[begin + r, j]
        for chunk in range(bounds.shape[0]):
            totals[0, 0] = 0
            for level in range(depth):
                first = bounds[chunk, level]
                n_nodes = bounds[chunk, level + 1] - first
                for p in range(n_nodes):
                    score_lines(view.weights, view.bias, np.int64(nodes[first + p]), z, scores, p)
                _log1p(scores.reshape(scores.size)[: n_nodes * ROWS], tails.reshape(tails.size))
                _add(slots[first : first + n_nodes], scores, tails, totals[level & 1], totals[1 - (level & 1)])
            first = bounds[chunk, depth]
            for i in range(min(_CHUNK, leaves.size - chunk * _CHUNK)):
                slot = np.int64(slots[first + i])
                for r in range(ROWS):
                    lines[chunk * _CHUNK + i, r] = totals[depth & 1, slot, r]
        _turn(lines, positions, out[begin : begin + n_rows])


@njit(**OPTIONS)
def _above(leaves, depth):
    """List the nodes above each chunk of leaves, level by level.

    A node at place p of its level writes the log-probabilities of its children to slots p and p + _CHUNK of the next
    one, where they find them as their own. (Left and right apart: where they alternate, the compiler sees an overlap
    between all that the loop writes, and does not vectorise it.)

    Returns
    -------
    nodes : ndarray of int32
        Chunk by chunk, level by level, the leaves last.
    slots : ndarray of int32
        Where each finds its own log-probability.
    bounds : ndarray of shape (n_chunks, depth + 2), int64
        Where each chunk's levels begin, and the last one ends.
    """
    n_chunks = (leaves.size + _CHUNK - 1) // _CHUNK
    bounds = np.empty((n_chunks, depth + 2), np.int64)
    capacity = leaves.size
    for level in range(depth):
        # Two chunks share a node at most, their border's.
        capacity += min(1 << level, leaves.size) + n_chunks
    nodes, slots = np.empty(capacity, np.int32), np.zeros(capacity, np.int32)
    of_level = np.empty((depth + 1, _CHUNK), np.int32)
    slot_of = np.zeros((depth + 1, _CHUNK), np.int32)
    counts = np.empty(depth + 1, np.int64)
    end = 0
    for chunk in range(n_chunks):
        counts[depth] = min(_CHUNK, leaves.size - chunk * _CHUNK)
        for i in range(counts[depth]):
            of_level[depth, i] = leaves[chunk * _CHUNK + i] + (1 << depth)
        for level in range(depth - 1, -1, -1):
            p = -1
            for i in range(counts[level + 1]):
                child = of_level[level + 1, i]
                if p < 0 or of_level[level, p] != child >> 1:
                    p += 1
                    of_level[level, p] = child >> 1
                slot_of[level + 1, i] = p + _CHUNK * (child & 1)
            counts[level] = p + 1
        for level in range(depth + 1):
            bounds[chunk, level] = end
            for i in range(counts[level]):
                nodes[end + i], slots[end + i] = of_level[level, i], slot_of[level, i]
            end += counts[level]
        bounds[chunk, depth + 1] = end
    return nodes, slots, bounds


@njit(**OPTIONS)
def _log1p(scores, tails):
    """log(1 + e^-|score|) of all scores."""
    for i in range(scores.size):
        tails[i] = log1p_exp_of_negative(abs(scores[i]))


@njit(**OPTIONS)
def _add(slots, scores, tails, own, of_children):
    """Log-probabilities of both children of each node of a level, given its own."""
    zero = scores.dtype.type(0)
    for p in range(slots.size):
        slot = np.int64(slots[p])
        for r in range(ROWS):
            score = scores[p, r]
            base = own[slot, r] - tails[p, r]
            of_children[p, r] = base + min(-score, zero)
            of_children[p + _CHUNK, r] = base + min(score, zero)


@njit(**OPTIONS)
def _turn(lines, positions, out):
    """Write ``lines[positions].T`` to ``out``, squares of a cache line's width at a time."""
    n_rows, n_columns = out.shape
    for first in range(0, n_columns, FLOATS):
        end = min(first + FLOATS, n_columns)
        for c in range(first + _AHEAD, min(first + _AHEAD + FLOATS, n_columns)):
            prefetch(lines, np.int64(positions[c]))
        for h in range(ROWS // FLOATS):
            if end == first + FLOATS and n_rows >= (h + 1) * FLOATS:
                turn_lines(lines, positions, first, h, out, h * FLOATS)
                continue
            for r in range(h * FLOATS, min((h + 1) * FLOATS, n_rows)):
                for c in range(first, end):
                    out[r, c] = lines[positions[c], r]
