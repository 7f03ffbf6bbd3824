"""Matrix products of float32 arrays inside kernels, on views, by the BLAS that numba's own ``np.dot`` calls.

``np.dot`` wants contiguous arrays and copies others; here rows may lie any distance apart.
"""

import numpy as np

from xsoftmax.internal.compiled import njit, types
from xsoftmax.kernels import OPTIONS

_FLOATS = types.CPointer(types.float32)
_gemm = types.ExternalFunction(
    "numba_xxgemm",
    types.intc(
        types.char,  # kind
        types.char,  # whether the first matrix is transposed
        types.char,  # whether the second is
        types.intp,  # rows and columns of the result, and the length of the sums
        types.intp,
        types.intp,
        _FLOATS,  # factor of the product
        _FLOATS,
        types.intp,
        _FLOATS,
        types.intp,
        _FLOATS,  # factor of what was there before
        _FLOATS,
        types.intp,
    ),
)
_KIND, _AS_IS, _TRANSPOSED = ord("s"), ord("N"), ord("T")


@njit(**OPTIONS)
def rows_times_rows(A, B, out):
    """Write A B^T to ``out``: all inner products of rows of A, (n, m), with rows of B, (k, m)."""
    _product(_TRANSPOSED, _AS_IS, B, A, out, B.shape[1], np.float32(1))


@njit(**OPTIONS)
def rows_times_columns(A, B, out):
    """Write A B to ``out``, of as many columns as there are of B's, (m, at least k), to be looked at: A is (n, m)."""
    _product(_AS_IS, _AS_IS, B, A, out, B.shape[0], np.float32(1))


@njit(**OPTIONS)
def columns_times_columns(A, B, factor, out):
    """Write ``factor`` A^T B to ``out``: all inner products of columns of A, (m, n), with columns of B, (m, k)."""
    _product(_AS_IS, _TRANSPOSED, B, A, out, B.shape[0], factor)


@njit(**OPTIONS)
def _product(b_as, a_as, B, A, out, length, factor):
    """BLAS goes by columns, so that the transposed result, with the factors swapped, is what we want."""
    if out.size == 0:
        return
    factors = np.empty(2, np.float32)
    factors[0], factors[1] = factor, np.float32(0)
    _gemm(  # type: ignore[call-overload]
        _KIND, b_as, a_as, out.shape[1], out.shape[0], length, factors.ctypes,
        B.ctypes, _distance(B), A.ctypes, _distance(A), factors[1:].ctypes, out.ctypes, _distance(out),
    )  # fmt: skip


@njit(**OPTIONS)
def _distance(A):
    """Floats from one row to the next."""
    return max(A.strides[0] // 4, A.shape[1], 1)


@njit(**OPTIONS)
def inner_product(x, w):
    """Inner product of a row with the first entries of another, float32, in whatever order is fast."""
    total = np.float32(0)
    for d in range(x.size):
        total += x[d] * w[d]
    return total
