"""Implicit (proximal) SGD: the gradient is taken where the step ends, so that no step is too long.

Fagan and Iyengar 2018, section 3.2; Toulis, Tran and Airoldi 2016. ``rate`` is the paper's eta times the number
of samples.
"""

from typing import NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.protocol import updated
from xsoftmax.optimizers import optimizer


@optimizer(needs="proximal", takes_l2=True, qualifier="as the rate falls to 0")
class Implicit(NamedTuple):
    """Parameters: ``learning_rate``."""

    learning_rate: float = 0.1


MEMBER = Implicit


@implements(updated, Implicit)
def _updated(optimizer, step, w, a, g):
    return w - g, a  # the coefficients have the rate in them
