"""The order in which an epoch visits the training rows."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from xsoftmax.data.windows import Window, Windows


class EpochSampler(Protocol):
    """Every row once in an epoch, in an order that derives from (seed, epoch) alone."""

    def samples(self, epoch: int, position: int, at_most: int) -> np.ndarray:
        """Rows from this position of the epoch on, int64: as many as asked for, or what there is at once."""

    def close(self) -> None:
        """Let go of what is held."""


class ShuffledSampler:
    """Of rows in memory: a permutation."""

    def __init__(self, n_samples: int, seed: int) -> None:
        self._n_samples, self._seed = n_samples, seed
        self._order: tuple[int, np.ndarray] = (-1, np.empty(0, np.int64))

    def samples(self, epoch: int, position: int, at_most: int) -> np.ndarray:
        """See ``EpochSampler``."""
        if self._order[0] != epoch:
            self._order = epoch, np.random.default_rng([self._seed, epoch]).permutation(self._n_samples)
        return self._order[1][position : position + at_most]

    def close(self) -> None:
        """Nothing to do."""


class WindowSampler:
    """Of rows in a file: window by window, each read while the one before is used."""

    def __init__(self, windows: Windows, seed: int) -> None:
        self._windows, self._seed = windows, seed
        self._epoch = -1
        self._coming: Iterator[Window] = iter(())
        self._window = Window(np.empty(0, np.int64), 0)

    def samples(self, epoch: int, position: int, at_most: int) -> np.ndarray:
        """See ``EpochSampler``; positions rise, but for a new epoch."""
        if epoch != self._epoch or position < self._window.first:
            self.close()
            self._coming, self._epoch = self._windows.of_epoch(self._seed, epoch, position), epoch
            self._window = next(self._coming)
        while position >= self._window.first + self._window.order.size:
            self._window = next(self._coming)
        begin = position - self._window.first
        return self._window.order[begin : begin + at_most]

    def close(self) -> None:
        """End the thread that reads."""
        self._epoch = -1
        close = getattr(self._coming, "close", None)
        if close is not None:
            close()
