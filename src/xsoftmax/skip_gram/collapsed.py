"""Gradient descent over the collapsed counts, inputs and outputs in turn: Yen et al. 2018, eq. 9 and section 5.3.

    F = sum_x q(x) [log sum_k e^s_xk - sum_y q(y | x) s_xy]

An epoch moves all inputs, then all outputs, each row by ``rate`` times its gradient over a bound on its curvature:

    in_x: q(x) sum_k (p(k | x) + q(k | x)) |out_k|^2        out_y: sum_x q(x) (p(y | x) + q(y | x)) |in_x|^2

Since diag(p) - p p' is below diag(p), what p gives holds for all outputs moving at once, near where they are, and
what q gives where a step ends, far away as long as p is far from q. So rare words go as far as frequent ones, and no
rate depends on how long vectors are. Scores are held for a block of words at a time, never for all.

Where classes are found, the sum over k is over those, and the word's neighbours. Clusters are those of
``kernels/clusters.py``, by all columns or by each of some blocks; what a block retrieves is scored by all columns,
as messages with eta 1 come to in one round (``kernels/messages.py``).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from xsoftmax.internal.compiled import njit
from xsoftmax.internal.free_memory import check_free
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.kernels import LEAN, OPTIONS
from xsoftmax.kernels.cache_lines import inner
from xsoftmax.kernels.clusters import Index, cluster, clusters_of, empty_index, nearest_left, rank
from xsoftmax.kernels.log_sum_exp import write_exp
from xsoftmax.kernels.rows import Dense
from xsoftmax.skip_gram.kernels import Vectors
from xsoftmax.skip_gram.settings import Settings

# Scores that are held at a time, for each thread.
SCORES_AT_ONCE = 2**21
MOST_CLUSTERS = 100
# The mean squared length, at least, that a step is divided by.
FLATTEST = np.float32(1e-2)


class Counted(NamedTuple):
    """Shares of pairs: row x has q(x) q(y | x) at ``starts[x]`` and on, beside y; q(x) and q(y), all float32."""

    starts: np.ndarray
    neighbours: np.ndarray
    shares: np.ndarray
    of_inputs: np.ndarray
    of_outputs: np.ndarray


class Workspace(NamedTuple):
    """Of one block: classes, their coefficients; for each class the word that it was found for last; their reach."""

    classes: np.ndarray
    scores: np.ndarray
    seen: np.ndarray
    reach: np.ndarray


class CollapsedDescent:
    """Epochs of two passes over blocks of words, a block being a unit.

    Attributes
    ----------
    objective : ndarray of shape (2,), float64
        F before the last epoch whose passes are over, and what is summed up of the present one.
    """

    def __init__(self, counts: csr_array, settings: Settings, vectors: Vectors) -> None:
        n, width = vectors.inputs.shape
        self._n_rows = max(1, SCORES_AT_ONCE // n)
        self._n_blocks = -(-n // self._n_rows)
        check_free(
            4 * (n * width + settings.threads * 2 * self._n_rows * n), "skip-gram: gradients, blocks of scores"
        )
        self._counted, self._settings, self._vectors = counted(counts), settings, vectors
        self._gradient, self._curvature = np.zeros((n, width), np.float32), np.zeros(n, np.float32)
        shares = self._counted.shares, self._counted.neighbours, self._counted.starts
        self._shares = csr_array(shares, counts.shape)
        self._index: tuple[int, Index] | None = None
        self.objective = np.full(2, 0.0)
        self.n_units, self.at_once = 2 * self._n_blocks, 1

    def arrays(self) -> dict[str, np.ndarray]:
        """What changes."""
        return {
            "inputs": self._vectors.inputs,
            "outputs": self._vectors.outputs,
            "gradient": self._gradient,
            "curvature": self._curvature,
            "objective": self.objective,
        }

    def run(self, epoch: int, first: int, stop: int, pool: ThreadPool) -> None:
        """Go over some blocks, for the inputs' move or for the outputs' gradient; after the last, outputs move."""
        for unit in range(first, stop):
            block = unit % self._n_blocks
            rows = slice(block * self._n_rows, min((block + 1) * self._n_rows, len(self._gradient)))
            if unit < self._n_blocks:
                self._move_inputs(rows, epoch)
            else:
                self._gather(rows, epoch)
        if stop == self.n_units:
            self._descend(self._vectors.outputs, self._gradient, self._curvature, self._counted.of_outputs)
            self._gradient[:], self._curvature[:] = 0, 0
            self.objective[:] = self.objective[1], 0.0

    def _move_inputs(self, rows: slice, epoch: int) -> None:
        inputs, outputs = self._vectors
        slopes, value = self._slopes(rows, epoch)
        squares = np.square(outputs).sum(axis=1)
        curvature = slopes @ squares + np.float32(2) * (self._shares[rows] @ squares)
        self._descend(inputs[rows], slopes @ outputs, curvature, self._counted.of_inputs[rows])
        self.objective[1] += value

    def _gather(self, rows: slice, epoch: int) -> None:
        """Add to the gradient by outputs what the words of a block do."""
        inputs = self._vectors.inputs[rows]
        squares = np.square(inputs).sum(axis=1)
        slopes, _ = self._slopes(rows, epoch)
        self._gradient += slopes.T @ inputs
        self._curvature += slopes.T @ squares + np.float32(2) * (self._shares[rows].T @ squares)

    def _descend(self, vectors: np.ndarray, gradient: np.ndarray, curvature: np.ndarray, shares: np.ndarray) -> None:
        """Move rows along their gradient; the curvature of a word that is all but zero everywhere is no guide."""
        bound = np.maximum(curvature, FLATTEST * shares)
        vectors -= np.float32(self._settings.rate) * gradient / np.maximum(bound, np.float32(1e-30))[:, None]

    def _slopes(self, rows: slice, epoch: int) -> tuple[Any, float]:
        """Make the slopes of F by the scores of a block, all or those found; give the block's part of F, too."""
        if self._settings.found_by != "all":
            return self._found_slopes(rows, epoch)
        scores = self._vectors.inputs[rows] @ self._vectors.outputs.T
        return scores, softmax_slopes(scores, rows.start, self._counted)

    def _found_slopes(self, rows: slice, epoch: int) -> tuple[Any, float]:
        n = len(self._gradient)
        budget = max(1, int(self._settings.share * n))
        if self._settings.found_by == "search":
            scores = self._vectors.inputs[rows] @ self._vectors.outputs.T
            found = np.argpartition(scores, n - budget, axis=1)[:, n - budget :].astype(np.int32)
            index, features = empty_index(1, 1, 1, 1), Dense(self._vectors.inputs, np.float32(0))
        else:
            found, index = np.empty((0, 0), np.int32), self._index_of(epoch)
            features = Dense(self._vectors.inputs, np.float32(0))
        most = n
        starts = np.zeros(rows.stop - rows.start + 1, np.int64)
        room = self._room(rows, budget * max(1, len(index.members)))
        classes, slopes = np.empty(room, np.int32), np.empty(room, np.float32)
        workspace = Workspace(
            np.empty(most, np.int32),
            np.empty(most, np.float32),
            np.full(n, -1, np.int64),
            np.empty(index.centroids.shape[1], np.float32),
        )
        value = found_slopes(
            self._vectors,
            features,
            self._counted,
            index,
            found,
            budget,
            rows.start,
            workspace,
            starts,
            classes,
            slopes,
        )
        return csr_array((slopes[: starts[-1]], classes[: starts[-1]], starts), (len(starts) - 1, n)), value

    def _room(self, rows: slice, most: int) -> int:
        """Bound the classes that are found for a block, its words' neighbours too."""
        lengths = np.diff(self._counted.starts)[rows]
        return int(np.minimum(lengths + most, len(self._gradient)).sum())

    def _index_of(self, epoch: int) -> Index:
        """Cluster the outputs as they are throughout an epoch."""
        if self._index is None or self._index[0] != epoch:
            outputs, of = self._vectors.outputs, self._settings
            n_blocks = of.n_blocks if of.found_by == "blocks" else 1
            index = empty_index(len(outputs), min(MOST_CLUSTERS, len(outputs)), of.dimension, n_blocks)
            for b in range(len(index.members)):
                cluster(clusters_of(index, b), outputs, np.random.default_rng([of.seed, epoch, b]))
            self._index = epoch, index
        return self._index[1]


def counted(counts: csr_array) -> Counted:
    """Turn counts into shares."""
    shares = counts.data / counts.data.sum()
    of_inputs = np.add.reduceat(np.append(shares, 0.0), counts.indptr[:-1]) * (np.diff(counts.indptr) > 0)
    of_outputs = np.bincount(counts.indices, shares, counts.shape[0])
    return Counted(
        counts.indptr.astype(np.int64),
        counts.indices.astype(np.int32),
        *(each.astype(np.float32) for each in (shares, of_inputs, of_outputs)),
    )


@njit(**OPTIONS)
def softmax_slopes(scores, first, counted):
    """Turn scores of words ``first`` and on into slopes of F by them; return what these words add to F."""
    total = 0.0
    for b in range(scores.shape[0]):
        x, row = first + b, scores[b]
        share = counted.of_inputs[x]
        begin, stop = counted.starts[x], counted.starts[x + 1]
        if begin == stop:
            row[:] = np.float32(0)
            continue
        highest = row.max()
        for place in range(begin, stop):
            total -= np.float64(counted.shares[place]) * row[counted.neighbours[place]]
        sum_of = write_exp(row, highest)
        total += np.float64(share) * (math.log(sum_of) + highest)
        scale = share / np.float32(sum_of)
        for k in range(row.size):
            row[k] *= scale
        for place in range(begin, stop):
            row[counted.neighbours[place]] -= counted.shares[place]
    return total


@njit(**LEAN)
def _noted(workspace, x, k, n):
    """Put class k behind the first n found for word x, unless it is among them; return how many there are then."""
    if workspace.seen[k] != x:
        workspace.seen[k] = x
        workspace.classes[n] = k
        n += 1
    return n


@njit(**LEAN)
def _look(features, index, budget, x, workspace, n):
    """Note the classes in the clusters that are nearest to word x, up to a budget in each block of columns."""
    for b in range(index.members.shape[0]):
        rank(index, b, features, x, workspace.reach)
        left, j = budget, nearest_left(workspace.reach)
        while j >= 0 and left > 0:
            for place in range(index.starts[b, j], min(index.starts[b, j + 1], index.starts[b, j] + left)):
                n = _noted(workspace, x, index.members[b, place], n)
            left -= index.starts[b, j + 1] - index.starts[b, j]
            j = nearest_left(workspace.reach)
    return n


@njit(**LEAN)
def found_slopes(vectors, features, counted, index, found, budget, first, workspace, starts, classes, slopes):
    """Find classes for words ``first`` and on, and write the slopes of F over these alone, row by row.

    ``found`` has the classes, (n_words, budget), or is empty: then clusters of ``index`` are asked.
    """
    total = 0.0
    for b in range(starts.size - 1):
        x, n, size = first + b, np.int64(0), starts[b]
        begin, stop = counted.starts[x], counted.starts[x + 1]
        starts[b + 1] = size
        if begin == stop:
            continue
        for place in range(begin, stop):
            n = _noted(workspace, x, counted.neighbours[place], n)
        if found.size:
            for j in range(found.shape[1]):
                n = _noted(workspace, x, found[b, j], n)
        else:
            n = _look(features, index, budget, x, workspace, n)
        highest = np.float32(-np.inf)
        for j in range(n):
            workspace.scores[j] = inner(vectors.inputs, x, vectors.outputs, np.int64(workspace.classes[j]))
            highest = max(highest, workspace.scores[j])
        for j in range(stop - begin):
            total -= np.float64(counted.shares[begin + j]) * workspace.scores[j]
        sum_of = write_exp(workspace.scores[:n], highest)
        share = counted.of_inputs[x]
        total += np.float64(share) * (math.log(sum_of) + highest)
        scale = share / np.float32(sum_of)
        for j in range(n):
            classes[size + j] = workspace.classes[j]
            slopes[size + j] = scale * workspace.scores[j]
        for j in range(stop - begin):
            slopes[size + j] -= counted.shares[begin + j]
        starts[b + 1] = size + n
    return total
