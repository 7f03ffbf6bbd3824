"""SOX: Wang and Yang, Finite-sum coupled compositional stochastic optimization, ICML 2022, without its momentum.

    L = nu + e^-nu (1 + sum_{k != y} e^(s_k - s_y)) - 1  >=  -log p(y | x),   equal at nu = -log p(y | x)

e^nu is a running average of the inner sum, one per sample. A step moves it first, by the share ``averaging`` a:

    e^nu <- (1 - a) e^nu + a (1 + sum_j weights_j e^(s_j - s_y))

and then class k along weights_k e^(s_k - s_y - nu), so that no coefficient is above 1 / a. For that the average
depends on the draws that it divides: the mean gradient is the softmax's as ``averaging`` falls to 0. Augment and
reduce (Ruiz et al. 2018) takes the same step with a share that falls. Cost of a step: n_sampled + 1 rows.
"""

from typing import Any, NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.protocol import gradient, loss
from xsoftmax.kernels.running_sum import log_inner_sum, log_mix, slopes_from
from xsoftmax.objectives import ScoredClasses, _arrays, objective
from xsoftmax.objectives._running_sum import loss_of_state, running_sum


@objective(
    title="double-sum bound", target="softmax", excludes_true=True, n_auxiliary=1, qualifier="as averaging falls to 0"
)
@running_sum
class Sox(NamedTuple):
    """Parameters: ``averaging``, the share a of the new estimate, above 0 and at most 1.

    Unbiased as ``averaging`` falls to 0.
    """

    averaging: float = 0.1

    def prepare(self, xp: Any, rate: Any, state: Any, draws: ScoredClasses, noise: Any) -> tuple[Any, Any]:
        """Return where a step differentiates, and the state after it: see ``xsoftmax.objectives``."""
        nu = _arrays.log_mix(xp, state[:, 0], _arrays.log_inner_sum(xp, draws), self.averaging)[:, None]
        return nu, nu


MEMBER = Sox


implements(loss, Sox)(loss_of_state)


@implements(gradient, Sox)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    state[0] = log_mix(state[0], log_inner_sum(score_true, draws), objective.averaging)
    return slopes_from(state[0], score_true, draws)
