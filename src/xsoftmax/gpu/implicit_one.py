"""Implicit steps for one drawn class of each sample, solved for many samples at once: Newton's method in float64.

Equations, and why Newton's method does not overshoot from where it begins, are those of the objectives' files.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.gpu.features import CsrRows
from xsoftmax.gpu.omega import wright_omega
from xsoftmax.gpu.sampled_steps import Chosen, SampledSteps
from xsoftmax.gpu.slopes import Slopes
from xsoftmax.objectives import ScoredClasses

# As in ``xsoftmax.kernels.running_sum``.
NEWTON_STEPS, NEWTON_TOLERANCE = 20, 1e-7
# Of the logarithm of a, and of squared norms: as in the objectives' files.
LEAST, SMALLEST_SQUARED_NORM = -700.0, 1e-30


class Drawn(NamedTuple):
    """Of n samples, float64 of shape (n,): ||x||^2, the true score, a drawn one, its weight, and what is kept."""

    squared_norm: Tensor
    score_true: Tensor
    score: Tensor
    weight: Tensor
    state: Tensor


class Ended(NamedTuple):
    """By how much the true class and the drawn one move along minus x, and what is kept then; float64, (n,)."""

    of_true: Tensor
    of_drawn: Tensor
    state: Tensor


def double_sum(objective: Any, rate: float, at: Drawn) -> Ended:
    """See ``xsoftmax.objectives.double_sum.implicit_step``."""
    rho, u_old = at.squared_norm.clamp(min=torch.finfo(torch.float64).tiny), at.state
    log_weight = torch.log(2.0 * rate * at.weight * at.squared_norm)
    s = at.score - at.score_true
    z = s + log_weight
    pulls = z >= LEAST
    z = torch.where(pulls, z, 0.0)
    most, t = _right_of_omega(z), _right_of_omega(z - u_old)
    for _ in range(NEWTON_STEPS):
        a = torch.exp(t)
        u = z - t - a
        decay, pull = torch.exp(-u), a / rho
        residual = 2.0 * rate * (1.0 - decay) + 2.0 * (u - u_old) - pull
        change = residual / (2.0 * (rate * decay + 1.0) * (1.0 + a) + pull)
        t = torch.minimum(t + change, most)
        if _small(change * (1.0 + a)):
            break
    a = torch.exp(t)
    u = z - t - a
    decay, share = torch.exp(-u), a / (1.0 + a)
    residual = 2.0 * rate * (1.0 - decay) + 2.0 * (u - u_old) - a / rho
    u = (u - residual / (2.0 * rate * decay + 2.0 + share / rho)).clamp(min=0.0)
    a = torch.where(a > 0.0, a - share * (a + torch.log(a) - log_weight - (s - u)), a)
    step = torch.where(pulls, a / (2.0 * rho), 0.0)
    return Ended(-step, step, torch.where(pulls, u, _without_pull(rate, u_old)))


def double_sum_raman(objective: Any, rate: float, at: Drawn) -> Ended:
    """See ``xsoftmax.objectives.double_sum_raman.implicit_step``."""
    rho = at.squared_norm.clamp(min=SMALLEST_SQUARED_NORM)
    reach = rho * rate
    z_true = torch.log(reach) + at.score_true + reach
    z_drawn = torch.log(reach * at.weight) + at.score
    u = torch.maximum(*(_root_of_one(rate, rho, z, at.state) for z in (z_true, z_drawn)))
    for _ in range(NEWTON_STEPS):
        alpha, beta = wright_omega(z_true - u), wright_omega(z_drawn - u)
        residual = u - at.state + rate - (alpha + beta) / rho
        change = -residual / (1.0 + (alpha / (1.0 + alpha) + beta / (1.0 + beta)) / rho)
        u = u + change
        if _small(change):
            break
    alpha, beta = wright_omega(z_true - u), wright_omega(z_drawn - u)
    return Ended(alpha / rho - rate, beta / rho, u)


def hinge(objective: Any, rate: float, at: Drawn) -> Ended:
    """Go as far as the rate allows, or to where the loss is zero: the passive-aggressive step."""
    excess = objective.margin + at.score - at.score_true
    most = excess / (2.0 * at.squared_norm.clamp(min=torch.finfo(torch.float64).tiny))
    moves = (excess > 0) & (at.squared_norm > 0)
    step = torch.where(moves, torch.minimum(rate * at.weight, most), 0.0)
    return Ended(-step, step, at.state)


# By the objective's name.
SOLVED: dict[str, Callable[[Any, float, Drawn], Ended]] = {
    "double-sum": double_sum,
    "double-sum-raman": double_sum_raman,
    "hinge": hinge,
}


class ImplicitSteps(SampledSteps):
    """A method's steps, one sample each: as ``SampledSteps``, but each is solved for where it ends."""

    def __init__(self, name: str, *parts: Any) -> None:
        super().__init__(*parts)
        self._solve = SOLVED[name]

    def _slopes(self, batch: Chosen, draws: ScoredClasses, noise: Tensor | None, rate: float) -> Slopes:
        """Solve; slopes hold the rate."""
        state = self._auxiliary[batch.samples]
        kept = state[:, 0] if state.shape[1] else torch.zeros_like(draws.score_true)
        norms = squared_norms(batch.rows).double()
        at = Drawn(norms, draws.score_true, draws.scores[:, 0], draws.weights[:, 0], kept)
        ended = self._solve(self._objective, rate, at)
        if state.shape[1]:
            self._auxiliary[batch.samples] = ended.state[:, None]
        return Slopes(ended.of_true, ended.of_drawn[:, None], state)

    def _moved_at(self, at: tuple[float, int]) -> tuple[float, int]:
        return 1.0, at[1]


def squared_norms(rows: Any) -> Tensor:
    """Squared Euclidean norm of each sample, the constant feature included, (n,)."""
    if not isinstance(rows, CsrRows):
        return rows.inputs.square().sum(1)
    found = torch.zeros(rows.n, dtype=rows.values.dtype, device=rows.values.device)
    return found.index_add_(0, rows.rows, rows.values.square())


def _small(changes: Tensor) -> bool:
    return bool((changes.abs() <= NEWTON_TOLERANCE).all())


def _right_of_omega(z: Tensor) -> Tensor:
    return torch.where(z < 1.0, z, torch.log(z.clamp(min=1.0)))


def _without_pull(rate: float, u_old: Tensor) -> Tensor:
    """The new u where no class pulls."""
    u = torch.zeros_like(u_old)
    for _ in range(NEWTON_STEPS):
        decay = torch.exp(-u)
        change = (u_old - u - rate * (1.0 - decay)) / (1.0 + rate * decay)
        u = u + change
        if _small(change):
            break
    return u


def _root_of_one(rate: float, rho: Tensor, z: Tensor, u_old: Tensor) -> Tensor:
    both = 1.0 + rho
    return u_old - rate + wright_omega(z - u_old + rate + torch.log(both / rho)) / both
