"""Which classes to look at for an example, and with what log-probability; one file each.

A file holds its parameters, a NamedTuple described by ``proposal`` and named ``MEMBER``, whose ``fit`` gives a
``Proposal``; and the NamedTuple that the kernels see, with its compiled ``draw`` and ``log_probability``. One that
draws has the parameter ``n_sampled``, how many classes it draws for a step; of a proposal that is made of others, the
outer one's counts, and the others' is not looked at.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import h5py
import numpy as np

from xsoftmax.data.training_set import TrainingSet

__all__ = ["Proposal", "TrainingSet", "proposal"]


def proposal(
    *,
    draws: bool,
    distribution: bool = True,
    adaptive: bool = False,
    by_row: bool = False,
    finds: bool = False,
    cost: str = "",
) -> Callable[[Any], Any]:
    """Describe a proposal: a decorator for its NamedTuple of parameters.

    Parameters
    ----------
    draws : bool
        Whether it leaves classes out.
    distribution : bool
        Whether draws are independent, from one distribution, of which objectives may take a mean.
    adaptive : bool
        Whether it follows the weights as they move: the fitted one is ``Adaptive``.
    by_row : bool
        Whether its distribution differs from row to row.
    finds : bool
        Whether it looks for some classes, those that score highest, so that what a step sees stands for no sum.
    cost : str
        What a draw costs, in words; parameters stand in braces, K for the number of classes.
    """

    def describe(member: Any) -> Any:
        member.draws, member.distribution, member.adaptive = draws, distribution, adaptive
        member.by_row, member.finds, member.cost = by_row, finds, cost
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


class Adaptive:
    """What a fitted proposal that follows the weights inherits.

    ``refresh(weights)`` is called before every chunk of ``refresh_steps`` steps, while nobody writes to them; a draw
    sees the weights as they are by then. So what the proposal is derives from the weights: a checkpoint holds nothing
    of it, and no prediction is corrected by it. One that keeps nothing of the weights needs neither of the two. One
    that keeps what weights alone do not tell has it in ``arrays``, which a checkpoint writes into when it resumes.
    """

    refresh_steps: int = 2**15

    def refresh(self, weights: Any) -> None:
        """Look at the weights, in a layout of ``xsoftmax.kernels.layout``: by default not at all."""

    def arrays(self) -> dict[str, np.ndarray]:
        """What a checkpoint holds of it beside the weights, views: by default nothing."""
        return {}

    def restored(self) -> None:
        """Follow what was written into ``arrays``."""

    def inclusion(self, n_sampled: int) -> None:
        """Rows differ."""
        return None

    def log_q(self, X: Any, start: int, stop: int) -> None:
        """Nothing to correct by."""
        return None

    def save(self, group: h5py.Group) -> None:
        """Nothing to keep."""
