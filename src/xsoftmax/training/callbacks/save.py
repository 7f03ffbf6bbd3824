"""When checkpoints are written: now and then, and when a fit is told to stop."""

import threading
import time

from xsoftmax.internal.errors import StoppedError
from xsoftmax.training.callbacks import Callback, RunningFit


class Checkpoint(Callback):
    """Write a checkpoint every so many seconds, and a last one once ``stop`` is set, which ends the fit.

    Parameters
    ----------
    stop : threading.Event
    """

    def __init__(self, stop: threading.Event) -> None:
        self._stop, self._saved = stop, 0.0

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
        told, kept = self._stop.is_set(), False
        if told or time.monotonic() - self._saved >= fit.plan.checkpoint_seconds:
            kept = fit.save()
            self._saved = time.monotonic()
        if told and fit.state.status == "running":
            resumes = f"; the same command goes on from {fit.plan.checkpoint}" if kept else ""
            raise StoppedError(f"{fit.name} at epoch {fit.epochs:.2f}{resumes}")
