"""Search: the classes that score highest now, the true one left out; nothing is drawn.

Where a loss moves only classes that score near the true one, and higher, these are the classes to look at: Yen et
al., Loss decomposition for fast learning in large output spaces, ICML 2018, section 3. Classes that score below what
moves anything (``floor`` of the objective) are left out, so that there may be fewer than ``n_sampled``, or none.

It is exact. Weights that are listed by feature are an index already: what a row's features list is added up, class by
class; classes that share no feature with the row score 0 and are not found. Of weights that lie in rows, every row is
scored. Cost: the entries of the lists of a row's features, or all rows of the weights.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN
from xsoftmax.kernels.dispatch import implements, lean, otherwise
from xsoftmax.kernels.lists import Lists
from xsoftmax.kernels.steps import draw, log_probability
from xsoftmax.kernels.walk import score_class
from xsoftmax.proposals import Adaptive, TrainingSet, proposal


@proposal(
    draws=True, distribution=False, adaptive=True, by_row=True, finds=True, cost="what a row's features list, or all"
)
class Search(NamedTuple):
    """Parameters: ``n_sampled``, how many classes a step takes, at most."""

    n_sampled: int = 1

    def fit(self, data: TrainingSet) -> "FittedSearch":
        """Nothing to learn."""
        return FittedSearch(data.n_classes)


MEMBER = Search


@dataclass(frozen=True)
class FittedSearch(Adaptive):
    """A search among ``n_classes``, of the weights as they are."""

    n_classes: int
    name = "search"
    seconds = 0.0

    def kernel(self, X: Any) -> "SearchDraws":
        """What the training loop asks."""
        stamps, seen = (np.zeros(self.n_classes, np.int64) for _ in range(2))
        return SearchDraws(self.n_classes, np.zeros(self.n_classes, np.float32), stamps, seen, np.zeros(1, np.int64))


class SearchDraws(NamedTuple):
    """What the kernels see: how many classes there are, and room of so many entries to add up what lists say.

    ``stamps`` say in which search ``scores`` of a class began, ``searches``, (1,), how many there were; ``seen`` are
    the classes of a search.
    """

    n_classes: int
    scores: np.ndarray
    stamps: np.ndarray
    seen: np.ndarray
    searches: np.ndarray


SearchDraws.reads_weights = True  # type: ignore[attr-defined]


@lean
def find(weights, features, i, room, excluded, lowest, draws):
    """Put the classes that score highest, and above ``lowest``, first into ``draws``; return how many these are."""
    raise TypeError("compiled code only")


@implements(draw, SearchDraws)
def _draw(proposal, view, i, excluded, lowest, rng, draws):
    n = find(view.weights, view.features, i, proposal, excluded, lowest, draws)
    for j in range(draws.classes.size):
        draws.log_q[j] = np.float32(0)
        draws.weights[j] = np.float32(j < n)
        if j >= n:
            draws.classes[j] = max(excluded, np.int64(0))


@implements(log_probability, SearchDraws)
def _log_probability(proposal, view, i, k):
    return np.float32(0)


@njit(**LEAN)
def _keep_highest(draws, n, k, score):
    """Put a class among the first n, which fall, if it belongs there; return how many these are then."""
    if n == draws.classes.size:
        if not score > draws.scores[n - 1]:
            return n
        n -= 1
    place = n
    while place > 0 and draws.scores[place - 1] < score:
        draws.scores[place], draws.classes[place] = draws.scores[place - 1], draws.classes[place - 1]
        place -= 1
    draws.scores[place], draws.classes[place] = score, k
    return n + 1


@otherwise(find)
def _find_among_rows(weights, features, i, room, excluded, lowest, draws):
    n = np.int64(0)
    for k in range(room.n_classes):
        if k != excluded:
            score = score_class(weights, features, i, np.int64(k))
            if score > lowest:
                n = _keep_highest(draws, n, k, score)
    return n


@implements(find, Lists)
def _find_in_lists(weights, features, i, room, excluded, lowest, draws):
    room.searches[0] += 1
    now, n_seen = room.searches[0], 0
    for j in range(features.indptr[i], features.indptr[i + 1]):
        d, x = features.indices[j], features.data[j]
        first = weights.starts[d]
        for place in range(first, first + weights.sizes[d]):
            k = weights.classes[place]
            if room.stamps[k] != now:
                room.stamps[k], room.scores[k] = now, np.float32(0)
                room.seen[n_seen] = k
                n_seen += 1
            room.scores[k] += x * weights.values[place]
    n = np.int64(0)
    for s in range(n_seen):
        k = room.seen[s]
        if k != excluded and room.scores[k] > lowest:
            n = _keep_highest(draws, n, k, room.scores[k])
    return n
