"""The training rows, as objectives and proposals learn from them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.data.label_sets import LabelSets
from xsoftmax.internal.errors import InputError
from xsoftmax.starts import Start

LARGEST_SEED = 2**63 - 1  # what a file can keep


def check_seed(seed: int) -> None:
    """Make sure that a seed is one.

    Raises
    ------
    InputError
        If it is negative, or more than 64 bits hold.
    """
    if not 0 <= seed <= LARGEST_SEED:
        raise InputError(f"seed is {seed}; set it to 0 or more, {LARGEST_SEED} at most")


class Size(NamedTuple):
    """Of a data set, what the cost of training depends on; entries are those of a row, on average."""

    n_samples: int
    n_classes: int
    n_features: int
    n_entries: float


@dataclass(frozen=True)
class TrainingSet:
    """What an objective or a proposal may learn from.

    Attributes
    ----------
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32
        The class of each row; of several labels the first.
    n_classes : int
    seed : int
    n_sampled : int
        Classes that the proposal draws for a step, if it draws.
    start : Start or None
        Where weights begin; None: at zero.
    beforehand : mapping
        Proposals that were fitted to these rows before, by ``xsoftmax.proposals.key_of`` their parameters.
    table : ndarray of shape (n_features, dimension), float32, or None
        Where the table of an encoder begins, of rows that are not NaN; None: nowhere in particular.
    progress : callable or None
        Told, as a long fit goes on, how much of it is done and how much there is.
    label_sets : LabelSets or None
        All labels of each row, where rows may have several.
    ranks : xsoftmax.gpu.ranks.Group or None
        Processes of which each has some of the classes; None: there is one.
    engine : xsoftmax.tree.engine.Engine or None
        Device on which a tree is fitted; None: compiled code fits it.
    """

    X: Any
    y: np.ndarray
    n_classes: int
    seed: int = 0
    n_sampled: int = 1
    start: Start | None = None
    beforehand: Mapping[str, Any] = field(default_factory=dict)
    table: np.ndarray | None = None
    progress: Callable[[float, float], None] | None = None
    label_sets: LabelSets | None = None
    ranks: Any = None
    engine: Any = None

    @property
    def n_samples(self) -> int:
        """Count the rows."""
        return len(self.y)

    @property
    def all_labels(self) -> np.ndarray:
        """Labels of all rows, one after the other, int32 of shape (n_labels,)."""
        return self.y if self.label_sets is None else self.label_sets.classes

    @property
    def pairs(self) -> "TrainingSet":
        """Give each row as often as it has labels, with one of them each time: a copy, where rows have several."""
        if self.label_sets is None:
            return self
        rows = self.label_sets.rows
        return replace(self, X=self.X[rows], y=self.label_sets.classes, label_sets=None)

    @property
    def class_counts(self) -> np.ndarray:
        """Samples of each class, int64 of shape (n_classes,); one with several labels counts for each."""
        return np.bincount(self.all_labels, minlength=self.n_classes)
