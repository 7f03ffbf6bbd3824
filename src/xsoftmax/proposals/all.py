"""All classes: nothing is drawn, every class is looked at. Cost of a step: n_classes rows."""

from dataclasses import dataclass
from typing import NamedTuple

import h5py

from xsoftmax.proposals import TrainingSet, proposal


@proposal(draws=False)
class All(NamedTuple):
    """Parameters: ``batch_size``, samples per step, along their mean gradient; L-BFGS takes all at once."""

    batch_size: int = 64

    def fit(self, data: TrainingSet) -> "FittedAll":
        """Nothing to learn."""
        return FittedAll()


MEMBER = All


@dataclass(frozen=True)
class FittedAll:
    """Every class, once."""

    name = "all"
    seconds = 0.0

    def kernel(self, X) -> NamedTuple:
        """Nothing to draw from."""
        return All()

    def log_q(self, X, start: int, stop: int) -> None:
        """No probabilities."""
        return None

    def inclusion(self, n_sampled: int) -> None:
        """Nothing is drawn."""
        return None

    def save(self, group: h5py.Group) -> None:
        """Nothing to keep."""


def restore(group: h5py.Group, n_classes: int, n_features: int) -> FittedAll:
    """Read what ``save`` wrote of a proposal over so many classes, for rows of so many features."""
    return FittedAll()
