"""What hangs on the training loop beside its steps: evaluation, early stopping, checkpoints, progress, live logs.

A fit makes those that decide something from its plan: ``evaluate``, ``judge``, ``save``. Those that only watch, such
as ``show_progress`` and ``live_history``, are given to it by whoever calls it; the loop imports none of them, so that
an edit of one is no edit of a fit. docs/callbacks.md shows how to write one.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from xsoftmax.methods import Method
from xsoftmax.model import Model
from xsoftmax.training.plan import FitState, Plan
from xsoftmax.training.preparations import Preparations

FOLDER = "xsoftmax.training.callbacks"


class RunningFit(Protocol):
    """Show a callback the fit that it hangs on."""

    @property
    def name(self) -> str:
        """Data set, method and seed, for messages."""

    @property
    def dataset(self) -> str:
        """Name of the data set."""

    @property
    def method(self) -> Method:
        """What is trained."""

    @property
    def seed(self) -> int:
        """Seed of all draws."""

    @property
    def plan(self) -> Plan:
        """Budget, evaluations, checkpoints."""

    @property
    def state(self) -> FitState:
        """Epoch, step, seconds, history, status: to be read; ``stop`` changes the status."""

    @property
    def resumed(self) -> bool:
        """Whether the fit goes on from a checkpoint."""

    @property
    def preparations(self) -> Preparations:
        """What came before the first step and how long it took; ``str`` says it in words."""

    @property
    def epochs(self) -> float:
        """Epochs so far, and the part of the current one."""

    @property
    def spent(self) -> float:
        """Epochs or seconds so far, as the budget is given."""

    @property
    def rate(self) -> float:
        """Learning rate of the next step."""

    @property
    def converged(self) -> bool:
        """Whether going on would change nothing."""

    def weights(self) -> Any:
        """Return the current weights, as a solver gives them; the next step changes them, so copy what to keep."""

    def arrays(self) -> Mapping[str, np.ndarray]:
        """Return all that steps change, weights and what the optimizer keeps: views, which the next step changes."""

    def model(self) -> Model:
        """Return the model of the current weights, calibrated, as an evaluation has it; the next step changes it."""

    def evaluate(self) -> None:
        """Add a row to the history now, and tell it to all callbacks."""

    def save(self) -> bool:
        """Write the checkpoint now, if the plan has one and the fit is to go on; return whether that worked."""

    def stop(self, status: str, message: str) -> None:
        """End the fit after this chunk; ``status`` is one of ``STATUSES``. The first one to do so is heard."""


class Callback:
    """Hang something on a fit: override what is needed, the rest does nothing.

    All callbacks are told in order: those of the plan that evaluate and decide, then the given ones as they were
    given, then the one that writes checkpoints. None of it counts as training time.
    """

    def begin(self, fit: RunningFit) -> None:
        """Follow the start, before the first evaluation; after a resume ``fit.state`` is where the fit goes on."""

    def advanced(self, fit: RunningFit) -> None:
        """Follow a chunk of steps, and the evaluation that was due after it."""

    def evaluated(self, fit: RunningFit, row: Mapping[str, float]) -> None:
        """Follow an evaluation; ``row`` is the last one of ``fit.state.history``, and has been judged."""

    def end(self, fit: RunningFit) -> None:
        """Follow the end, however it came: ``fit.state.status`` is still "running" if the fit was interrupted."""

    def arrays(self) -> Mapping[str, np.ndarray]:
        """Return what a resumed fit needs of this callback, as numbers; a checkpoint keeps it."""
        return {}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take what ``arrays`` gave; called before ``begin``, and only if the checkpoint has something."""
