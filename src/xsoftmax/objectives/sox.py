"""SOX: Wang and Yang, Finite-sum coupled compositional stochastic optimization, ICML 2022, without its momentum.

    L = nu + e^-nu (1 + sum_{k != y} e^(s_k - s_y)) - 1  >=  -log p(y | x),   equal at nu = -log p(y | x)

e^nu is a running average of the inner sum, one per sample. A step moves it first, by the share ``averaging`` a:

    e^nu <- (1 - a) e^nu + a (1 + sum_j weights_j e^(s_j - s_y))

and then class k along weights_k e^(s_k - s_y - nu), so that no coefficient is above 1 / a. For that the average
depends on the draws that it divides: the mean gradient is the softmax's as ``averaging`` falls to 0. Augment and
reduce (Ruiz et al. 2018) takes the same step with a share that falls. Cost of a step: n_sampled + 1 rows.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.dual import double_sum, log_inner_sum, log_mix, slopes_from
from xsoftmax.kernels.steps import gradient, loss
from xsoftmax.objectives import ScoredClasses, _arrays, objective


@objective(
    title="double-sum bound", target="softmax", excludes_true=True, n_states=1, qualifier="as averaging falls to 0"
)
class Sox(NamedTuple):
    """Parameters: ``averaging``, the share a of the new estimate, above 0 and at most 1.

    Unbiased as ``averaging`` falls to 0.
    """

    averaging: float = 0.1

    def initial_states(self, n_samples: int, n_classes: int) -> np.ndarray:
        """Give the nu of every sample before the first step, exact for W = 0: float64 of shape (n_samples, 1)."""
        return np.full((n_samples, 1), math.log(n_classes))

    def problem(self) -> str:
        """Say what is wrong with the parameters, if anything is."""
        return "" if 0 < self.averaging <= 1 else f"averaging is {self.averaging:g}; set it above 0, and to 1 at most"

    def prepare(self, xp: Any, rate: Any, state: Any, draws: ScoredClasses, noise: Any) -> tuple[Any, Any]:
        """Return where a step differentiates, and the state after it: see ``xsoftmax.objectives``."""
        nu = _arrays.log_mix(xp, state[:, 0], _arrays.log_inner_sum(xp, draws), self.averaging)[:, None]
        return nu, nu

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        return _arrays.double_sum(xp, at[:, 0], draws)


MEMBER = Sox


@implements(loss, Sox)
def _loss(objective, state, score_true, log_q_true, draws):
    return double_sum(state[0], score_true, draws)


@implements(gradient, Sox)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    state[0] = log_mix(state[0], log_inner_sum(score_true, draws), objective.averaging)
    return slopes_from(state[0], score_true, draws)
