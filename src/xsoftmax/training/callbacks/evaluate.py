"""When a fit is evaluated, and that it ends where nothing more would change."""

from collections.abc import Mapping

from xsoftmax.training.callbacks import Callback, RunningFit


class Evaluate(Callback):
    """Evaluate when the plan says so, at the end of the budget, and once nothing more would change."""

    def advanced(self, fit: RunningFit) -> None:
        """Evaluate, if that is due."""
        if fit.state.status == "running" and (fit.converged or _is_due(fit)):
            fit.evaluate()


class StopConverged(Callback):
    """End a fit that has converged."""

    def evaluated(self, fit: RunningFit, row: Mapping[str, float]) -> None:
        """Stop, unless something else has ended the fit."""
        if fit.converged:
            fit.stop("finished", f"converged after {fit.state.epoch} epochs")


def _is_due(fit: RunningFit) -> bool:
    """Whether a planned evaluation has been reached."""
    plan = fit.plan
    before = fit.state.history[-1]["seconds" if plan.epochs is None else "epoch"]
    following = next((at for at in plan.at if at > before), plan.budget)
    return fit.spent >= min(following, plan.budget)
