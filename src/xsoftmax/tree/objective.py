"""Objective of a node, its gradient and its Hessian, in one pass over the points below it."""

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.mathematics import exp32
from xsoftmax.tree.draws import log1p_exp_of_negative

BLOCK = 256
_ZERO = np.float32(0)
_ONE = np.float32(1)


@njit(**OPTIONS)
def evaluate(node, w, ridge, work):
    """Objective at ``w``; its gradient and negative Hessian go to ``work``.

    float32 within a block of points, float64 across blocks.
    """
    d = w.size
    work.gradient.fill(0.0)
    work.hessian.fill(0.0)
    for i in range(d - 1):
        work.weights[i] = np.float32(w[i])
    total = 0.0
    for begin in range(0, node.signs.size, BLOCK):
        total += _add_block(node, begin, min(BLOCK, node.signs.size - begin), np.float32(w[d - 1]), work)
    for i in range(d):
        total -= 0.5 * ridge * w[i] * w[i]
        work.gradient[i] -= ridge * w[i]
        work.hessian[i, i] += ridge
    for i in range(d - 1):
        work.hessian[i, d - 1] = work.hessian[d - 1, i]
    return total


@njit(**OPTIONS)
def _add_block(node, begin, size, bias, work):
    k = work.weights.size
    value = _link(node, begin, size, bias, work)
    work.gradient_part.fill(_ZERO)
    work.hessian_part.fill(_ZERO)
    for p in range(size):
        residual = work.residuals[p]
        curvature = work.curvatures[p]
        work.gradient_part[k] += residual
        work.hessian[k, k] += curvature
        for j in range(k):
            x = node.X[begin + p, j]
            work.gradient_part[j] += residual * x
            work.hessian_part[k, j] += curvature * x
        for i in range(k):
            scaled = curvature * node.X[begin + p, i]
            for j in range(k):
                work.hessian_part[i, j] += scaled * node.X[begin + p, j]
    for i in range(k + 1):
        work.gradient[i] += work.gradient_part[i]
        for j in range(k):
            work.hessian[i, j] += work.hessian_part[i, j]
    return value


@njit(**OPTIONS)
def _link(node, begin, size, bias, work):
    """Compute residuals s sigma(-s score) and curvatures sigma (1 - sigma); return the log-likelihood."""
    k = work.weights.size
    for p in range(size):
        score = bias
        for j in range(k):
            score += work.weights[j] * node.X[begin + p, j]
        work.scores[p] = score * node.signs[begin + p]
    for p in range(size):
        t = work.scores[p]
        e = exp32(-abs(t))
        small = e / (_ONE + e)
        work.curvatures[p] = small * (_ONE - small)
        work.residuals[p] = node.signs[begin + p] * (small if t > _ZERO else _ONE - small)
        work.scores[p] = min(t, _ZERO) - log1p_exp_of_negative(abs(t))
    value = 0.0
    for p in range(size):
        value += work.scores[p]
    return value
