"""Sampled softmax: Jean et al., On using very large target vocabulary for neural machine translation, ACL 2015.

    L = log(1 + sum_j weights_j e^(s_j - s_y)),     weights_j = 1 / (n_sampled q_j)

A softmax over the true class, which is always kept, and the drawn ones, whose logits are less log(n_sampled q).
A draw of the true class is an accidental hit and counts nothing. The sum inside the logarithm is unbiased, the
logarithm is not: its mean gradient is that of nothing one could name, and tends to the softmax's as n_sampled grows.
With the proposal ``all`` it is the exact softmax.

With the proposal ``uniform``, which draws other classes without replacement, it is complementary sum sampling
(Botev, Zheng and Barber, AISTATS 2017); with a proposal that has some classes for certain, it is their
variant that keeps more classes exactly. Cost of a step: n_sampled + 1 rows.
"""

from typing import Any, NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.dual import log_inner_sum, slopes_from
from xsoftmax.kernels.steps import gradient, loss
from xsoftmax.objectives import ScoredClasses, _arrays, objective


@objective(
    title="sampled softmax loss",
    target="nothing",
    excludes_true=True,
    target_of_all="softmax",
    sums_exponentials=True,
)
class SampledSoftmax(NamedTuple):
    """No parameters."""

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        return _arrays.log_inner_sum(xp, draws)


MEMBER = SampledSoftmax


@implements(loss, SampledSoftmax)
def _loss(objective, state, score_true, log_q_true, draws):
    return log_inner_sum(score_true, draws)


@implements(gradient, SampledSoftmax)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    return slopes_from(log_inner_sum(score_true, draws), score_true, draws)
