"""The double sum: Fagan and Iyengar, Unbiased scalable softmax optimization, 2018.

    L = u + e^-u + sum_{k != y} e^(s_k - s_y - u) - 1  >=  -log p(y | x),  equal at u = -log p(y | x)     (eq. 5)

One u >= 0 per sample is learnt with the weights; then sampling one class k gives an unbiased gradient of the
softmax's own objective. With U-max's guard (Algorithm 1) or as an implicit step (section 3.2) it is stable;
with plain SGD it often overflows. Cost of a step: n_sampled + 1 rows.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.mathematics import exp, log_add_exp, wright_omega
from xsoftmax.kernels.steps import gradient, loss, proximal, raise_bound
from xsoftmax.objectives import objective

NEWTON_STEPS = 20
# Newton converges quadratically here: a last change of 1e-7 leaves an error of 1e-14.
NEWTON_TOLERANCE = 1e-7


@objective(
    title="double-sum bound",
    target="softmax",
    excludes_true=True,
    offers=("gradient", "raise_bound", "proximal", "batch_proximal"),
    n_states=1,
)
class DoubleSum(NamedTuple):
    """Parameters: ``n_sampled``; ``start_at_log_classes``: u begins at log(n_classes), as printed, or at 0."""

    n_sampled: int = 1
    start_at_log_classes: bool = True

    def initial_states(self, n_samples: int, n_classes: int) -> np.ndarray:
        """Give the u of every sample before the first step, float64 of shape (n_samples, 1)."""
        return np.full((n_samples, 1), math.log(n_classes) if self.start_at_log_classes else 0.0)


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


@njit(**OPTIONS)
def implicit_step(rate, squared_norm, weight, s, u_old):
    """Solve one implicit step for (u, a): the new u, and by how much s falls; section 3.2 and appendix F.1.

    With rho = ||x||^2, a = omega(log(2 rate weight rho) + s - u) turns the step into one equation, of which the
    left side rises and is concave, so that Newton from the left never overshoots:

        g(u) = 2 rate (1 - e^-u) + 2 (u - u_old) - a(u) / rho = 0
    """
    z = s + math.log(2.0 * rate * weight * squared_norm)
    u = u_old
    if _residual(rate, squared_norm, z, u_old, u)[0] >= 0.0:
        u = max(0.0, log_add_exp(0.0, s + math.log(weight) - 2.0 * rate * squared_norm))
    for _ in range(NEWTON_STEPS):
        residual, slope = _residual(rate, squared_norm, z, u_old, u)
        change = -residual / slope
        u += change
        if change <= NEWTON_TOLERANCE:
            break
    return u, wright_omega(z - u)


@njit(**OPTIONS)
def _residual(rate, squared_norm, z, u_old, u):
    a = wright_omega(z - u)
    decay = math.exp(-u)
    residual = 2.0 * rate * (1.0 - decay) + 2.0 * (u - u_old) - a / squared_norm
    return residual, 2.0 * rate * decay + 2.0 + a / ((1.0 + a) * squared_norm)
