import numpy as np
import pytest
from numba import njit
from scipy.stats import chi2

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.random import below, low_bits, next_u64, start, stream, uniform

N = 200_000
# Chance of a false alarm, per test; the seeds are fixed, so that it is met once or never.
ALARM = 1e-6


@njit(**OPTIONS)
def first_bits(key, n):
    """The first 64 bits of n neighbouring positions."""
    out = np.empty(n, np.uint64)
    for position in range(n):
        out[position] = next_u64(start(key, position))[1]
    return out


@njit(**OPTIONS)
def bits_of_one_step(state, n):
    out = np.empty(n, np.uint64)
    for j in range(n):
        state, out[j] = next_u64(state)
    return out


@njit(**OPTIONS)
def all_below(bits, n):
    out = np.empty(bits.size, np.int64)
    for i in range(bits.size):
        out[i] = below(bits[i], n)
    return out


@njit(**OPTIONS)
def all_uniform(bits):
    out = np.empty(bits.size, np.float32)
    for i in range(bits.size):
        out[i] = uniform(bits[i])
    return out


def key(seed=0, epoch=0):
    return np.uint64(stream(seed, epoch))


def assert_uniform(cells, n_cells):
    counts = np.bincount(cells, minlength=n_cells)
    expected = cells.size / n_cells
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(ALARM, n_cells - 1)


@pytest.fixture(scope="module")
def neighbours():
    return first_bits(key(), N)


@pytest.mark.parametrize("n", [2, 3, 7, 100, 1918])
def test_below_is_uniform_over_positions(neighbours, n):
    found = all_below(neighbours, n)
    assert found.min() >= 0
    assert_uniform(found, n)


def test_below_reaches_both_ends_of_a_large_range():
    n = 2**32 - 1
    extremes = np.array([0, 2**64 - 1], np.uint64)
    assert all_below(extremes, n).tolist() == [0, n - 1]


@pytest.mark.parametrize("bit", range(0, 64, 7))
def test_every_bit_is_fair(neighbours, bit):
    ones = int(((neighbours >> np.uint64(bit)) & np.uint64(1)).sum())
    assert abs(ones - N / 2) < 5 * np.sqrt(N) / 2


@pytest.mark.parametrize("distance", [1, 2, 64])
def test_neighbouring_positions_are_independent(neighbours, distance):
    cells = all_below(neighbours, 16)
    assert_uniform(cells[:-distance] * 16 + cells[distance:], 256)


def test_draws_of_one_step_are_independent():
    bits = bits_of_one_step(np.uint64(start(key(), 12)), N)
    cells = all_below(bits, 16)
    assert_uniform(cells[:-1] * 16 + cells[1:], 256)


def test_first_and_second_draw_of_a_step_are_independent():
    pairs = np.array([bits_of_one_step(np.uint64(start(key(), position)), 2) for position in range(20_000)])
    assert_uniform(all_below(pairs[:, 0], 16) * 16 + all_below(pairs[:, 1], 16), 256)


@pytest.mark.parametrize("other", [(1, 0), (0, 1), (2**32, 0), (0, 2**32)])
def test_seeds_and_epochs_give_unrelated_numbers(neighbours, other):
    cells = all_below(neighbours, 16) * 16 + all_below(first_bits(key(*other), N), 16)
    assert_uniform(cells, 256)


def test_seed_and_epoch_do_not_trade_places():
    keys = {int(key(seed, epoch)) for seed in range(100) for epoch in range(100)}
    assert len(keys) == 10_000


def test_lower_half_is_independent_of_what_below_used(neighbours):
    coarse = (neighbours & np.uint64(0xFFFFFFFF)) >> np.uint64(28)
    assert_uniform(all_below(neighbours, 16) * 16 + coarse.astype(np.int64), 256)
    assert int(low_bits(np.uint64(0xABCDEF0123456789))) == 0x23456789


def test_uniform_lies_in_its_interval(neighbours):
    found = all_uniform(neighbours)
    assert found.min() >= 0
    assert found.max() < 1
    assert all_uniform(np.array([2**64 - 1], np.uint64))[0] < 1
    assert_uniform((found * 64).astype(np.int64), 64)


def test_same_key_same_numbers():
    assert np.array_equal(first_bits(key(3, 5), 100), first_bits(key(3, 5), 100))
