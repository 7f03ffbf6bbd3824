"""Stochastic gradient descent: w -= rate c x."""

from typing import NamedTuple

from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.steps import updated
from xsoftmax.optimizers import optimizer


@optimizer(takes_ridge=True)
class Sgd(NamedTuple):
    """Parameters: ``learning_rate``, in units of one sample's gradient."""

    learning_rate: float = 0.1


MEMBER = Sgd


@implements(updated, Sgd)
def along_gradient(optimizer, step, w, a, g):
    """Move a weight against its gradient."""
    return w - step.rate * g, a
