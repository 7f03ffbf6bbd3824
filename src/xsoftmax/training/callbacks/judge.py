"""Which evaluation is the best so far; its weights are kept, and a fit that finds no better one is stopped."""

from collections.abc import Mapping

from xsoftmax.training.best import BestWeights
from xsoftmax.training.callbacks import Callback, RunningFit


def better(value: float, best: float) -> bool:
    """Tell whether an evaluation is better than the best one before it."""
    return value > best


class Judge(Callback):
    """Compare evaluations by one column of the history; ``FitState`` holds the verdict, and so does a checkpoint.

    Parameters
    ----------
    column : str
    """

    def __init__(self, column: str) -> None:
        self.column = column

    def evaluated(self, fit: RunningFit, row: Mapping[str, float]) -> None:
        """Note a better value, or that there was none."""
        state = fit.state
        if state.status == "diverged":
            return
        if better(row[self.column], state.best):
            state.best, state.best_epoch, state.without_gain = row[self.column], row["epoch"], 0
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
            judged = self._column.replace("_log_likelihood", " log-likelihood")
            fit.stop("stopped early", f"best {judged} at epoch {fit.state.best_epoch:g}")
