"""An index of classes for inner-product search: spherical k-means over the rows of the weights, or over some columns.

Auvolat et al., Clustering is efficient for approximate maximum inner product search, 2015. One more coordinate makes
all rows equally long, which turns the highest inner product into the smallest angle:

    v_k = (w_k, sqrt(r^2 - |w_k|^2)),   r = max_k |w_k|

A class belongs to the centroid with the highest inner product with v_k; a query (x, 0) ranks the centroids in the
same way, and looks at the classes of the highest, cluster by cluster. Cost of a query: the centroids, those classes.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN
from xsoftmax.kernels.dispatch import implements, lean, otherwise
from xsoftmax.kernels.layout import factor_of, stored
from xsoftmax.kernels.rows import Csr, Dense

# Passes of k-means, and rows for each centroid that it looks at, at most.
PASSES, ROWS_PER_CENTROID = 8, 256
# Products with centroids that are held at a time.
_AT_ONCE = 2**22


class Index(NamedTuple):
    """Clusters of the classes by each of some blocks of columns, as queries see them.

    Attributes
    ----------
    bounds : ndarray of shape (n_blocks + 1,), int64
        Block b has the columns from bounds[b] up to bounds[b + 1] of the weights, the bias being the last one.
    centroids : ndarray of shape (n_blocks, n_clusters, widest), float32
    starts : ndarray of shape (n_blocks, n_clusters + 1), int64
        Cluster j of block b holds ``members[b, starts[b, j] : starts[b, j + 1]]``, the longest rows first.
    members : ndarray of shape (n_blocks, n_classes), int32
    """

    bounds: np.ndarray
    centroids: np.ndarray
    starts: np.ndarray
    members: np.ndarray


class Clusters(NamedTuple):
    """Clusters by the columns ``first`` to ``stop - 1``; arrays that an ``Index`` has are views of that.

    Attributes
    ----------
    centroids : ndarray of shape (n_clusters, stop - first), float32
    lifts : ndarray of shape (n_clusters,), float32
        The coordinate more of each centroid.
    radius : ndarray of shape (1,), float32
        The r of the last clustering; rows that have grown beyond it have 0 for the coordinate more.
    assigned : ndarray of shape (n_classes,), int32
    norms : ndarray of shape (n_classes,), float32
    starts : ndarray of shape (n_clusters + 1,), int64
    members : ndarray of shape (n_classes,), int32
    """

    first: int
    stop: int
    centroids: np.ndarray
    lifts: np.ndarray
    radius: np.ndarray
    assigned: np.ndarray
    norms: np.ndarray
    starts: np.ndarray
    members: np.ndarray


def empty_index(n_classes: int, n_clusters: int, width: int, n_blocks: int) -> Index:
    """Cut so many columns into blocks of about the same number, none of them empty, and make room for clusters."""
    n = min(n_blocks, width)
    bounds = np.array([width * b // n for b in range(n + 1)], np.int64)
    return Index(
        bounds,
        np.zeros((n, n_clusters, int(np.diff(bounds).max())), np.float32),
        np.zeros((n, n_clusters + 1), np.int64),
        np.zeros((n, n_classes), np.int32),
    )


def clusters_of(index: Index, b: int) -> Clusters:
    """Put classes into the clusters of a block in turn, as is right as long as all weights are zero."""
    first, stop = int(index.bounds[b]), int(index.bounds[b + 1])
    n_clusters, n_classes = index.centroids.shape[1], index.members.shape[1]
    clusters = Clusters(
        first,
        stop,
        index.centroids[b, :, : stop - first],
        np.zeros(n_clusters, np.float32),
        np.zeros(1, np.float32),
        (np.arange(n_classes) % n_clusters).astype(np.int32),
        np.zeros(n_classes, np.float32),
        index.starts[b],
        index.members[b],
    )
    arrange(clusters)
    return clusters


def cluster(clusters: Clusters, W: np.ndarray, rng: np.random.Generator) -> None:
    """Find centroids for the weights as they are, (n_classes, width), from classes drawn at random.

    No more than ``ROWS_PER_CENTROID`` classes for each centroid are looked at. A centroid that loses all of its
    classes stays where it was. Weights that are all zero are left as they are.
    """
    n_classes, n_clusters = len(W), len(clusters.centroids)
    clusters.norms[:] = _norms(clusters, W, np.arange(n_classes))
    radius = clusters.norms.max()
    if not radius > 0:
        return
    clusters.radius[0] = radius
    some = np.sort(rng.permutation(n_classes)[: n_clusters * ROWS_PER_CENTROID])
    V = np.column_stack(_lifted(clusters, W, some)) / radius
    centroids = V[rng.permutation(len(some))[:n_clusters]]
    for _ in range(PASSES):
        step = max(1, _AT_ONCE // n_clusters)
        parts = [np.argmax(V[first : first + step] @ centroids.T, axis=1) for first in range(0, len(some), step)]
        nearest = np.concatenate(parts)
        is_in = csr_array((np.ones(len(some), np.float32), (nearest, np.arange(len(some)))), (n_clusters, len(some)))
        sums = is_in @ V
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centroids = np.where(lengths > 0, sums / np.maximum(lengths, np.float32(1e-30)), centroids)
    clusters.centroids[:], clusters.lifts[:] = centroids[:, :-1], centroids[:, -1]
    reassign(clusters, W, np.arange(n_classes))


def reassign(clusters: Clusters, W: np.ndarray, which: np.ndarray) -> None:
    """Put classes, int64, whose weights have moved, into the clusters where they belong now."""
    if not clusters.radius[0] > 0:
        return
    step = max(1, _AT_ONCE // len(clusters.centroids))
    for begin in range(0, len(which), step):
        some = which[begin : begin + step]
        clusters.norms[some] = _norms(clusters, W, some)
        rows, lifts = _lifted(clusters, W, some)
        products = rows @ clusters.centroids.T
        products += lifts[:, None] * clusters.lifts
        clusters.assigned[some] = np.argmax(products, axis=1)
    arrange(clusters)


def arrange(clusters: Clusters) -> None:
    """Write the lists of members from ``assigned``, the longest rows first: they have the highest products."""
    clusters.members[:] = np.lexsort((-clusters.norms, clusters.assigned))
    clusters.starts[1:] = np.cumsum(np.bincount(clusters.assigned, minlength=len(clusters.centroids)))


def _norms(clusters: Clusters, W: np.ndarray, some: np.ndarray) -> np.ndarray:
    return np.linalg.norm(W[some, clusters.first : clusters.stop], axis=1)


def _lifted(clusters: Clusters, W: np.ndarray, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give rows of the weights and the coordinate more, float32."""
    rows = np.ascontiguousarray(W[some, clusters.first : clusters.stop], np.float32)
    squares = np.square(clusters.radius[0]) - np.square(clusters.norms[some])
    return rows, np.sqrt(np.maximum(squares, np.float32(0)))


@lean
def product_with(features, i, row, first, stop):
    """Inner product of columns ``first`` to ``stop - 1`` of sample ``i``, constant last, with a row from there on."""


@lean
def partial_score(weights, features, i, k, first, stop):
    """What the columns ``first`` to ``stop - 1``, the bias last, add to the score of class ``k``, float32."""


@njit(**LEAN)
def rank(index, b, features, i, reach):
    """Write how near each centroid of block b is to sample ``i`` to ``reach``, (n_clusters,), float32."""
    for j in range(reach.size):
        reach[j] = product_with(features, i, index.centroids[b, j], index.bounds[b], index.bounds[b + 1])


@njit(**LEAN)
def nearest_left(reach):
    """Take the nearest cluster out of ``reach``, which then holds minus infinity for it; -1 if none is left."""
    best, place = np.float32(-np.inf), -1
    for j in range(reach.size):
        if reach[j] > best:
            best, place = reach[j], j
    if place >= 0:
        reach[place] = np.float32(-np.inf)
    return place


@njit(**LEAN)
def retrieve(index, b, features, i, budget, excluded, reach, found):
    """Write the classes in the clusters of block b that are nearest to sample ``i``, up to a budget, to ``found``.

    A class ``excluded`` is passed over, -1 for none; ``reach`` is room for a number per cluster. Returns how many
    were found; what they score is not looked at.
    """
    rank(index, b, features, i, reach)
    n, j = np.int64(0), nearest_left(reach)
    while j >= 0 and n < budget:
        for place in range(index.starts[b, j], index.starts[b, j + 1]):
            k = np.int64(index.members[b, place])
            if k != excluded:
                if n == budget:
                    break
                found[n] = k
                n += 1
        j = nearest_left(reach)
    return n


@implements(product_with, Dense)
def _product_with_dense(features, i, row, first, stop):
    x, total = features.X[i], np.float32(0)
    begin = np.uint64(first)  # unsigned, so that no index may count from the end: such loops do not vectorise
    for d in range(np.uint64(min(stop, x.size)) - begin):
        total += x[begin + d] * row[d]
    return total + features.constant * row[x.size - first] if stop > x.size else total


@implements(product_with, Csr)
def _product_with_csr(features, i, row, first, stop):
    total = np.float32(0)
    for j in range(features.indptr[i], features.indptr[i + 1]):
        d = features.indices[j]
        if first <= d < stop:
            total += features.data[j] * row[d - first]
    n = features.n_features
    return total + features.constant * row[n - first] if stop > n else total


@otherwise(partial_score, second=Dense)
def _partial_score_dense(weights, features, i, k, first, stop):
    x, total = features.X[i], np.float32(0)
    for d in range(np.uint64(first), np.uint64(min(stop, x.size))):
        total += x[d] * stored(weights, k, d)
    total *= factor_of(weights, k)
    return total + features.constant * stored(weights, k, x.size) if stop > x.size else total


@otherwise(partial_score, second=Csr)
def _partial_score_csr(weights, features, i, k, first, stop):
    total = np.float32(0)
    for j in range(features.indptr[i], features.indptr[i + 1]):
        d = features.indices[j]
        if first <= d < stop:
            total += features.data[j] * stored(weights, k, d)
    total *= factor_of(weights, k)
    n = features.n_features
    return total + features.constant * stored(weights, k, n) if stop > n else total
