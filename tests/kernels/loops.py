"""The sampled loops, with their arguments one by one."""

from xsoftmax.kernels.batch import Own
from xsoftmax.kernels.shared_batch import Shared
from xsoftmax.kernels.steps import Parts, Samples
from xsoftmax.kernels.sweep import single
from xsoftmax.kernels.sweep import sweep as driver


def sweep(objective, kernel, optimizer, features, labels, states, *where, log_q=None, batch=None):
    """Take steps; ``where`` is weights, order, clock, rate, and how many classes are drawn for a step."""
    weights, order, clock, rate, n_sampled = where
    parts, samples = Parts(objective, kernel, optimizer, n_sampled), Samples(features, labels, states, log_q)
    return driver(single(kernel) if batch is None else batch, parts, samples, weights, order, clock, rate)


def sweep_batches(*arguments):
    """Take steps of minibatches with draws of their own; their size comes last."""
    *rest, size = arguments
    return sweep(*rest, batch=Own(size))


def sweep_shared(*arguments):
    """Take steps of minibatches that share their draws; their size comes last."""
    *rest, size = arguments
    return sweep(*rest, batch=Shared(size))
