"""How far a fit is, on standard error: a bar on a terminal, a line now and then in a log file."""

import sys
from collections.abc import Mapping

from xsoftmax.internal.progress import Progress
from xsoftmax.training.callbacks import Callback, RunningFit


class ShowProgress(Callback):
    """Show how far a fit is, and what its evaluations find."""

    def __init__(self) -> None:
        self._progress: Progress | None = None

    def begin(self, fit: RunningFit) -> None:
        """Say what came before the first step, or from where the fit goes on."""
        unit = "seconds" if fit.plan.epochs is None else "epochs"
        if fit.resumed:
            print(f"resumed {fit.plan.checkpoint} at epoch {fit.epochs:.2f}", file=sys.stderr)
        self._progress = Progress(fit.name, unit, fit.spent, fit.plan.budget)
        if not fit.state.history:
            self._progress.say(str(fit.preparations))

    def advanced(self, fit: RunningFit) -> None:
        """Move the bar."""
        if self._progress:
            self._progress.move_to(fit.spent, pace(fit))

    def evaluated(self, fit: RunningFit, row: Mapping[str, float]) -> None:
        """Say how likely the rows are that training does not see, or if there are none, training rows."""
        if not self._progress:
            return
        watched = [split for split in ("validation", "test") if f"{split}_log_likelihood" in row] or ["train"]
        values = [f"{split} {row[f'{split}_log_likelihood']:.4f} nats" for split in watched]
        so_far = f"epoch {row['epoch']:.4g}, trained for {fit.state.seconds:.3g} s"
        self._progress.say(", ".join(part for part in (so_far, *values, pace(fit)) if part))

    def end(self, fit: RunningFit) -> None:
        """Leave the bar as it is."""
        if self._progress:
            self._progress.close()


def pace(fit: RunningFit) -> str:
    """Say how many steps a second takes, and how much training time remains."""
    trained, budget = fit.state.seconds - fit.preparations.seconds, fit.plan.budget
    share = fit.spent / budget if budget else 1.0
    if trained <= 0 or share <= 0:
        return ""
    left = trained * max(1 - share, 0) / share
    return f"{fit.state.step / trained:,.0f} steps/s, {left:.0f} s left"
