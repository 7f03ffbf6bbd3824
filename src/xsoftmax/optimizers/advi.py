"""The step size of automatic differentiation variational inference, as augment and reduce takes it.

Kucukelbir, Tran, Ranganath, Gelman and Blei, JMLR 2017, in the form of Ruiz et al. 2018, section 4:

    s = 0.1 g^2 + 0.9 s  (in the first step s = g^2),     w -= rate t^(-1/2) g / (1 + sqrt(s)),    t = 1, 2, ...

for every entry. In a step that does not touch an entry its g is 0, so that w stays and s falls to 0.9 s: each entry
keeps the number of the step that touched it last, and what it missed is made up for when it is touched again. This
is the rule over all entries, for the price of those touched.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.dispatch import implements
from xsoftmax.kernels.layout import Stamped
from xsoftmax.kernels.mathematics import exp32
from xsoftmax.kernels.rows import Csr, Dense, dot
from xsoftmax.kernels.steps import coefficients, gradient, move, score_class
from xsoftmax.optimizers import optimizer
from xsoftmax.training_set import TrainingSet

_NEW = np.float32(0.1)
_LOG_KEPT = np.float32(math.log(0.9))
_ONE = np.float32(1)


@optimizer(layout=Stamped)
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


@implements(coefficients, Advi)
def _coefficients(optimizer, objective, features, i, rate, state, score_true, log_q_true, draws):
    return gradient(objective, rate, state, score_true, log_q_true, draws)


@implements(score_class, Advi)
def _score_class(optimizer, features, i, W, k):
    return score_stamped(features, i, W, k)


@implements(move, Advi)
def _move(optimizer, features, i, step, coefficient, W, k):
    rate = np.float32(step.rate / math.sqrt(step.number + 1.0))
    precision = np.float32(1.0 / optimizer.prior_variance if optimizer.prior_variance > 0 else 0.0)
    scaled = np.float32(optimizer.gradient_scale * coefficient)
    advi(features, i, step.number, rate, precision, scaled, W, k)


@njit(**OPTIONS)
def _moved(w, s, kept, new, rate, g):
    """One entry and its s after a step, of which ``kept`` and ``new`` are the shares of the old s and of g^2."""
    s = kept * s + new * g * g
    return w - rate * g / (_ONE + np.sqrt(s)), s


@njit(**OPTIONS)
def _kept(number, stamp):
    """0.9 to the power of the steps since the last touch, this one counted."""
    return exp32(np.float32(number - stamp) * _LOG_KEPT)


def score_stamped(features, i, W, k):
    """Score of class ``k`` (``Stamped``); dense rows have the stamp after the weights."""
    raise TypeError("compiled code only")


def advi(features, i, number, rate, precision, scaled, W, k):
    """Take the step of class ``k`` along sample ``i``: g = scaled x + precision w, step ``number`` from 0."""
    raise TypeError("compiled code only")


@implements(score_stamped, Dense)
def _score_stamped_dense(features, i, W, k):
    return dot(features, i, W[k, 0])


@implements(score_stamped, Csr)
def _score_stamped_csr(features, i, W, k):
    return dot(features, i, W[k, :, 0])


@implements(advi, Dense)
def _advi_dense(features, i, number, rate, precision, scaled, W, k):
    x = features.X[i]
    w = W[k, 0]
    s = W[k, 1]
    stamps = W.view(np.int32)
    kept = _kept(number, stamps[k, 0, x.size + 1])
    new = _ONE if number == 0 else _NEW
    for d in range(x.size):
        by_prior = precision * w[d] if x[d] != 0 else np.float32(0)
        w[d], s[d] = _moved(w[d], s[d], kept, new, rate, scaled * x[d] + by_prior)
    d = x.size
    w[d], s[d] = _moved(w[d], s[d], kept, new, rate, scaled * features.constant + precision * w[d])
    stamps[k, 0, d + 1] = number


@implements(advi, Csr)
def _advi_csr(features, i, number, rate, precision, scaled, W, k):
    entries = W[k]
    stamps = W.view(np.int32)[k]
    new = _ONE if number == 0 else _NEW
    for j in range(features.indptr[i], features.indptr[i + 1]):
        d = features.indices[j]
        w, s = entries[d, 0], entries[d, 1]
        kept = _kept(number, stamps[d, 2])
        entries[d, 0], entries[d, 1] = _moved(w, s, kept, new, rate, scaled * features.data[j] + precision * w)
        stamps[d, 2] = number
    d = features.n_features
    w, s = entries[d, 0], entries[d, 1]
    kept = _kept(number, stamps[d, 2])
    entries[d, 0], entries[d, 1] = _moved(w, s, kept, new, rate, scaled * features.constant + precision * w)
    stamps[d, 2] = number
