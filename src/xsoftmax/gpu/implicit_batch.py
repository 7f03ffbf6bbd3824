"""Implicit steps on minibatches and many classes on a device: those of ``xsoftmax.kernels.implicit_batch``.

That file has the equations. Newton's method looks for n numbers per class, by conjugate gradients in the metric of
the weights, all in float64: each inner iteration is a product of (n_classes, n) with (n, n) and a few passes.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from xsoftmax.gpu.omega import wright_omega

# As in compiled code, which says why.
TOLERANCE = 1e-8
NEWTON_STEPS, CONJUGATE_STEPS, SEARCH_STEPS = 100, 200, 60
FORCING, FLATTENED, ROUNDING = 1e-2, 0.3, 1e-12
START, COOLING, ON_THE_WAY = 0.1, 0.2, 0.1


class Metric(NamedTuple):
    """How scores rise as numbers p do: through the Gram matrix, the divisors c_k, and biases.

    ``products`` is (n, n), without the constant feature; ``divisors`` is (n_classes, 1);
    ``constant`` is what biases see.
    """

    products: Tensor
    divisors: Tensor
    constant: float

    def applied(self, p: Tensor) -> Tensor:
        """By how much scores rise if weights and biases follow ``p``, (n_classes, n)."""
        return p @ self.products / self.divisors + self.constant**2 * p.sum(1, keepdim=True)


class Point(NamedTuple):
    """At some scores: every class's share in d_i but the true one's, v_i, and half the sum of (1 + v_i)^2."""

    shares: Tensor
    v: Tensor
    half: float


class Problem:
    """One step: what stays while its numbers are sought.

    Parameters
    ----------
    own : Tensor of shape (n,), int64
        Place of each row's label among the classes.
    log_weights : Tensor of shape (n_classes,), float64
        log g_k.
    u : Tensor of shape (n,), float64
    kappa : float
    metric : Metric
    """

    def __init__(self, own: Tensor, log_weights: Tensor, u: Tensor, kappa: float, metric: Metric) -> None:
        self._own, self._log_weights, self._u, self._kappa = own[None, :], log_weights[:, None], u, kappa
        self.metric = metric

    def gaps(self, scores: Tensor) -> Tensor:
        """Logarithms of the terms of d_i, the true class's left out."""
        found = self._log_weights + scores - scores.gather(0, self._own)
        return found.scatter(0, self._own, -math.inf)

    def at(self, scores: Tensor, temperature: float) -> Point:
        """Look at some scores; a temperature above 1 smooths."""
        terms = self.gaps(scores) / temperature
        highest = terms.amax(0).clamp(min=0.0)
        shares = torch.exp(terms - highest)
        total = torch.exp(-highest) + shares.sum(0)
        log_d = temperature * (highest + torch.log(total))
        v = torch.zeros_like(log_d)
        if self._kappa > 0.0:
            v = wright_omega(math.log(self._kappa) + log_d + self._kappa - self._u)
        return Point(shares / total, v, float((0.5 * (1.0 + v) ** 2).sum()))

    def residual(self, p: Tensor, point: Point) -> Tensor:
        """Half the gradient in the metric."""
        pull = point.v * point.shares
        return (p + pull).scatter_add(0, self._own, -pull.sum(0, keepdim=True))

    def curved(self, q: Tensor, of_q: Tensor, point: Point, temperature: float) -> Tensor:
        """The Hessian in the metric, applied to ``q``, which moves the scores by ``of_q``."""
        away = of_q - of_q.gather(0, self._own)
        mean = (point.shares * away).sum(0)
        change = point.v * point.shares * ((away - mean) / temperature + mean / (1.0 + point.v))
        return (q + change).scatter_add(0, self._own, -change.sum(0, keepdim=True))

    def ended(self, v: Tensor) -> Tensor:
        """Give u after the step."""
        return (self._u - self._kappa + v).clamp(min=0.0)


def solve(problem: Problem, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Find the numbers p of one step, float64 of shape (n_classes, n), and u after it, from scores before it."""
    p, moved = torch.zeros_like(scores), torch.zeros_like(scores)
    temperature = max(1.0, float(problem.gaps(scores).amax()) * START)
    point = problem.at(scores, temperature)
    for _ in range(NEWTON_STEPS):
        point = problem.at(scores, temperature)
        value = point.half + 0.5 * _inner(p, moved)
        residual = problem.residual(p, point)
        of_residual = problem.metric.applied(residual)
        tolerance = TOLERANCE if temperature == 1.0 else ON_THE_WAY
        if _inner(residual, of_residual) <= tolerance**2 * _inner(p, moved):
            if temperature == 1.0:
                break
            temperature = max(1.0, temperature * COOLING)
            continue
        direction, image = _newton(problem, residual, of_residual, point, temperature)
        slope = _inner(residual, image)
        if not slope < 0.0:
            break
        length = _search(problem, (p, moved, scores), (direction, image), value, slope, temperature)
        if length == 0.0:
            break
        p, moved, scores = p + length * direction, moved + length * image, scores + length * image
    return p, problem.ended(point.v)


def _inner(a: Tensor, b: Tensor) -> float:
    return float((a * b).sum())


def _newton(
    problem: Problem, residual: Tensor, of_residual: Tensor, point: Point, temperature: float
) -> tuple[Tensor, Tensor]:
    """Give Newton's direction, and by how much it moves the scores: conjugate gradients in the metric."""
    left, of_left = -residual, -of_residual
    q, of_q = left, of_left
    direction, image = torch.zeros_like(q), torch.zeros_like(q)
    square = _inner(left, of_left)
    enough = FORCING**2 * square
    for _ in range(CONJUGATE_STEPS):
        curved = problem.curved(q, of_q, point, temperature)
        curvature = _inner(of_q, curved)
        if not curvature > 0.0:
            break
        length = square / curvature
        direction, image = direction + length * q, image + length * of_q
        left = left - length * curved
        of_left = problem.metric.applied(left)
        last, square = square, _inner(left, of_left)
        if square <= enough:
            break
        q, of_q = left + square / last * q, of_left + square / last * of_q
    return direction, image


def _search(
    problem: Problem,
    at: tuple[Any, ...],
    along: tuple[Tensor, Tensor],
    value: float,
    slope: float,
    temperature: float,
) -> float:
    """Find how far to go: where the value is lower and its slope flat; 0 if nowhere."""
    p, moved, scores = at
    direction, image = along
    low, high, length = 0.0, math.inf, 1.0
    for _ in range(SEARCH_STEPS):
        there = p + length * direction
        point = problem.at(scores + length * image, temperature)
        reached = point.half + 0.5 * _inner(there, moved + length * image)
        slope_there = _inner(problem.residual(there, point), image)
        rises = reached > value + ROUNDING * abs(value)
        if not rises and abs(slope_there) <= FLATTENED * abs(slope):
            return length
        if rises or slope_there > 0.0:
            high = length
        else:
            low = length
        length = 2.0 * length if high == math.inf else 0.5 * (low + high)
    return low
