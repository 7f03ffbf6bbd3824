"""What all proposals and loops do with the classes of one step: room for them, weights, repeats."""

import numpy as np
from numba import njit

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.mathematics import exp
from xsoftmax.kernels.steps import Draws, excludes_true

# Smaller coefficients move no weight, but products with them are denormal numbers, a hundred times slower.
NEGLIGIBLE = np.float32(1e-30)


@njit(**OPTIONS)
def empty_draws(n_draws):
    """Room for the draws of one step."""
    return Draws(
        np.empty(n_draws, np.int64),
        np.empty(n_draws, np.float32),
        np.empty(n_draws, np.float32),
        np.empty(n_draws, np.float32),
        np.empty(n_draws, np.float32),
        np.zeros(1, np.uint64),
    )


@njit(**OPTIONS)
def part_of(draws, first, stop):
    """View of the draws ``first`` to ``stop``, for a proposal that is made of others."""
    return Draws(
        draws.classes[first:stop],
        draws.log_q[first:stop],
        draws.weights[first:stop],
        draws.scores[first:stop],
        draws.out[first:stop],
        draws.rng,
    )


@njit(**OPTIONS)
def weigh_by_probability(draws):
    """Weights of independent draws from one distribution: 1 / (n q)."""
    share = np.float32(1) / np.float32(draws.classes.size)
    for j in range(draws.classes.size):
        draws.weights[j] = share * exp(-draws.log_q[j])


@njit(**OPTIONS)
def weigh_for(objective, y, draws):
    """Turn weights for a sum over all classes into those of the objective: over the others, or of a mean."""
    share = np.float32(1) / np.float32(draws.classes.size)
    for j in range(draws.classes.size):
        if not excludes_true(objective):
            draws.weights[j] = share
        elif draws.classes[j] == y:
            draws.weights[j] = np.float32(0)


@njit(**OPTIONS)
def gather_repeats(y, draws):
    """Add coefficients and weights of repeated classes into their first; return the coefficients of the true one."""
    of_true = np.float32(0)
    for j in range(draws.classes.size):
        if draws.classes[j] == y:
            of_true += draws.out[j]
            draws.out[j] = np.float32(0)
            draws.weights[j] = np.float32(0)
            continue
        for earlier in range(j):
            if draws.classes[earlier] == draws.classes[j]:
                draws.out[earlier] += draws.out[j]
                draws.weights[earlier] += draws.weights[j]
                draws.out[j] = np.float32(0)
                draws.weights[j] = np.float32(0)
                break
    return of_true
