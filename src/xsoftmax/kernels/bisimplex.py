"""The projection onto the bi-simplex: what gives a smoothed margin its slopes.

Yen et al., Loss decomposition for fast learning in large output spaces, ICML 2018, eq. 11.
"""

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import OPTIONS


@njit(**OPTIONS)
def threshold(score_true, scores, weights, inverse, workspace):
    """Solve the projection for theta, with x_k = [d_k - theta]_+ and d_k = (s_k - highest) / mu <= 0.

    With g = (highest + 1 - s_y) / mu, theta is the root of a function that falls and is convex,

        F(theta) = sum_k [d_k - theta]_+ - min(1, g + theta),

    and lies between max(-1, -g), where F >= 0, and 0: Newton from there never overshoots, and ends when no further
    class falls out of the sum. No class more than mu below the highest has a slope, nor one outside the margin. What
    fell out stays out, so that each look is at the rest only, in ``workspace``, as long as the scores. Classes of
    weight 0 are not there.

    Returns
    -------
    highest, g, theta : in the precision of the scores; theta is 0, and so all slopes, if g <= 0
    """
    one, zero = scores.dtype.type(1), scores.dtype.type(0)
    lowest = scores.dtype.type(-np.inf)
    highest = lowest
    for j in range(scores.size):
        if weights[j] > zero:
            highest = max(highest, scores[j])
    gap = (highest - score_true + one) * inverse
    if not gap > zero:
        return highest, gap, zero
    theta = max(-one, -gap)
    for j in range(scores.size):
        workspace[j] = (scores[j] - highest) * inverse if weights[j] > zero else lowest
    left = workspace[: scores.size]
    while True:
        left, total = _keep_above(theta, left)
        count = scores.dtype.type(left.size)
        following = (total - one) / count if gap + theta >= one else (total - gap) / (count + one)
        if not following > theta:
            return highest, gap, theta
        theta = following


@njit(**OPTIONS)
def _keep_above(theta, values):
    """Move the values above ``theta`` to the front; return these and their sum."""
    total = values.dtype.type(0)
    count = 0
    for j in range(values.size):
        value = values[j]
        values[count] = value  # a slot that was read already; without a branch, which would be guessed wrong
        above = value > theta
        count += above
        total += value if above else values.dtype.type(0)
    return values[:count], total


# Halvings of an interval after which what is left of it is below the precision of float64.
_HALVINGS = 60


@njit(**OPTIONS)
def thresholds(scores, weights, n_true, inverse):
    """Solve the projection of several positive classes, the first ``n_true``, for the two numbers that it cuts off.

    With b_k = (s_k + 1) / mu of the others and c_k = -s_k / mu of the positives, the projection is x = [b - theta]_+
    and y = [c - eta]_+, where eta = -theta makes their sums equal; if that sum is above 1, both are cut to 1, each by
    itself. Classes of weight 0 are not there.

    Returns
    -------
    theta, eta : float64; infinite, and so all slopes 0, if no other class is within the margin of a positive
    """
    highest, lowest = -np.inf, np.inf
    for j in range(scores.size):
        if j < n_true:
            lowest = min(lowest, np.float64(scores[j]))
        elif weights[j] > 0:
            highest = max(highest, np.float64(scores[j]))
    most, least = (highest + 1.0) * inverse, lowest * inverse  # of b, and of -c
    if not most > least:
        return np.inf, np.inf
    low, high = least, most
    for _ in range(_HALVINGS):
        theta = 0.5 * (low + high)
        x, y = _sums_above(scores, weights, n_true, inverse, theta, -theta)
        low, high = (theta, high) if x > y else (low, theta)
    theta = 0.5 * (low + high)
    x, _ = _sums_above(scores, weights, n_true, inverse, theta, -theta)
    if x <= 1.0:
        return theta, -theta
    below_b, below_c = most - 1.0, -least - 1.0
    above_b, above_c = most, -least
    for _ in range(_HALVINGS):
        of_b, of_c = 0.5 * (below_b + above_b), 0.5 * (below_c + above_c)
        x, y = _sums_above(scores, weights, n_true, inverse, of_b, of_c)
        below_b, above_b = (of_b, above_b) if x > 1.0 else (below_b, of_b)
        below_c, above_c = (of_c, above_c) if y > 1.0 else (below_c, of_c)
    return 0.5 * (below_b + above_b), 0.5 * (below_c + above_c)


@njit(**OPTIONS)
def _sums_above(scores, weights, n_true, inverse, theta, eta):
    """Sum [b - theta]_+ over the other classes, and [c - eta]_+ over the positives."""
    x = y = 0.0
    for j in range(scores.size):
        if j < n_true:
            y += max(-scores[j] * inverse - eta, 0.0)
        elif weights[j] > 0:
            x += max((scores[j] + 1.0) * inverse - theta, 0.0)
    return x, y
