"""What all proposals and loops do with the classes of one step: room for them, weights, repeats."""

import numpy as np

from xsoftmax.internal.compiled import njit
from xsoftmax.kernels import LEAN, OPTIONS, PART
from xsoftmax.kernels.dispatch import otherwise
from xsoftmax.kernels.mathematics import exp
from xsoftmax.kernels.random import start
from xsoftmax.kernels.steps import Draws, DrawsAhead, draw, draw_ahead, excludes_true

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


def empty_draws_ahead(n_steps: int, n_draws: int) -> DrawsAhead:
    """Room for the draws of several steps."""
    shape = (n_steps, n_draws)
    return DrawsAhead(
        np.empty(shape, np.int64),
        np.empty(shape, np.float32),
        np.empty(shape, np.float32),
        np.empty(n_steps, np.int64),
        np.empty(n_steps, np.uint64),
        empty_draws(n_draws),
    )


@njit(**LEAN)
def draw_steps(objective, proposal, labels, samples, clock, first, ahead):
    """Draw for the steps ``first``... of a call, one sample each."""
    for b in range(samples.size):
        ahead.excluded[b] = labels[samples[b]] if excludes_true(objective) else -1
        ahead.states[b] = start(clock.key, clock.position + first + b)
    draw_ahead(proposal, samples, ahead)


@otherwise(draw_ahead, unless="draws_ahead")
def _draw_one_by_one(proposal, samples, ahead):
    for b in range(samples.size):
        draw(proposal, samples[b], ahead.excluded[b], ahead.states[b], ahead.step)
        for j in range(ahead.step.classes.size):
            ahead.classes[b, j] = ahead.step.classes[j]
            ahead.log_q[b, j] = ahead.step.log_q[j]
            ahead.weights[b, j] = ahead.step.weights[j]


@njit(**PART)
def take_step(ahead, b):
    """Copy the draws of step ``b`` into ``ahead.step``."""
    for j in range(ahead.step.classes.size):
        ahead.step.classes[j] = ahead.classes[b, j]
        ahead.step.log_q[j] = ahead.log_q[b, j]
        ahead.step.weights[j] = ahead.weights[b, j]


@njit(inline="always", **LEAN)
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


@njit(**LEAN)
def weigh_by_probability(draws):
    """Weights of independent draws from one distribution: 1 / (n q)."""
    share = np.float32(1) / np.float32(draws.classes.size)
    for j in range(draws.classes.size):
        draws.weights[j] = share * exp(-draws.log_q[j])


@njit(**PART)
def weigh_for(objective, y, draws):
    """Turn weights for a sum over all classes into those of the objective: over the others, or of a mean."""
    share = np.float32(1) / np.float32(draws.classes.size)
    for j in range(draws.classes.size):
        if not excludes_true(objective):
            draws.weights[j] = share
        elif draws.classes[j] == y:
            draws.weights[j] = np.float32(0)


@njit(**PART)
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
