"""Augment and reduce, softmax: Ruiz, Titsias, Dieng and Blei, Augment and reduce, ICML 2018.

    -L = log eta - 1 + inner / eta  >=  log inner = -log p(y | x),    inner = 1 + sum_{k != y} e^(s_k - s_y)   (eq. 8)

Equal at eta = inner. Each step first moves eta of its sample towards the inner sum as the step's own draws estimate
it (a natural gradient step, Algorithm 1), then the weights with the new eta: eta is at least alpha times each drawn
term, so no coefficient exceeds 1 / alpha. eta is kept as a logarithm. Cost of a step: n_sampled + 1 rows.
"""

import math
from typing import Any, NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.protocol import gradient, loss
from xsoftmax.kernels.running_sum import log_inner_sum, log_mix, slopes_from
from xsoftmax.objectives import ScoredClasses, _arrays, objective
from xsoftmax.objectives._running_sum import running_sum


@objective(
    title="augment-and-reduce bound",
    target="softmax",
    labels_compete=True,
    excludes_true=True,
    n_auxiliary=2,
    qualifier="as visits grow",
)
@running_sum
class AugmentReduce(NamedTuple):
    """Parameters: alpha = ``local_rate`` (1 + t)^-``local_power``, by which eta moves.

    t counts the visits of the sample, this one too: with the paper's iterations, eta would stand still before a
    sample is seen twice. eta begins at the number of classes, the inner sum at equal scores; the paper does not say
    where.
    """

    local_rate: float = 1.0
    local_power: float = 0.9

    def problem(self) -> str:
        """Say what is wrong with the parameters, or nothing."""
        return "" if 0 < self.local_rate <= 1 else f"local_rate is {self.local_rate:g}; set it above 0, to 1 at most"

    def prepare(self, xp: Any, rate: Any, state: Any, draws: ScoredClasses, noise: Any) -> tuple[Any, Any]:
        """Return where a step differentiates, and the state after it: see ``xsoftmax.objectives``."""
        visits = state[:, 1] + 1
        alpha = self.local_rate * (1 + visits) ** -self.local_power
        log_eta = _arrays.log_mix(xp, state[:, 0], _arrays.log_inner_sum(xp, draws), alpha)
        at = xp.stack([log_eta, visits], axis=1)
        return at, at


MEMBER = AugmentReduce


@implements(loss, AugmentReduce)
def _loss(objective, state, score_true, log_q_true, draws):
    return state[0] - 1.0 + math.exp(log_inner_sum(score_true, draws) - state[0])


@implements(gradient, AugmentReduce)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    state[1] += 1.0
    alpha = objective.local_rate * (1.0 + state[1]) ** -objective.local_power
    state[0] = log_mix(state[0], log_inner_sum(score_true, draws), alpha)
    return slopes_from(state[0], score_true, draws)
