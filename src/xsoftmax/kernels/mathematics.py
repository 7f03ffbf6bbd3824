"""Scalar functions, stable over their whole range.

``exp`` and ``sigmoid`` stay in the precision of their argument, so that float32 loops stay float32; the others
work in float64.
"""

import math

import numpy as np

from xsoftmax.internal.compiled import intrinsic, ir, njit, overload, types
from xsoftmax.kernels import OPTIONS, PART

_ONE = np.float32(1)
_HALF = np.float32(0.5)
_LOWEST = np.float32(-87)
_HIGHEST = np.float32(88)
_LOG2_E = np.float32(1.4426950408889634)
# Added and taken away again, it rounds to the next integer; math.floor would be a call into the C library.
_ROUND = np.float32(1.5 * 2**23)
# ln 2 in two parts, so that x - n ln 2 is exact to float32.
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
# Minimax polynomial of (e^r - 1 - r) / r^2 on |r| <= ln(2)/2 (Cephes, expf).
_P0 = np.float32(1.9875691500e-4)
_P1 = np.float32(1.3981999507e-3)
_P2 = np.float32(8.3334519073e-3)
_P3 = np.float32(4.1665795894e-2)
_P4 = np.float32(1.6666665459e-1)


@intrinsic
def bits_of_float(_typing_context, _value):
    """Bit pattern of a float32, as int32."""

    def codegen(_context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], ir.IntType(32))

    return types.int32(types.float32), codegen


@intrinsic
def float_with_bits(_typing_context, _bits):
    """The float32 of a bit pattern, int32."""

    def codegen(_context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), codegen


# Reordered sums would join the two parts of ln 2 again.
@njit(**(OPTIONS | {"fastmath": {"contract", "nsz"}}))
def exp32(x):
    """e^x in float32, within 2 units in the last place; no branches, so loops over it vectorise.

    The argument is clamped to [-87, 88]: what is smaller gives 1.6e-38, what is larger 1.7e38.
    """
    x = min(max(x, _LOWEST), _HIGHEST)
    n = (x * _LOG2_E + _ROUND) - _ROUND
    r = x - n * _LN2_HIGH - n * _LN2_LOW
    p = (((_P0 * r + _P1) * r + _P2) * r + _P3) * r + _P4
    p = (p * r + _HALF) * r * r + r + _ONE
    return p * float_with_bits((np.int32(n) + np.int32(127)) << np.int32(23))  # type: ignore[call-arg]


def exp(x):
    """e^x in the precision of ``x``: ``exp32`` for float32, the C library's for float64."""
    return math.exp(x)


def sigmoid(x):
    """1 / (1 + e^-x) in the precision of ``x``."""
    return 1.0 / (1.0 + math.exp(-x))


@overload(exp, inline="always")
def _exp(x):
    if x == types.float32:
        return lambda x: exp32(x)
    return lambda x: math.exp(x)


@overload(sigmoid, inline="always")
def _sigmoid(x):
    if x == types.float32:
        return lambda x: _ONE / (_ONE + exp32(-x))
    return lambda x: 1.0 / (1.0 + math.exp(-x))


@njit(**PART)
def is_finite(x):
    """Whether a number is neither infinite nor NaN.

    ``math.isfinite`` takes the number from itself, which is 0 to a compiler that may reorder sums.
    """
    return abs(x) < math.inf


@njit(**OPTIONS)
def softplus(x):
    """log(1 + e^x) in float64."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@njit(**OPTIONS)
def log_add_exp(a, b):
    """log(e^a + e^b) in float64; either may be -inf, not both."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@njit(**OPTIONS)
def wright_omega(z):
    """Solve omega + log(omega) = z for omega > 0, real z, in float64.

    A start within a few per cent, then two fourth-order steps of Fritsch, Shafer and Crowley (1973): the worst
    relative error is below 1e-14. Lambert's W of e^z, without ever forming e^z.
    """
    if z < -37.0:
        return math.exp(z)
    if z < -2.5:
        e = math.exp(z)
        w = e * (1.0 - e + 1.5 * e * e)
    elif z < -1.0:
        e = math.exp(z)
        w = e / (1.0 + 0.75 * e)
    elif z < 3.0:
        t = z - 1.0
        w = 1.0 + t / 2.0 + t * t / 16.0 - t * t * t / 192.0
    else:
        log_z = math.log(z)
        w = z - log_z + log_z / z
        if z > 1e8:  # exact already, and the steps below would overflow at last
            return w
    for _ in range(2):
        r = z - w - math.log(w)
        q = 2.0 * (1.0 + w) * (1.0 + w + 2.0 * r / 3.0)
        w *= 1.0 + r / (1.0 + w) * (q - r) / (q - 2.0 * r)
    return w
