"""The quadratic kernel: classes that the model itself finds likely, by the square of their scores.

Blanc and Rendle, Adaptive sampled softmax with kernel based sampling, ICML 2018:

    q(k | x)  =  (alpha s_k^2 + 1) / sum_j (alpha s_j^2 + 1),    s_k = x.w_k + b_k at the last refresh

A square is a product of sums: sum_{k in S} s_k^2 = z^T (sum_{k in S} v_k v_k^T) z with z = (x, 1), v_k = (w_k, b_k).
So a binary tree over blocks of about n_features classes, whose nodes keep the sum of v v^T of their left child,
finds the block of a draw in log2(n_blocks) quadratic forms; the classes of the block are scored one by one. q is
exactly normalised and stays that of the last refresh while the weights move on, so that weights 1 / q are unbiased.

Cost: a draw n_features^2 log2(n_classes / n_features) / 2 products, a refresh n_classes n_features^2 / 2: that of
n_classes / log2(n_classes / n_features) draws, so that with very many classes it should be rare. Memory: the matrices
take what the weights take, and a copy of these is kept.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import h5py
import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import free_bytes
from xsoftmax.internal.hdf5 import attribute, put
from xsoftmax.internal.hdf5_checks import check_array
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import weigh_by_probability
from xsoftmax.kernels.random import next_u64
from xsoftmax.kernels.rows import Csr, Dense, features_of
from xsoftmax.kernels.steps import draw, log_probability
from xsoftmax.proposals import TrainingSet, proposal

MAX_FEATURES = 512
_ROWS = 4096


@proposal(
    draws=True, adaptive=True, by_row=True, cost="D^2 log2(K / D) / 2 products, and K D^2 / 2 every {refresh} steps"
)
class QuadraticKernel(NamedTuple):
    """Parameters: ``alpha``, how much scores count; ``refresh``, steps between looks at weights; ``n_sampled``."""

    alpha: float = 100.0
    refresh: int = 2000
    n_sampled: int = 1

    def fit(self, data: TrainingSet) -> "FittedQuadraticKernel":
        """Begin at weights of zero, where all classes are alike.

        Raises
        ------
        InputError
            If there are too many features for it to make sense, or too little memory.
        """
        n_features = data.X.shape[1]
        _check(data.n_classes, n_features)
        fitted = FittedQuadraticKernel(empty_tree(data.n_classes, n_features), self.alpha, self.refresh)
        fitted.refresh(fitted.tree.weights)
        return fitted


MEMBER = QuadraticKernel


class KernelTree(NamedTuple):
    """The tree over the classes and what it is made of.

    Attributes
    ----------
    weights : ndarray of shape (n_classes, n_features + 1), float32
        Of the last refresh, biases last; a model without biases has them at zero.
    bounds : ndarray of shape (n_blocks + 1,), int64
        Block b holds the classes from bounds[b] up to bounds[b + 1]; n_blocks is a power of two.
    left : ndarray of shape (n_blocks, n), float64, with n = (n_features + 1) (n_features + 2) / 2
        Row i: lower triangle of the sum of v v^T over the left child of node i, entries off the diagonal doubled.
        The children of node i are 2 i and 2 i + 1, the root is 1; row 0 is of all classes.
    """

    weights: np.ndarray
    bounds: np.ndarray
    left: np.ndarray


def n_blocks_of(n_classes: int, n_features: int) -> int:
    """Blocks of about as many classes as there are features, and a power of two of them."""
    return 1 << max(0, round(math.log2(max(1.0, n_classes / (n_features + 1)))))


def memory(n_classes: int, n_features: int) -> int:
    """Bytes of a ``KernelTree``."""
    width = n_features + 1
    return 4 * n_classes * width + 8 * n_blocks_of(n_classes, n_features) * (width * (width + 1) // 2)


def empty_tree(n_classes: int, n_features: int) -> KernelTree:
    """Allocate a tree."""
    width, n_blocks = n_features + 1, n_blocks_of(n_classes, n_features)
    bounds = np.arange(n_blocks + 1) * n_classes // n_blocks
    left = np.zeros((n_blocks, width * (width + 1) // 2))
    return KernelTree(np.zeros((n_classes, width), np.float32), bounds, left)


def _check(n_classes: int, n_features: int) -> None:
    if n_features > MAX_FEATURES:
        raise InputError(
            f"proposal quadratic-kernel: the data have {n_features} features, of which a draw takes the square; it "
            f"takes {MAX_FEATURES} at most; prepare them with fewer (normalize: {{pca: 64}}), or take proposal tree"
        )
    needed, free = memory(n_classes, n_features), free_bytes()
    if needed > free:
        raise InputError(
            f"proposal quadratic-kernel: {n_classes} classes x {n_features} features need {needed >> 20} MB for its "
            f"tree, {free >> 20} MB are free; prepare the data with fewer features (normalize: {{pca: 64}})"
        )


@dataclass(frozen=True)
class FittedQuadraticKernel:
    """The distribution at the last refresh, which changes ``tree`` in place: kernels see it too."""

    tree: KernelTree
    alpha: float = 100.0
    refresh_steps: int = 2000
    name = "quadratic-kernel"
    seconds = 0.0

    def refresh(self, W: np.ndarray) -> None:
        """Look at the weights, (n_classes, n_features + 1), biases last."""
        self.tree.weights[:] = W
        sum_squares(self.tree)

    def kernel(self, X: Any) -> "QuadraticKernelDraws":
        """What the training loop draws from."""
        return QuadraticKernelDraws(features_of(X, True), self.tree, self.alpha)

    def log_q(self, X: Any, start: int, stop: int) -> np.ndarray:
        """Log-probabilities of a block of classes, float32 of shape (n_samples, stop - start).

        The sum over all classes is a quadratic form, here as in the draws.
        """
        W = self.tree.weights.astype(np.float64)
        gram = W.T @ W
        result = np.empty((X.shape[0], stop - start), np.float32)
        for first in range(0, X.shape[0], _ROWS):
            rows = X[first : first + _ROWS]
            Z = np.column_stack([rows if isinstance(rows, np.ndarray) else rows.toarray(), np.ones(rows.shape[0])])
            total = self.alpha * np.einsum("ij,ij->i", Z @ gram, Z) + len(W)
            result[first : first + _ROWS] = np.log((self.alpha * (Z @ W[start:stop].T) ** 2 + 1) / total[:, None])
        return result

    def inclusion(self, n_sampled: int) -> None:
        """Rows differ."""
        return None

    def save(self, group: h5py.Group) -> None:
        """Keep the weights of the last refresh; the tree follows from them."""
        group["weights"] = self.tree.weights
        put(group, alpha=self.alpha, refresh_steps=self.refresh_steps)


def restore(group: h5py.Group, n_classes: int, n_features: int) -> FittedQuadraticKernel:
    """Read what ``save`` wrote of a proposal over so many classes, for rows of so many features."""
    check_array(group["weights"], np.float32, n_classes, n_features + 1)
    _check(n_classes, n_features)
    W, tree = group["weights"][:], empty_tree(n_classes, n_features)
    fitted = FittedQuadraticKernel(tree, float(attribute(group, "alpha")), int(attribute(group, "refresh_steps")))
    fitted.refresh(W)
    return fitted


class QuadraticKernelDraws(NamedTuple):
    """What the kernels see: the rows, with a constant 1 for the biases, and the tree."""

    features: Dense | Csr
    tree: KernelTree
    alpha: float


@njit(**OPTIONS)
def sum_squares(tree):
    """Fill ``tree.left`` from ``tree.weights``, block by block, each node when its left child is complete.

    The sum of a right child goes on to its parent, whose left child was stored before.
    """
    n_blocks = tree.left.shape[0]
    total = np.empty(tree.left.shape[1])
    for block in range(n_blocks):
        total[:] = 0.0
        for k in range(tree.bounds[block], tree.bounds[block + 1]):
            _add_square(tree.weights[k], total)
        node = n_blocks + block
        while node > 1 and node & 1:
            node >>= 1
            total += tree.left[node]
        if node > 1:
            tree.left[node >> 1] = total
    tree.left[0] = total


@njit(**OPTIONS)
def _add_square(v, total):
    """Add the lower triangle of v v^T, entries off the diagonal twice."""
    first = 0
    for i in range(v.size):
        twice = 2.0 * np.float64(v[i])
        for j in range(i):
            total[first + j] += twice * np.float64(v[j])
        total[first + i] += np.float64(v[i]) * np.float64(v[i])
        first += i + 1


@njit(**OPTIONS)
def _quadratic_form(triangle, z):
    value = 0.0
    first = 0
    for i in range(z.size):
        inner = 0.0
        for j in range(i + 1):
            inner += triangle[first + j] * z[j]
        value += inner * z[i]
        first += i + 1
    return value


@njit(**OPTIONS)
def _weight(proposal, z, k):
    """Unnormalised probability of class ``k``, alpha s_k^2 + 1."""
    score = 0.0
    for j in range(z.size):
        score += np.float64(proposal.tree.weights[k, j]) * z[j]
    return proposal.alpha * score * score + 1.0


@njit(**OPTIONS)
def _total(proposal, z):
    return proposal.alpha * _quadratic_form(proposal.tree.left[0], z) + proposal.tree.weights.shape[0]


@njit(**OPTIONS)
def _fraction(bits):
    """Uniform float64 in [0, 1)."""
    return np.float64(bits >> np.uint64(11)) * 2.0**-53


def fill_row(features, i, z):
    """Write sample ``i`` to ``z``, (n_features + 1,), its constant feature last."""
    raise TypeError("compiled code only")


@implements(fill_row, Dense)
def _fill_dense(features, i, z):
    for j in range(features.X.shape[1]):
        z[j] = features.X[i, j]
    z[features.X.shape[1]] = features.constant


@implements(fill_row, Csr)
def _fill_csr(features, i, z):
    z[:] = 0.0
    for j in range(features.indptr[i], features.indptr[i + 1]):
        z[features.indices[j]] += features.data[j]
    z[features.n_features] = features.constant


@njit(**OPTIONS)
def _draw_one(proposal, z, total, rng):
    """Draw a class: down to a block, then along its classes; return it and its unnormalised probability."""
    tree = proposal.tree
    n_blocks = tree.left.shape[0]
    node, first, stop = 1, 0, n_blocks
    while node < n_blocks:
        middle = (first + stop) >> 1
        n_left = tree.bounds[middle] - tree.bounds[first]
        left = proposal.alpha * _quadratic_form(tree.left[node], z) + n_left
        rng, bits = next_u64(rng)
        node *= 2
        if _fraction(bits) * total < left:
            total, stop = left, middle
        else:
            total, first, node = total - left, middle, node + 1
    rng, bits = next_u64(rng)
    left = _fraction(bits) * total
    k, last = tree.bounds[first], tree.bounds[first + 1] - 1
    weight = _weight(proposal, z, k)
    while left >= weight and k < last:
        left -= weight
        k += 1
        weight = _weight(proposal, z, k)
    return k, weight, rng


@implements(draw, QuadraticKernelDraws, allocates=True)
def _draw(proposal, i, excluded, rng, draws):
    z = np.empty(proposal.tree.weights.shape[1])
    fill_row(proposal.features, i, z)
    total = _total(proposal, z)
    for j in range(draws.classes.size):
        k, weight, rng = _draw_one(proposal, z, total, rng)
        draws.classes[j] = k
        draws.log_q[j] = np.float32(math.log(weight / total))
    weigh_by_probability(draws)


@implements(log_probability, QuadraticKernelDraws, allocates=True)
def _log_probability(proposal, i, k):
    z = np.empty(proposal.tree.weights.shape[1])
    fill_row(proposal.features, i, z)
    return np.float32(math.log(_weight(proposal, z, k) / _total(proposal, z)))
