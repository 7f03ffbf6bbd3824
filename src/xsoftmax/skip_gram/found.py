"""Gradient descent on the collapsed counts over found classes alone: Yen et al. 2018, section 5.3.

The sum over k of a word x is over the words y that stand near it, with their q(y | x), and over those found:

    MIPS           the classes of the clusters that are nearest to in_x, up to a budget   (algorithm 1)
    Decomp-MIPS    those that clusters of a block of columns retrieve, and that have a slope there, or after messages
                   between the blocks (algorithm 2)

Only these are scored, and only their vectors feel x. What is found is scored as a whole, which for Decomp-MIPS is
what messages with eta 1 come to. Cost for a word: the search, and for each class found a score and a row, in either
pass. What the other classes M add to the sum of exponentials is one of ``MISSING``: nothing; e^0 each, as in the
paper; or, which is ours, a bound from below by Jensen's inequality, q being how often classes stand near any word,

    sum over M of e^s_xk  >=  w e^m,    w = sum over M of q(k),    m = sum over M of q(k) (s_xk - log q(k)) / w.

Sums over M are those over all classes, of which <in_x, sum_k q(k) out_k> is one product, less those over found ones.
It is tight where s_xk is about log q(k) and a number of x's, and has a slope for every class: q(k) / w of its own.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, OPTIONS
from xsoftmax.kernels.block_search import find_slopes, retrieved
from xsoftmax.kernels.cache_lines import add_row, inner
from xsoftmax.kernels.clusters import Index, cluster, clusters_of, empty_index, retrieve
from xsoftmax.kernels.dispatch import declared, implements
from xsoftmax.kernels.log_sum_exp import write_exp
from xsoftmax.kernels.messages import Softmax
from xsoftmax.kernels.rows import Dense
from xsoftmax.skip_gram.kernels import Vectors
from xsoftmax.skip_gram.settings import Settings
from xsoftmax.skip_gram.vectors import by_cache_lines

MOST_CLUSTERS = 100
# With eta 1 messages make the scores of those chosen whole, at once.
ETA = 1.0
# The share of pairs below which the missing classes' is all rounding.
LEAST_WEIGHT = 1e-5


class Listed(NamedTuple):
    """Classes that were found already for each of some words, int64 of shape (n_words, budget)."""

    classes: np.ndarray


class InClusters(NamedTuple):
    """A search in the clusters of all columns; room for what it finds, int64 of shape (budget,)."""

    clusters: Index
    found: np.ndarray


class InBlocks(NamedTuple):
    """A search in clusters of each block of columns, each up to a budget, and so many rounds of messages."""

    clusters: Index
    budget: int
    rounds: int
    least_slope: float


class Table(NamedTuple):
    """Output vectors as the weights of classes are seen by kernels."""

    W: np.ndarray


class Workspace(NamedTuple):
    """Of one word: classes, int64, and their scores, then slopes; for each class the word it was found for last."""

    classes: np.ndarray
    scores: np.ndarray
    seen: np.ndarray


def new_workspace(n_words: int) -> Workspace:
    """Room for as many classes as there are."""
    return Workspace(np.empty(n_words, np.int64), np.empty(n_words, np.float32), np.full(n_words, -1, np.int64))


class Finder:
    """Says who finds classes in an epoch: an index of the outputs as they are when it begins."""

    def __init__(self, settings: Settings, vectors: Vectors) -> None:
        self._settings, self._vectors = settings, vectors
        self._index: tuple[int, Index] | None = None

    def of(self, words: np.ndarray, epoch: int) -> Any:
        """Make ready for some words, int64."""
        of, n = self._settings, len(self._vectors.outputs)
        budget = max(1, int(of.share * n))
        if of.found_by == "search":
            scores = self._vectors.inputs[words] @ self._vectors.outputs.T
            return Listed(np.argpartition(scores, n - budget, axis=1)[:, n - budget :])
        if of.found_by == "clusters":
            return InClusters(self._index_of(epoch), np.empty(budget, np.int64))
        return InBlocks(self._index_of(epoch), budget, of.rounds, of.least_slope)

    def in_order(self, rows: slice, epoch: int) -> np.ndarray:
        """Put words that ask the same cluster one after the other, so that what they find is in the cache: int64."""
        words = np.arange(rows.start, rows.stop)
        if self._settings.found_by == "search":
            return words
        index = self._index_of(epoch)
        first, stop = index.bounds[:2]
        nearest = np.argmax(self._vectors.inputs[rows, first:stop] @ index.centroids[0, :, : stop - first].T, axis=1)
        return words[np.argsort(nearest, kind="stable")]

    def _index_of(self, epoch: int) -> Index:
        """Cluster the outputs, which stay as they are throughout an epoch."""
        if self._index is None or self._index[0] != epoch:
            outputs, of = self._vectors.outputs, self._settings
            n_blocks = of.n_blocks if of.found_by == "blocks" else 1
            index = empty_index(len(outputs), min(MOST_CLUSTERS, len(outputs)), of.dimension, n_blocks)
            for b in range(len(index.members)):
                cluster(clusters_of(index, b), outputs, np.random.default_rng([of.seed, epoch, b]))
            self._index = epoch, index
        return self._index[1]


class Missing(NamedTuple):
    """What classes that are not found add to a sum of exponentials.

    Attributes
    ----------
    each : float
        A number for each of them, where no ``shares`` are given.
    shares, logs : ndarray of shape (n_words,) or (0,), float32
        q(k), and log q(k), 0 for words that stand near none.
    mean : ndarray of shape (1, width), float32
        Of the outputs, by shares.
    entropy : float
        Of the shares.
    """

    each: float
    shares: np.ndarray
    logs: np.ndarray
    mean: np.ndarray
    entropy: float


def missing_of(kind: str, vectors: Vectors, shares: np.ndarray) -> Missing:
    """Make ready for outputs as they are; ``shares`` are q(k)."""
    if kind != "mean":
        shares = shares[:0]
    logs = np.log(np.where(shares > 0, shares, np.float32(1)))
    mean = by_cache_lines(1, vectors.outputs.shape[1])
    mean[0] = shares @ vectors.outputs[: len(shares)]
    return Missing(float(kind == "zero"), shares, logs, mean, -float(shares @ logs))


@declared
def find(finder, vectors, true, x, b, workspace, n):
    """Note the classes found for word x, the b-th of some words, behind the first n; return how many there are."""


@njit(**LEAN)
def _note(workspace, x, k, n):
    """Put class k behind the first n found for word x, unless it is among them; return how many there are then."""
    if workspace.seen[k] != x:
        workspace.seen[k] = x
        workspace.classes[n] = k
        n += 1
    return n


@implements(find, Listed)
def _find_listed(finder, vectors, true, x, b, workspace, n):
    for k in finder.classes[b]:
        n = _note(workspace, x, k, n)
    return n


@implements(find, InClusters)
def _find_in_clusters(finder, vectors, true, x, b, workspace, n):
    features = Dense(vectors.inputs, np.float32(0))
    reach, found = np.empty(finder.clusters.centroids.shape[1], np.float32), finder.found
    for k in found[: retrieve(finder.clusters, 0, features, x, found.size, np.int64(-1), reach, found)]:
        n = _note(workspace, x, k, n)
    return n


@implements(find, InBlocks)
def _find_in_blocks(finder, vectors, true, x, b, workspace, n):
    weights, features, index = Table(vectors.outputs), Dense(vectors.inputs, np.float32(0)), finder.clusters
    messages = retrieved(index, weights, features, x, finder.budget, np.int64(-1), true)
    given = Softmax(), weights, features, x, index.bounds
    find_slopes(given, messages, finder.rounds, ETA, finder.least_slope)
    for c in range(messages.classes.size):
        if messages.chosen[c] > 0:
            n = _note(workspace, x, messages.classes[c], n)
    return n


class Slopes(NamedTuple):
    """Of one word: how many classes were found, its part of F, and c, all classes k having a slope of c q(k) more."""

    n: Any
    value: float
    of_all: Any


@njit(**OPTIONS)
def slopes_of(finder, vectors, counted, missing, x, b, workspace):
    """Find classes for word x, its neighbours first, and write the slopes of F by their scores: a ``Slopes``."""
    begin, stop = counted.starts[x], counted.starts[x + 1]
    true, n = counted.neighbours[begin:stop], np.int64(0)
    if begin == stop:
        return Slopes(n, 0.0, np.float32(0))
    for k in true:
        n = _note(workspace, x, np.int64(k), n)
    n = find(finder, vectors, true, x, b, workspace, n)
    slopes, highest, value = workspace.scores[:n], np.float32(-np.inf), 0.0
    for j in range(n):
        slopes[j] = inner(vectors.inputs, x, vectors.outputs, workspace.classes[j])
        highest = max(highest, slopes[j])
    for j in range(true.size):
        value -= np.float64(counted.shares[begin + j]) * slopes[j]
    weight, log_each = _of_missing(missing, vectors, x, workspace.classes[:n], slopes)
    highest = max(highest, np.float32(log_each)) if weight > 0 else highest
    rest = weight * math.exp(log_each - highest)
    sum_of, share = write_exp(slopes, highest) + rest, counted.of_inputs[x]
    value += np.float64(share) * (math.log(sum_of) + highest)
    scale, of_all = share / np.float32(sum_of), np.float32(0)
    for j in range(n):
        slopes[j] *= scale
    for j in range(true.size):
        slopes[j] -= counted.shares[begin + j]
    if missing.shares.size and weight > 0:
        of_all = scale * np.float32(rest / weight)
        for j in range(n):
            slopes[j] -= of_all * missing.shares[workspace.classes[j]]
    return Slopes(n, value, of_all)


@njit(**OPTIONS)
def _of_missing(missing, vectors, x, found, scores):
    """Return w and m, so that the classes that are not among those found add w e^m to the sum of exponentials."""
    if missing.shares.size == 0:
        return missing.each * (vectors.outputs.shape[0] - found.size), 0.0
    weight, total = 1.0, np.float64(inner(vectors.inputs, x, missing.mean, np.int64(0))) + missing.entropy
    for j in range(found.size):
        share = missing.shares[found[j]]
        weight -= share
        total -= share * (scores[j] - missing.logs[found[j]])
    return (weight, total / weight) if weight > LEAST_WEIGHT else (0.0, 0.0)


@njit(**OPTIONS)
def gradient_by_inputs(finder, vectors, counted, missing, words, squares, gradient, curvature, workspace):
    """Write the gradient of F by some words, int64, and its bound on curvature; return their part of F.

    ``gradient``, (n_words, width), and ``curvature``, (n_words,), are zero before; ``squares`` are |out_k|^2.
    """
    total, mean = 0.0, np.float32(0)
    for k in range(missing.shares.size):
        mean += missing.shares[k] * squares[k]
    for b in range(words.size):
        x = words[b]
        of = slopes_of(finder, vectors, counted, missing, x, b, workspace)
        total += of.value
        for j in range(of.n):
            k, slope = workspace.classes[j], workspace.scores[j]
            add_row(gradient, b, vectors.outputs, k, slope)
            curvature[b] += slope * squares[k]
        add_row(gradient, b, missing.mean, np.int64(0), of.of_all)
        curvature[b] += of.of_all * mean
        for place in range(counted.starts[x], counted.starts[x + 1]):
            curvature[b] += np.float32(2) * counted.shares[place] * squares[counted.neighbours[place]]
    return total


@njit(**OPTIONS)
def gradient_by_outputs(finder, vectors, counted, missing, words, squares, gradient, curvature, workspace):
    """Add to the gradient of F by all outputs, and to its bound, what some words, int64, do.

    ``squares`` are |in_x|^2 of these words.
    """
    of_all, square = np.zeros_like(missing.mean), np.float32(0)
    for b in range(words.size):
        x = words[b]
        of = slopes_of(finder, vectors, counted, missing, x, b, workspace)
        for j in range(of.n):
            k, slope = workspace.classes[j], workspace.scores[j]
            add_row(gradient, k, vectors.inputs, x, slope)
            curvature[k] += slope * squares[b]
        add_row(of_all, np.int64(0), vectors.inputs, x, of.of_all)
        square += of.of_all * squares[b]
        for place in range(counted.starts[x], counted.starts[x + 1]):
            curvature[counted.neighbours[place]] += np.float32(2) * counted.shares[place] * squares[b]
    for k in range(missing.shares.size):
        add_row(gradient, np.int64(k), of_all, np.int64(0), missing.shares[k])
        curvature[k] += missing.shares[k] * square
