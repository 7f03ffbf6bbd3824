"""Stochastic gradient descent: w -= rate c x."""

from typing import NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.protocol import updated
from xsoftmax.optimizers import optimizer
from xsoftmax.optimizers._gradient import along_gradient


@optimizer(takes_l2=True)
class Sgd(NamedTuple):
    """Parameters: ``learning_rate``, in units of one sample's gradient."""

    learning_rate: float = 0.1


MEMBER = Sgd


implements(updated, Sgd)(along_gradient)
