"""Sampled softmax: Jean et al., On using very large target vocabulary for neural machine translation, ACL 2015.

    L = log(1 + sum_j weights_j e^(s_j - s_y)),     weights_j = 1 / (n_sampled q_j)

A softmax over the true class, which is always kept, and the drawn ones, whose logits are less log(n_sampled q).
A draw of the true class is an accidental hit and counts nothing. The sum inside the logarithm is unbiased, the
logarithm is not: its mean gradient is that of nothing one could name, and tends to the softmax's as n_sampled grows.
With the proposal ``all`` it is the exact softmax.

With the proposal ``uniform``, which draws other classes without replacement, it is complementary sum sampling
(Botev, Zheng and Barber, AISTATS 2017); with a proposal that has some classes for certain, it is their
variant that keeps more classes exactly. Cost of a step: n_sampled + 1 rows.

Of many classes most have next to no slope; those below ``negligible`` may be left where they are, so that a step
moves few of the classes that it scores.
"""

from typing import Any, NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.protocol import gradient, loss
from xsoftmax.kernels.running_sum import log_inner_sum, slopes_from
from xsoftmax.objectives import ScoredClasses, _arrays, objective


@objective(
    title="sampled softmax loss",
    target="nothing",
    excludes_true=True,
    target_of_all="softmax",
    sums_exponentials=True,
)
class SampledSoftmax(NamedTuple):
    """Parameters: ``negligible``, a slope below which a class does not move."""

    negligible: float = 0.0

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        return _arrays.log_inner_sum(xp, _with_held(xp, at, draws) if self.negligible else draws)

    def settle(self, xp: Any, state: Any, draws: ScoredClasses) -> Any:
        """Return the scores of classes that do not move, the true one first, and NaN for the others, (n, 1 + m)."""
        if not self.negligible:
            return state
        others = draws.weights * xp.exp(_arrays.gaps(draws) - _arrays.log_inner_sum(xp, draws)[:, None])
        slopes = xp.concat([xp.sum(others, axis=1)[:, None], others], axis=1)
        scores = xp.concat([draws.score_true[:, None], draws.scores], axis=1)
        return xp.where(slopes < self.negligible, scores, xp.full_like(scores, float("nan")))


MEMBER = SampledSoftmax


def _with_held(xp: Any, held: Any, draws: ScoredClasses) -> ScoredClasses:
    """Put the scores that are held in their places, so that no derivative is taken there."""
    moves = xp.isnan(held)
    score_true = xp.where(moves[:, 0], draws.score_true, held[:, 0])
    return draws._replace(score_true=score_true, scores=xp.where(moves[:, 1:], draws.scores, held[:, 1:]))


@implements(loss, SampledSoftmax)
def _loss(objective, state, score_true, log_q_true, draws):
    return log_inner_sum(score_true, draws)


@implements(gradient, SampledSoftmax)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    slope_true = slopes_from(log_inner_sum(score_true, draws), score_true, draws)
    for j in range(draws.out.size):
        if draws.out[j] < objective.negligible:
            draws.out[j] = 0
    return slope_true if -slope_true >= objective.negligible else slope_true - slope_true
