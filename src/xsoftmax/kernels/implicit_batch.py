"""Implicit steps on the double sum for minibatches and many classes, with an L2 penalty: Fagan and Iyengar 2018, F.3.

A batch of n rows has the distinct labels Y; m classes outside Y are drawn for all of its rows, with weights g_k
that make their sum unbiased for the sum over all classes outside Y. With kappa = rate / n and g = 1 in Y,

    d_i = 1 + sum_{k != y_i} g_k e^(s_ik - s_iy),    v_i = omega(log(kappa d_i) + kappa - u_i)

and the step ends, the u being integrated out, where

    sum_i (1 + v_i)^2 + ||W - W_old||^2 + eta l2 sum_k b_k ||w_k||^2,    eta = rate / n_samples

is least (corrected: as printed, (19) to (21) lack the factor 2 eta of the L2 penalty). There u_i moves by v_i - kappa
and

    w_k = (w_k + sum_i p_ik x_i) / c_k,    c_k = 1 + eta l2 b_k,    p_ik = -v_i dlog d_i / ds_ik

while a bias, which is not shrunk, moves by sum_i p_ik. So n numbers are sought per class. Newton's method finds
them, its linear equations solved by conjugate gradients, both in the metric of the weights themselves: no factor of
the rows' Gram matrix is needed, and the distance to the minimum is at most the residual. Cost of a step: n (n + m)
inner products, and n^2 (n + m) per inner iteration.
"""

import math
from typing import NamedTuple

import numpy as np

from xsoftmax.internal.compiled import njit, overload
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import declared, implements
from xsoftmax.kernels.draws import empty_draws
from xsoftmax.kernels.layout import row_of, scale_class
from xsoftmax.kernels.mathematics import is_finite, wright_omega
from xsoftmax.kernels.protocol import Draws, Step, View, draw, n_exact
from xsoftmax.kernels.random import start
from xsoftmax.kernels.rows import Csr, Dense, bias_of, width_of
from xsoftmax.kernels.run_steps import take, workspace_for
from xsoftmax.kernels.walk import move, score_class

# Of the length of the step: float32 weights hold 6e-8.
TOLERANCE = 1e-8
NEWTON_STEPS = 100
CONJUGATE_STEPS = 200
SEARCH_STEPS = 60
# How much of a Newton equation's residual may be left, and of the slope at the end of a line search.
_FORCING = 1e-2
_FLATTENED = 0.3
_ROUNDING = 1e-12
# Where scores lie far apart, the sums are smoothed first: by this share of the distance, then less and less.
_START = 0.1
_COOLING = 0.2
_ON_THE_WAY = 0.1


class Inclusion(NamedTuple):
    """How often a step touches a class: b_k, the inverse of its probability.

    Attributes
    ----------
    inverse : ndarray of shape (2, n_classes), float64
        b_k of a full batch, and of the last one of an epoch.
    share : ndarray of shape (2,), float64
        What b_k takes for the probability that a class outside Y is drawn, where that depends on Y; otherwise 0.
    """

    inverse: np.ndarray
    share: np.ndarray


class Joint(NamedTuple):
    """A step per minibatch of ``size``, solved for the weights that it ends at; these are ``Decayed``."""

    size: int
    inclusion: Inclusion
    ahead: int = 1


class Workspace(NamedTuple):
    """Of a batch: what is drawn; its classes and their weights in the sum, float64; a row of zeros, float64."""

    draws: Draws
    classes: np.ndarray
    shares: np.ndarray
    row: np.ndarray


@implements(workspace_for, Joint)
def _workspace(batch, parts, samples, order):
    draws = empty_draws(parts.n_sampled + n_exact(parts.proposal))
    n = batch.size + draws.classes.size
    return Workspace(draws, np.empty(n, np.int64), np.empty(n), np.zeros(width_of(samples.features) + 1))


@implements(take, Joint)
def _take(batch, parts, samples, weights, some, clock, rate, workspace):
    features, classes, shares, n = samples.features, workspace.classes, workspace.shares, some.size
    n_labels = _distinct_labels(samples.labels, some, classes, shares)
    of_labels, y = classes[:n_labels], np.int64(samples.labels[some[0]])
    rng, view = start(clock.key, clock.position), View(weights, features)
    n_drawn = draw_outside(parts.proposal, view, some[0], y, of_labels, rng, workspace.draws)
    n_classes = _add_drawn(workspace.draws, n_drawn, n_labels, classes, shares)
    divisors = np.empty(n_classes)
    kind = np.int64(n != batch.size)
    for c in range(n_classes):
        b = batch.inclusion.inverse[kind, classes[c]]
        if c >= n_labels and batch.inclusion.share[kind] > 0.0:
            b *= batch.inclusion.share[kind] * shares[c]
        divisors[c] = 1.0 + rate * weights.decay * b
        scale_class(weights, classes[c], np.float32(1.0 / divisors[c]))
    scores, own, u = np.empty((n_classes, n)), np.empty(n, np.int64), np.empty(n)
    for b in range(n):
        i = some[b]
        own[b] = np.searchsorted(of_labels, samples.labels[i])
        u[b] = samples.auxiliary[i, 0]
        for c in range(n_classes):
            scores[c, b] = score_class(weights, features, i, classes[c])
    if not is_finite(scores.sum()):
        return 0
    constant = np.float64(bias_of(features))
    products = gram(features, some, workspace.row)
    log_weights = np.log(shares[:n_classes])
    pulls = solve(scores, own, log_weights, u, np.float64(rate) / n, products, divisors, constant)
    for b in range(n):
        samples.auxiliary[some[b], 0] = u[b]
    _move_along(weights, features, parts.optimizer, some, classes, pulls, divisors)
    return n


@njit(**OPTIONS)
def _move_along(weights, features, optimizer, some, classes, pulls, divisors):
    """Move shrunk weights, but for the biases, which do not shrink, by what is left of each pull."""
    step, constant = Step(np.float32(1), 0), np.float64(bias_of(features))
    for c in range(pulls.shape[0]):
        w, shrunk = row_of(weights, classes[c]), 1.0 / divisors[c]
        total = 0.0
        for b in range(some.size):
            total += pulls[c, b]
            if pulls[c, b] != 0.0:
                coefficient = np.float32(-pulls[c, b] * shrunk)
                move(weights, features, optimizer, some[b], step, coefficient, classes[c])
        w[w.size - 1] += np.float32(total * (1.0 - shrunk) * constant)


@njit(**OPTIONS)
def _distinct_labels(labels, samples, classes, weights):
    """Write the distinct labels of a batch, sorted, and their weight 1; return how many there are."""
    n = 0
    for y in np.sort(labels[samples]):
        if n == 0 or classes[n - 1] != y:
            classes[n], weights[n] = y, 1.0
            n += 1
    return n


@njit(**OPTIONS)
def _add_drawn(draws, n_drawn, n_labels, classes, weights):
    """Add the drawn classes, repeats gathered and labels left out, behind the labels; return how many there are."""
    n = n_labels
    for j in range(n_drawn):
        k = draws.classes[j]
        at = np.searchsorted(classes[:n_labels], k)
        if (at < n_labels and classes[at] == k) or not draws.weights[j] > 0:
            continue
        at = n_labels
        while at < n and classes[at] != k:
            at += 1
        if at == n:
            classes[n], weights[n] = k, 0.0
            n += 1
        weights[at] += draws.weights[j]
    return n


@declared
def draw_outside(proposal, view, i, y, batch_labels, rng, draws):
    """Draw classes for a batch whose first row is ``i`` of class ``y``; return how many.

    The weights make a sum over those outside ``batch_labels``, sorted, unbiased for the sum over all such classes.
    """


@overload(draw_outside)
def _draw_outside(proposal, view, i, y, batch_labels, rng, draws):
    """Of a proposal without such draws of its own, which it would mark by ``avoids_labels``: labels are drawn too."""
    if getattr(proposal.instance_class, "avoids_labels", False):
        return None

    def implementation(proposal, view, i, y, batch_labels, rng, draws):
        draw(proposal, view, i, y, np.float32(-np.inf), rng, draws)
        return draws.classes.size

    return implementation


@declared
def gram(features, samples, row):
    """Inner products of some samples, constant feature left out, float64; ``row`` is room: zeros before and after."""


@implements(gram, Dense)
def _gram_dense(features, samples, row):
    X = features.X[samples].astype(np.float64)
    return np.dot(X, X.T)


@implements(gram, Csr)
def _gram_csr(features, samples, row):
    n = samples.size
    products = np.empty((n, n))
    for a in range(n):
        i = samples[a]
        for j in range(features.indptr[i], features.indptr[i + 1]):
            row[features.indices[j]] += features.data[j]
        for b in range(a + 1):
            total = 0.0
            for j in range(features.indptr[samples[b]], features.indptr[samples[b] + 1]):
                total += row[features.indices[j]] * features.data[j]
            products[a, b] = products[b, a] = total
        for j in range(features.indptr[i], features.indptr[i + 1]):
            row[features.indices[j]] = 0.0
    return products


@njit(**OPTIONS)
def solve(scores, own, log_weights, u, kappa, products, divisors, constant):
    """Find the numbers p of one step, float64 of shape (n_classes, n); move ``scores`` and ``u`` along.

    Its distance to the minimum, in the metric in which c_k ||w_k||^2 and squared biases are summed, is at most
    ``TOLERANCE`` times its length.

    Parameters
    ----------
    scores : ndarray of shape (n_classes, n), float64
        Of the shrunk weights, for the n rows.
    own : ndarray of shape (n,), int64
        Place of each row's label.
    log_weights : ndarray of shape (n_classes,), float64
        log g_k.
    u : ndarray of shape (n,), float64
    kappa : float
    products : ndarray of shape (n, n), float64
        Gram matrix of the rows, without the constant feature.
    divisors : ndarray of shape (n_classes,), float64
        c_k.
    constant : float
        The constant feature.
    """
    start_u = u.copy()
    p, moved = np.zeros(scores.shape), np.zeros(scores.shape)
    shares, v = np.empty(scores.shape), np.empty(u.size)
    direction, image = np.empty(scores.shape), np.empty(scores.shape)
    temperature = max(1.0, _highest(scores, own, log_weights) * _START)
    for _ in range(NEWTON_STEPS):
        value = _shares(scores, own, log_weights, start_u, kappa, temperature, shares, v) + 0.5 * _inner(p, moved)
        residual = _residual(p, shares, own, v)
        of_residual = _applied(residual, products, divisors, constant)
        reached = _inner(residual, of_residual) <= (TOLERANCE if temperature == 1.0 else _ON_THE_WAY) ** 2 * _inner(
            p, moved
        )
        if reached and temperature > 1.0:
            temperature = max(1.0, temperature * _COOLING)
            continue
        if reached:
            break
        _newton(residual, of_residual, shares, own, v, temperature, products, divisors, constant, direction, image)
        slope = _inner(residual, image)
        if not slope < 0.0:
            break
        length = _search(
            p, moved, scores, direction, image, value, slope, own, log_weights, start_u, kappa, temperature, shares, v
        )
        if length == 0.0:
            break
        p += length * direction
        moved += length * image
        scores += length * image
    for b in range(u.size):
        u[b] = max(0.0, start_u[b] - kappa + v[b])
    return p


@njit(**OPTIONS)
def _inner(a, b):
    total = 0.0
    for c in range(a.shape[0]):
        for i in range(a.shape[1]):
            total += a[c, i] * b[c, i]
    return total


@njit(**OPTIONS)
def _applied(p, products, divisors, constant):
    """By how much scores rise if weights and biases follow ``p``."""
    out = np.dot(p, products)
    for c in range(p.shape[0]):
        of_bias = constant * constant * p[c].sum()
        for i in range(p.shape[1]):
            out[c, i] = out[c, i] / divisors[c] + of_bias
    return out


@njit(**OPTIONS)
def _highest(scores, own, log_weights):
    """Greatest logarithm of a term of any d_i, at least 0."""
    highest = 0.0
    for i in range(own.size):
        for c in range(scores.shape[0]):
            highest = max(highest, log_weights[c] + scores[c, i] - scores[own[i], i])
    return highest


@njit(**OPTIONS)
def _shares(scores, own, log_weights, u, kappa, temperature, shares, v):
    """Write every class's share in d_i, but the true one's, and v_i; return half the sum of (1 + v_i)^2.

    Of a temperature above 1: the shares of the terms' powers, and the logarithm of their sum times it.
    """
    half = 0.0
    for i in range(own.size):
        of_true, highest = scores[own[i], i], 0.0
        for c in range(scores.shape[0]):
            if c != own[i]:
                shares[c, i] = (log_weights[c] + scores[c, i] - of_true) / temperature
                highest = max(highest, shares[c, i])
        total = math.exp(-highest)
        for c in range(scores.shape[0]):
            if c != own[i]:
                shares[c, i] = math.exp(shares[c, i] - highest)
                total += shares[c, i]
        for c in range(scores.shape[0]):
            shares[c, i] /= total
        shares[own[i], i] = 0.0
        log_d = temperature * (highest + math.log(total))
        v[i] = wright_omega(math.log(kappa) + log_d + kappa - u[i]) if kappa > 0.0 else 0.0
        half += 0.5 * (1.0 + v[i]) ** 2
    return half


@njit(**OPTIONS)
def _residual(p, shares, own, v):
    """Half the gradient in the metric: p plus the derivatives of half the sum of (1 + v_i)^2 by the scores."""
    residual = np.empty(p.shape)
    for i in range(own.size):
        total = 0.0
        for c in range(p.shape[0]):
            pull = v[i] * shares[c, i]
            total += pull
            residual[c, i] = p[c, i] + pull
        residual[own[i], i] = p[own[i], i] - total
    return residual


@njit(**OPTIONS)
def _curved(q, of_q, shares, own, v, temperature):
    """The Hessian in the metric, applied to ``q``, which moves the scores by ``of_q``."""
    out = np.empty(q.shape)
    for i in range(own.size):
        of_true, mean, total = of_q[own[i], i], 0.0, 0.0
        for c in range(q.shape[0]):
            mean += shares[c, i] * (of_q[c, i] - of_true)
        for c in range(q.shape[0]):
            change = v[i] * shares[c, i] * ((of_q[c, i] - of_true - mean) / temperature + mean / (1.0 + v[i]))
            total += change
            out[c, i] = q[c, i] + change
        out[own[i], i] = q[own[i], i] - total
    return out


@njit(**OPTIONS)
def _newton(residual, of_residual, shares, own, v, temperature, products, divisors, constant, direction, image):
    """Write Newton's direction and by how much it moves the scores: conjugate gradients in the metric."""
    left, of_left = -residual, -of_residual
    q, of_q = left.copy(), of_left.copy()
    direction[:] = 0.0
    image[:] = 0.0
    square = _inner(left, of_left)
    enough = _FORCING**2 * square
    for _ in range(CONJUGATE_STEPS):
        curved = _curved(q, of_q, shares, own, v, temperature)
        curvature = _inner(of_q, curved)
        if not curvature > 0.0:
            break
        length = square / curvature
        direction += length * q
        image += length * of_q
        left -= length * curved
        of_left = _applied(left, products, divisors, constant)
        last, square = square, _inner(left, of_left)
        if square <= enough:
            break
        q = left + square / last * q
        of_q = of_left + square / last * of_q


@njit(**OPTIONS)
def _search(p, moved, scores, direction, image, value, slope, own, log_weights, u, kappa, temperature, shares, v):
    """Find how far to go: where the value is lower and its slope flat; 0 if nowhere."""
    low, high, length = 0.0, math.inf, 1.0
    for _ in range(SEARCH_STEPS):
        there = p + length * direction
        of_there = moved + length * image
        reached = _shares(scores + length * image, own, log_weights, u, kappa, temperature, shares, v)
        reached += 0.5 * _inner(there, of_there)
        slope_there = _inner(_residual(there, shares, own, v), image)
        rises = reached > value + _ROUNDING * abs(value)
        if not rises and abs(slope_there) <= _FLATTENED * abs(slope):
            return length
        if rises or slope_there > 0.0:
            high = length
        else:
            low = length
        length = 2.0 * length if high == math.inf else 0.5 * (low + high)
    return low
