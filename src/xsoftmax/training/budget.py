"""How far a fit is: in epochs, in seconds, and as a share of what it was given; the rate that follows from it."""

from dataclasses import dataclass

import numpy as np

from xsoftmax.internal.parameters import MOST_NUMBER
from xsoftmax.methods import Method
from xsoftmax.optimizers._schedules import BY_PROGRESS, BY_STEP
from xsoftmax.training.plan import FitState, Plan

# Of a fit by epochs whose rate falls by progress: it is set anew so many times.
PARTS = 100


@dataclass(frozen=True)
class Budget:
    """What a fit may spend.

    Attributes
    ----------
    plan : Plan
    n_samples : int
        Training rows.
    setup_seconds : float
        Spent before the first step.
    """

    plan: Plan
    n_samples: int
    setup_seconds: float

    def epochs(self, state: FitState) -> float:
        """Count epochs so far, and the part of the current one."""
        return state.epoch + state.position / self.n_samples

    def spent(self, state: FitState) -> float:
        """Count epochs or seconds so far, as the budget is given."""
        return state.seconds if self.plan.epochs is None else self.epochs(state)

    def share_done(self, state: FitState) -> float:
        """Tell which share of the budget is spent."""
        return self.spent(state) / self.plan.budget if self.plan.budget else 1.0

    def progress(self, state: FitState) -> float:
        """Tell which share of the training is done: by epochs or, after all preparations, by seconds."""
        if self.plan.epochs is not None:
            return self.share_done(state)
        trained, budget = state.seconds - self.setup_seconds, self.plan.budget - self.setup_seconds
        return min(max(trained / budget, 0.0), 1.0) if budget > 0 else 1.0

    def rate(self, method: Method, state: FitState) -> float:
        """Give the learning rate of the next step."""
        try:
            factor = method.schedule.factor(state.epoch, state.step, self.progress(state))
            rate = method.optimizer.learning_rate * factor
        except OverflowError:  # of a factor that grows
            rate = np.inf
        return min(rate, MOST_NUMBER)

    def chunk(self, method: Method, state: FitState, most: int) -> int:
        """Count the samples of the next call: ``most``, or as many whole minibatches as its rate is right for."""
        lasts = float(most)
        if isinstance(method.schedule, BY_STEP):
            lasts = method.schedule.lasts(state.step)
        elif isinstance(method.schedule, BY_PROGRESS) and self.plan.epochs is not None:
            lasts = self.plan.epochs * self.n_samples / PARTS
        size = method.minibatch_size
        return most if lasts >= most else size * max(1, int(lasts) // size)
