"""The order in which an epoch visits the training rows."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from xsoftmax.data.windows import Window, Windows


class EpochSampler(Protocol):
    """As many visits of rows in an epoch as there are rows, in an order that derives from (seed, epoch) alone."""

    def samples(self, epoch: int, position: int, at_most: int) -> np.ndarray:
        """Rows from this position of the epoch on, int64: as many as asked for, or what there is at once."""

    def close(self) -> None:
        """Let go of what is held."""


class ShuffledSampler:
    """Of rows in memory: each once, or as often as its weight says, float32 of shape (n_samples,)."""

    def __init__(self, n_samples: int, seed: int, weight: np.ndarray | None = None) -> None:
        self._n_samples, self._seed, self._weight = n_samples, seed, weight
        self._order: tuple[int, np.ndarray] = (-1, np.empty(0, np.int64))

    def samples(self, epoch: int, position: int, at_most: int) -> np.ndarray:
        """See ``EpochSampler``."""
        if self._order[0] != epoch:
            rng = np.random.default_rng([self._seed, epoch])
            rows = np.arange(self._n_samples) if self._weight is None else resampled(self._weight, rng)
            self._order = epoch, rng.permutation(rows)
        return self._order[1][position : position + at_most]

    def close(self) -> None:
        """Nothing to do."""


def resampled(weight: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Repeat rows by their weights, as many in all as there are: int64 of shape (n_samples,).

    Row i comes n w_i / sum w times on average, rounded up or down: systematic resampling (Kitagawa 1996). So a mean
    over an epoch is unbiased for the weighted mean over rows; whole numbers of visits are exact.
    """
    ends = np.cumsum(weight, dtype=np.float64)
    ends *= weight.size / ends[-1]
    ends[-1] = weight.size
    before = np.floor(ends + rng.random()).astype(np.int64)
    return np.repeat(np.arange(weight.size), np.diff(before, prepend=0))


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
