"""Augment and reduce (Ruiz et al. 2018) in float64, from the paper's equations; nothing of the package is used.

``s`` is the vector of all classes' scores of one sample, ``y`` its class; ``noise`` is "normal", "logistic" or
"gumbel". Integrals are sums over dense grids.
"""

import numpy as np
from scipy.special import log_ndtr, logsumexp

from naive import softplus

REACH = {"normal": 14.0, "logistic": 60.0, "gumbel": 60.0}


def log_density(noise, e):
    if noise == "normal":
        return -0.5 * e**2 - 0.5 * np.log(2 * np.pi)
    if noise == "logistic":
        return -np.logaddexp(0, e) - np.logaddexp(0, -e)
    return -e - np.exp(-e)


def log_cumulative(noise, e):
    if noise == "normal":
        return log_ndtr(e)
    if noise == "logistic":
        return -np.logaddexp(0, -e)
    return -np.exp(-e)


def log_joint(noise, s, y, e):
    """Log of eq. 6 at the points ``e``."""
    total = log_density(noise, e)
    for k in range(len(s)):
        if k != y:
            total = total + log_cumulative(noise, e + s[y] - s[k])
    return total


def log_probability(noise, s, y, spacing=1 / 32):
    """Eq. 5, on a grid of everything that may count."""
    s = np.asarray(s, float)
    low = -3.6 if noise == "gumbel" else -REACH[noise]  # e^-e grows fast to the left
    e = np.arange(low, max(s.max() - s[y], 0) + REACH[noise], spacing)
    return logsumexp(log_joint(noise, s, y, e)) + np.log(spacing)


def inner_sum(s, y):
    return 1 + sum(np.exp(s[k] - s[y]) for k in range(len(s)) if k != y)


def softmax_bound(s, y, eta):
    """Eq. 8."""
    return 1 - np.log(eta) - inner_sum(s, y) / eta


def elbo(noise, s, y, mu, sigma):
    """Eq. 7 with q the noise's own distribution at mu with scale sigma."""
    u = np.arange(-REACH[noise], REACH[noise], 1 / 16)
    q = np.exp(log_density(noise, u)) / 16
    log_q = log_density(noise, u) - np.log(sigma)
    return np.sum(q * (log_joint(noise, s, y, mu + sigma * u) - log_q))


# Steps, given the drawn classes and their weights 1 / (n q), 0 for the true class, and the noise's numbers.


def softmax_step(s, y, eta, visits, drawn, weights, local_rate=1.0, power=0.9):
    """Algorithm 1: slopes of the loss by all scores; new eta and visits."""
    visits += 1
    alpha = local_rate * (1 + visits) ** -power
    terms = [w * np.exp(s[k] - s[y]) for k, w in zip(drawn, weights, strict=True)]
    eta = (1 - alpha) * eta + alpha * (1 + sum(terms))
    slopes = np.zeros(len(s))
    for k, term in zip(drawn, terms, strict=True):
        slopes[k] += term / eta
        slopes[y] -= term / eta
    return slopes, eta, visits


def hazard(noise, e):
    return np.exp(log_density(noise, e) - log_cumulative(noise, e))


def general_step(noise, s, y, mu, gamma, visits, drawn, weights, u, fresh, local_rate=0.01, power=0.9, entropy=True):
    """Algorithm 2: slopes of the loss by all scores; new mu, gamma and visits."""
    visits += 1
    alpha = local_rate * (1 + visits) ** -power
    sigma = softplus(gamma)
    e = mu + sigma * u
    step = 1e-6
    slope = (log_density(noise, e + step) - log_density(noise, e - step)) / (2 * step)
    slope += sum(w * hazard(noise, e + s[y] - s[k]) for k, w in zip(drawn, weights, strict=True))
    by_sigma = slope * u + (1 / sigma if entropy else 0)
    mu, gamma = mu + alpha * slope, gamma + alpha * by_sigma / (1 + np.exp(-gamma))
    e = mu + softplus(gamma) * fresh
    slopes = np.zeros(len(s))
    for k, w in zip(drawn, weights, strict=True):
        slopes[k] += w * hazard(noise, e + s[y] - s[k])
        slopes[y] -= w * hazard(noise, e + s[y] - s[k])
    return slopes, mu, gamma, visits
