"""The step size of automatic differentiation variational inference, as augment and reduce takes it.

Kucukelbir, Tran, Ranganath, Gelman and Blei, JMLR 2017, in the form of Ruiz et al. 2018, section 4:

    s = 0.1 g^2 + 0.9 s  (in the first step s = g^2),     w -= rate t^(-1/2) g / (1 + sqrt(s)),    t = 1, 2, ...

for every entry. In a step that does not touch an entry its g is 0, so that w stays and s falls to 0.9 s: what it
missed is made up for when it is touched again. This is the rule over all entries, for the price of those touched.
"""

import math
from typing import NamedTuple

import numpy as np

from xsoftmax.data.training_set import TrainingSet
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.protocol import updated
from xsoftmax.optimizers import optimizer

_NEW = np.float32(0.1)
_KEPT = np.float32(0.9)
_ONE = np.float32(1)


@optimizer(accumulates=True, fade=0.9)
class Advi(NamedTuple):
    """Parameters of the rule; only their product with the data's size makes steps comparable.

    ``learning_rate``: rho_0, 0.02 in the paper. ``gradient_scale``: g is this times the gradient of one sample, or
    the mean gradient of a minibatch; 0, the default, stands for the number of training rows, as the paper's g
    estimates the gradient of the sum over all of them: the 1 beside sqrt(s) means little gradients elsewhere.
    ``prior_variance``: of a normal prior on weights and biases alike; g of every touched entry gains
    w / prior_variance, and that of the others does not, as in the authors' program. 0: no prior.
    """

    learning_rate: float = 0.02
    gradient_scale: float = 0.0
    prior_variance: float = 0.0

    def fit(self, data: TrainingSet) -> "Advi":
        """Put in the number of training rows."""
        return self if self.gradient_scale else self._replace(gradient_scale=float(len(data.y)))


MEMBER = Advi


@implements(updated, Advi)
def _updated(optimizer, step, w, a, g):
    rate = np.float32(step.rate / math.sqrt(step.number + 1.0))
    precision = np.float32(1.0 / optimizer.prior_variance if optimizer.prior_variance > 0 else 0.0)
    by_prior = precision * w if g != np.float32(0) else np.float32(0)
    g = np.float32(optimizer.gradient_scale) * g + by_prior
    a = _KEPT * a + (_ONE if step.number == 0 else _NEW) * g * g
    return w - rate * g / (_ONE + np.sqrt(a)), a
