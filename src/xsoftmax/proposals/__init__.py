"""Which classes to look at for an example, and with what log-probability; one file each.

A file holds its parameters, a NamedTuple described by ``proposal`` and named ``MEMBER``, whose ``fit`` gives a
``Proposal``; and the NamedTuple that the kernels see, with its compiled ``draw`` and ``log_probability``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import h5py
import numpy as np


@dataclass(frozen=True)
class TrainingSet:
    """What a proposal may learn from.

    Attributes
    ----------
    X : sparse array or ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,), int32
    n_classes : int
    seed : int
    tree : Path or None
        A fitted tree to use instead of fitting one.
    """

    X: Any
    y: np.ndarray
    n_classes: int
    seed: int = 0
    tree: Path | None = None

    @property
    def class_counts(self) -> np.ndarray:
        """Samples of each class, int64 of shape (n_classes,)."""
        return np.bincount(self.y, minlength=self.n_classes)


def proposal(
    *, draws: bool, distribution: bool = True, adaptive: bool = False, by_row: bool = False, cost: str = ""
) -> Callable[[Any], Any]:
    """Describe a proposal: a decorator for its NamedTuple of parameters.

    Parameters
    ----------
    draws : bool
        Whether it leaves classes out.
    distribution : bool
        Whether draws are independent, from one distribution, of which objectives may take a mean.
    adaptive : bool
        Whether it follows the weights as they move: the fitted one has ``refresh(W)``, called before every chunk
        of ``refresh_steps`` steps.
    by_row : bool
        Whether its distribution differs from row to row.
    cost : str
        What a draw costs, in words; parameters stand in braces, K for the number of classes.
    """

    def describe(member: Any) -> Any:
        member.draws, member.distribution, member.adaptive = draws, distribution, adaptive
        member.by_row, member.cost = by_row, cost
        return member

    return describe


class Proposal(Protocol):
    """A fitted proposal."""

    @property
    def name(self) -> str:
        """Of its file, with hyphens."""

    @property
    def seconds(self) -> float:
        """What the fit took."""

    def kernel(self, X: Any) -> NamedTuple:
        """What the training loop draws from, for the rows of ``X``."""

    def log_q(self, X: Any, start: int, stop: int) -> np.ndarray | None:
        """Log-probabilities of classes ``start`` to ``stop``, shape (n or 1, stop - start); None: all the same."""

    def inclusion(self, n_sampled: int) -> np.ndarray | None:
        """Probability with which each class is among the draws of a row of another class; None: rows differ."""

    def save(self, group: h5py.Group) -> None:
        """Write what ``restore`` of the same file needs to give ``log_q`` again."""
