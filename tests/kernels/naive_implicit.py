"""The implicit step for batches, many classes and an L2 penalty, from its definition: Fagan and Iyengar 2018, F.3.

Slow, in float64; nothing of the package is used. ``weights`` maps the classes outside the batch's labels to the
weights of their terms.
"""

import numpy as np
from scipy.optimize import minimize


def terms(W, b, X, y, weights):
    """For each row the logarithms of d_i's terms beside the 1, as a list; and their classes."""
    labels = sorted(set(y))
    found = []
    for x, own in zip(X, y, strict=True):
        others = [(k, 0.0) for k in labels if k != own] + [(k, np.log(g)) for k, g in sorted(weights.items())]
        found.append([(k, g + x @ (W[k] - W[own]) + b[k] - b[own]) for k, g in others])
    return found


def value_and_gradient(W, b, u, X, y, weights, l2_weights, n_samples, l2):
    """One step's estimate of the whole objective, sum_i L_i + ridge / 2 ||W||^2; exponentials may overflow."""
    scale = n_samples / len(y)
    value, in_W, in_b, in_u = 0.0, np.zeros_like(W), np.zeros_like(b), np.zeros_like(u)
    for i, row in enumerate(terms(W, b, X, y, weights)):
        value += scale * (u[i] + np.exp(-u[i]))
        in_u[i] = scale * (1 - np.exp(-u[i]))
        for k, log_term in row:
            term = scale * np.exp(log_term - u[i])
            value += term
            in_u[i] -= term
            in_W[k] += term * X[i]
            in_W[y[i]] -= term * X[i]
            in_b[k] += term
            in_b[y[i]] -= term
    for k, weight in l2_weights.items():
        value += 0.5 * l2 * weight * W[k] @ W[k]
        in_W[k] += l2 * weight * W[k]
    return value, in_W, in_b, in_u


def step_by_minimizing(W, b, u, X, y, weights, l2_weights, n_samples, l2, rate, bias=True):
    """argmin 2 eta f + ||theta - theta_old||^2 with eta = rate / n_samples, over all weights, biases and u."""
    eta, shapes = rate / n_samples, (W.shape, b.shape, u.shape)
    ends = np.cumsum([W.size, b.size, u.size])
    old = np.concatenate([W.ravel(), b, u])

    def split(theta):
        return [part.reshape(shape) for part, shape in zip(np.split(theta, ends[:2]), shapes, strict=True)]

    def proximal(theta):
        value, in_W, in_b, in_u = value_and_gradient(*split(theta), X, y, weights, l2_weights, n_samples, l2)
        gradient = np.concatenate([in_W.ravel(), in_b * bias, in_u])
        move = theta - old
        return 2 * eta * value + move @ move, 2 * eta * gradient + 2 * move

    start = old.copy()
    for i, row in enumerate(terms(W, b, X, y, weights)):  # as high as it takes for no exponential to overflow
        start[ends[1] + i] = max([u[i], *(log_term for _, log_term in row)])
    options = {"maxiter": 20000, "maxfun": 10**6, "ftol": 1e-16, "gtol": 1e-11, "maxcor": 50}
    best = minimize(proximal, start, jac=True, method="L-BFGS-B", options=options)
    return split(best.x)


def step_as_printed(W, b, u, X, y, weights, l2_weights, n_samples, l2, rate):
    """The same with (19)'s ridge as printed, mu / 2 without the factor 2 eta of the rest."""
    return step_by_minimizing(W, b, u, X, y, weights, l2_weights, n_samples, l2 * n_samples / (2 * rate), rate)


def fixed_point_residual(before, after, X, y, weights, l2_weights, n_samples, l2, rate):
    """Largest |theta_new - theta_old + eta grad f(theta_new)| over weights, biases and u; nothing overflows.

    Exponentials are taken of differences from the new u, which bound them: rate / n times their sum is what u moved
    by and more.
    """
    (W_old, b_old, u_old), (W, b, u) = before, after
    eta = rate / n_samples
    _, in_W, in_b, in_u = value_and_gradient(W, b, u, X, y, weights, l2_weights, n_samples, l2)
    return max(
        np.abs(W - W_old + eta * in_W).max(),
        np.abs(b - b_old + eta * in_b).max(),
        np.abs(u - u_old + eta * in_u).max(),
    )


def absent(counts, k, n):
    """Probability that no row of class k is among n of all rows, without replacement: a hypergeometric term."""
    total, left = sum(counts), sum(counts) - counts[k]
    probability = 1.0
    for drawn in range(n):
        probability *= max(0, left - drawn) / (total - drawn)
    return probability
