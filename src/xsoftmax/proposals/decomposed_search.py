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

from xsoftmax.kernels.block_search import find_slopes, retrieved
from xsoftmax.kernels.clusters import Index
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import keep_highest
from xsoftmax.kernels.messages import Margin
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
    messages = retrieved(
        proposal.clusters, view.weights, view.features, i, proposal.budget, excluded, np.empty(0, np.int32)
    )
    if excluded >= 0:
        given = Margin(proposal.smoothing), view.weights, view.features, i, proposal.clusters.bounds
        find_slopes(given, messages, proposal.rounds, proposal.eta, proposal.least_slope)
    n = np.int64(0)
    for c in range(messages.classes.size):
        k = messages.classes[c]
        if k != excluded and (messages.chosen[c] > 0 or excluded < 0):
            score = score_class(view.weights, view.features, i, k)
            if score > lowest:
                n = keep_highest(draws, n, k, score)
    return n
