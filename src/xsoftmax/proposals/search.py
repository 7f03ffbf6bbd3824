"""Search: the classes that score highest now, the true one left out; nothing is drawn.

Where a loss moves only classes that score near the true one, and higher, these are the classes to look at: Yen et
al., Loss decomposition for fast learning in large output spaces, ICML 2018, section 3. Classes that score below what
moves anything (``floor`` of the objective) are left out, so that there may be fewer than ``n_sampled``, or none.

It is exact. Weights that are listed by feature are an index already: what a row's features list is added up, class by
class; classes that share no feature with the row score 0 and are not found. Lists that even together cannot lift a
class above ``floor`` are not walked: a class that other lists name is looked up in them, until it cannot be among
the highest any more (MaxScore: Turtle and Flood, Query evaluation, 1995). Of weights that lie in rows, every row is
scored. Cost: the entries of the short lists of a row's features, or all rows of the weights.

With a ``shortlist`` it is among so many classes of each row, those that score highest where weights begin, found once
(``xsoftmax.kernels.shortlist``): the classes that a row may be mistaken for are few, and hardly change from there.
Where words are common, or weights dense and of 4,096 classes or more, the lists hold nearly all, but not all.
Cost: as many rows of the weights, whatever the number of classes. ``found_by: faiss`` lets faiss look for the classes
of dense rows (Douze et al., The Faiss library, 2024), among as many clusters and in as many of them as ours does.
"""

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from xsoftmax.internal.compiled import njit
from xsoftmax.internal.errors import InputError
from xsoftmax.kernels import LEAN
from xsoftmax.kernels.dispatch import implements, lean, otherwise
from xsoftmax.kernels.draws import keep_highest, weigh_found
from xsoftmax.kernels.lists import Lists, bound, stored_at
from xsoftmax.kernels.protocol import draw, log_probability
from xsoftmax.kernels.shortlist import FINDERS, nearest_classes
from xsoftmax.kernels.walk import score_class
from xsoftmax.proposals import Adaptive, TrainingSet, proposal

# So that no sum of float32 numbers is above what bounds it.
_ROUNDED_UP = np.float32(1.00001)


@proposal(
    draws=True, distribution=False, adaptive=True, by_row=True, finds=True, cost="what a row's features list, or all"
)
class Search(NamedTuple):
    """Parameters: ``n_sampled``, how many classes a step takes, at most; ``shortlist``, among how many: 0, all.

    ``found_by``: who finds shortlists among clusters of dense weights: clusters, our own, or faiss.
    """

    n_sampled: int = 1
    shortlist: int = 0
    found_by: str = FINDERS[0]

    def problem(self) -> str:
        """Say what is wrong with the parameters, or nothing."""
        if self.found_by == "faiss" and not self.shortlist:
            return (
                "found_by is faiss, which finds shortlists, and shortlist is 0; set it to 20, or leave found_by out"
            )
        if not self.shortlist or self.shortlist >= self.n_sampled:
            return ""
        return f"shortlist is {self.shortlist}, n_sampled {self.n_sampled}; set shortlist to {self.n_sampled} or more"

    def fit(self, data: TrainingSet) -> "FittedSearch":
        """Find the shortlists, if there are any.

        Raises
        ------
        InputError
            If weights begin at zero, where all classes score alike, or faiss is to look for sparse rows.
        """
        if not self.shortlist:
            return FittedSearch(data.n_classes)
        if data.start is None:
            raise InputError(
                f"proposal search has shortlist {self.shortlist}, the classes that score highest where weights "
                "begin, and they begin at zero; set start: class-means, or leave shortlist out"
            )
        if self.found_by == "faiss" and (issparse(data.X) or issparse(data.start.W)):
            raise InputError("proposal search has found_by faiss, which is for dense rows; these are sparse")
        n = min(self.shortlist, data.n_classes - 1)
        nearest_classes(data.X[:1], data.y[:1], data.start.W[:1], n)  # compiles, off the clock
        begin = time.perf_counter()
        shortlists = nearest_classes(data.X, data.y, data.start.W, n, seed=data.seed, found_by=self.found_by)
        return FittedSearch(data.n_classes, shortlists, time.perf_counter() - begin)


MEMBER = Search
Search.words = {"found_by": FINDERS}  # type: ignore[attr-defined]


@dataclass(frozen=True)
class FittedSearch(Adaptive):
    """A search among ``n_classes``, of the weights as they are."""

    n_classes: int
    shortlists: np.ndarray | None = None
    seconds: float = 0.0
    name = "search"

    def refresh(self, weights: Any) -> None:
        """Tighten the bounds of lists, which only ever rise as weights move."""
        if isinstance(weights, Lists):
            bound(weights)

    def kernel(self, X: Any) -> "SearchDraws | ShortlistDraws":
        """What the training loop asks."""
        if self.shortlists is not None:
            return ShortlistDraws(self.shortlists)
        stamps, seen = (np.zeros(self.n_classes, np.int64) for _ in range(2))
        longest = int(np.diff(X.indptr).max(initial=0)) if issparse(X) else 0
        order, rest = np.zeros(longest, np.int64), np.zeros(longest + 1, np.float32)
        scores, searches = np.zeros(self.n_classes, np.float32), np.zeros(1, np.int64)
        return SearchDraws(self.n_classes, scores, stamps, seen, searches, order, rest)


class SearchDraws(NamedTuple):
    """What the kernels see: how many classes there are, and room of so many entries to add up what lists say.

    ``stamps`` say in which search ``scores`` of a class began, ``searches``, (1,), how many there were; ``seen`` are
    the classes of a search. ``order`` are the entries of a row, those of short lists first, and ``rest`` by how much
    each of them and all later ones can lift a score together.
    """

    n_classes: int
    scores: np.ndarray
    stamps: np.ndarray
    seen: np.ndarray
    searches: np.ndarray
    order: np.ndarray
    rest: np.ndarray


class ShortlistDraws(NamedTuple):
    """What the kernels see: the classes of each row, (n_samples, n), -1 behind the last."""

    shortlists: np.ndarray


SearchDraws.reads_weights = ShortlistDraws.reads_weights = True  # type: ignore[attr-defined]
SearchDraws.finds = ShortlistDraws.finds = True  # type: ignore[attr-defined]
SearchDraws.reads_features = True  # type: ignore[attr-defined]


@lean
def find(weights, features, i, workspace, excluded, lowest, draws):
    """Put the classes that score highest, and above ``lowest``, first into ``draws``; return how many these are."""


@implements(draw, SearchDraws)
def _draw(proposal, view, i, excluded, lowest, rng, draws):
    weigh_found(draws, find(view.weights, view.features, i, proposal, excluded, lowest, draws), excluded)


@implements(draw, ShortlistDraws)
def _draw_from_shortlist(proposal, view, i, excluded, lowest, rng, draws):
    n, shortlist = np.int64(0), proposal.shortlists[i]
    if shortlist.size == draws.classes.size:  # all of them, whose scores are computed once, with that of the true one
        while n < shortlist.size and shortlist[n] >= 0:
            draws.classes[n] = shortlist[n]
            n += 1
    else:
        for k in shortlist:
            if k >= 0:
                score = score_class(view.weights, view.features, i, np.int64(k))
                if score > lowest:
                    n = keep_highest(draws, n, np.int64(k), score)
    weigh_found(draws, n, excluded)


@implements(log_probability, ShortlistDraws)
@implements(log_probability, SearchDraws)
def _log_probability(proposal, view, i, k):
    return np.float32(0)


@otherwise(find)
def _find_among_rows(weights, features, i, workspace, excluded, lowest, draws):
    n = np.int64(0)
    for k in range(workspace.n_classes):
        if k != excluded:
            score = score_class(weights, features, i, np.int64(k))
            if score > lowest:
                n = keep_highest(draws, n, k, score)
    return n


@implements(find, Lists)
def _find_in_lists(weights, features, i, workspace, excluded, lowest, draws):
    n_entries, lowest = _order_entries(weights, features, i, workspace), lowest * np.float32(weights.scale[1])
    n_walked = 0
    while n_walked < n_entries and workspace.rest[n_walked] > lowest:
        n_walked += 1
    n_seen = _walk(weights, features, workspace, n_walked)
    n, least = np.int64(0), lowest
    for s in range(n_seen):
        k = workspace.seen[s]
        if k == excluded:
            continue
        score, j = workspace.scores[k], n_walked
        while j < n_entries and score + workspace.rest[j] > least:
            entry = workspace.order[j]
            score += features.data[entry] * stored_at(weights, k, features.indices[entry])
            j += 1
        if j == n_entries and score > least:
            n = keep_highest(draws, n, k, score)
            if n == draws.classes.size:
                least = max(lowest, draws.scores[n - 1])
    return n


@njit(**LEAN)
def _order_entries(weights, features, i, workspace):
    """Put the entries of a row in order of the lengths of their lists; return how many there are."""
    first = features.indptr[i]
    n = features.indptr[i + 1] - first
    for j in range(n):
        size, place = weights.sizes[features.indices[first + j]], j
        while place > 0 and weights.sizes[features.indices[workspace.order[place - 1]]] > size:
            workspace.order[place] = workspace.order[place - 1]
            place -= 1
        workspace.order[place] = first + j
    workspace.rest[n] = np.float32(0)
    for j in range(n - 1, -1, -1):
        entry = workspace.order[j]
        lift = abs(features.data[entry]) * weights.most[features.indices[entry]]
        workspace.rest[j] = (workspace.rest[j + 1] + lift) * _ROUNDED_UP
    return n


@njit(**LEAN)
def _walk(weights, features, workspace, n_walked):
    """Add up what the first lists of a row say; return how many classes they name."""
    workspace.searches[0] += 1
    now, n_seen = workspace.searches[0], 0
    for j in range(n_walked):
        entry = workspace.order[j]
        d, x = features.indices[entry], features.data[entry]
        first = weights.starts[d]
        for place in range(first, first + weights.sizes[d]):
            k = weights.members[place]
            if workspace.stamps[k] != now:
                workspace.stamps[k], workspace.scores[k] = now, np.float32(0)
                workspace.seen[n_seen] = k
                n_seen += 1
            workspace.scores[k] += x * weights.values[place]
    return n_seen
