"""Processes that train one model together, each with some of the classes: what a fit asks of them.

A fit in one process asks ``ALONE``; one of several asks ``xsoftmax.gpu.sharded.Ranks``.
"""

from typing import NamedTuple, Protocol

import numpy as np

from xsoftmax.internal.errors import InputError

# The environment variable that says how many seconds a rank waits for another one.
SECONDS_VARIABLE = "XSOFTMAX_RANK_SECONDS"


class Shard(NamedTuple):
    """The classes of one rank: ``first`` up to ``stop``, which is the first of the next rank."""

    first: int
    stop: int

    @property
    def n(self) -> int:
        """Count the classes."""
        return self.stop - self.first


def shard_of(rank: int, n_ranks: int, n_classes: int) -> Shard:
    """Give the classes of a rank; numbers of classes differ by one at most.

    Raises
    ------
    InputError
        If there are fewer classes than ranks.
    """
    if n_classes < n_ranks:
        raise InputError(f"{n_classes} classes are fewer than {n_ranks} ranks; use at most {n_classes} ranks")
    return Shard(rank * n_classes // n_ranks, (rank + 1) * n_classes // n_ranks)


class Group(Protocol):
    """What a fit asks of the processes that it runs in; every rank calls the same methods in the same order.

    Attributes
    ----------
    rank, n_ranks : int
    n_here : int
        How many of them are on this machine, and share its memory.
    n_sent : int
        Bytes that this rank has sent.
    """

    rank: int
    n_ranks: int
    n_here: int
    n_sent: int

    def shard(self, n_classes: int) -> Shard:
        """Give this rank's classes."""

    def check_alike(self, what: str) -> None:
        """Make sure that all ranks have the same text.

        Raises
        ------
        InputError
            On all ranks, if one has another: none waits for another then.
        """

    def latest(self, number: float) -> float:
        """Give the largest of the ranks' numbers: of seconds, those of the slowest."""

    def of_first(self, values: np.ndarray) -> np.ndarray:
        """Give what rank 0 has; shapes and dtypes are the same on all."""

    def total(self, values: np.ndarray) -> np.ndarray:
        """Add the ranks' arrays of one shape, place by place."""

    def highest(self, values: np.ndarray) -> np.ndarray:
        """Give the largest of the ranks' values, place by place."""

    def sent(self, values: np.ndarray, source: int) -> np.ndarray:
        """Send an array from a rank to rank 0, where an array of that shape and dtype is filled and given."""


class Alone:
    """One process, which has all classes: see ``Group``."""

    rank, n_ranks, n_here, n_sent = 0, 1, 1, 0

    def shard(self, n_classes: int) -> Shard:
        """See ``Group``."""
        return Shard(0, n_classes)

    def check_alike(self, what: str) -> None:
        """See ``Group``."""

    def latest(self, number: float) -> float:
        """See ``Group``."""
        return number

    def of_first(self, values: np.ndarray) -> np.ndarray:
        """See ``Group``."""
        return values

    def total(self, values: np.ndarray) -> np.ndarray:
        """See ``Group``."""
        return values

    def highest(self, values: np.ndarray) -> np.ndarray:
        """See ``Group``."""
        return values

    def sent(self, values: np.ndarray, source: int) -> np.ndarray:
        """See ``Group``."""
        return values


ALONE = Alone()


class World(NamedTuple):
    """A process among those that were started together: its number, how many there are, its number on its machine.

    ``address`` and ``port`` are where rank 0 listens.
    """

    rank: int
    n_ranks: int
    local: int
    address: str
    port: int
