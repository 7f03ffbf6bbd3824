import numpy as np
import pytest
from numba import njit
from scipy.special import logsumexp

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.protocol import Draws
from xsoftmax.kernels.running_sum import log_inner_sum, log_mix, slopes_from


@njit(**OPTIONS)
def slopes_of(log_inner, score_true, draws):
    return slopes_from(log_inner, score_true, draws)


def draws_of(weights, scores, dtype=np.float64):
    weights, scores = np.array(weights, dtype), np.array(scores, dtype)
    return Draws(
        np.arange(len(scores)), scores, weights, scores, np.empty(len(scores), dtype), np.zeros(1, np.uint64)
    )


@pytest.mark.parametrize("gap", [0.0, 3.0, -700.0, 1e4, -1e4])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 2e-7)])
def test_inner_sum_is_scipys(gap, dtype, tolerance):
    scores, weights = np.array([0.5, -2.0, 1.25]) + gap, [3.0, 1e6, 0.25]
    expected = logsumexp(np.append(scores, 0.5) - 0.5, b=[*weights, 1.0])
    assert log_inner_sum(dtype(0.5), draws_of(weights, scores, dtype)) == pytest.approx(expected, rel=tolerance)


def test_a_draw_of_no_weight_counts_nothing_however_high_its_score():
    assert log_inner_sum(0.0, draws_of([0.0, 2.0], [1e4, 0.0])) == pytest.approx(np.log(3), rel=1e-13)
    assert log_inner_sum(0.0, draws_of([0.0], [1e4])) == 0.0


@pytest.mark.parametrize(("a", "b"), [(1.0, 2.5), (-1e4, 3.0), (3.0, -1e4), (1e4, 1e4)])
@pytest.mark.parametrize("share", [1e-12, 0.3, 1.0 - 1e-12])
def test_mix_is_scipys(a, b, share):
    assert log_mix(a, b, share) == pytest.approx(logsumexp([a, b], b=[1 - share, share]), rel=1e-13)


def test_mixes_with_nothing():
    nothing = -np.inf
    assert log_mix(2.0, 5.0, 0.0) == 2.0
    assert log_mix(2.0, 5.0, 1.0) == 5.0
    assert log_mix(nothing, 2.0, 0.5) == pytest.approx(2.0 - np.log(2), rel=1e-15)
    assert log_mix(nothing, nothing, 0.5) == nothing


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 1e-5)])
def test_slopes_are_shares_of_the_inner_sum(dtype, tolerance):
    weights, scores, log_inner = np.array([3.0, 0.0, 0.5]), np.array([0.5, 2.0, -1.0]), 1.75
    draws = draws_of(weights, scores, dtype)
    of_true = slopes_of(log_inner, dtype(0.25), draws)
    expected = weights * np.exp(scores - 0.25 - log_inner)
    assert np.allclose(draws.out, expected, rtol=tolerance, atol=0)
    assert of_true == pytest.approx(-expected.sum(), rel=tolerance)


def test_slopes_at_the_inner_sum_are_probabilities_at_any_gap():
    draws = draws_of([1.0, 1.0], [1e4, 0.0], np.float32)
    of_true = slopes_of(log_inner_sum(np.float32(0), draws), np.float32(0), draws)
    assert np.allclose(draws.out, [1, 0], atol=1e-3)
    assert of_true == pytest.approx(-1, abs=1e-3)
