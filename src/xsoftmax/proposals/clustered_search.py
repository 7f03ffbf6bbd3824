"""Search in clusters: the classes that score highest among those of the nearest clusters; nothing is drawn.

Yen et al., Loss decomposition for fast learning in large output spaces, ICML 2018, algorithm 1, with the index of
their section 5 (``xsoftmax.kernels.clusters``); a class that is not retrieved is missing, where the paper gives it a
score of 0, so that a margin does not push what nobody looked at. It is for dense rows of weights, and is not exact:
how often the highest class is found is measured as training goes, and clusters are found anew where it is too rarely.
Cost: ``n_clusters + budget`` rows, and every ``refresh`` steps ``n_clusters`` products for each class that has moved.
"""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.kernels.clusters import Index, retrieve
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import keep_highest
from xsoftmax.kernels.walk import score_class
from xsoftmax.proposals import Size, TrainingSet, proposal
from xsoftmax.proposals._indexed import Indexed, memory_of_index, problem_of, search, searches


@proposal(
    draws=True,
    distribution=False,
    adaptive=True,
    by_row=True,
    finds=True,
    indexes=True,
    cost="{n_clusters} + {budget} rows",
)
class ClusteredSearch(NamedTuple):
    """Parameters: ``n_sampled``, how many classes a step takes, at most, of ``budget`` that are scored for a row.

    ``n_clusters`` of classes there are; found anew once the highest class is found for fewer than ``recall`` of a few
    rows, which is looked at every ``refresh`` steps.
    """

    n_clusters: int = 100
    budget: int = 1000
    recall: float = 0.9
    refresh: int = 4096
    n_sampled: int = 1

    def problem(self) -> str:
        """Say what is wrong with the parameters, or nothing."""
        return problem_of(self)

    def memory(self, size: Size) -> dict[str, int]:
        """Estimate the bytes of its index."""
        return memory_of_index(size)

    def fit(self, data: TrainingSet) -> "FittedClusteredSearch":
        """Begin with classes in clusters in turn; the first refresh finds better ones."""
        return FittedClusteredSearch(data, self)


MEMBER = ClusteredSearch


class FittedClusteredSearch(Indexed):
    """A search in the clusters of all columns of the weights."""

    name = "clustered-search"

    def __init__(self, data: TrainingSet, member: ClusteredSearch) -> None:
        super().__init__(data, member.n_clusters, 1, member.recall, member.refresh)
        self._budget = member.budget

    def kernel(self, X: Any) -> "ClusteredDraws":
        """What the training loop asks."""
        return ClusteredDraws(self.index, self.moved, self._budget)


@searches
class ClusteredDraws(NamedTuple):
    """What the kernels see; who is found, or is the class of a row, is marked as ``moved``, uint8."""

    clusters: Index
    moved: np.ndarray
    budget: int


@implements(search, ClusteredDraws, allocates=True)
def _search(proposal, view, i, excluded, lowest, draws):
    index, n = proposal.clusters, np.int64(0)
    reach = np.empty(index.centroids.shape[1], np.float32)
    found = np.empty(min(proposal.budget, index.members.shape[1]), np.int64)
    for k in found[: retrieve(index, 0, view.features, i, found.size, excluded, reach, found)]:
        score = score_class(view.weights, view.features, i, k)
        if score > lowest:
            n = keep_highest(draws, n, k, score)
    return n
