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
from numpy.typing import NDArray

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.tree.objective import BLOCK, evaluate
from xsoftmax.tree.split import initial_direction, mark_right, update_split, write_signs

HALVINGS = 20
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
        scores=np.empty(BLOCK, np.float32),
        residuals=np.empty(BLOCK, np.float32),
        curvatures=np.empty(BLOCK, np.float32),
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
def fit_node(node, low, high, ridge, max_alternations, work, resplit=True):
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
    resplit : bool
        Whether the split is that of eq. 9, or in the order of the initial direction throughout.
    """
    n_points = node.signs.size
    tolerance = TOLERANCE * max(n_points, 1)
    delta = np.empty(node.right.size)
    initial_direction(node, delta)
    # Each step overwrites delta with that of eq. 9; the copy stays as it is.
    keys = delta if resplit else delta.copy()
    mark_right(keys, min(max(node.right.size // 2, low), high), node.right)
    write_signs(node)
    node.w.fill(0.0)
    value = evaluate(node, node.w, ridge, work)
    for _ in range(max_alternations):
        gain = update_split(node, delta, keys, low, high, work)
        value += gain
        improved, promised = newton_step(node, value, ridge, work)
        gain += improved - value
        value = improved
        if max(gain, promised) < tolerance:
            break
    return value


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
    for _ in range(HALVINGS):
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
