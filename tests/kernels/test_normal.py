import numpy as np
import pytest
from numba import njit
from scipy.special import erfcx, log_ndtr

from xsoftmax.kernels import OPTIONS, normal


@njit(**OPTIONS)
def map_log_ndtr(x, out):
    for i in range(x.size):
        out[i] = normal.log_ndtr(x[i])


@njit(**OPTIONS)
def map_hazard(x, out):
    for i in range(x.size):
        out[i] = normal.hazard(x[i])


def mapped(kernel, x):
    x = np.asarray(x, float)
    out = np.empty_like(x)
    kernel(x, out)
    return out


@pytest.mark.parametrize(
    ("low", "high", "tolerance"),
    [(-1e150, -1e4, 1e-12), (-1e4, -20, 1e-12), (-20, 0, 1e-12), (0, 5, 1e-12), (5, 7, 1e-12), (7, 8.5, 1e-11)],
)
def test_log_ndtr_is_scipys(low, high, tolerance):
    x = np.linspace(low, high, 100_001)[:-1]
    assert np.allclose(mapped(map_log_ndtr, x), log_ndtr(x), rtol=tolerance, atol=0)


def test_log_ndtr_at_its_seams_and_ends():
    seams = np.array([-20.0, 8.5, 0.0, 1.0])
    x = np.concatenate([seams, np.nextafter(seams, -np.inf), np.nextafter(seams, np.inf)])
    assert np.allclose(mapped(map_log_ndtr, x), log_ndtr(x), rtol=1e-11, atol=1e-16)
    assert mapped(map_log_ndtr, [8.5, 40.0, 1e300, np.inf]).tolist() == [0, 0, 0, 0]
    assert mapped(map_log_ndtr, [-np.inf]) == -np.inf
    assert np.isnan(mapped(map_log_ndtr, [np.nan]))


def test_the_hazard_is_the_scaled_complementary_error_functions():
    """phi / Phi = sqrt(2 / pi) / erfcx(-x / sqrt 2), which overflows on the right alone."""
    x = np.concatenate([np.linspace(-1e6, -100, 1001), np.linspace(-100, 30, 100_001)])
    with np.errstate(over="ignore", divide="ignore"):
        expected = np.sqrt(2 / np.pi) / erfcx(-x / np.sqrt(2))
    assert np.allclose(mapped(map_hazard, x), expected, rtol=1e-12, atol=1e-190)
    assert mapped(map_hazard, [1e200, np.inf]).tolist() == [0, 0]
    assert mapped(map_hazard, [-1e200]) == 1e200


def test_the_hazard_is_the_slope_of_log_ndtr():
    x, step = np.linspace(-30, 8, 2001), 1e-5
    slopes = (mapped(map_log_ndtr, x + step) - mapped(map_log_ndtr, x - step)) / (2 * step)
    assert np.allclose(mapped(map_hazard, x), slopes, rtol=1e-6, atol=1e-9)
