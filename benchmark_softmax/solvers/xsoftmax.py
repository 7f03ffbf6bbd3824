"""Methods of ``config/methods.yaml``, one fit for each curve."""

import numpy as np
from benchopt import BaseSolver

from xsoftmax.data.dataset import Dataset
from xsoftmax.internal.errors import InputError, StoppedError, suggestion
from xsoftmax.methods import build_method, known_methods, merged
from xsoftmax.optimizers._schedules import BY_PROGRESS
from xsoftmax.training.callbacks import Callback
from xsoftmax.training.fit import fit
from xsoftmax.training.plan import Plan
from xsoftmax.training.refusals import check_fit

EPOCHS = 10**6  # benchopt stops a fit long before


class Solver(BaseSolver):
    """``method`` is a name of ``config/methods.yaml``; a ``learning_rate`` of None is the method's own."""

    name = "xsoftmax"
    parameters = {
        "method": ["softmax", "sampled-softmax-frequency", "one-vs-each"],
        "learning_rate": [None],
    }
    test_config = {"method": "softmax"}
    requirements = []

    def skip(self, X, y, n_classes):
        """Refuse methods that do not suit the data, and those that W and b alone do not describe."""
        try:
            method = self._method()
            check_fit(_dataset(X, y, n_classes), method, 0, False)
        except InputError as error:
            return True, str(error)
        refused = {
            "its model adds the proposal's log-probabilities to W x + b": method.objective.adds_log_q,
            f"its probabilities come from the link {method.objective.link}": method.objective.link != "softmax",
            "its model has an encoder in front of W": method.encoder is not None,
            "its rate follows the share of a fit that is done, and benchopt decides when to stop": isinstance(
                method.schedule, BY_PROGRESS
            ),
        }
        reason = next((reason for reason, holds in refused.items() if holds), None)
        return reason is not None, reason and f"method {method.name}: {reason}"

    def set_objective(self, X, y, n_classes):
        """Take the training rows."""
        self.data, self.method_ = _dataset(X, y, n_classes), self._method()
        self.seed = self.get_seed(use_repetition=True)

    def warm_up(self):
        """Compile, off the clock: a fit does that before its first step, and this one ends there."""
        self.run_once(stop_val=0)

    def run(self, callback):
        """Train until benchopt has seen enough."""
        # Its own evaluations, which benchopt's clock would count, look at one row.
        plan = Plan(epochs=EPOCHS, rows=1, keep="last")
        self.watched = _AskAfterEpochs(callback)
        fit(self.data, self.method_, self.seed, plan, callbacks=[self.watched])

    def get_result(self):
        """Give the weights as they are now."""
        rows = self.watched.fit.model().rows
        return {"W": rows[:, :-1], "b": rows[:, -1]}

    def _method(self):
        known = known_methods()
        if self.method not in known:
            raise InputError(f"unknown method {self.method!r}; {suggestion(self.method, known)}")
        settings = known[self.method]
        if self.learning_rate is not None:
            settings = merged(settings, {"optimizer": {"learning_rate": self.learning_rate}})
        return build_method(self.method, settings)


class _AskAfterEpochs(Callback):
    """Ask benchopt before the first epoch and after each one whether to go on."""

    def __init__(self, goes_on):
        self.goes_on = goes_on

    def begin(self, fit):
        self.fit = fit
        self._ask()

    def advanced(self, fit):
        if fit.state.position == 0:
            self._ask()

    def _ask(self):
        try:
            goes_on = self.goes_on()
        except Exception as error:  # a fit outlives a callback that fails, but not one that was told to stop
            raise StoppedError(f"benchopt's callback failed: {error}") from error
        if not goes_on:
            self.fit.stop("stopped early", "benchopt has seen enough")


def _dataset(X, y, n_classes):
    return Dataset.from_arrays(X, y, classes=np.arange(n_classes), name="benchopt")
