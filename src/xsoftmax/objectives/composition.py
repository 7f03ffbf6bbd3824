"""Stochastic composition optimisation: Wang, Fang and Liu 2017; for the softmax Fagan and Iyengar 2018, appendix B.

    L = log(1 + v) + (1 + sum_{k != y} e^(s_k - s_y)) / (1 + v) - 1  >=  -log p(y | x)

One running average v of the sum per sample. A step moves class k along e^(s_k - s_y) / (1 + v), with the v before the
step, and then v a share of the way to what this step's draws say of the sum. Nothing keeps a drawn term below 1 + v:
it has the instability of plain SGD on the double sum, and is here to show it. Cost of a step: n_sampled + 1 rows.
"""

from typing import Any, NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.protocol import gradient, loss
from xsoftmax.kernels.running_sum import log_inner_sum, log_mix, slopes_from
from xsoftmax.objectives import ScoredClasses, _arrays, objective
from xsoftmax.objectives._running_sum import loss_of_state, running_sum


@objective(
    title="double-sum bound",
    target="softmax",
    excludes_true=True,
    n_auxiliary=2,
    qualifier="as visits grow",
)
@running_sum
class Composition(NamedTuple):
    """Parameters: ``averaging`` and ``power``; the average moves by the share averaging (1 + earlier visits)^-power.

    ``power`` 0: by a constant share.
    """

    averaging: float = 1.0
    power: float = 0.75

    def prepare(self, xp: Any, rate: Any, state: Any, draws: ScoredClasses, noise: Any) -> tuple[Any, Any]:
        """Return where a step differentiates, and the state after it: see ``xsoftmax.objectives``."""
        share = self.averaging * (1 + state[:, 1]) ** -self.power
        following = _arrays.log_mix(xp, state[:, 0], _arrays.log_inner_sum(xp, draws), share)
        return state, xp.stack([following, state[:, 1] + 1], axis=1)


MEMBER = Composition


implements(loss, Composition)(loss_of_state)


@implements(gradient, Composition)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    of_true = slopes_from(state[0], score_true, draws)
    share = objective.averaging * (1.0 + state[1]) ** -objective.power
    state[0] = log_mix(state[0], log_inner_sum(score_true, draws), share)
    state[1] += 1.0
    return of_true
