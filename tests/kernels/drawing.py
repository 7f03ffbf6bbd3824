"""What the compiled loops draw, seen from Python."""

import numpy as np
from numba import njit

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.draws import empty_draws
from xsoftmax.kernels.protocol import draw, log_probability
from xsoftmax.kernels.random import start


@njit(**OPTIONS)
def draws_at(proposal, view, i, excluded, key, first, classes, log_q):
    """Fill ``classes`` and ``log_q``, (n_steps, n_sampled), with the draws for sample ``i`` from ``first`` on."""
    draws = empty_draws(classes.shape[1])
    for t in range(classes.shape[0]):
        draw(proposal, view, i, excluded, np.float32(-np.inf), start(key, first + t), draws)
        classes[t] = draws.classes
        log_q[t] = draws.log_q


@njit(**OPTIONS)
def log_probabilities_of(proposal, i, out, view=None):
    for k in range(out.size):
        out[k] = log_probability(proposal, view, i, k)


def drawn(proposal, i, excluded, key, first, n_steps, n_sampled, view=None):
    """Classes, int64, and their log_q, float32, of shape (n_steps, n_sampled)."""
    classes = np.empty((n_steps, n_sampled), np.int64)
    log_q = np.empty((n_steps, n_sampled), np.float32)
    draws_at(proposal, view, i, np.int64(excluded), np.uint64(key), first, classes, log_q)
    return classes, log_q
