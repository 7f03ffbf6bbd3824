"""Weights in the layout of an optimizer, and what lies beside them."""

import numpy as np

from xsoftmax.kernels.layout import Decayed, Rows, StampedRows, allocate


def laid_out(optimizer, W, dense=True):
    """Lay out weights, (n_classes, width), as an optimizer keeps them for dense or sparse samples."""
    weights = allocate(optimizer, *W.shape, dense)
    weights.weights()[:] = W
    return weights


def decayed(weights, decay, inverse_inclusion=()):
    """Make weights decay, without factors so far."""
    n_classes = len(weights.weights())
    table = np.asarray(inverse_inclusion, np.float32)
    return Decayed(weights, np.ones(n_classes, np.float32), np.float32(decay), table)


def accumulators(weights):
    """What is accumulated beside the weights, (n_classes, width); None if nothing is."""
    if isinstance(weights, Rows):
        return weights.W[:, 1]
    if isinstance(weights, StampedRows):
        return weights.W[:, 1, :-1]
    return weights.W[:, :, 1] if weights.W.ndim == 3 else None
