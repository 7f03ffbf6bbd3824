"""The sampled loops, with their arguments one by one."""

from xsoftmax.kernels.own_negatives import Own
from xsoftmax.kernels.protocol import Parts, Samples
from xsoftmax.kernels.run_steps import run_steps as driver
from xsoftmax.kernels.run_steps import single
from xsoftmax.kernels.shared_negatives import Shared


def run_steps(objective, kernel, optimizer, features, labels, auxiliary, *where, log_q=None, batch=None):
    """Take steps; ``where`` is weights, order, clock, rate, and how many classes are drawn for a step."""
    weights, order, clock, rate, n_sampled = where
    parts, samples = Parts(objective, kernel, optimizer, n_sampled), Samples(features, labels, auxiliary, log_q)
    return driver(single(kernel) if batch is None else batch, parts, samples, weights, order, clock, rate)


def run_batches(*arguments):
    """Take steps of minibatches with draws of their own; their size comes last."""
    *rest, size = arguments
    return run_steps(*rest, batch=Own(size))


def run_shared(*arguments):
    """Take steps of minibatches that share their draws; their size comes last."""
    *rest, size = arguments
    return run_steps(*rest, batch=Shared(size))
