"""Decomposed search: blocks of columns retrieve classes, and messages between them tell which of these have a slope.

Yen et al., Loss decomposition for fast learning in large output spaces, ICML 2018, algorithm 2: an index for each
block of columns, in which search is easier than in all of them, and ``xsoftmax.kernels.messages``. Of the classes
that a smoothed margin would move, and which are scored as a whole then, the highest are taken. So the objective sees
exact scores, where the paper's gradient is the mean of those of the blocks: both are the same for ``eta: 1``, with
which, and as many ``rounds`` as bring new classes, no retrieved class that the margin would move is missed.
Cost: ``n_clusters + budget`` rows, all blocks together, and a row for each class that has a slope in some block.
"""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.clusters import Index, nearest_left, partial_score, rank
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import keep_highest
from xsoftmax.kernels.messages import Messages, choose, empty_messages, pass_on, step_size
from xsoftmax.kernels.walk import score_class
from xsoftmax.proposals import Size, TrainingSet, proposal
from xsoftmax.proposals._indexed import Indexed, memory_of_index, problem_of, search, searches

PAPER = "paper"


@proposal(
    draws=True,
    distribution=False,
    adaptive=True,
    by_row=True,
    finds=True,
    indexes=True,
    cost="{n_clusters} + {budget} rows",
)
class DecomposedSearch(NamedTuple):
    """Parameters: as of clustered-search, ``budget`` being that of each of ``n_blocks`` blocks of columns.

    ``rounds`` of messages are passed, each ``eta`` of the way, or ``paper``, 2 / (t + 2) of it in round t; a class
    counts from a slope of ``least_slope`` on, that of a margin smoothed by ``smoothing``. The paper passes one round.
    """

    n_blocks: int = 8
    n_clusters: int = 100
    budget: int = 1000
    rounds: int = 10
    eta: Any = 1.0
    smoothing: float = 1.0
    least_slope: float = 0.001
    recall: float = 0.9
    refresh: int = 4096
    n_sampled: int = 1

    def problem(self) -> str:
        """Say what is wrong with the parameters, or nothing."""
        if not self.smoothing > 0:
            return f"smoothing is {self.smoothing:g}; set it above 0, to 1 as in the paper"
        if self.eta != PAPER and not 0 < self.eta <= 1:
            return f"eta is {self.eta:g}; set it to paper, or to a number above 0, 1 at most"
        return problem_of(self)

    def memory(self, size: Size) -> dict[str, int]:
        """Estimate the bytes of its index."""
        return memory_of_index(size)

    def fit(self, data: TrainingSet) -> "FittedDecomposedSearch":
        """Begin with classes in clusters in turn; the first refresh finds better ones."""
        return FittedDecomposedSearch(data, self)


DecomposedSearch.words = {"eta": (PAPER,)}  # type: ignore[attr-defined]
MEMBER = DecomposedSearch


class FittedDecomposedSearch(Indexed):
    """Searches in the clusters of each block of the columns of the weights."""

    name = "decomposed-search"
    margin = 1.0

    def __init__(self, data: TrainingSet, member: DecomposedSearch) -> None:
        super().__init__(data, member.n_clusters, member.n_blocks, member.recall, member.refresh)
        self._member = member

    def kernel(self, X: Any) -> "DecomposedDraws":
        """What the training loop asks."""
        of = self._member
        eta = 0.0 if of.eta == PAPER else of.eta
        return DecomposedDraws(self.index, self.moved, of.budget, of.rounds, eta, of.smoothing, of.least_slope)


@searches
class DecomposedDraws(NamedTuple):
    """What the kernels see: ``eta`` is 0 for the paper's."""

    clusters: Index
    moved: np.ndarray
    budget: int
    rounds: int
    eta: float
    smoothing: float
    least_slope: float


@implements(search, DecomposedDraws, allocates=True)
def _search(proposal, view, i, excluded, lowest, draws):
    messages = _retrieved(proposal, view, i, excluded)
    _find_slopes(proposal, view, i, excluded, messages)
    n = np.int64(0)
    for c in range(messages.classes.size - 1):
        if messages.chosen[c] > 0 or excluded < 0:
            k = messages.classes[c]
            score = score_class(view.weights, view.features, i, k)
            if score > lowest:
                n = keep_highest(draws, n, k, score)
    return n


@njit(**OPTIONS)
def _retrieved(proposal, view, i, excluded):
    """Ask each block for classes, and score these, and the true one, by its columns."""
    index, n = proposal.clusters, 0
    n_blocks = index.members.shape[0]
    most = min(proposal.moved.size, n_blocks * proposal.budget)
    messages, table = empty_messages(most, n_blocks), np.full(_table_size(most), -1)
    for b in range(n_blocks):
        left, reach = proposal.budget, np.empty(index.centroids.shape[1], np.float32)
        rank(index, b, view.features, i, reach)
        j = nearest_left(reach)
        while j >= 0 and left > 0:
            members = index.members[b, index.starts[b, j] : index.starts[b, j + 1]]
            for k in members[:left]:
                if k != excluded:
                    c = _place_of(table, messages.classes, np.int64(k), n)
                    n = max(n, c + 1)
                    _note(messages, b, c, view, i, np.int64(k), index.bounds)
            left -= members.size
            j = nearest_left(reach)
    _, parts, known, sums, ways, chosen = messages
    some = n + 1
    return Messages(
        messages.classes[:some], parts[:, :some], known[:, :some], sums[:some], ways[:some], chosen[:some]
    )


@njit(**OPTIONS)
def _note(messages, b, c, view, i, k, bounds):
    messages.parts[b, c] = partial_score(view.weights, view.features, i, k, bounds[b], bounds[b + 1])
    messages.known[b, c] = np.float32(1)


@njit(**OPTIONS)
def _table_size(n):
    """Places of a table that is at most half full, a power of two."""
    size = 4
    while size < 2 * n:
        size *= 2
    return size


@njit(**OPTIONS)
def _place_of(table, classes, k, n):
    """Look a class up in ``table``, by its number and then place by place; put it at ``n`` if it is not there."""
    at = k & (table.size - 1)
    while table[at] >= 0:
        if classes[table[at]] == k:
            return table[at]
        at = (at + 1) & (table.size - 1)
    table[at], classes[n] = n, k
    return n


@njit(**OPTIONS)
def _find_slopes(proposal, view, i, excluded, messages):
    """Pass messages as many rounds as are asked for; ``messages.chosen`` tells then which classes have a slope."""
    if excluded < 0:
        return
    n = messages.classes.size - 1
    messages.classes[n] = excluded
    _complete(proposal, view, i, messages, n)
    for t in range(1, proposal.rounds + 1):
        if not choose(messages, proposal.smoothing, proposal.least_slope):
            return
        if t == proposal.rounds or not (_complete_new(proposal, view, i, messages) or proposal.eta < 1):
            return
        pass_on(messages, step_size(proposal.eta, t))


@njit(**OPTIONS)
def _complete_new(proposal, view, i, messages):
    """Complete the classes that were chosen for the first time; tell whether there are any."""
    any_is = False
    for c in range(messages.classes.size - 1):
        if messages.chosen[c] == 1 and messages.ways[c] == 0:
            _complete(proposal, view, i, messages, c)
            any_is = True
    return any_is


@njit(**OPTIONS)
def _complete(proposal, view, i, messages, c):
    """Score a class by the columns of all blocks."""
    messages.sums[c] = np.float32(0)
    for b in range(messages.parts.shape[0]):
        if messages.known[b, c] == 0:
            _note(messages, b, c, view, i, messages.classes[c], proposal.clusters.bounds)
        messages.sums[c] += messages.parts[b, c]
