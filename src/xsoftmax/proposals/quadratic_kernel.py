"""The quadratic kernel: classes that the model itself finds likely, by the square of their scores.

Blanc and Rendle, Adaptive sampled softmax with kernel based sampling, ICML 2018:

    q(k | x)  =  (alpha s_k^2 + 1) / sum_j (alpha s_j^2 + 1),    s_k = x.w_k + b_k

A square is a product of sums: sum_{k in S} s_k^2 = z^T (sum_{k in S} v_k v_k^T) z with z = (x, 1), v_k = (w_k, b_k).
So a binary tree over blocks of about n_features classes, whose nodes keep the sum of v v^T of their left child,
finds the block of a draw in log2(n_blocks) quadratic forms; the classes of the block are scored one by one.

The tree is that of the last refresh, the scores are those of the moment, so that no weights are copied: a class is
drawn with the probability of its block as it was then, times its own among the block as it is now. Whatever the
weights did meanwhile, q is exactly normalised, and weights 1 / q are unbiased; right after a refresh it is the
paper's.

Cost: a draw n_features^2 log2(n_classes / n_features) / 2 products and n_features rows, a refresh n_classes
n_features^2 / 2 products: that of n_classes / log2(n_classes / n_features) draws, so that with very many classes it
should be rare. Memory: the tree takes what the weights take.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import free_bytes
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import declared, implements
from xsoftmax.kernels.draws import weigh_by_probability
from xsoftmax.kernels.layout import factor_of, stored
from xsoftmax.kernels.protocol import draw, log_probability
from xsoftmax.kernels.random import next_u64
from xsoftmax.kernels.rows import Csr, Dense
from xsoftmax.kernels.walk import score_class
from xsoftmax.proposals import Adaptive, TrainingSet, proposal

MAX_FEATURES = 512


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
        return FittedQuadraticKernel(empty_tree(data.n_classes, n_features), self.alpha, self.refresh)


MEMBER = QuadraticKernel


class KernelTree(NamedTuple):
    """The tree over the classes.

    Attributes
    ----------
    bounds : ndarray of shape (n_blocks + 1,), int64
        Block b holds the classes from bounds[b] up to bounds[b + 1]; n_blocks is a power of two.
    left : ndarray of shape (n_blocks, n), float64, with n = (n_features + 1) (n_features + 2) / 2
        Row i: lower triangle of the sum of v v^T over the left child of node i, entries off the diagonal doubled.
        The children of node i are 2 i and 2 i + 1, the root is 1; row 0 is of all classes.
    """

    bounds: np.ndarray
    left: np.ndarray


def n_blocks_of(n_classes: int, n_features: int) -> int:
    """Blocks of about as many classes as there are features, and a power of two of them."""
    return 1 << max(0, round(math.log2(max(1.0, n_classes / (n_features + 1)))))


def memory(n_classes: int, n_features: int) -> int:
    """Bytes of a ``KernelTree``."""
    width = n_features + 1
    return 8 * n_blocks_of(n_classes, n_features) * (width * (width + 1) // 2)


def empty_tree(n_classes: int, n_features: int) -> KernelTree:
    """Allocate a tree."""
    width, n_blocks = n_features + 1, n_blocks_of(n_classes, n_features)
    bounds = np.arange(n_blocks + 1) * n_classes // n_blocks
    return KernelTree(bounds, np.zeros((n_blocks, width * (width + 1) // 2)))


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
class FittedQuadraticKernel(Adaptive):
    """The tree of the last refresh, which changes it in place: kernels see it too."""

    tree: KernelTree
    alpha: float = 100.0
    refresh_steps: int = 2000
    name = "quadratic-kernel"
    seconds = 0.0

    def refresh(self, weights: Any) -> None:
        """Fill the tree anew."""
        sum_squares(self.tree, weights)

    def kernel(self, X: Any) -> "QuadraticKernelDraws":
        """What the training loop draws from."""
        return QuadraticKernelDraws(self.tree, self.alpha)


class QuadraticKernelDraws(NamedTuple):
    """What the kernels see."""

    tree: KernelTree
    alpha: float


QuadraticKernelDraws.reads_weights = True  # type: ignore[attr-defined]


@njit(**OPTIONS)
def sum_squares(tree, weights):
    """Fill ``tree.left`` from the weights, block by block, each node when its left child is complete.

    The sum of a right child goes on to its parent, whose left child was stored before.
    """
    n_blocks = tree.left.shape[0]
    total, v = np.empty(tree.left.shape[1]), np.empty(_width_of(tree), np.float32)
    for block in range(n_blocks):
        total[:] = 0.0
        for k in range(tree.bounds[block], tree.bounds[block + 1]):
            factor = factor_of(weights, k)
            for d in range(v.size - 1):
                v[d] = factor * stored(weights, k, d)
            v[v.size - 1] = stored(weights, k, v.size - 1)
            _add_square(v, total)
        node = n_blocks + block
        while node > 1 and node & 1:
            node >>= 1
            total += tree.left[node]
        if node > 1:
            tree.left[node >> 1] = total
    tree.left[0] = total


@njit(**OPTIONS)
def _width_of(tree):
    """Numbers of a row of weights: a triangle of n rows has n (n + 1) / 2 entries."""
    width = 0
    while width * (width + 1) // 2 < tree.left.shape[1]:
        width += 1
    return width


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
def _mass(proposal, form, z, n):
    """Sum of alpha s^2 + 1 over n classes, whose v v^T add up to ``form``."""
    return proposal.alpha * max(0.0, _quadratic_form(form, z)) + n


@njit(**OPTIONS)
def _fill_block(proposal, view, i, block, workspace):
    """Write alpha s^2 + 1 of the classes of a block, as they score now; return how many there are, and their sum."""
    first, total = proposal.tree.bounds[block], 0.0
    n = proposal.tree.bounds[block + 1] - first
    for j in range(n):
        score = np.float64(score_class(view.weights, view.features, i, first + j))
        workspace[j] = proposal.alpha * score * score + 1.0
        total += workspace[j]
    return n, total


@njit(**OPTIONS)
def _fraction(bits):
    """Uniform float64 in [0, 1)."""
    return np.float64(bits >> np.uint64(11)) * 2.0**-53


@declared
def fill_row(features, i, z):
    """Write sample ``i`` to ``z``, (n_features + 1,), its constant feature last."""


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
def _workspaces(proposal, view, i):
    """Give sample ``i`` with its constant feature, float64, and room for the largest block."""
    z, bounds = np.empty(_width_of(proposal.tree)), proposal.tree.bounds
    fill_row(view.features, i, z)
    return z, np.empty(np.max(bounds[1:] - bounds[:-1]))


@njit(**OPTIONS)
def _go_down(proposal, z, total, wanted, rng):
    """Draw a block, or go to the one that is wanted, if it is not negative; return it and its log-probability."""
    bounds, n_blocks = proposal.tree.bounds, proposal.tree.left.shape[0]
    node, first, stop, log_q = 1, 0, n_blocks, 0.0
    while node < n_blocks:
        middle = (first + stop) >> 1
        left = min(_mass(proposal, proposal.tree.left[node], z, bounds[middle] - bounds[first]), total)
        rng, bits = next_u64(rng)
        goes_left = wanted < middle if wanted >= 0 else _fraction(bits) * total < left
        mass = left if goes_left else total - left
        log_q += math.log(mass / total)
        total, node = mass, 2 * node + (0 if goes_left else 1)
        first, stop = (first, middle) if goes_left else (middle, stop)
    return first, log_q, rng


@implements(draw, QuadraticKernelDraws, allocates=True)
def _draw(proposal, view, i, excluded, lowest, rng, draws):
    z, workspace = _workspaces(proposal, view, i)
    of_all = _mass(proposal, proposal.tree.left[0], z, proposal.tree.bounds[-1])
    for j in range(draws.classes.size):
        block, log_q, rng = _go_down(proposal, z, of_all, np.int64(-1), rng)
        n, total = _fill_block(proposal, view, i, block, workspace)
        rng, bits = next_u64(rng)
        left, at = _fraction(bits) * total, 0
        while left >= workspace[at] and at < n - 1:
            left -= workspace[at]
            at += 1
        draws.classes[j] = proposal.tree.bounds[block] + at
        draws.log_q[j] = np.float32(log_q + math.log(workspace[at] / total))
    weigh_by_probability(draws)


@implements(log_probability, QuadraticKernelDraws, allocates=True)
def _log_probability(proposal, view, i, k):
    z, workspace = _workspaces(proposal, view, i)
    bounds = proposal.tree.bounds
    of_all = _mass(proposal, proposal.tree.left[0], z, bounds[-1])
    block = np.searchsorted(bounds, k, side="right") - 1
    _, log_q, _ = _go_down(proposal, z, of_all, np.int64(block), np.uint64(0))
    _, of_block = _fill_block(proposal, view, i, block, workspace)
    return np.float32(log_q + math.log(workspace[k - bounds[block]] / of_block))
