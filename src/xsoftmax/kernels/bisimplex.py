"""The projection onto the bi-simplex, of one positive class: what gives a smoothed margin its slopes.

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
