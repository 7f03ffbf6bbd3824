"""The double sum: Fagan and Iyengar, Unbiased scalable softmax optimization, 2018.

    L = u + e^-u + sum_{k != y} e^(s_k - s_y - u) - 1  >=  -log p(y | x),  equal at u = -log p(y | x)     (eq. 5)

One u >= 0 per sample is learnt with the weights; then sampling one class k gives an unbiased gradient of the
softmax's own objective. With U-max's guard (Algorithm 1) or as an implicit step (section 3.2) it is stable;
with plain SGD it often overflows. Cost of a step: n_sampled + 1 rows.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.mathematics import exp, log_add_exp
from xsoftmax.kernels.protocol import gradient, loss, proximal, raise_bound
from xsoftmax.kernels.running_sum import NEWTON_STEPS, NEWTON_TOLERANCE
from xsoftmax.objectives import ScoredClasses, _arrays, objective
from xsoftmax.objectives._double_sum import start

# Of the logarithm of a; below it a is 0 in float64, as it is where nothing is drawn.
LEAST = -700.0


@objective(
    title="double-sum bound",
    target="softmax",
    excludes_true=True,
    offers=("gradient", "raise_bound", "proximal", "batch_proximal"),
    n_auxiliary=1,
)
@start
class DoubleSum(NamedTuple):
    """Parameters: ``start_at_log_classes``: u begins at log(n_classes), as printed, or at 0."""

    start_at_log_classes: bool = True

    def prepare(
        self, xp: Any, rate: Any, state: Any, draws: ScoredClasses, noise: Any, threshold: float | None = None
    ) -> tuple[Any, Any]:
        """Return where a step differentiates, and the state after it: see ``xsoftmax.objectives``."""
        at = state[:, 0]
        if threshold is not None:
            proven = _arrays.log_sum(xp, xp.zeros_like(at), _arrays.gaps(draws), _arrays.distinct(xp, draws))
            at = xp.where(at < proven - threshold, proven, at)
        slope = 1 - xp.exp(-at) - xp.sum(draws.weights * xp.exp(_arrays.gaps(draws) - at[:, None]), axis=1)
        moved = at - rate * slope
        return at[:, None], xp.where(moved < 0, xp.zeros_like(moved), moved)[:, None]

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        terms = draws.weights * xp.exp(_arrays.gaps(draws) - at)
        return at[:, 0] + xp.exp(-at[:, 0]) + xp.sum(terms, axis=1) - 1


MEMBER = DoubleSum


@implements(loss, DoubleSum)
def _loss(objective, state, score_true, log_q_true, draws):
    u = state[0]
    total = u + math.exp(-u) - 1.0
    for j in range(draws.scores.size):
        total += draws.weights[j] * math.exp(draws.scores[j] - score_true - u)
    return total


@implements(gradient, DoubleSum)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    u = state[0]
    total = np.float32(0)
    for j in range(draws.scores.size):
        draws.out[j] = draws.weights[j] * exp(draws.scores[j] - score_true - np.float32(u))
        total += draws.out[j]
    state[0] = max(0.0, u - rate * (1.0 - math.exp(-u) - total))
    return -total


@implements(raise_bound, DoubleSum)
def _raise_bound(objective, threshold, state, score_true, draws):
    bound = 0.0
    for j in range(draws.scores.size):
        counts = draws.weights[j] > 0  # not the true class, whose e^0 is there already; nor a class drawn before
        for earlier in range(j):
            counts &= draws.classes[earlier] != draws.classes[j]
        if counts:
            bound = log_add_exp(bound, np.float64(draws.scores[j] - score_true))
    if state[0] < bound - threshold:
        state[0] = bound


@implements(proximal, DoubleSum)
def _proximal(objective, rate, state, squared_norm, score_true, draws):
    step = np.float32(0)
    if squared_norm > 0:
        s = np.float64(draws.scores[0]) - np.float64(score_true)
        u, a = implicit_step(np.float64(rate), np.float64(squared_norm), np.float64(draws.weights[0]), s, state[0])
        state[0] = u
        step = np.float32(a / (2.0 * squared_norm))
    draws.out[0] = step
    return -step


@njit(**(OPTIONS | {"fastmath": False}))  # differences of large numbers are taken in the order that is written
def implicit_step(rate, squared_norm, weight, s, u_old):
    """Solve one implicit step for (u, a): the new u, and by how much s falls; section 3.2 and appendix F.1.

    With rho = ||x||^2 and z = log(2 rate weight rho) + s, a is Wright's omega of z - u, a + log(a) = z - u, and the
    step is one equation:

        2 rate (1 - e^-u) + 2 (u - u_old) - a / rho = 0

    In t = log(a), with u = z - t - a, its left side falls and is concave: Newton from the right never overshoots, and
    from the left does so once. Where t begins is at or right of omega(z - u_old); it never goes beyond what is right
    of u = 0. Where a is large that u is a small difference; a last step in u itself makes it exact.
    """
    log_weight = math.log(2.0 * rate * weight * squared_norm)
    z = s + log_weight
    if z < LEAST:
        return _without_pull(rate, u_old), 0.0
    most, t = _right_of_omega(z), _right_of_omega(z - u_old)
    u = a = 0.0
    for _ in range(NEWTON_STEPS):
        a = math.exp(t)
        u = z - t - a
        decay, pull = math.exp(-u), a / squared_norm
        residual = 2.0 * rate * (1.0 - decay) + 2.0 * (u - u_old) - pull
        change = residual / (2.0 * (rate * decay + 1.0) * (1.0 + a) + pull)
        t = min(t + change, most)
        if abs(change) * (1.0 + a) <= NEWTON_TOLERANCE:
            break
    decay, share = math.exp(-u), a / (1.0 + a)
    residual = 2.0 * rate * (1.0 - decay) + 2.0 * (u - u_old) - a / squared_norm
    u = max(0.0, u - residual / (2.0 * rate * decay + 2.0 + share / squared_norm))
    if a > 0.0:
        a -= share * (a + math.log(a) - log_weight - (s - u))
    return u, a


@njit(**OPTIONS)
def _right_of_omega(z):
    """A number not below the logarithm of Wright's omega of ``z``, and near it."""
    return z if z < 1.0 else math.log(z)


@njit(**OPTIONS)
def _without_pull(rate, u_old):
    """The new u where a is 0: a concave function that rises, so that Newton from 0 never overshoots."""
    u = 0.0
    for _ in range(NEWTON_STEPS):
        decay = math.exp(-u)
        change = (u_old - u - rate * (1.0 - decay)) / (1.0 + rate * decay)
        u += change
        if change <= NEWTON_TOLERANCE:
            break
    return u
