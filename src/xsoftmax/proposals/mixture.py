"""A mixture of two proposals: some draws from the first, the others from the second.

    q(k | x)  =  share q_1(k | x) + (1 - share) q_2(k | x)

With some uniform draws no class is left out or given a weight without bound, whatever the other proposal does. A
draw costs one of one part, and the log-probability under the other.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import h5py
import numpy as np

from xsoftmax.internal import registry
from xsoftmax.internal.compiled import njit
from xsoftmax.internal.hdf5 import attribute, put
from xsoftmax.internal.hdf5_checks import check_number
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.draws import part_of, weigh_by_probability
from xsoftmax.kernels.protocol import draw, log_probability
from xsoftmax.kernels.random import next_u64, uniform
from xsoftmax.proposals import TrainingSet, fitted, proposal
from xsoftmax.proposals.frequency import Frequency
from xsoftmax.proposals.uniform import Uniform


@proposal(draws=True, cost="a draw of one part, a log-probability of the other")
class Mixture(NamedTuple):
    """Parameters: ``first`` and ``second``, proposals; ``share`` of ``n_sampled`` draws that is from the first."""

    first: Any = Uniform()
    second: Any = Frequency()
    share: float = 0.5
    n_sampled: int = 1

    def problem(self) -> str:
        """Say why these parts, or this share, cannot be."""
        for key, part in (("first", self.first), ("second", self.second)):
            if not (part.draws and part.distribution):
                name = registry.name_of(part)
                return f"{key} is {name}, which is no distribution; take one such as uniform or frequency"
        return "" if 0 < self.share < 1 else f"share is {self.share:g}; set it to a number between 0 and 1"

    def fit(self, data: TrainingSet) -> "FittedMixture":
        """Fit both parts."""
        return FittedMixture(fitted(self.first, data), fitted(self.second, data), self.share, data.n_classes)


# Follows the weights if a part does.
Mixture.adaptive = property(lambda self: self.first.adaptive or self.second.adaptive)  # type: ignore[attr-defined]
MEMBER = Mixture


@dataclass(frozen=True)
class FittedMixture:
    """Two fitted proposals and the share of the first."""

    first: Any
    second: Any
    share: float
    n_classes: int
    name = "mixture"

    @property
    def seconds(self) -> float:
        """What the fit of both took."""
        return self.first.seconds + self.second.seconds

    @property
    def _adaptive(self) -> list[Any]:
        """Parts, of mixtures their parts, that follow the weights."""
        inner = [part._adaptive if isinstance(part, FittedMixture) else [part] for part in (self.first, self.second)]
        return [part for parts in inner for part in parts if hasattr(part, "refresh")]

    @property
    def refresh_steps(self) -> int:
        """Steps between two refreshes: the fewer that a part asks for."""
        return min(part.refresh_steps for part in self._adaptive)

    def refresh(self, weights: Any) -> None:
        """Let adaptive parts follow the weights."""
        for part in self._adaptive:
            part.refresh(weights)

    def kernel(self, X: Any) -> "MixtureDraws":
        """What the training loop draws from."""
        logs = (np.float32(math.log(share)) for share in (self.share, 1 - self.share))
        return MixtureDraws(self.first.kernel(X), self.second.kernel(X), np.float32(self.share), *logs)

    def log_q(self, X: Any, start: int, stop: int) -> np.ndarray | None:
        """Log-probabilities of a block of classes, float32 of shape (n or 1, stop - start)."""
        if self._adaptive:
            return None
        first, second = (self._of(part, X, start, stop) for part in (self.first, self.second))
        return np.logaddexp(first + math.log(self.share), second + math.log(1 - self.share)).astype(np.float32)

    def _of(self, part: Any, X: Any, start: int, stop: int) -> np.ndarray:
        found = part.log_q(X, start, stop)
        return np.full((1, stop - start), -math.log(self.n_classes)) if found is None else found.astype(np.float64)

    def inclusion(self, n_sampled: int) -> np.ndarray | None:
        """Independent draws; None if the rows of a part differ."""
        if any(part.inclusion(1) is None for part in (self.first, self.second)):
            return None
        q = np.exp(np.asarray(self.log_q(None, 0, self.n_classes))[0].astype(np.float64))
        return -np.expm1(n_sampled * np.log1p(-np.minimum(q, 1.0 - 1e-12)))

    def save(self, group: h5py.Group) -> None:
        """Keep both parts, each in a group of its own."""
        put(group, share=self.share, n_classes=self.n_classes, first=self.first.name, second=self.second.name)
        for key, part in (("first", self.first), ("second", self.second)):
            part.save(group.create_group(key))


def restore(group: h5py.Group, n_classes: int, n_features: int) -> FittedMixture:
    """Read what ``save`` wrote of a proposal over so many classes, for rows of so many features."""
    check_number(group, "n_classes", n_classes)
    modules = {key: registry.load("xsoftmax.proposals", attribute(group, key)) for key in ("first", "second")}
    first, second = (module.restore(group[key], n_classes, n_features) for key, module in modules.items())
    return FittedMixture(first, second, float(attribute(group, "share")), n_classes)


class MixtureDraws(NamedTuple):
    """What the kernels see: those of both parts, the first one's share, and the logarithms of both shares."""

    first: Any
    second: Any
    share: np.float32
    log_first: np.float32
    log_second: np.float32


@njit(**OPTIONS)
def _log_sum(a, b):
    """log(e^a + e^b), float32; both may be -inf."""
    high, low = max(a, b), min(a, b)
    return high if low == -np.inf else np.float32(high + math.log1p(math.exp(np.float64(low) - np.float64(high))))


@implements(draw, MixtureDraws)
def _draw(proposal, view, i, excluded, lowest, rng, draws):
    for j in range(draws.classes.size):
        rng, coin = next_u64(rng)
        rng, inner = next_u64(rng)
        one = part_of(draws, j, j + 1)
        if uniform(coin) < proposal.share:
            draw(proposal.first, view, i, np.int64(-1), lowest, inner, one)
            other = log_probability(proposal.second, view, i, one.classes[0])
            one.log_q[0] = _log_sum(one.log_q[0] + proposal.log_first, other + proposal.log_second)
        else:
            draw(proposal.second, view, i, np.int64(-1), lowest, inner, one)
            other = log_probability(proposal.first, view, i, one.classes[0])
            one.log_q[0] = _log_sum(other + proposal.log_first, one.log_q[0] + proposal.log_second)
    weigh_by_probability(draws)


@implements(log_probability, MixtureDraws)
def _log_probability(proposal, view, i, k):
    first = log_probability(proposal.first, view, i, k) + proposal.log_first
    return _log_sum(first, log_probability(proposal.second, view, i, k) + proposal.log_second)
