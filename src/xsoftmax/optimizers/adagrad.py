"""Adagrad: a += g^2; w -= rate g / sqrt(a), for every touched entry; no epsilon, a starts above 0.

Duchi, Hazan and Singer 2011. Weights and accumulators lie side by side, so that a touched row is one stretch of
memory (dense rows) or a touched entry one cache line (sparse rows).
"""

from typing import NamedTuple

import numpy as np

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.layout import Interleaved
from xsoftmax.kernels.rows import adagrad, weights_beside
from xsoftmax.kernels.steps import coefficients, gradient, move, move_block, row
from xsoftmax.optimizers import optimizer


@optimizer(layout=Interleaved, takes_blocks=True)
class Adagrad(NamedTuple):
    """Parameters: ``learning_rate``; ``initial_accumulator``, the a before the first step."""

    learning_rate: float = 0.3
    initial_accumulator: float = 1e-8

    def problem(self) -> str:
        """Say what is wrong with the parameters, or nothing."""
        return "" if self.initial_accumulator > 0 else "initial_accumulator is 0; set it above 0, such as 1e-8"


MEMBER = Adagrad


@implements(coefficients, Adagrad)
def _coefficients(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
    return gradient(objective, rate, state, score_true, log_q_true, draws)


@implements(row, Adagrad)
def _row(optimizer, features, W, k):
    return weights_beside(features, W, k)


@implements(move, Adagrad)
def _move(optimizer, features, i, rate, coefficient, W, k):
    adagrad(features, i, rate, coefficient, W, k)


@implements(move_block, Adagrad)
def _move_block(optimizer, rate, gradient, w, accumulator):
    for k in range(w.size):
        accumulator[k] += gradient[k] * gradient[k]
        w[k] -= rate * gradient[k] / np.sqrt(accumulator[k])
