"""What objectives share that keep a running average of the inner sum per sample, its logarithm first in the state.

See ``xsoftmax.kernels.running_sum``.
"""

import math
from typing import Any

import numpy as np

from xsoftmax.kernels.running_sum import double_sum
from xsoftmax.objectives import ScoredClasses, _arrays


def running_sum(member: Any) -> Any:
    """Add to an objective's NamedTuple the methods that it does not bring: a decorator, within ``objective``."""
    for method in (initial_auxiliary, problem, value):
        if method.__name__ not in vars(member):
            setattr(member, method.__name__, method)
    return member


def initial_auxiliary(self: Any, n_samples: int, n_classes: int) -> np.ndarray:
    """Give the log of the average, exact for W = 0, and 0 for others: float64, (n_samples, n_auxiliary)."""
    return np.tile([math.log(n_classes), *[0.0] * (self.n_auxiliary - 1)], (n_samples, 1))


def problem(self: Any) -> str:
    """Say what is wrong with ``averaging``, the share of a new estimate, if anything is."""
    return "" if 0 < self.averaging <= 1 else f"averaging is {self.averaging:g}; set it above 0, and to 1 at most"


def value(self: Any, xp: Any, at: Any, draws: ScoredClasses) -> Any:
    """Return the loss of n samples: see ``xsoftmax.objectives``."""
    return _arrays.double_sum(xp, at[:, 0], draws)


def loss_of_state(objective, state, score_true, log_q_true, draws):
    """Compute the double sum at the average that the state has: compiled code of ``loss``."""
    return double_sum(state[0], score_true, draws)
