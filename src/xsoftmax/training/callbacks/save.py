"""When checkpoints are written: now and then, and when a fit is told to stop."""

import threading
import time

import numpy as np

from xsoftmax.gpu.ranks import ALONE, Group
from xsoftmax.internal.errors import StoppedError
from xsoftmax.training.callbacks import Callback, RunningFit


class Checkpoint(Callback):
    """Write a checkpoint every so many seconds, and a last one once ``stop`` is set, which ends the fit.

    Parameters
    ----------
    stop : threading.Event
    ranks : Group
        Of which one decides for all.
    """

    def __init__(self, stop: threading.Event, ranks: Group = ALONE) -> None:
        self._stop, self._ranks, self._saved = stop, ranks, 0.0

    def begin(self, fit: RunningFit) -> None:
        """Start the clock."""
        self._saved = time.monotonic()

    def advanced(self, fit: RunningFit) -> None:
        """Write it, if it is time.

        Raises
        ------
        StoppedError
            If the fit was told to stop before its end.
        """
        due = time.monotonic() - self._saved >= fit.plan.checkpoint_seconds
        told, due = self._ranks.highest(np.array([self._stop.is_set(), due], np.uint8)).tolist()
        kept = False
        if told or due:
            kept = fit.save()
            self._saved = time.monotonic()
        if told and fit.state.status == "running":
            resumes = f"; the same command goes on from {fit.plan.checkpoint}" if kept else ""
            raise StoppedError(f"{fit.name} at epoch {fit.epochs:.2f}{resumes}")
