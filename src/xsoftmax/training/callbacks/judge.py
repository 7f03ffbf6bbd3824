"""Which evaluation is the best so far; its weights are kept, and a fit that finds no better one is stopped."""

from collections.abc import Mapping

import numpy as np

from xsoftmax.evaluation import metrics
from xsoftmax.internal.errors import InputError
from xsoftmax.training.best import BestWeights
from xsoftmax.training.callbacks import Callback, RunningFit


class Judge(Callback):
    """Compare evaluations by one column of the history; ``FitState`` holds the verdict, and so does a checkpoint.

    Parameters
    ----------
    column : str
        Of a metric, such as ``validation_accuracy``.

    Attributes
    ----------
    sign : int
        What makes it a column of which more is better; ``FitState.best`` is multiplied by it.
    """

    def __init__(self, column: str) -> None:
        self.column, self.sign = column, metrics.judge_of_split(column).sign

    def evaluated(self, fit: RunningFit, row: Mapping[str, float]) -> None:
        """Note a better value, or that there was none.

        Raises
        ------
        InputError
            If the first value is no number, which nothing can be better than.
        """
        state = fit.state
        if state.status == "diverged":
            return
        value = self.sign * row[self.column]
        if not np.isfinite(value) and state.best == -np.inf:
            why = metrics.why_empty(self.column.partition("_")[2])
            raise InputError(
                f"{self.column} is {row[self.column]}, which cannot judge weights{why}; take another --by"
            )
        if value > state.best:
            state.best, state.best_epoch, state.without_gain = value, row["epoch"], 0
        else:
            state.without_gain += 1


class KeepBest(Callback):
    """Copy the weights of the best evaluation, which ``Judge`` has found; ``weights`` are the model's in the end."""

    def __init__(self, weights: BestWeights) -> None:
        self.weights = weights

    def evaluated(self, fit: RunningFit, row: Mapping[str, float]) -> None:
        """Copy weights that are better."""
        if fit.state.status != "diverged" and not fit.state.without_gain:
            self.weights.take(fit.weights())


class StopEarly(Callback):
    """Stop after ``patience`` evaluations without a better one, which ``Judge`` counts."""

    def __init__(self, patience: int, column: str) -> None:
        self._patience, self._column = patience, column

    def evaluated(self, fit: RunningFit, row: Mapping[str, float]) -> None:
        """Stop, if patience is used up."""
        if fit.state.without_gain >= self._patience:
            judged = metrics.title_of(self._column)
            fit.stop("stopped early", f"best {judged} at epoch {fit.state.best_epoch:g}")
