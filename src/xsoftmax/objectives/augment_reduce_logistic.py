"""Augment and reduce, multinomial logistic: Ruiz, Titsias, Dieng and Blei, Augment and reduce, ICML 2018.

    -L = -E_q[log phi(e) + sum_{k != y} log Phi(e + s_y - s_k)] - H[q]  >=  -log p(y | x)          (eq. 7)

with phi and Phi of the standard logistic distribution and q the logistic distribution at mu with scale sigma. Each
step moves (mu, sigma) of its sample along the gradient at one draw of e, then the weights at a fresh one, with

    h_k = sigma(-(e + s_y - s_k))

in place of a softmax's probabilities. The bound's likelihood is that of the multinomial logistic model, not the
softmax's: prediction takes the link logistic. Cost of a step: n_sampled + 1 rows, 2 n_sampled exponentials.
"""

from typing import Any, NamedTuple

import numpy as np

from xsoftmax.kernels import augment
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.noise import Logistic
from xsoftmax.kernels.steps import gradient, loss
from xsoftmax.objectives import ScoredClasses, objective
from xsoftmax.objectives._additive_noise import LOGISTIC, Points, all_points, best_start, minus_elbo, step


@objective(
    title="augment-and-reduce bound (logistic)",
    target="bound",
    excludes_true=True,
    n_states=augment.N_STATES,
    n_numbers=2,
    link="logistic",
    qualifier="as local_rate falls to 0",
)
class AugmentReduceLogistic(NamedTuple):
    """Parameters: ``local_rate`` (1 + t)^-``local_power``, the length of local steps.

    t counts the visits of the sample: with the paper's iterations, samples would stand still before they are seen
    twice. ``start_at_best``: (mu, sigma) begin where the bound is highest at equal scores, or as published at
    (0, 1), from where many classes throw mu far off. ``entropy``: whether local steps follow the gradient of q's
    entropy; the authors' program lacks it, so that sigma falls towards 0, and its ``local_rate`` is 0.001.
    """

    local_rate: float = 0.01
    local_power: float = 0.9
    start_at_best: bool = True
    entropy: bool = True

    def initial_states(self, n_samples: int, n_classes: int) -> np.ndarray:
        """Give (mu, gamma, visits) of every sample before the first step, float64 of shape (n_samples, 3)."""
        mu, gamma = best_start(LOGISTIC, n_classes) if self.start_at_best else (0.0, augment.GAMMA_OF_ONE)
        return np.tile([mu, gamma, 0.0], (n_samples, 1))

    def settle(self, xp: Any, state: Any, draws: ScoredClasses) -> Points:
        """Return the points over which the loss is summed: see ``xsoftmax.objectives``."""
        return all_points(xp, LOGISTIC, state)

    def prepare(self, xp: Any, rate: Any, state: Any, draws: ScoredClasses, noise: Any) -> tuple[Points, Any]:
        """Return where a step differentiates, and the state after it: see ``xsoftmax.objectives``."""
        return step(xp, LOGISTIC, self, state, draws, noise)

    def value(self, xp: Any, at: Points, draws: ScoredClasses) -> Any:
        """Return the loss of n samples, or its estimate at one draw: see ``xsoftmax.objectives``."""
        return minus_elbo(xp, LOGISTIC, at, draws)


MEMBER = AugmentReduceLogistic


@implements(loss, AugmentReduceLogistic)
def _loss(objective, state, score_true, log_q_true, draws):
    return augment.minus_elbo(Logistic(), state, score_true, draws)


@implements(gradient, AugmentReduceLogistic)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    local_rate, power, entropy = objective.local_rate, objective.local_power, objective.entropy
    augment.move_variables(Logistic(), local_rate, power, entropy, state, score_true, draws)
    return augment.coefficients_at_draw(Logistic(), state, score_true, draws)
