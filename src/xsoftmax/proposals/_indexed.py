"""What the searches in clusters of classes share: an index that follows the weights, made anew if it must be."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, OPTIONS
from xsoftmax.kernels.clusters import arrange, cluster, clusters_of, empty_index, reassign
from xsoftmax.kernels.dispatch import implements, lean
from xsoftmax.kernels.draws import empty_draws, weigh_found
from xsoftmax.kernels.protocol import View, draw, log_probability, note_moved
from xsoftmax.kernels.rows import features_of
from xsoftmax.kernels.walk import score_class
from xsoftmax.proposals import Adaptive, Size, TrainingSet

# Rows of which the highest class is looked for, to measure how often a search finds it.
MEASURED = 32
# Refreshes to wait, at most, after clusters that were found anew and did not help.
MOST_WAIT = 8
# Scores that agree to so much are equal: sums are in another order.
_ROUNDING = np.float32(1e-5)


class Indexed(Adaptive, ABC):
    """An index over all columns of the weights, or one over each block of them.

    At each refresh, classes whose weights have moved are put where they belong now. Then the search is tried on a few
    training rows; if it finds the highest of their other classes less often than ``recall``, the clusters are found
    anew. Where that does not help, it is tried after 1, 2, 4 and then every 8 refreshes only.

    ``moved`` says which classes may have moved since the last refresh; ``counts``, (4,), hold refreshes, the one at
    which to measure next, how many to wait after the next failure, and clusterings. The search is for classes that
    score no more than ``margin`` below the true one.
    """

    margin = float("inf")
    kept = True

    def __init__(self, data: TrainingSet, n_clusters: int, n_blocks: int, recall: float, refresh: int) -> None:
        self.n_classes, self._seed, self._recall, self.refresh_steps = data.n_classes, data.seed, recall, refresh
        n = min(n_clusters, data.n_classes)
        self.index = empty_index(data.n_classes, n, data.X.shape[1] + 1, n_blocks)
        self.blocks = [clusters_of(self.index, b) for b in range(len(self.index.members))]
        self.moved = np.ones(data.n_classes, np.uint8)
        self.counts = np.array([0, 0, 1, 0], np.int64)
        n_rows = len(data.y)
        rows = np.sort(np.random.default_rng([data.seed, n_rows]).permutation(n_rows)[:MEASURED])
        self._rows = rows
        self._features, self._y = features_of(data.X[rows], True), np.ascontiguousarray(data.y[rows], np.int32)
        self.seconds = 0.0

    @abstractmethod
    def kernel(self, X: Any) -> Any:
        """What the training loop asks; the rows themselves are not looked at."""

    def look_at(self, encode: Callable[[np.ndarray], np.ndarray]) -> None:
        """Take the rows on which recall is measured as they are behind a table now."""
        self._features = features_of(encode(self._rows), True)

    def refresh(self, weights: Any) -> None:
        """Put moved classes where they belong; measure, and find clusters anew, if it is time."""
        W = weights.weights()
        which = np.flatnonzero(self.moved)
        if which.size:
            for clusters in self.blocks:
                reassign(clusters, W, which)
            self.moved[:] = 0
        refreshes, due, wait, n_clusterings = self.counts
        if refreshes >= due:
            if self._is_poor(weights, W):
                for clusters in self.blocks:
                    cluster(clusters, W, np.random.default_rng([self._seed, n_clusterings]))
                n_clusterings, due, wait = n_clusterings + 1, refreshes + wait, min(2 * wait, MOST_WAIT)
            else:
                due, wait = refreshes + 1, 1
        self.counts[:] = refreshes + 1, due, wait, n_clusterings

    def _is_poor(self, weights: Any, W: np.ndarray) -> bool:
        """Tell whether the clusters do not serve: there are none as yet, or too little is found."""
        if not self.counts[3] and W.any():
            return True
        return self.measured_recall(weights) < self._recall

    def measured_recall(self, weights: Any) -> float:
        """Share of the measured rows, of those where the search is for it, whose highest other class is found."""
        return float(_recall(self.kernel(None), View(weights, self._features), self._y, self.n_classes, self.margin))

    def arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint holds of it: views, to be read and written; call ``restored`` after writing."""
        found: dict[str, np.ndarray] = {"index_moved": self.moved, "index_counts": self.counts}
        found["index_centroids"] = self.index.centroids  # whole: a file is not read into a part of an array
        for b, clusters in enumerate(self.blocks):
            for name in ("lifts", "radius", "assigned", "norms"):
                found[f"index_{name}_{b}"] = getattr(clusters, name)
        return found

    def restored(self) -> None:
        """Make lists of members of what was read."""
        for clusters in self.blocks:
            np.clip(clusters.assigned, 0, len(clusters.centroids) - 1, out=clusters.assigned)
            arrange(clusters)


def memory_of_index(size: Size) -> dict[str, int]:
    """Estimate the bytes of an index: rows are copied twice where clusters are found."""
    return {"an index of the classes": 8 * size.n_classes * (size.n_features + 8)}


def problem_of(member: Any) -> str:
    """Say what is wrong with the parameters that searches in clusters share."""
    if member.recall > 1:
        return f"recall is {member.recall:g}; set it to 1 or less, such as 0.9"
    if member.budget < member.n_sampled:
        return f"budget is {member.budget}, n_sampled {member.n_sampled}; set budget to {member.n_sampled} or more"
    return ""


@lean
def search(proposal, view, i, excluded, lowest, draws):
    """Put the classes found, and above ``lowest``, first into ``draws``, the highest first; return how many."""


def searches(member: type) -> type:
    """Let ``draw`` take what ``search`` finds, and mark that in ``moved``: a decorator of what kernels see."""
    member.reads_weights = member.finds = True  # type: ignore[attr-defined]
    implements(draw, member, allocates=True)(_draw)
    implements(log_probability, member)(_log_probability)
    implements(note_moved, member)(_note_moved)
    return member


def _draw(proposal, view, i, excluded, lowest, rng, draws):
    n = search(proposal, view, i, excluded, lowest, draws)
    mark(proposal.moved, draws, n, excluded)
    weigh_found(draws, n, excluded)


def _log_probability(proposal, view, i, k):
    return np.float32(0)


def _note_moved(proposal, k):
    proposal.moved[k] = 1


@njit(**OPTIONS)
def _recall(proposal, view, labels, n_classes, margin):
    draws, n_found, n_rows = empty_draws(1), 0, 0
    for i in range(labels.size):
        y, highest = np.int64(labels[i]), np.float32(-np.inf)
        for k in range(n_classes):
            if k != y:
                highest = max(highest, score_class(view.weights, view.features, i, k))
        if highest > score_class(view.weights, view.features, i, y) - margin:
            n = search(proposal, view, i, y, np.float32(-np.inf), draws)
            n_found += n > 0 and draws.scores[0] >= highest - _ROUNDING * abs(highest)
            n_rows += 1
    return n_found / n_rows if n_rows else 1.0


@njit(**LEAN)
def mark(moved, draws, n, excluded):
    """Mark the first n of ``draws``, and the true class if there is any."""
    for j in range(n):
        moved[draws.classes[j]] = 1
    if n and excluded >= 0:
        moved[excluded] = 1
