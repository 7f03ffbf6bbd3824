"""Slow references in float64, written from the papers' equations; nothing of the package is used.

``s`` is the vector of all classes' scores of one sample, ``y`` its class. ``X`` is dense; the last column of ``W``
is the bias.
"""

import numpy as np
from scipy.optimize import brentq, minimize


def scores(X, W, bias=True):
    X, W = np.asarray(X, float), np.asarray(W, float)
    return X @ W[:, :-1].T + bias * W[:, -1]


def with_constant(X, bias=True):
    return np.column_stack([np.asarray(X, float), np.full(len(X), float(bias))])


def log_probabilities(s):
    s = np.asarray(s, float)
    highest = s.max(axis=-1, keepdims=True)
    return s - highest - np.log(np.exp(s - highest).sum(axis=-1, keepdims=True))


def log_likelihood(s, y):
    """Mean of log p(y | x) over the rows of ``s``."""
    return np.mean([log_probabilities(row)[k] for row, k in zip(s, y, strict=True)])


def softplus(x):
    return np.logaddexp(0.0, x)


def sigmoid(x):
    return np.exp(-np.logaddexp(0.0, -np.asarray(x, float)))


# Losses of one sample and their derivatives by all scores.


def softmax(s, y):
    log_p = log_probabilities(s)
    slopes = np.exp(log_p)
    slopes[y] -= 1.0
    return -log_p[y], slopes


def one_vs_each(s, y):
    """Titsias, eq. 4: -sum over the other classes of log sigma(s_y - s_k)."""
    loss, slopes = 0.0, np.zeros(len(s))
    for k in range(len(s)):
        if k != y:
            loss += softplus(s[k] - s[y])
            slopes[k] += sigmoid(s[k] - s[y])
            slopes[y] -= sigmoid(s[k] - s[y])
    return loss, slopes


def negative_sampling(s, y, log_q, regularizer, added=1.0):
    """Bamler and Mandt, eq. 6, in expectation over the negatives, the true class included.

    ``added``: how much of log q is in the regularizer.
    """
    loss = softplus(-s[y]) + regularizer * (s[y] + added * log_q[y]) ** 2
    slopes = np.zeros(len(s))
    slopes[y] = -sigmoid(-s[y]) + 2 * regularizer * (s[y] + added * log_q[y])
    for k in range(len(s)):
        q = np.exp(log_q[k])
        if q > 0:
            loss += q * (softplus(s[k]) + regularizer * (s[k] + added * log_q[k]) ** 2)
            slopes[k] += q * (sigmoid(s[k]) + 2 * regularizer * (s[k] + added * log_q[k]))
    return loss, slopes


def double_sum(s, y, u):
    """Fagan and Iyengar, eq. 5, less the constant 1: loss, slopes by the scores, slope by u."""
    others = [k for k in range(len(s)) if k != y]
    terms = np.array([np.exp(s[k] - s[y] - u) for k in others])
    slopes = np.zeros(len(s))
    slopes[others] = terms
    slopes[y] = -terms.sum()
    return u + np.exp(-u) + terms.sum() - 1.0, slopes, 1.0 - np.exp(-u) - terms.sum()


def u_max_bound(s, y, drawn):
    """What distinct other classes prove of u: log(1 + sum of e^(s_k - s_y)) over them (Algorithm 1)."""
    return np.log1p(sum(np.exp(s[k] - s[y]) for k in set(drawn) - {y}))


def implicit_step(rate, squared_norm, weight, s, u_old):
    """The proximal step for one drawn class: new u, and t with w_y += t x, w_k -= t x.

    At the minimum t = rate (1 - e^-u) + u - u_old and t = rate weight e^(s - 2 t ||x||^2 - u).
    """

    def t(u):
        return -rate * np.expm1(-u) + u - u_old

    def mismatch(u):
        return np.log(t(u)) + 2 * squared_norm * t(u) + u - np.log(rate * weight) - s

    zero = brentq(t, 0.0, u_old + 1.0, xtol=1e-300, rtol=1e-15) if u_old > 0 else 0.0
    low, high = zero, zero + 1.0
    while mismatch(high) < 0:
        high = zero + 2 * (high - zero)
    gap = 1.0
    while True:  # t falls to 0, and log t without limit, at the left end
        low = zero + gap * (high - zero)
        if t(low) <= 0 or low == zero:
            return zero, 0.0
        if mismatch(low) < 0:
            break
        gap /= 4
    u = brentq(mismatch, low, high, xtol=1e-300, rtol=1e-15, maxiter=1000)
    return u, t(u)


def implicit_step_by_minimizing(rate, squared_norm, weight, s, u_old):
    """The same from the definition: argmin 2 rate L(u, W) + (u - u_old)^2 + ||W - W_old||^2."""

    def proximal(point):
        u, t = point
        return (
            2 * rate * (u + np.exp(-u) + weight * np.exp(s - 2 * t * squared_norm - u))
            + (u - u_old) ** 2
            + 2 * t * t * squared_norm
        )

    start = np.array([max(u_old, s + np.log(weight), 0.1), 0.0])
    best = minimize(proximal, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 20000})
    return best.x


def adagrad(w, accumulator, gradient, rate):
    """New weights and accumulator."""
    accumulator = accumulator + gradient**2
    return w - rate * gradient / np.sqrt(accumulator), accumulator


# Full objectives, W of shape (n_classes, n_features + 1).


def softmax_objective(X, y, W, l2=0.0, bias=True):
    """Mean negative log-likelihood plus ridge / (2 n) of the weights, biases not penalised; and its gradient."""
    s = scores(X, W, bias)
    inputs = with_constant(X, bias)
    value, gradient = 0.0, np.zeros(np.shape(W))
    for i in range(len(y)):
        loss, slopes = softmax(s[i], y[i])
        value += loss
        gradient += np.outer(slopes, inputs[i])
    value += 0.5 * l2 * np.sum(np.asarray(W, float)[:, :-1] ** 2)
    gradient[:, :-1] += l2 * np.asarray(W, float)[:, :-1]
    return value / len(y), gradient / len(y)


def alias_probabilities(table):
    """Exact probabilities of a packed alias table, in units of 1 / (n 2^32): Walker 1977."""
    n = len(table)
    units = [0] * n
    for k, entry in enumerate(int(e) for e in table):
        threshold, alias = entry & 0xFFFFFFFF, entry >> 32
        units[k] += threshold
        units[alias] += 2**32 - threshold
    return np.array([u / (n * 2**32) for u in units])


# Metrics.


def rank(s, y):
    """Other classes that do not score lower; NaN scores lower than nothing."""
    return sum(1 for k in range(len(s)) if k != y and not s[k] < s[y])


def top_k_accuracy(k, ranks):
    return np.mean([1.0 if r < k else 0.0 for r in ranks])


def bins_of_confidence(confidence, right, n_bins):
    """Mean confidence, accuracy and number of rows of each bin, and the expected calibration error, row by row."""
    order, bins, first = sorted(range(len(right)), key=lambda i: confidence[i]), [], 0
    for b in range(n_bins):
        n = len(right) // n_bins + (b < len(right) % n_bins)
        rows, first = order[first : first + n], first + n
        bins.append((sum(confidence[i] for i in rows) / n, sum(right[i] for i in rows) / n, n))
    return bins, sum(n * abs(accuracy - sure) for sure, accuracy, n in bins) / len(right)


def best(s, k):
    """The k best classes, the lower first among equals."""
    return sorted(range(len(s)), key=lambda c: (-s[c], c))[:k]
