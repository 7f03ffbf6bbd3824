import numpy as np
import pytest
from numba import njit
from scipy.special import wrightomega

from xsoftmax.kernels import OPTIONS
from xsoftmax.kernels.mathematics import exp, exp32, log_add_exp, sigmoid, softplus, wright_omega


@njit(**OPTIONS)
def map_exp32(x, out):
    for i in range(x.size):
        out[i] = exp32(x[i])


@njit(**OPTIONS)
def map_exp(x, out):
    for i in range(x.size):
        out[i] = exp(x[i])


@njit(**OPTIONS)
def map_sigmoid(x, out):
    for i in range(x.size):
        out[i] = sigmoid(x[i])


@njit(**OPTIONS)
def map_softplus(x, out):
    for i in range(x.size):
        out[i] = softplus(x[i])


@njit(**OPTIONS)
def map_wright_omega(x, out):
    for i in range(x.size):
        out[i] = wright_omega(x[i])


def mapped(kernel, x, dtype=None):
    out = np.empty(x.size, dtype or x.dtype)
    kernel(x, out)
    return out


def everywhere(low, high, n=200_001):
    return np.linspace(low, high, n)


def test_exp32_is_within_two_units_in_the_last_place():
    x = everywhere(-87, 88).astype(np.float32)
    true = np.exp(x.astype(np.float64))
    error = np.abs(mapped(map_exp32, x) - true) / np.spacing(true.astype(np.float32))
    assert error.max() <= 2.0


@pytest.mark.parametrize(("x", "limit"), [(-1e30, np.exp(-87.0)), (-np.inf, np.exp(-87.0)), (1e30, np.exp(88.0))])
def test_exp32_saturates(x, limit):
    assert mapped(map_exp32, np.array([x], np.float32))[0] == pytest.approx(limit, rel=1e-6)


def test_exp32_of_zero_is_one():
    assert mapped(map_exp32, np.zeros(40, np.float32)).tolist() == [1.0] * 40


def test_exp_keeps_the_precision_of_its_argument():
    x = everywhere(-600, 600)
    assert np.allclose(mapped(map_exp, x), np.exp(x), rtol=1e-14, atol=0)
    short = x[np.abs(x) < 80].astype(np.float32)
    assert np.allclose(mapped(map_exp, short), np.exp(short.astype(float)), rtol=3e-7, atol=0)


def test_sigmoid_in_float64():
    x = everywhere(-700, 700)
    assert np.allclose(mapped(map_sigmoid, x), 1 / (1 + np.exp(-x)), rtol=1e-14, atol=0)


def test_sigmoid_in_float32():
    x = everywhere(-80, 1e4).astype(np.float32)
    true = np.exp(-np.logaddexp(0, -x.astype(float)))
    assert np.allclose(mapped(map_sigmoid, x), true, rtol=4e-7, atol=0)
    lowest = mapped(map_sigmoid, np.array([-88, -1e3, -1e30], np.float32))
    assert (lowest >= 0).all()
    assert (lowest < 1e-37).all()


@pytest.mark.parametrize("reach", [1e-3, 40.0, 700.0, 1e300])
def test_softplus(reach):
    x = everywhere(-reach, reach)
    assert np.allclose(mapped(map_softplus, x), np.logaddexp(0, x), rtol=1e-14, atol=1e-320)


def test_softplus_of_float32_is_a_float64():
    x = everywhere(-80, 80, 4001).astype(np.float32)
    found = mapped(map_softplus, x, np.float64)
    assert np.allclose(found, np.logaddexp(0, x.astype(float)), rtol=3e-7, atol=0)


def test_log_add_exp():
    rng = np.random.default_rng(0)
    for scale in (1e-6, 1.0, 30.0, 1e3, 1e300):
        for a, b in rng.standard_normal((200, 2)) * scale:
            assert log_add_exp(a, b) == pytest.approx(np.logaddexp(a, b), rel=1e-13, abs=1e-13 * min(scale, 1))
    assert log_add_exp(-np.inf, 3.0) == 3.0
    assert log_add_exp(3.0, -np.inf) == 3.0
    assert log_add_exp(1e5, 1e5) == pytest.approx(1e5 + np.log(2), rel=1e-15)


# z = w + log w magnifies: near -700 a relative 1e-14 in w is less than the rounding of z, so e^z decides.
RANGES = [(-700.0, -37.0), (-37.5, -36.5), (-37.0, -2.5), (-2.6, -2.4), (-2.5, -1.0), (-1.1, -0.9), (-1.0, 3.0)]
RANGES += [(2.9, 3.1), (3.0, 50.0), (50.0, 1e6)]


@pytest.mark.parametrize(("low", "high"), RANGES)
def test_wright_omega(low, high):
    z = everywhere(low, high, 50_001)
    assert np.allclose(mapped(map_wright_omega, z), wrightomega(z), rtol=1e-14, atol=0)


def test_wright_omega_of_huge_arguments():
    z = np.logspace(6, 300, 20_001)
    assert np.allclose(mapped(map_wright_omega, z), wrightomega(z), rtol=1e-14, atol=0)


def test_wright_omega_below_the_range_of_exp():
    assert wright_omega(-800.0) == 0.0
    assert wright_omega(-np.inf) == 0.0
