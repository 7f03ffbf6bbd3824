"""Array forms of augment and reduce with additive noise: Ruiz et al. 2018, section 3.2; ``xsoftmax.kernels.augment``.

    -ELBO = -E_q[log phi(e) + sum_{k != y} log Phi(e + s_y - s_k)] - H[q],    q: e = mu + sigma u,  u ~ phi

The state is (mu, gamma, visits) with sigma = log(1 + e^gamma). A step takes the expectation at one draw of e.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from xsoftmax.kernels import augment
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.protocol import gradient, loss
from xsoftmax.objectives import ScoredClasses, _arrays

# Of the trapezoidal sum, in units of q's scale, where that is at most 1.
SPACING = 0.75


class Noise(NamedTuple):
    """A distribution; its functions take ``xp`` and an array.

    Attributes
    ----------
    draw : callable
        Makes numbers, of shape (n,), of uniform ones, of shape (n, 1) or (n, 2).
    log_density, slope, log_cumulative : callable
        log phi, its derivative, and log Phi.
    entropy : float
        In nats.
    reach : float
        How far the trapezoidal sum goes to both sides, in units of q's scale.
    """

    draw: Callable
    log_density: Callable
    slope: Callable
    log_cumulative: Callable
    entropy: float
    reach: float


HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)
NORMAL = Noise(
    draw=lambda xp, p: xp.sqrt(-2 * xp.log(p[:, 0])) * xp.cos(2 * math.pi * p[:, 1]),  # Box and Muller 1958
    log_density=lambda xp, x: -0.5 * x**2 - HALF_LOG_2_PI,
    slope=lambda xp, x: -x,
    log_cumulative=lambda xp, x: _arrays.special(xp).log_ndtr(x),
    entropy=HALF_LOG_2_PI + 0.5,
    reach=8.25,
)
LOGISTIC = Noise(
    draw=lambda xp, p: xp.log(p[:, 0]) - xp.log1p(-p[:, 0]),
    log_density=lambda xp, x: -_arrays.softplus(xp, x) - _arrays.softplus(xp, -x),
    slope=lambda xp, x: -xp.tanh(0.5 * x),
    log_cumulative=lambda xp, x: -_arrays.softplus(xp, -x),
    entropy=2.0,
    reach=36.0,
)

# By the link of the model.
NOISES = {"probit": NORMAL, "logistic": LOGISTIC}


class Points(NamedTuple):
    """Where the expectation over q is taken.

    Attributes
    ----------
    e : array of shape (n, r)
    weights : array of shape (r,), adding up to 1
    entropy : array of shape (n,)
        H[q].
    """

    e: Any
    weights: Any
    entropy: Any


def minus_elbo(xp: Any, noise: Noise, at: Points, draws: ScoredClasses) -> Any:
    """Return the negative evidence lower bound, of shape (n,)."""
    x = at.e[:, :, None] - _arrays.gaps(draws)[:, None, :]
    others = xp.sum(draws.weights[:, None, :] * noise.log_cumulative(xp, x), axis=2)
    return -xp.sum(at.weights * (noise.log_density(xp, at.e) + others), axis=1) - at.entropy


def all_points(xp: Any, noise: Noise, state: Any) -> Points:
    """Return the points of a trapezoidal sum."""
    sigma = _arrays.softplus(xp, state[:, 1])
    n = int(noise.reach * max(1.0, float(xp.max(sigma))) / SPACING)
    u = xp.linspace(-noise.reach, noise.reach, 2 * n + 1, dtype=state.dtype, device=state.device)
    weights = xp.exp(noise.log_density(xp, u))
    return Points(state[:, :1] + sigma[:, None] * u, weights / xp.sum(weights), noise.entropy + xp.log(sigma))


def step(xp: Any, noise: Noise, objective: Any, state: Any, draws: ScoredClasses, uniform: Any) -> tuple[Points, Any]:
    """Move (mu, gamma) along the gradient of the ELBO at one draw of e, and draw e again (eq. 9)."""
    half = uniform.shape[1] // 2
    mu, gamma, visits = state[:, 0], state[:, 1], state[:, 2] + 1
    sigma, u = _arrays.softplus(xp, gamma), noise.draw(xp, uniform[:, :half])
    e = mu + sigma * u
    x = e[:, None] - _arrays.gaps(draws)
    hazards = xp.exp(noise.log_density(xp, x) - noise.log_cumulative(xp, x))
    slope = noise.slope(xp, e) + xp.sum(draws.weights * hazards, axis=1)
    by_sigma = slope * u + (1 / sigma if objective.entropy else 0)
    rate = objective.local_rate * (1 + visits) ** -objective.local_power
    mu, gamma = mu + rate * slope, gamma + rate * by_sigma * _arrays.sigmoid(xp, gamma)
    sigma = _arrays.softplus(xp, gamma)
    e = (mu + sigma * noise.draw(xp, uniform[:, half:]))[:, None]
    return Points(e, xp.ones_like(e[0, :]), noise.entropy + xp.log(sigma)), xp.stack([mu, gamma, visits], axis=1)


def best_start(noise: Noise, n_classes: int) -> np.ndarray:
    """Return (mu, gamma) of the highest bound where all classes score the same, as they do before the first step."""
    zero, zeros = np.zeros(1), np.zeros((1, 1))
    draws = ScoredClasses(zero, zero, zeros, zeros, np.full((1, 1), n_classes - 1.0), zeros)

    def value(point: np.ndarray) -> float:
        return minus_elbo(np, noise, all_points(np, noise, point[None]), draws)[0]

    return minimize(value, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}).x


class AdditiveNoise(NamedTuple):
    """Parameters: ``local_rate`` (1 + t)^-``local_power``, the length of local steps.

    t counts the visits of the sample: with the paper's iterations, samples would stand still before they are seen
    twice. ``start_at_best``: (mu, sigma) begin where the bound is highest at equal scores, or as in the authors'
    program at (0, 1), from where many classes throw mu far off. ``entropy``: whether local steps follow the gradient
    of q's entropy; the authors' program lacks it, so that sigma falls towards 0, and its ``local_rate`` is 0.001.
    """

    local_rate: float = 0.01
    local_power: float = 0.9
    start_at_best: bool = True
    entropy: bool = True

    def initial_auxiliary(self, n_samples: int, n_classes: int) -> np.ndarray:
        """Give (mu, gamma, visits) of every sample before the first step, float64 of shape (n_samples, 3)."""
        mu, gamma = best_start(_noise_of(self), n_classes) if self.start_at_best else (0.0, augment.GAMMA_OF_ONE)
        return np.tile([mu, gamma, 0.0], (n_samples, 1))

    def settle(self, xp: Any, state: Any, draws: ScoredClasses) -> Points:
        """Return the points over which the loss is summed: see ``xsoftmax.objectives``."""
        return all_points(xp, _noise_of(self), state)

    def prepare(self, xp: Any, rate: Any, state: Any, draws: ScoredClasses, noise: Any) -> tuple[Points, Any]:
        """Return where a step differentiates, and the state after it: see ``xsoftmax.objectives``."""
        return step(xp, _noise_of(self), self, state, draws, noise)

    def value(self, xp: Any, at: Points, draws: ScoredClasses) -> Any:
        """Return the loss of n samples, or its estimate at one draw: see ``xsoftmax.objectives``."""
        return minus_elbo(xp, _noise_of(self), at, draws)


def _noise_of(member: Any) -> Noise:
    return NOISES[member.link]


def compiled_for(noise: type) -> Callable[[type], type]:
    """Compile ``loss`` and ``gradient`` for noise of a type of ``xsoftmax.kernels.noise``: a decorator of members."""

    def attach(member: type) -> type:
        @implements(loss, member)
        def _loss(objective, state, score_true, log_q_true, draws):
            return augment.minus_elbo(noise(), state, score_true, draws)

        @implements(gradient, member)
        def _gradient(objective, rate, state, score_true, log_q_true, draws):
            local_rate, power, entropy = objective.local_rate, objective.local_power, objective.entropy
            augment.move_variables(noise(), local_rate, power, entropy, state, score_true, draws)
            return augment.coefficients_at_draw(noise(), state, score_true, draws)

        return member

    return attach
