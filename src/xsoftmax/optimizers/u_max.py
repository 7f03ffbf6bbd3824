"""U-max: SGD on a double sum, with u lifted first where it is too low for a bounded gradient.

Fagan and Iyengar 2018, Algorithm 1. ``rate`` is the paper's eta times the number of samples. A step that lifts u
follows the draws twice, so that its mean is not the gradient; where u is within ``threshold`` of its best, none does.
The projections of u and W onto balls are left out: without an L2 penalty these are infinite, and with one they bind
only where the objective is worse than at W = 0.
"""

from typing import NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.protocol import updated
from xsoftmax.optimizers import optimizer
from xsoftmax.optimizers._gradient import along_gradient


@optimizer(needs="raise_bound", takes_l2=True, qualifier="where u is within threshold of its best")
class UMax(NamedTuple):
    """Parameters: ``learning_rate``; ``threshold``, the paper's delta."""

    learning_rate: float = 0.1
    threshold: float = 1.0


MEMBER = UMax


implements(updated, UMax)(along_gradient)
