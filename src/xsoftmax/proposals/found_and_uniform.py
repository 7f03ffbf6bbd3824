"""The classes that a search finds, for certain, and uniform draws from all the others.

    sum_k f(k)  =  sum_{k found} f(k) + sum_{k not found} f(k),    the second sum estimated from m draws of K' classes

A class that is found has inclusion probability 1 and weight 1, another one of K' has m / K' and K' / m, draws being
without replacement. So the sum is unbiased whatever the search finds; that takes most of the variance out of the sum,
and the draws see to the classes that it misses. Cost of a step: that of the search, and n_found + n_sampled rows.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal import registry
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import part_of
from xsoftmax.kernels.implicit_batch import draw_outside
from xsoftmax.kernels.protocol import draw, log_probability
from xsoftmax.proposals import Adaptive, TrainingSet, fitted, proposal
from xsoftmax.proposals.search import Search
from xsoftmax.proposals.uniform import UniformDraws, log_of_uniform


@proposal(draws=True, distribution=False, adaptive=True, by_row=True, cost="a search, and random numbers")
class FoundAndUniform(NamedTuple):
    """Parameters: ``search``, a proposal that finds ``n_found`` classes, at most; ``n_sampled`` others are drawn."""

    search: Any = Search()
    n_found: int = 5
    n_sampled: int = 1

    def problem(self) -> str:
        """Say why the search cannot be one, or does not find so many."""
        name = registry.name_of(self.search)
        if not self.search.finds:
            return f"search is {name}, which draws; take search, clustered-search or decomposed-search"
        budget = getattr(self.search, "budget", self.n_found)
        if budget < self.n_found:
            return f"n_found is {self.n_found}, and {name} has budget {budget}; set that to {self.n_found} or more"
        return ""

    def fit(self, data: TrainingSet) -> "FittedFoundAndUniform":
        """Fit the search."""
        return FittedFoundAndUniform(fitted(self.search, data), min(self.n_found, data.n_classes - 1), data.n_classes)


MEMBER = FoundAndUniform


class FittedFoundAndUniform(Adaptive):
    """A fitted search, and how many classes it finds for a step, of how many."""

    name = "found-and-uniform"

    def __init__(self, search: Any, n_found: int, n_classes: int) -> None:
        self._search, self._n_found, self._n_classes = search, n_found, n_classes
        self.seconds, self.refresh_steps, self.kept = search.seconds, search.refresh_steps, search.kept

    def look_at(self, encode: Callable[[np.ndarray], np.ndarray]) -> None:
        """Let the search take its rows anew."""
        self._search.look_at(encode)

    def refresh(self, weights: Any) -> None:
        """Let the search follow the weights."""
        self._search.refresh(weights)

    def arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint holds of the search."""
        return self._search.arrays()

    def restored(self) -> None:
        """Let the search follow what was written into its arrays."""
        self._search.restored()

    def kernel(self, X: Any) -> "FoundAndUniformDraws":
        """What the training loop draws from."""
        return FoundAndUniformDraws(np.zeros(self._n_found, np.int64), self._search.kernel(X), self._n_classes)


class FoundAndUniformDraws(NamedTuple):
    """What the kernels see; of ``exact_classes`` the length alone counts: places for what the search finds."""

    exact_classes: np.ndarray
    search: Any
    n_classes: int


# An exact search of lists needs to know where each weight is among those of its feature.
FoundAndUniformDraws.reads_features = True  # type: ignore[attr-defined]


@implements(draw, FoundAndUniformDraws, allocates=True)
def _draw(proposal, view, i, excluded, lowest, rng, draws):
    n_exact = proposal.exact_classes.size
    found, rest = part_of(draws, 0, n_exact), part_of(draws, n_exact, draws.classes.size)
    draw(proposal.search, view, i, excluded, lowest, rng, found)
    taken, n = np.empty(n_exact + 1, np.int64), 0
    for j in range(n_exact):
        if found.weights[j] > 0:
            taken[n] = found.classes[j]
            n += 1
    if excluded >= 0:
        taken[n] = excluded
        n += 1
    taken = np.sort(taken[:n])
    n_drawn = draw_outside(UniformDraws(proposal.n_classes), view, i, excluded, taken, rng, rest)
    for j in range(rest.classes.size):
        rest.log_q[j] = np.float32(-math.log(max(1, proposal.n_classes - n)))
        if j >= n_drawn:
            rest.classes[j], rest.weights[j] = max(excluded, np.int64(0)), np.float32(0)


implements(log_probability, FoundAndUniformDraws)(log_of_uniform)
