"""Rows of 16 float32 at a time, a cache line each: products summed in one order, and prefetches.

Left to the compiler, a sum takes the order that suits the code around it; two kernels that must come to the same
bits take it from here.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

FLOATS = 16

_BYTE = ir.IntType(8)
_INT32 = ir.IntType(32)
_INT64 = ir.IntType(64)
_LINE = ir.VectorType(ir.FloatType(), FLOATS)
# Arguments of LLVM's prefetch: for reading, to the nearest cache, of data.
_HOW = (0, 3, 1)


def _inner(_typing_context, A, i, B, j):
    """Inner product, float32, of row ``i`` of ``A`` and row ``j`` of ``B``, both a multiple of 16 float32 wide."""

    def codegen(context, builder, signature, arguments):
        first, row_of_a = _row(context, builder, signature, arguments, 0)
        _, row_of_b = _row(context, builder, signature, arguments, 2)
        total = cgutils.alloca_once_value(builder, ir.Constant(_LINE, [0.0] * FLOATS))
        width = builder.extract_value(first.shape, 1)
        with cgutils.for_range_slice(builder, _INT64(0), width, _INT64(FLOATS), _INT64) as (column, _):
            product = builder.fmul(_line(builder, row_of_a, column), _line(builder, row_of_b, column))
            builder.store(builder.fadd(builder.load(total), product), total)
        return _sum(builder, builder.load(total))

    return types.float32(A, types.int64, B, types.int64), codegen


def _prefetch(_typing_context, A, i):
    """Ask for the first cache line of row ``i`` of ``A`` (of one or two dimensions), without waiting for it."""

    def codegen(context, builder, signature, arguments):
        _, row = _row(context, builder, signature, arguments, 0)
        pointer = _BYTE.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, _INT32, _INT32, _INT32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        builder.call(function, [row, *(_INT32(number) for number in _HOW)])
        return context.get_dummy_value()

    return types.void(A, types.int64), codegen


def _row(context, builder, signature, arguments, at):
    """Array ``at`` among the arguments, and a pointer to the row of it that the argument after it tells."""
    array = context.make_array(signature.args[at])(context, builder, arguments[at])
    offset = builder.mul(arguments[at + 1], builder.extract_value(array.strides, 0))
    return array, builder.gep(builder.bitcast(array.data, _BYTE.as_pointer()), [offset])


def _line(builder, row, column):
    start = builder.gep(row, [builder.mul(column, _INT64(4))])
    return builder.load(builder.bitcast(start, _LINE.as_pointer()), align=4)


def _sum(builder, line):
    """Sum of a line's floats: halves added to halves."""
    n = FLOATS
    while n > 1:
        n //= 2
        nothing = ir.Constant(line.type, ir.Undefined)
        low = ir.Constant(ir.VectorType(_INT32, n), list(range(n)))
        high = ir.Constant(ir.VectorType(_INT32, n), list(range(n, 2 * n)))
        line = builder.fadd(builder.shuffle_vector(line, nothing, low), builder.shuffle_vector(line, nothing, high))
    return builder.extract_element(line, _INT32(0))


# Typed for compiled code only.
inner: Any = intrinsic(_inner)
prefetch: Any = intrinsic(_prefetch)
