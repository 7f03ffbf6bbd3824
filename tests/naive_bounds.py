"""Slow references in float64 of bounds and margins, from the papers' equations; nothing of the package is used.

``s`` is the vector of all classes' scores of one sample, ``y`` its class; ``X`` is dense, and the last column of
``W`` is the bias.
"""

import numpy as np
from scipy.optimize import brentq, minimize

import naive


def log_sigmoid(x):
    return -np.logaddexp(0.0, -np.asarray(x, float))


# Bouchard 2007; Titsias 2016, eq. 12.


def alpha_bracket(s):
    """max(f_(2), f_min + log(K - 1)) and f_max + log(K - 1)."""
    s = np.sort(np.asarray(s, float))
    spread = np.log(len(s) - 1)
    return max(s[-2], s[0] + spread), s[-1] + spread


def alpha(s):
    """Root of sum_k sigma(s_k - alpha) = 1; the highest score's 1 - sigma(t - alpha) is sigma(alpha - t)."""
    s = np.sort(np.asarray(s, float))

    def mismatch(a):
        return np.logaddexp.reduce(log_sigmoid(s[:-1] - a)) - log_sigmoid(a - s[-1])

    low, high = s[-2] - 1.0, s[-1] + np.log(len(s)) + 1.0
    return brentq(mismatch, low, high, xtol=1e-13, rtol=1e-15)


def bouchard_at(s, y, a):
    """Eq. 12 at any alpha."""
    return a - s[y] + sum(naive.softplus(s[k] - a) for k in range(len(s)))


def bouchard(s, y):
    """At the best alpha; its slopes by the envelope theorem."""
    a = alpha(s)
    slopes = np.array([naive.sigmoid(s[k] - a) for k in range(len(s))])
    slopes[y] -= 1.0
    return bouchard_at(s, y, a), slopes


# Titsias 2016, eq. 6.


def most_frequent(counts, n):
    """The n classes with most rows, the lower first among equals."""
    return set(sorted(range(len(counts)), key=lambda k: (-counts[k], k))[:n])


def joint(s, y, together):
    """-log [softmax of y among ``together`` and itself] - sum over all others of log sigma(s_y - s_k)."""
    inside = [y, *(k for k in together if k != y)]
    value, among = naive.softmax(np.asarray(s, float)[inside], 0)
    slopes = np.zeros(len(s))
    slopes[inside] = among
    for k in range(len(s)):
        if k not in inside:
            value += naive.softplus(s[k] - s[y])
            slopes[k] += naive.sigmoid(s[k] - s[y])
            slopes[y] -= naive.sigmoid(s[k] - s[y])
    return value, slopes


# Yen et al. 2018, eq. 10 and 11, with the margin's sign put right; one positive class.


def hinge(s, y):
    return max(0.0, max(s[k] for k in range(len(s)) if k != y) + 1.0 - s[y])


def bi_simplex(b, c):
    """Projection of (b, -c), c a number: Duchi-like, by sorting. x, and the sum y of what the positive class gets."""
    if max(b) + c <= 0:
        return np.zeros(len(b)), 0.0
    ordered = sorted(b, reverse=True)
    for r in range(len(b), 0, -1):
        theta = (sum(ordered[:r]) - c) / (r + 1)
        if ordered[r - 1] > theta:
            break
    x = np.maximum(np.asarray(b, float) - theta, 0.0)
    if x.sum() <= 1:
        return x, c + theta
    for r in range(len(b), 0, -1):
        theta = (sum(ordered[:r]) - 1.0) / r
        if ordered[r - 1] > theta:
            break
    return np.maximum(np.asarray(b, float) - theta, 0.0), 1.0


def bi_simplex_by_minimizing(b, c):
    """The same from its definition, by SLSQP: min ||x - b||^2 + (y - c)^2, x >= 0, y = sum x <= 1."""
    b = np.asarray(b, float)

    def value(x):
        return np.sum((x - b) ** 2) + (x.sum() - c) ** 2

    def slope(x):
        return 2 * (x - b) + 2 * (x.sum() - c)

    workspace = {"type": "ineq", "fun": lambda x: 1.0 - x.sum(), "jac": lambda x: -np.ones(len(x))}
    start = np.full(len(b), 0.5 / len(b))
    found = minimize(
        value, start, jac=slope, bounds=[(0, None)] * len(b), constraints=[workspace], method="SLSQP",
        options={"ftol": 1e-16, "maxiter": 1000},
    )  # fmt: skip
    return found.x, found.fun


def max_margin(s, y, mu):
    """Value max <z + 1_N, a> - (mu / 2) ||a||^2, and its slopes a = proj((z + 1_N) / mu)."""
    s = np.asarray(s, float)
    others = [k for k in range(len(s)) if k != y]
    x, t = bi_simplex((s[others] + 1.0) / mu, -s[y] / mu)
    slopes = np.zeros(len(s))
    slopes[others], slopes[y] = x, -t
    return float(np.sum(x * (s[others] + 1.0 - s[y])) - 0.5 * mu * np.sum(slopes**2)), slopes


# Full objectives, for optima found elsewhere: mean over rows plus ridge / (2 n) of the weights without biases.


def _with_l2(value, gradient, W, l2, n):
    value += 0.5 * l2 * np.sum(W[:, :-1] ** 2)
    gradient[:, :-1] += l2 * W[:, :-1]
    return value / n, gradient / n


def one_vs_each_objective(X, y, W, l2):
    inputs, rows = naive.with_constant(X), np.arange(len(y))
    s = inputs @ W.T
    difference = s - s[rows, y][:, None]
    slopes = naive.sigmoid(difference)
    slopes[rows, y] = 0.0
    value = naive.softplus(difference).sum() - len(y) * np.log(2.0)
    slopes[rows, y] = -slopes.sum(axis=1)
    return _with_l2(value, slopes.T @ inputs, W, l2, len(y))


def bouchard_objective(X, y, W, alphas, l2):
    """Alpha explicit; the third is the gradient by alpha."""
    inputs, rows = naive.with_constant(X), np.arange(len(y))
    s = inputs @ W.T
    value = (alphas - s[rows, y]).sum() + naive.softplus(s - alphas[:, None]).sum()
    slopes = naive.sigmoid(s - alphas[:, None])
    by_alpha = (1.0 - slopes.sum(axis=1)) / len(y)
    slopes[rows, y] -= 1.0
    return *_with_l2(value, slopes.T @ inputs, W, l2, len(y)), by_alpha


_TIGHT = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-13, "gtol": 1e-8, "maxcor": 30}


def one_vs_each_optimum(X, y, n_classes, l2):
    """W, and the objective there."""
    shape = (n_classes, X.shape[1] + 1)

    def value(w):
        total, gradient = one_vs_each_objective(X, y, w.reshape(shape), l2)
        return total, gradient.ravel()

    found = minimize(value, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=_TIGHT)
    return found.x.reshape(shape), found.fun


def bouchard_optimum(X, y, n_classes, l2):
    """W, and the objective there: minimised over W and all alphas at once."""
    shape, n = (n_classes, X.shape[1] + 1), len(y)

    def value(point):
        W, alphas = point[:-n].reshape(shape), point[-n:]
        total, gradient, by_alpha = bouchard_objective(X, y, W, alphas, l2)
        return total, np.concatenate([gradient.ravel(), by_alpha])

    start = np.concatenate([np.zeros(shape).ravel(), np.zeros(n)])
    found = minimize(value, start, jac=True, method="L-BFGS-B", options=_TIGHT)
    return found.x[:-n].reshape(shape), found.fun
