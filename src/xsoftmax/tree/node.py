"""Fit one node of the tree: which half of its classes goes right, and the logistic regression that says so.

Bamler and Mandt 2020, section 3: maximise, over (w, b) and over the signs s_y of the classes below the node,

    L = sum over points (x, y) of log sigma(s_y (w.x + b))  -  r / 2 (|w|^2 + b^2)

by Newton ascent in (w, b) in turn with the re-split of eq. 9. Changing s_y from -1 to 1 changes L by exactly
Delta_y = sum over x of class y of (w.x + b), the gradient by the sum of (x, 1), and the Hessian not at all: a
re-split costs no pass over the points, so there is one before every Newton step (on icd10 that ends 0.03 nats
higher than ascending to the optimum between re-splits). Neither ever lowers L.

Cost of an alternation: n_points dimension^2 for gradient and Hessian, one Cholesky solution.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.mathematics import exp32
from xsoftmax.kernels.tree import log1p_exp_of_negative

_BLOCK = 256
_ZERO = np.float32(0)
_ONE = np.float32(1)
_POWER_STEPS = 50
_HALVINGS = 20
# A node is done when neither a re-split nor a Newton step gains this much per point, in nats.
TOLERANCE = 1e-6


class Node(NamedTuple):
    """What is known about the classes and points below a node, and the arrays that its fit works in.

    Attributes
    ----------
    X : ndarray of shape (n_points, dimension), float32
        Points, class by class.
    counts : ndarray of shape (n_classes,), int64
        Points of each class.
    sums : ndarray of shape (n_classes, dimension + 1), float64
        Sum of each class's (x, 1).
    right : ndarray of shape (n_classes,), bool
        The split.
    signs : ndarray of shape (n_points,), float32
        The split, by point: 1 right, -1 left.
    w : ndarray of shape (dimension + 1,), float64
        Weights, the bias last.
    """

    X: NDArray[np.float32]
    counts: NDArray[np.int64]
    sums: NDArray[np.float64]
    right: NDArray[np.bool_]
    signs: NDArray[np.float32]
    w: NDArray[np.float64]


class Scratch(NamedTuple):
    """Arrays that one fit after the other overwrites; d = dimension + 1."""

    scores: NDArray[np.float32]
    residuals: NDArray[np.float32]
    curvatures: NDArray[np.float32]
    weights: NDArray[np.float32]
    gradient_part: NDArray[np.float32]
    hessian_part: NDArray[np.float32]
    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]
    factor: NDArray[np.float64]
    step: NDArray[np.float64]
    candidate: NDArray[np.float64]


def scratch(dimension: int) -> Scratch:
    """Allocate the arrays of a fit."""
    d = dimension + 1
    return Scratch(
        scores=np.empty(_BLOCK, np.float32),
        residuals=np.empty(_BLOCK, np.float32),
        curvatures=np.empty(_BLOCK, np.float32),
        weights=np.empty(dimension, np.float32),
        gradient_part=np.empty(d, np.float32),
        hessian_part=np.empty((d, dimension), np.float32),
        gradient=np.empty(d),
        hessian=np.empty((d, d)),
        factor=np.empty((d, d)),
        step=np.empty(d),
        candidate=np.empty(d),
    )


@njit(**OPTIONS)
def fit_node(node, low, high, ridge, max_alternations, work):
    """Fit weights and split; the objective's value is returned, ``node.w`` and ``node.right`` are written.

    Parameters
    ----------
    node : Node
    low, high : int
        Fewest and most classes that may go left.
    ridge : float
        r in the objective.
    max_alternations : int
        At most so many re-splits and Newton steps.
    work : Scratch
    """
    n_points = node.signs.size
    tolerance = TOLERANCE * max(n_points, 1)
    delta = np.empty(node.right.size)
    initial_direction(node, delta)
    mark_right(delta, min(max(node.right.size // 2, low), high), node.right)
    write_signs(node)
    node.w.fill(0.0)
    value = evaluate(node, node.w, ridge, work)
    for _ in range(max_alternations):
        gain = resplit(node, delta, low, high, work)
        value += gain
        improved, promised = newton_step(node, value, ridge, work)
        gain += improved - value
        value = improved
        if max(gain, promised) < tolerance:
            break
    return value


@njit(**OPTIONS)
def initial_direction(node, delta):
    """Project the classes' sums on the dominant eigenvector of their covariance.

    Without features the counts take the projection's place.
    """
    n_classes, d = node.sums.shape
    k = d - 1
    if k == 0:
        for y in range(n_classes):
            delta[y] = node.counts[y]
        return
    mean = np.zeros(k)
    for y in range(n_classes):
        for i in range(k):
            mean[i] += node.sums[y, i] / n_classes
    covariance = np.zeros((k, k))
    for y in range(n_classes):
        for i in range(k):
            centred = node.sums[y, i] - mean[i]
            for j in range(k):
                covariance[i, j] += centred * (node.sums[y, j] - mean[j])
    vector = _dominant_eigenvector(covariance)
    for y in range(n_classes):
        delta[y] = 0.0
        for i in range(k):
            delta[y] += node.sums[y, i] * vector[i]


@njit(**OPTIONS)
def _dominant_eigenvector(matrix):
    """Power iteration from the row of the largest diagonal entry; approximate, it only starts the ascent."""
    k = matrix.shape[0]
    largest = 0
    for i in range(k):
        if matrix[i, i] > matrix[largest, largest]:
            largest = i
    vector = matrix[largest].copy()
    product = np.zeros(k)
    for _ in range(_POWER_STEPS):
        norm = 0.0
        for i in range(k):
            norm += vector[i] * vector[i]
        scale = 1.0 / math.sqrt(norm) if norm > 0.0 else 0.0
        product.fill(0.0)
        for i in range(k):
            for j in range(k):
                product[j] += scale * vector[i] * matrix[i, j]
        vector, product = product, vector
    return vector


@njit(**OPTIONS)
def mark_right(delta, n_left, right):
    """Send the ``n_left`` classes of smallest delta left, of equal ones the first; the others go right."""
    if n_left == 0:
        right.fill(True)
        return
    threshold = smallest(delta.copy(), n_left - 1)
    n_ties = n_left
    for y in range(delta.size):
        n_ties -= delta[y] < threshold
    for y in range(delta.size):
        right[y] = delta[y] > threshold
        if delta[y] == threshold:
            right[y] = n_ties <= 0
            n_ties -= 1


@njit(**OPTIONS)
def smallest(values, rank):
    """Find the value of a rank, from 0, by Hoare's selection; permutes ``values``."""
    low, high = 0, values.size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return values[rank]


@njit(**OPTIONS)
def write_signs(node):
    """Spread the split from classes to points."""
    position = 0
    for y in range(node.right.size):
        sign = np.float32(1) if node.right[y] else np.float32(-1)
        for _ in range(node.counts[y]):
            node.signs[position] = sign
            position += 1


@njit(**OPTIONS)
def resplit(node, delta, low, high, work):
    """Take the best split for the present weights, eq. 9; return its gain and correct the gradient for it."""
    n_classes, d = node.sums.shape
    n_left = 0
    for y in range(n_classes):
        total = 0.0
        for i in range(d):
            total += node.sums[y, i] * node.w[i]
        delta[y] = total
        n_left += total < 0.0
    right = np.empty(n_classes, np.bool_)
    mark_right(delta, min(max(n_left, low), high), right)
    gain = 0.0
    for y in range(n_classes):
        gain += delta[y] * (np.float64(right[y]) - np.float64(node.right[y]))
    if gain <= 1e-9 * node.signs.size:
        return 0.0
    for y in range(n_classes):
        if right[y] != node.right[y]:
            sign = 1.0 if right[y] else -1.0
            for i in range(d):
                work.gradient[i] += sign * node.sums[y, i]
        node.right[y] = right[y]
    write_signs(node)
    return gain


@njit(**OPTIONS)
def newton_step(node, value, ridge, work):
    """Move ``node.w`` by one damped Newton step, given gradient and Hessian there, and evaluate at its end.

    Returns
    -------
    value : float
        Of the objective after the step, not below the one before.
    promised : float
        Twice the gain that the quadratic model saw.
    """
    solve(work.hessian, work.gradient, work.factor, work.step)
    promised = 0.0
    for i in range(node.w.size):
        promised += work.gradient[i] * work.step[i]
    size = 1.0
    for _ in range(_HALVINGS):
        for i in range(node.w.size):
            work.candidate[i] = node.w[i] + size * work.step[i]
        improved = evaluate(node, work.candidate, ridge, work)
        if improved >= value:
            for i in range(node.w.size):
                node.w[i] = work.candidate[i]
            return improved, promised
        size *= 0.5
    return value, 0.0


@njit(**OPTIONS)
def solve(matrix, right_side, factor, solution):
    """Solve a positive definite system by Cholesky's decomposition."""
    d = right_side.size
    for i in range(d):
        for j in range(i + 1):
            total = matrix[i, j]
            for m in range(j):
                total -= factor[i, m] * factor[j, m]
            factor[i, j] = total / factor[j, j] if i > j else math.sqrt(max(total, 1e-12))
    for i in range(d):
        total = right_side[i]
        for m in range(i):
            total -= factor[i, m] * solution[m]
        solution[i] = total / factor[i, i]
    for i in range(d - 1, -1, -1):
        total = solution[i]
        for m in range(i + 1, d):
            total -= factor[m, i] * solution[m]
        solution[i] = total / factor[i, i]


@njit(**OPTIONS)
def evaluate(node, w, ridge, work):
    """Objective at ``w``; its gradient and negative Hessian go to ``work``.

    float32 within a block of points, float64 across blocks.
    """
    d = w.size
    work.gradient.fill(0.0)
    work.hessian.fill(0.0)
    for i in range(d - 1):
        work.weights[i] = np.float32(w[i])
    total = 0.0
    for begin in range(0, node.signs.size, _BLOCK):
        total += _add_block(node, begin, min(_BLOCK, node.signs.size - begin), np.float32(w[d - 1]), work)
    for i in range(d):
        total -= 0.5 * ridge * w[i] * w[i]
        work.gradient[i] -= ridge * w[i]
        work.hessian[i, i] += ridge
    for i in range(d - 1):
        work.hessian[i, d - 1] = work.hessian[d - 1, i]
    return total


@njit(**OPTIONS)
def _add_block(node, begin, size, bias, work):
    k = work.weights.size
    value = _link(node, begin, size, bias, work)
    work.gradient_part.fill(_ZERO)
    work.hessian_part.fill(_ZERO)
    for p in range(size):
        residual = work.residuals[p]
        curvature = work.curvatures[p]
        work.gradient_part[k] += residual
        work.hessian[k, k] += curvature
        for j in range(k):
            x = node.X[begin + p, j]
            work.gradient_part[j] += residual * x
            work.hessian_part[k, j] += curvature * x
        for i in range(k):
            scaled = curvature * node.X[begin + p, i]
            for j in range(k):
                work.hessian_part[i, j] += scaled * node.X[begin + p, j]
    for i in range(k + 1):
        work.gradient[i] += work.gradient_part[i]
        for j in range(k):
            work.hessian[i, j] += work.hessian_part[i, j]
    return value


@njit(**OPTIONS)
def _link(node, begin, size, bias, work):
    """Compute residuals s sigma(-s score) and curvatures sigma (1 - sigma); return the log-likelihood."""
    k = work.weights.size
    for p in range(size):
        score = bias
        for j in range(k):
            score += work.weights[j] * node.X[begin + p, j]
        work.scores[p] = score * node.signs[begin + p]
    for p in range(size):
        t = work.scores[p]
        e = exp32(-abs(t))
        small = e / (_ONE + e)
        work.curvatures[p] = small * (_ONE - small)
        work.residuals[p] = node.signs[begin + p] * (small if t > _ZERO else _ONE - small)
        work.scores[p] = min(t, _ZERO) - log1p_exp_of_negative(abs(t))
    value = 0.0
    for p in range(size):
        value += work.scores[p]
    return value
