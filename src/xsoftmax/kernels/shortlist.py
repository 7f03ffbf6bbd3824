"""Classes that score highest for each row under given weights, true ones left out: by search, once for all rows.

Of sparse rows, weights by feature are walked, short lists first, as long as ``budget`` entries go; a few times as
many classes as are wanted, those that are highest by then, have the rest of their scores looked up. So a row costs no
more where words are common and classes many. It is exact where the budget is enough for all lists, and finds nearly
all where it is not: rare words tell classes apart.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, OPTIONS
from xsoftmax.kernels.clusters import cluster, clusters_of, empty_index
from xsoftmax.kernels.rows import features_of

# Entries of lists that are walked for a row, and how many times the classes wanted have their score completed.
BUDGET, COMPLETED = 4096, 3
# Scores of dense rows, for classes or for centroids, that are held at a time.
_SCORES_AT_ONCE = 2**24
# Classes from which on dense rows look among clusters, of which there are so many times the root of the classes.
CLUSTERED, CLUSTERS, PROBED = 4096, 2, 16
# Who looks for the classes of dense rows, where they are so many.
FINDERS = ("clusters", "faiss")


class Compressed(NamedTuple):
    """Arrays of a sparse matrix, by rows or by columns."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray


class _Workspace(NamedTuple):
    """For one row: written out, (n_features,); of each class a partial score, and whether it has one; entries."""

    values: np.ndarray
    scores: np.ndarray
    is_seen: np.ndarray
    seen: np.ndarray
    order: np.ndarray
    classes: np.ndarray
    highest: np.ndarray


def nearest_classes(
    X: Any, y: np.ndarray, W: Any, n: int, budget: int = BUDGET, seed: int = 0, found_by: str = "clusters"
) -> np.ndarray:
    """Find the classes that score highest for each row, the row's own left out.

    Parameters
    ----------
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32
    W : sparse array or ndarray of shape (n_classes, n_features), float32
    n : int
        Classes for each row, at most.
    budget : int
        Entries of lists to be walked for each sparse row.
    seed : int
        From which clusters of dense weights begin.
    found_by : str
        Of ``FINDERS``: who finds classes of dense rows and weights, where they are ``CLUSTERED`` or more.

    Returns
    -------
    ndarray of shape (n_samples, n), int32
        The highest first; -1 where no further class was found to score above 0, or there is none.

    Raises
    ------
    ModuleNotFoundError
        If faiss is asked for, and not installed.
    """
    found = np.full((len(y), n), -1, np.int32)
    if issparse(X) and issparse(W):
        by_class, by_feature = (Compressed(A.indptr, A.indices, A.data) for A in (csr_array(W), W.tocsc()))
        features = features_of(X, False)
        _find_sparse(features, y, by_feature, by_class, W.shape[0], budget, found)
        return found
    highest = np.full(found.shape, -np.inf, np.float32)
    if W.shape[0] >= CLUSTERED and not issparse(X) and not issparse(W):
        if found_by == "faiss":
            _find_by_faiss(X, y, W, seed, found)
        else:
            _find_in_clusters(X, y, W, seed, found, highest)
        return found
    step, scored = max(1, _SCORES_AT_ONCE // W.shape[0]), csr_array(W).T.tocsr() if issparse(W) else W.T
    classes = np.arange(W.shape[0], dtype=np.int32)
    for first in range(0, len(y), step):
        scores = np.ascontiguousarray(X[first : first + step] @ scored, np.float32)
        _keep_highest(scores, np.arange(first, first + len(scores)), classes, y, found, highest)
    return found


def _n_clusters(W: np.ndarray) -> int:
    return int(CLUSTERS * np.sqrt(len(W)))


def _find_by_faiss(X: np.ndarray, y: np.ndarray, W: np.ndarray, seed: int, found: np.ndarray) -> None:
    """Look in as many clusters of as many as ours, on one thread: faiss's inverted file."""
    import faiss  # of the extra [search]

    n, threads = found.shape[1], faiss.omp_get_max_threads()
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(W.shape[1]), W.shape[1], _n_clusters(W), faiss.METRIC_INNER_PRODUCT)
    index.cp.seed, index.cp.spherical, index.cp.min_points_per_centroid, index.nprobe = seed, True, 1, PROBED
    faiss.omp_set_num_threads(1)
    try:
        index.train(W)
        index.add(W)
        classes = index.search(np.ascontiguousarray(X, np.float32), n + 1)[1]
    finally:
        faiss.omp_set_num_threads(threads)
    others_first = np.argsort(classes == y[:, None], axis=1, kind="stable")[:, :n]
    found[:] = np.take_along_axis(classes, others_first, axis=1)


def _find_in_clusters(X: np.ndarray, y: np.ndarray, W: np.ndarray, seed: int, found: Any, highest: Any) -> None:
    n_clusters = _n_clusters(W)
    clusters = clusters_of(empty_index(len(W), n_clusters, W.shape[1], 1), 0)
    cluster(clusters, W, np.random.default_rng([seed, len(W)]))
    step = max(1, _SCORES_AT_ONCE // n_clusters)
    for first in range(0, len(y), step):
        reach = X[first : first + step] @ clusters.centroids.T
        nearest = np.argpartition(reach, n_clusters - PROBED, axis=1)[:, n_clusters - PROBED :].ravel()
        by_cluster = np.argsort(nearest, kind="stable")
        bounds = np.searchsorted(nearest[by_cluster], np.arange(n_clusters + 1))
        for j in range(n_clusters):
            classes = clusters.members[clusters.starts[j] : clusters.starts[j + 1]]
            at_once = max(1, _SCORES_AT_ONCE // max(1, classes.size))  # all classes may lie in one cluster
            for begin in range(bounds[j], bounds[j + 1] if classes.size else bounds[j], at_once):
                rows = first + by_cluster[begin : min(begin + at_once, bounds[j + 1])] // PROBED
                _keep_highest(X[rows] @ W[classes].T, rows, classes, y, found, highest)


@njit(**OPTIONS)
def _keep_highest(scores, rows, classes, y, found, highest):
    """Put classes among the highest found of each of some rows, given their scores, (n_rows, n_classes)."""
    for b in range(rows.size):
        i, n = rows[b], found.shape[1]
        for j in range(classes.size):
            if classes[j] != y[i]:
                _kept(found[i], highest[i], n, classes[j], scores[b, j])


@njit(**LEAN)
def _kept(classes, highest, n, k, score):
    """Put a class among the first n, which fall, if it belongs there; return how many these are then."""
    if n == classes.size:
        if not score > highest[n - 1]:
            return n
        n -= 1
    place = n
    while place > 0 and highest[place - 1] < score:
        highest[place], classes[place] = highest[place - 1], classes[place - 1]
        place -= 1
    highest[place], classes[place] = score, k
    return n + 1


@njit(**OPTIONS)
def _find_sparse(features, y, by_feature, by_class, n_classes, budget, found):
    longest = 0
    for i in range(y.size):
        longest = max(longest, features.indptr[i + 1] - features.indptr[i])
    n_completed = COMPLETED * found.shape[1]
    workspace = _Workspace(
        np.zeros(features.n_features, np.float32),
        np.zeros(n_classes, np.float32),
        np.zeros(n_classes, np.bool_),
        np.empty(n_classes, np.int32),
        np.empty(longest, np.int64),
        np.empty(n_completed, np.int32),
        np.empty(max(n_completed, found.shape[1]), np.float32),
    )
    for i in range(y.size):
        n_entries = _order_by_length(features, by_feature.indptr, i, workspace.order)
        n_seen, n_walked = _walk(features, by_feature, workspace, n_entries, budget)
        n = _highest_seen(workspace, n_seen, y[i])
        if n_walked < n_entries:
            _complete(features, by_class, workspace, i, n)
        n_found = 0
        for j in range(n):
            score = workspace.scores[workspace.classes[j]]
            if score > 0:
                n_found = _kept(found[i], workspace.highest, n_found, workspace.classes[j], score)
        for s in range(n_seen):
            workspace.scores[workspace.seen[s]], workspace.is_seen[workspace.seen[s]] = np.float32(0), False


@njit(**LEAN)
def _order_by_length(features, starts, i, order):
    """Put the entries of a row in order of the lengths of their features' lists; return how many there are."""
    first = features.indptr[i]
    n = features.indptr[i + 1] - first
    for j in range(n):
        d, place = features.indices[first + j], j
        length = starts[d + 1] - starts[d]
        while place > 0:
            before = features.indices[order[place - 1]]
            if starts[before + 1] - starts[before] <= length:
                break
            order[place] = order[place - 1]
            place -= 1
        order[place] = first + j
    return n


@njit(**LEAN)
def _walk(features, by_feature, workspace, n_entries, budget):
    """Add up what the first lists of a row say, one at least; return how many classes, and lists, these are."""
    n_seen, left = 0, budget
    for j in range(n_entries):
        entry = workspace.order[j]
        d, x = features.indices[entry], features.data[entry]
        left -= by_feature.indptr[d + 1] - by_feature.indptr[d]
        if left < 0 and n_seen:
            return n_seen, j
        for place in range(by_feature.indptr[d], by_feature.indptr[d + 1]):
            k = by_feature.indices[place]
            if not workspace.is_seen[k]:
                workspace.is_seen[k] = True
                workspace.seen[n_seen] = k
                n_seen += 1
            workspace.scores[k] += x * by_feature.data[place]
    return n_seen, n_entries


@njit(**LEAN)
def _highest_seen(workspace, n_seen, y):
    """Keep the classes whose scores are highest so far in ``workspace.classes``; return how many."""
    n = 0
    for s in range(n_seen):
        k = workspace.seen[s]
        if k != y:
            n = _kept(workspace.classes, workspace.highest, n, k, workspace.scores[k])
    return n


@njit(**LEAN)
def _complete(features, by_class, workspace, i, n):
    """Compute the whole scores of the classes kept."""
    for j in range(features.indptr[i], features.indptr[i + 1]):
        workspace.values[features.indices[j]] = features.data[j]
    for c in range(n):
        k, score = workspace.classes[c], np.float32(0)
        for place in range(by_class.indptr[k], by_class.indptr[k + 1]):
            score += workspace.values[by_class.indices[place]] * by_class.data[place]
        workspace.scores[k] = score
    for j in range(features.indptr[i], features.indptr[i + 1]):
        workspace.values[features.indices[j]] = np.float32(0)
