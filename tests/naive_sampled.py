"""Slow references for the sampled objectives, float64, from the papers' equations; nothing of the package is used.

``s`` is the vector of all classes' scores of one sample, ``y`` its class, ``drawn`` the classes of one step and
``log_q`` the log-probabilities of all classes in one draw. A step's slopes are by all scores.
"""

import itertools

import numpy as np
from scipy.optimize import brentq, minimize, minimize_scalar

from naive import sigmoid, softplus


def other_terms(s, y, drawn, log_q):
    """Per draw: class and e^(s_k - s_y) / (n q_k); draws of the true class are left out."""
    return [(k, np.exp(s[k] - s[y] - log_q[k]) / len(drawn)) for k in drawn if k != y]


def slopes_of(n_classes, y, terms):
    """Each term on its class, and minus their sum on the true one."""
    slopes = np.zeros(n_classes)
    for k, term in terms:
        slopes[k] += term
        slopes[y] -= term
    return slopes


# Raman's double sum: Fagan and Iyengar, eq. 8.


def raman(s, y, u):
    """Loss less the constant 1, slopes by the scores, slope by u."""
    terms = np.exp(np.asarray(s, float) - u)
    slopes = terms.copy()
    slopes[y] -= 1.0
    return u - s[y] + terms.sum() - 1.0, slopes, 1.0 - terms.sum()


def _omega(z):
    """Solve a + log(a) = z."""
    log_a = brentq(
        lambda t: np.exp(t) + t - z, 0.0 if z > 1 else z - np.e, np.log(max(z, 1.0)), xtol=1e-300, rtol=1e-15
    )
    return np.exp(log_a)


def raman_implicit_step(rate, squared_norm, weight, p, q, u_old):
    """The proximal step: new u, and how far it moves the true class up and the drawn one down along x.

    Up: h (1 - e^(p' - u)), p' = p + ||x||^2 up. Down: h w e^(q' - u), q' = q - ||x||^2 down.
    """

    def moves(u):
        reach = squared_norm * rate
        up = rate - _omega(np.log(reach) + p + reach - u) / squared_norm
        down = _omega(np.log(reach * weight) + q - u) / squared_norm if weight else 0.0
        return up, down

    def slope(u):
        up, down = moves(u)
        return u - u_old + up - down

    low, gap = u_old - rate - 1.0, 1.0
    while slope(low + gap) < 0:
        gap *= 2
    u = brentq(slope, low, low + gap, xtol=1e-300, rtol=1e-15, maxiter=1000)
    return (u, *moves(u))


def raman_implicit_step_by_minimizing(rate, squared_norm, weight, p, q, u_old):
    """The same from the definition: argmin 2 rate L(u, W) + (u - u_old)^2 + ||W - W_old||^2."""

    def proximal(point):
        u, up, down = point
        true, drawn = p + squared_norm * up, q - squared_norm * down
        value = u - true + np.exp(true - u) + weight * np.exp(drawn - u)
        return 2 * rate * value + (u - u_old) ** 2 + squared_norm * (up**2 + down**2)

    start = np.array([max(u_old, p, q + np.log(weight)), 0.0, 0.0])
    options = {"xatol": 1e-10, "fatol": 1e-15, "maxiter": 40000, "maxfev": 40000, "adaptive": True}
    return minimize(proximal, start, method="Nelder-Mead", options=options).x


# Softmaxes over a few classes.


def sampled_softmax_draws(s, y, drawn, log_q):
    """Logits less log(n q), the true class kept, other draws of it removed: loss and slopes."""
    terms = other_terms(s, y, drawn, log_q)
    inner = 1.0 + sum(term for _, term in terms)
    return np.log(inner), slopes_of(len(s), y, [(k, term / inner) for k, term in terms])


def importance_sampling_draws(s, y, drawn, log_q):
    """Scores less log q over the true class and all draws, which may be the true class again: loss and slopes."""
    candidates = [y, *drawn]
    logits = np.array([s[k] - log_q[k] for k in candidates])
    log_p = logits - np.logaddexp.reduce(logits)
    slopes = np.zeros(len(s))
    slopes[y] -= 1.0
    for k, p in zip(candidates, np.exp(log_p), strict=True):
        slopes[k] += p
    return -log_p[0], slopes


# Noise-contrastive estimation.


def nce(s, y, log_q, ratio, regularizer, z=0.0):
    """In expectation over the noise: loss and slopes; z is the log-normaliser."""
    loss = softplus(np.log(ratio) + log_q[y] + z - s[y]) + regularizer * s[y] ** 2
    slopes = np.zeros(len(s))
    slopes[y] = -sigmoid(np.log(ratio) + log_q[y] + z - s[y]) + 2 * regularizer * s[y]
    for k in range(len(s)):
        q = np.exp(log_q[k])
        if q > 0:
            contrast = s[k] - np.log(ratio) - log_q[k] - z
            loss += q * (ratio * softplus(contrast) + regularizer * s[k] ** 2)
            slopes[k] += q * (ratio * sigmoid(contrast) + 2 * regularizer * s[k])
    return loss, slopes


# Running averages of the inner sum.


def inner_sum(s, y):
    return sum(np.exp(s[k] - s[y]) for k in range(len(s)))


def sox_draws(s, y, inner, drawn, log_q, averaging):
    """The average first: slopes, and the new average of the inner sum, the true class's 1 included."""
    terms = other_terms(s, y, drawn, log_q)
    inner = (1.0 - averaging) * inner + averaging * (1.0 + sum(term for _, term in terms))
    return slopes_of(len(s), y, [(k, term / inner) for k, term in terms]), inner


def scent_draws(s, y, nu, drawn, log_q, averaging):
    """nu first, by its closed form: slopes, and the new nu."""
    terms = other_terms(s, y, drawn, log_q)
    estimate = 1.0 + sum(term for _, term in terms)
    nu = np.log((1.0 + averaging * estimate) / (averaging + np.exp(-nu)))
    return slopes_of(len(s), y, [(k, term * np.exp(-nu)) for k, term in terms]), nu


def scent_by_minimizing(nu_old, estimate, averaging):
    """argmin nu + e^-nu z + (1 / a) D(nu, nu_old), D the Bregman divergence of e^-nu."""

    def value(nu):
        divergence = np.exp(-nu) - np.exp(-nu_old) + np.exp(-nu_old) * (nu - nu_old)
        return nu + np.exp(-nu) * estimate + divergence / averaging

    return minimize_scalar(value, bracket=(nu_old, np.log(estimate) + 1e-3), tol=1e-12).x


# Expectations over all draws.


def ordered_draws(q, n_sampled):
    """All sequences of independent draws, and their probabilities."""
    for drawn in itertools.product(range(len(q)), repeat=n_sampled):
        if (chance := np.prod([q[k] for k in drawn])) > 0:
            yield list(drawn), chance


def subsets_of_others(n_classes, y, n_sampled):
    """All sets of distinct other classes, alike in probability."""
    subsets = list(itertools.combinations([k for k in range(n_classes) if k != y], n_sampled))
    for drawn in subsets:
        yield list(drawn), 1.0 / len(subsets)


def expected(slopes, draws):
    """Mean of ``slopes(drawn)`` over draws and their probabilities."""
    return sum(chance * slopes(drawn) for drawn, chance in draws)
