"""The history of a fit as it comes, row by row in a file that others may read meanwhile."""

import os
from collections.abc import Mapping
from pathlib import Path

from xsoftmax.internal.files import written_aside
from xsoftmax.training.callbacks import Callback, RunningFit
from xsoftmax.training.record import write_history


class LiveHistory(Callback):
    """Write each row of the history to a CSV file at once: always whole lines, in the columns of ``history.csv``.

    After a resume the file is written anew with the rows that the checkpoint has: the fit comes to the others again.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def begin(self, fit: RunningFit) -> None:
        """Write the names of the columns, and what rows there are."""
        with written_aside(self._path) as aside, aside.open("w", encoding="utf-8", newline="") as file:
            write_history(file, fit.state.history)

    def evaluated(self, fit: RunningFit, row: Mapping[str, float]) -> None:
        """Append a row; half a line, where a disk is full, is taken back."""
        before = self._path.stat().st_size
        try:
            with self._path.open("a", encoding="utf-8", newline="") as file:
                write_history(file, [row], header=False)
        except OSError:
            os.truncate(self._path, before)
            raise
