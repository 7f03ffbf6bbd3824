"""Greedy message passing goes to the loss of the whole scores as Theorem 2 of Yen et al. 2018 says."""

import numpy as np
import pytest
from numba import njit

import naive_bounds
from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.messages import Margin, choose, empty_messages, pass_on, step_size

N_CLASSES, N_BLOCKS = 50, 4


@njit(**OPTIONS)
def ways_after(parts, rounds, eta, smoothing, least_slope):
    """How far each class, the true one last, has gone after each round, where all scores are known."""
    messages, found = empty_messages(parts.shape[1], parts.shape[0]), np.zeros((rounds, parts.shape[1]))
    messages.parts[:], messages.known[:] = parts, np.float32(1)
    messages.sums[:] = parts.sum(axis=0)
    for t in range(1, rounds + 1):
        if choose(Margin(smoothing), messages, least_slope):
            pass_on(messages, step_size(eta, t))
        found[t - 1] = messages.ways
    return found


def parts_of(seed):
    return np.random.default_rng(seed).standard_normal((N_BLOCKS, N_CLASSES)).astype(np.float32)


def objective(parts, ways, smoothing):
    """G of the messages, and the gradient that the algorithm ends with, by sorting; the true class is the last."""
    z = parts.astype(float)
    moved = N_BLOCKS * (z + ways * (z.sum(axis=0) / N_BLOCKS - z))
    found = [naive_bounds.max_margin(s, N_CLASSES - 1, smoothing) for s in moved]
    return np.mean([value for value, _ in found]), np.mean([slopes for _, slopes in found], axis=0)


@pytest.mark.parametrize("smoothing", [0.5, 2.0])
@pytest.mark.parametrize("least_slope", [1e-6, 0.05])
def test_the_gap_is_within_the_bound_of_theorem_2(smoothing, least_slope):
    """G(t) - G* <= 2 B |L*|^2 / (mu (t + 2)) + 2 tau ln(t) |L*|_1, and with a low tau it all but closes."""
    for seed in range(5):
        parts = parts_of(seed)
        best = parts.astype(float).sum(axis=0) / N_BLOCKS - parts
        value = naive_bounds.max_margin(parts.astype(float).sum(axis=0), N_CLASSES - 1, smoothing)[0]
        ways = ways_after(parts, 60, 0.0, smoothing, least_slope)
        gaps = [objective(parts, of, smoothing)[0] - value for of in ways]
        for t, gap in enumerate(gaps, 1):
            bound = (
                2 * N_BLOCKS * np.sum(best**2) / (smoothing * (t + 2))
                + 2 * least_slope * np.log(t) * np.abs(best).sum()
            )
            assert -1e-5 <= gap <= bound
        start = objective(parts, 0.0, smoothing)[0] - value
        assert gaps[-1] <= start / 2
        assert least_slope > 1e-3 or gaps[-1] <= 1e-3 * start


def test_a_class_in_every_round_has_gone_as_far_as_the_closed_form_says():
    ways = ways_after(parts_of(3), 30, 0.0, 2.0, 1e-6)
    t = np.arange(1, 31)
    assert np.allclose(ways[:, -1], 1 - 2 / ((t + 1) * (t + 2)), atol=1e-6)


def test_with_eta_of_1_the_gradient_is_exact_once_nothing_is_new():
    for seed in range(20):
        parts = parts_of(seed)
        ways = ways_after(parts, 30, 1.0, 1.0, 0.0)[-1]
        exact = naive_bounds.max_margin(parts.astype(float).sum(axis=0), N_CLASSES - 1, 1.0)[1]
        assert set(ways) <= {0.0, 1.0}
        assert np.allclose(objective(parts, ways, 1.0)[1], exact, atol=1e-5)


def test_no_class_moves_where_the_margin_is_met():
    parts = parts_of(1)
    parts[:, -1] = 10
    assert not ways_after(parts, 3, 0.0, 1.0, 0.0).any()
