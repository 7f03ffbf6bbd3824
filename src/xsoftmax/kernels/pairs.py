"""The classes of a step two at a time.

A row of the weights comes from memory as fast as one stream of it can; two at once come in little more time than one.
"""

import numpy as np
from numba import njit

from xsoftmax.kernels import PART
from xsoftmax.kernels.dispatch import otherwise
from xsoftmax.kernels.draws import NEGLIGIBLE
from xsoftmax.kernels.ridge import shrink
from xsoftmax.kernels.steps import move, move_two, score_class, score_two


@otherwise(score_two, unless="takes_two")
def _score_one_after_the_other(optimizer, features, i, W, k, other):
    return score_class(optimizer, features, i, W, k), score_class(optimizer, features, i, W, other)


@otherwise(move_two, unless="takes_two")
def _move_one_after_the_other(optimizer, features, i, step, coefficient, W, k, other_coefficient, other):
    move(optimizer, features, i, step, coefficient, W, k)
    move(optimizer, features, i, step, other_coefficient, W, other)


@njit(**PART)
def score_step(optimizer, features, i, W, y, draws):
    """Fill ``draws.scores``; return the score of the true class."""
    n = draws.classes.size
    score_true, draws.scores[0] = score_two(optimizer, features, i, W, y, draws.classes[0])
    for j in range(1, n - 1, 2):
        draws.scores[j], draws.scores[j + 1] = score_two(
            optimizer, features, i, W, draws.classes[j], draws.classes[j + 1]
        )
    if n % 2 == 0:
        draws.scores[n - 1] = score_class(optimizer, features, i, W, draws.classes[n - 1])
    return score_true


@njit(**PART)
def move_step(optimizer, features, i, step, of_true, W, y, draws):
    """Move the true class and the drawn ones, whose repeats are gathered; a ridge comes first."""
    waiting, coefficient, waits = y, of_true, True
    shrink(optimizer, features, step, W, y, np.float32(1))
    for j in range(draws.classes.size):
        k = draws.classes[j]
        if draws.weights[j] != np.float32(0):
            shrink(optimizer, features, step, W, k, draws.weights[j])
        if abs(draws.out[j]) > NEGLIGIBLE:
            if waits:
                move_two(optimizer, features, i, step, coefficient, W, waiting, draws.out[j], k)
            else:
                waiting, coefficient = k, draws.out[j]
            waits = not waits
    if waits:
        move(optimizer, features, i, step, coefficient, W, waiting)
