"""Adagrad: a += g^2; w -= rate g / sqrt(a), for every touched entry; no epsilon, a starts above 0.

Duchi, Hazan and Singer 2011.
"""

from typing import NamedTuple

import numpy as np

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.protocol import updated
from xsoftmax.optimizers import optimizer


@optimizer(accumulates=True)
class Adagrad(NamedTuple):
    """Parameters: ``learning_rate``; ``initial_accumulator``, the a before the first step."""

    learning_rate: float = 0.3
    initial_accumulator: float = 1e-8

    def problem(self) -> str:
        """Say what is wrong with the parameters, or nothing."""
        return "" if self.initial_accumulator > 0 else "initial_accumulator is 0; set it above 0, such as 0.01"


MEMBER = Adagrad


@implements(updated, Adagrad)
def _updated(optimizer, step, w, a, g):
    a += g * g
    return w - step.rate * g / np.sqrt(a), a
