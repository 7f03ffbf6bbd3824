"""Raman's double sum: Raman et al., DS-MLR, 2016; Fagan and Iyengar, Unbiased scalable softmax optimization, 2018.

    L = u - s_y + e^(s_y - u) + sum_{k != y} e^(s_k - u) - 1  >=  -log p(y | x)                      (eq. 8)

Equal at u = the log-sum-exp of all scores. It is the double sum before the true class's score is taken out of the
sum: u follows the scores themselves, of either sign, and the true class has a term of its own that cancels only at
the optimum. So its gradients are larger, and it is here to be compared with ``double-sum``. Cost of a step:
n_sampled + 1 rows.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.mathematics import exp, log_add_exp, wright_omega
from xsoftmax.kernels.protocol import gradient, loss, proximal, raise_bound
from xsoftmax.kernels.running_sum import NEWTON_STEPS, NEWTON_TOLERANCE
from xsoftmax.objectives import ScoredClasses, _arrays, objective
from xsoftmax.objectives._double_sum import start

# Stands for ||x||^2 = 0: there W stays, and u moves as in the limit.
SMALLEST_SQUARED_NORM = 1e-30


@objective(
    title="Raman's double-sum bound",
    target="softmax",
    excludes_true=True,
    offers=("gradient", "raise_bound", "proximal"),
    n_auxiliary=1,
)
@start
class DoubleSumRaman(NamedTuple):
    """Parameters: ``start_at_log_classes``: u begins at log(n_classes), its best at W = 0, or at 0."""

    start_at_log_classes: bool = True

    def prepare(
        self, xp: Any, rate: Any, state: Any, draws: ScoredClasses, noise: Any, threshold: float | None = None
    ) -> tuple[Any, Any]:
        """Return where a step differentiates, and the state after it: see ``xsoftmax.objectives``."""
        at = state[:, 0]
        if threshold is not None:
            proven = _arrays.log_sum(xp, draws.score_true, draws.scores, _arrays.distinct(xp, draws))
            at = xp.where(at < proven - threshold, proven, at)
        terms = xp.sum(draws.weights * xp.exp(draws.scores - at[:, None]), axis=1)
        slope = 1 - xp.exp(draws.score_true - at) - terms
        return at[:, None], (at - rate * slope)[:, None]

    def value(self, xp: Any, at: Any, draws: ScoredClasses) -> Any:
        """Return the loss of n samples: see ``xsoftmax.objectives``."""
        terms = xp.sum(draws.weights * xp.exp(draws.scores - at), axis=1)
        u, of_true = at[:, 0], draws.score_true
        return u - of_true + xp.exp(of_true - u) + terms - 1


MEMBER = DoubleSumRaman


@implements(loss, DoubleSumRaman)
def _loss(objective, state, score_true, log_q_true, draws):
    u = state[0]
    total = u - score_true + math.exp(score_true - u) - 1.0
    for j in range(draws.scores.size):
        total += draws.weights[j] * math.exp(draws.scores[j] - u)
    return total


@implements(gradient, DoubleSumRaman)
def _gradient(objective, rate, state, score_true, log_q_true, draws):
    u = draws.scores.dtype.type(state[0])
    of_true = exp(score_true - u)
    total = draws.scores.dtype.type(0)
    for j in range(draws.scores.size):
        draws.out[j] = draws.weights[j] * exp(draws.scores[j] - u)
        total += draws.out[j]
    state[0] -= rate * (1.0 - of_true - total)
    return of_true - draws.scores.dtype.type(1)


@implements(raise_bound, DoubleSumRaman)
def _raise_bound(objective, threshold, state, score_true, draws):
    bound = np.float64(score_true)
    for j in range(draws.scores.size):
        counts = draws.weights[j] > 0  # neither the true class, which is there already, nor a class drawn before
        for earlier in range(j):
            counts &= draws.classes[earlier] != draws.classes[j]
        if counts:
            bound = log_add_exp(bound, np.float64(draws.scores[j]))
    if state[0] < bound - threshold:
        state[0] = bound


@implements(proximal, DoubleSumRaman)
def _proximal(objective, rate, state, squared_norm, score_true, draws):
    h, rho = np.float64(rate), max(np.float64(squared_norm), SMALLEST_SQUARED_NORM)
    weight, p, q = np.float64(draws.weights[0]), np.float64(score_true), np.float64(draws.scores[0])
    state[0], alpha, beta = implicit_step(h, rho, weight, p, q, state[0])
    draws.out[0] = np.float32(beta / rho)
    return np.float32(alpha / rho - h)


@njit(**OPTIONS)
def implicit_step(rate, squared_norm, weight, p, q, u_old):
    """Solve one implicit step for (u, alpha, beta), from the scores p of the true and q of the drawn class.

    Minimise 2 h (u - s_y + e^(s_y - u) + w e^(s_k - u)) + (u - u_old)^2 + ||W - W_old||^2, with h the rate. With
    rho = ||x||^2 the new scores are p + rho h - alpha and q - beta, where

        alpha = omega(log(rho h) + p + rho h - u)          beta = omega(log(rho h w) + q - u)
        g(u) = u - u_old + h - (alpha + beta) / rho = 0

    The left side rises and is concave, so that Newton from the left never overshoots. With one of the two terms
    alone the root has a closed form; the larger of these two roots is on the left, and near.
    """
    reach = squared_norm * rate
    z_true, z_drawn = math.log(reach) + p + reach, math.log(reach * weight) + q
    u = max(
        _root_of_one(rate, squared_norm, z_true, u_old),
        _root_of_one(rate, squared_norm, z_drawn, u_old),
    )
    for _ in range(NEWTON_STEPS):
        alpha, beta = wright_omega(z_true - u), wright_omega(z_drawn - u)
        residual = u - u_old + rate - (alpha + beta) / squared_norm
        slope = 1.0 + (alpha / (1.0 + alpha) + beta / (1.0 + beta)) / squared_norm
        change = -residual / slope
        u += change
        if change <= NEWTON_TOLERANCE:
            break
    return u, wright_omega(z_true - u), wright_omega(z_drawn - u)


@njit(**OPTIONS)
def _root_of_one(rate, squared_norm, z, u_old):
    """Solve u - u_old + rate = omega(z - u) / squared_norm: with A = (1 + 1 / rho) omega, A + log A is known."""
    both = 1.0 + squared_norm
    return u_old - rate + wright_omega(z - u_old + rate + math.log(both / squared_norm)) / both
