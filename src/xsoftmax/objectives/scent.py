"""SCENT: Wei, Zhou, Wang, Lin and Yang, A geometry-aware algorithm for compositional entropic risk, 2026.

    L = nu + e^-nu (1 + sum_{k != y} e^(s_k - s_y)) - 1  >=  -log p(y | x),   equal at nu = -log p(y | x)

One nu per sample. With z the inner sum as this step's draws estimate it, nu takes a proximal step of size a in the
geometry of e^-nu: argmin over nu of nu + e^-nu z + (1 / a) D(nu, nu_old), D the Bregman divergence of e^-nu. That is

    e^nu = (1 + a z) / (a + e^-nu_old) = (1 - b) e^nu_old + b z,     b = a / (a + e^-nu_old)

SOX's running average with a share b that is large where nu is, that is for samples of low probability. Class k then
moves along weights_k e^(s_k - s_y - nu) with the new nu, which bounds it by 1 / b. The mean gradient is the softmax's
as ``averaging`` falls to 0. Cost of a step: n_sampled + 1 rows.
"""

import math
from typing import Any, NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.mathematics import sigmoid
from xsoftmax.kernels.protocol import gradient, loss
from xsoftmax.kernels.running_sum import log_inner_sum, log_mix, slopes_from
from xsoftmax.objectives import ScoredClasses, _arrays, objective
from xsoftmax.objectives._running_sum import loss_of_state, running_sum


@objective(
    title="double-sum bound", target="softmax", excludes_true=True, n_auxiliary=1, qualifier="as averaging falls to 0"
)
@running_sum
class Scent(NamedTuple):
    """Parameters: ``averaging``, the step size a of nu, above 0 (it may be above 1).

    Unbiased as ``averaging`` falls to 0.
    """

    averaging: float = 0.1

    def problem(self) -> str:
        """Say what is wrong with the parameters, if anything is."""
        return "" if self.averaging > 0 else "averaging is 0: nu would never move; set it above 0"

    def prepare(self, xp: Any, rate: Any, state: Any, draws: ScoredClasses, noise: Any) -> tuple[Any, Any]:
        """Return where a step differentiates, and the state after it: see ``xsoftmax.objectives``."""
        share = _arrays.sigmoid(xp, math.log(self.averaging) + state[:, 0])
        nu = _arrays.log_mix(xp, state[:, 0], _arrays.log_inner_sum(xp, draws), share)[:, None]
        return nu, nu


MEMBER = Scent


implements(loss, Scent)(loss_of_state)


@implements(gradient, Scent)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    share = sigmoid(math.log(objective.averaging) + state[0])
    state[0] = log_mix(state[0], log_inner_sum(score_true, draws), share)
    return slopes_from(state[0], score_true, draws)
