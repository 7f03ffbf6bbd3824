"""Callbacks that end a fit as a signal would: nothing catches them."""

from xsoftmax.training.callbacks import Callback


class KilledError(BaseException):
    """What no one is to catch."""


class CountChunks(Callback):
    """Count the chunks of the fits that it is given to."""

    def __init__(self) -> None:
        self.n_chunks = 0

    def advanced(self, fit):
        self.n_chunks += 1


class KillAfter(CountChunks):
    """Kill a fit after so many chunks, the last of which no checkpoint has; one that has fewer at its end."""

    def __init__(self, n_chunks: int, save: bool = False) -> None:
        """``save``: once a checkpoint has been written."""
        super().__init__()
        self._last, self._save = n_chunks, save

    def advanced(self, fit):
        super().advanced(fit)
        if self.n_chunks == self._last:
            if self._save:
                fit.save()
            raise KilledError

    def end(self, fit):
        if self.n_chunks < self._last:
            raise KilledError
