"""Fit the adversarial tree, level by level from the root (Bamler and Mandt 2020, section 3).

The classes below a node are a contiguous piece of one permutation of all classes, and every class's points a
contiguous piece of the points sorted by class, so a node gathers its points once and then only streams over
them.

A node with 2^h leaves below it may send from n - min(half, n) to min(half, n) of its n classes left, with
half = 2^(h-1): where n_classes is no power of two, the padding gives re-splits that freedom (icd10: 0.012
nats per validation point better than equal halves; re-splits themselves are worth 0.25).
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from xsoftmax.internal.compiled import njit
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels import OPTIONS
from xsoftmax.tree.draws import CERTAIN
from xsoftmax.tree.engine import Engine, FitLevel
from xsoftmax.tree.model import Tree
from xsoftmax.tree.node import Node, fit_node, scratch
from xsoftmax.tree.projection import Features, Projection, principal_components

MAX_ALTERNATIONS = 50


def fit_tree(
    X: Features,
    y: NDArray[np.int32],
    n_classes: int,
    dimension: int = 16,
    regularizer: float = 0.1,
    seed: int = 0,
    standardize: bool | None = None,
    resplit: bool = True,
    progress: Callable[[int], None] | None = None,
    engine: Engine | None = None,
) -> Tree:
    """Fit projection, structure and weights.

    Parameters
    ----------
    X : csr_array or ndarray of shape (n_samples, n_features), float32
        May have no features at all: the tree then learns the class frequencies.
    y : ndarray of shape (n_samples,), int32
    n_classes : int
        A class without points gets a leaf and a small probability.
    dimension : int
        Components of the projection, fewer where the data have fewer.
    regularizer : float
        lambda_n of the paper, which their code multiplies by the number n of classes below a node: the
        penalty of a node is regularizer n / 2 (|w|^2 + b^2).
    seed : int
        Starts the search for the principal components of sparse data; nothing else is random.
    standardize : bool, optional
        Z-score the features before the projection; by default for dense X only.
    resplit : bool
        Re-split by eq. 9 before each Newton step, as in the paper. Without, the classes below a node stay sorted
        by the initial direction and only their number on the left changes, as in the authors' program, but never
        for the worse.
    progress : callable, optional
        Called with the number of levels done after each level.
    engine : Engine, optional
        Makes the sums over rows; by default compiled code does.
    """
    check_arguments(X, y, n_classes, dimension, regularizer)
    projection = principal_components(X, dimension, standardize, seed, engine)
    return fit_projected(projection, projection(X), y, n_classes, regularizer, resplit, progress, engine)


def fit_projected(
    projection: Projection,
    Z: NDArray[np.float32],
    y: NDArray[np.int32],
    n_classes: int,
    regularizer: float,
    resplit: bool = True,
    progress: Callable[[int], None] | None = None,
    engine: Engine | None = None,
) -> Tree:
    """Fit structure and weights to rows that are projected already, (n_samples, dimension); see ``fit_tree``."""
    by_class = np.argsort(y, kind="stable")
    counts = np.bincount(y, minlength=n_classes)
    Z, offsets = Z[by_class], np.concatenate([[0], np.cumsum(counts)])
    sums = class_sums(Z, offsets)
    if engine is None:
        fit_level: FitLevel = partial(_fit_level, Z, offsets, counts, sums, float(regularizer), resplit)
    else:
        fit_level = engine.levels(Z, offsets, sums, float(regularizer), resplit)
    return Tree(projection, *_fit_levels(fit_level, n_classes, Z.shape[1], progress))


def depth_of(n_classes: int) -> int:
    """Levels of decisions above the leaves of a tree."""
    return (n_classes - 1).bit_length()


def check_arguments(X: Features, y: NDArray[np.int32], n_classes: int, dimension: int, regularizer: float) -> None:
    """Raise InputError, naming what is wrong, if no tree can be fitted to these."""
    if dimension < 0:
        raise InputError(f"dimension of the tree is {dimension}; give 0 or more")
    if not regularizer > 0:
        raise InputError(f"regularizer of the tree is {regularizer}; give a number above 0")
    if n_classes < 1:
        raise InputError(f"a tree over {n_classes} classes; there has to be at least one")
    if y.size != X.shape[0]:
        raise InputError(f"{X.shape[0]} rows but {y.size} labels; give one label per row")
    if y.size and not 0 <= y.min() <= y.max() < n_classes:
        raise InputError(f"labels run from {y.min()} to {y.max()}; with {n_classes} classes they run from 0")
    values = X if isinstance(X, np.ndarray) else X.data
    if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
        wrong = values.flat[int(np.argmin(np.isfinite(values)))]
        raise InputError(f"a feature is {wrong}; no tree can be fitted to rows that are not all numbers")


def _fit_levels(
    fit_level: FitLevel, n_classes: int, dimension: int, progress: Callable[[int], None] | None
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return the weights of all nodes and the class of each leaf, -1 for padding."""
    depth = depth_of(n_classes)
    weights = np.zeros((2**depth, dimension + 1), np.float32)
    order = np.arange(n_classes)
    bounds = np.array([0, n_classes])
    for level in range(depth):
        bounds = fit_level(order, bounds, 2 ** (depth - level - 1), weights[2**level : 2 ** (level + 1)])
        if progress is not None:
            progress(level + 1)
    class_of_leaf = np.full(2**depth, -1, np.int32)
    occupied = np.diff(bounds) > 0
    class_of_leaf[occupied] = order[bounds[:-1][occupied]]
    return weights, class_of_leaf


@njit(**OPTIONS)
def class_sums(Z, offsets):
    """Sum of (z, 1) over the points of each class, float64."""
    n_classes = offsets.size - 1
    k = Z.shape[1]
    sums = np.zeros((n_classes, k + 1))
    for c in range(n_classes):
        for p in range(offsets[c], offsets[c + 1]):
            for j in range(k):
                sums[c, j] += Z[p, j]
        sums[c, k] = offsets[c + 1] - offsets[c]
    return sums


def _fit_level(
    Z: NDArray[np.float32],
    offsets: NDArray[np.int64],
    counts: NDArray[np.int64],
    sums: NDArray[np.float64],
    regularizer: float,
    resplit: bool,
    order: NDArray[np.int64],
    bounds: NDArray[np.int64],
    half: int,
    weights: NDArray[np.float32],
) -> NDArray[np.int64]:
    """Fit all nodes of a level: see ``xsoftmax.tree.engine.FitLevel``."""
    work = scratch(Z.shape[1])
    return _fit_nodes(Z, offsets, counts, sums, order, bounds, half, regularizer, weights, resplit, work)


@njit(**OPTIONS)
def _fit_nodes(Z, offsets, counts, sums, order, bounds, half, regularizer, weights, resplit, work):
    """Fit all nodes of a level; permutes ``order`` within each and returns the bounds one level down."""
    n_nodes = bounds.size - 1
    next_bounds = np.empty(2 * n_nodes + 1, np.int64)
    next_bounds[0] = 0
    for i in range(n_nodes):
        begin, end = bounds[i], bounds[i + 1]
        n_classes = end - begin
        n_left = 0
        if n_classes > 1:
            n_left = _fit_one(
                Z, offsets, counts, sums, order[begin:end], half, regularizer * n_classes, weights[i], resplit, work
            )
        if n_left == 0 and n_classes > 0:
            weights[i].fill(np.float32(0))
            weights[i, -1] = CERTAIN
        next_bounds[2 * i + 1] = begin + n_left
        next_bounds[2 * i + 2] = end
    return next_bounds


@njit(**OPTIONS)
def _fit_one(Z, offsets, counts, sums, classes, half, ridge, weights, resplit, work):
    """Fit one node and sort its classes; return how many are left, 0 if all are on one side."""
    n_classes = classes.size
    node = _gather(Z, offsets, counts, sums, classes)
    high = min(half, n_classes)
    fit_node(node, n_classes - high, high, ridge, MAX_ALTERNATIONS, work, resplit)
    for i in range(weights.size):
        weights[i] = np.float32(node.w[i])
    n_left = _partition(classes, node.right)
    return 0 if n_left == n_classes else n_left


@njit(**OPTIONS)
def _partition(classes, right):
    """Sort left before right, stably; return how many are left."""
    moved = np.empty_like(classes)
    n_left = n_right = 0
    for i in range(classes.size):
        if right[i]:
            moved[n_right] = classes[i]
            n_right += 1
        else:
            classes[n_left] = classes[i]
            n_left += 1
    for i in range(n_right):
        classes[n_left + i] = moved[i]
    return n_left


@njit(**OPTIONS)
def _gather(Z, offsets, counts, sums, classes):
    """Copy what is below a node, so that its fit streams."""
    n_classes, k = classes.size, Z.shape[1]
    n_points = 0
    for c in classes:
        n_points += counts[c]
    X = np.empty((n_points, k), np.float32)
    node_counts = np.empty(n_classes, np.int64)
    node_sums = np.empty((n_classes, k + 1))
    position = 0
    for i in range(n_classes):
        c = classes[i]
        node_counts[i] = counts[c]
        for j in range(k + 1):
            node_sums[i, j] = sums[c, j]
        for p in range(offsets[c], offsets[c + 1]):
            for j in range(k):
                X[position, j] = Z[p, j]
            position += 1
    right = np.empty(n_classes, np.bool_)
    return Node(X, node_counts, node_sums, right, np.empty(n_points, np.float32), np.zeros(k + 1))
