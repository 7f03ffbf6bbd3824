"""Rows of 16 float32 at a time, a cache line each: what the compiler does not make of loops over them by itself.

Left to the compiler, a sum takes the order that suits the code around it; two kernels that must come to the same
bits take it from here.
"""

from typing import Any

from xsoftmax.internal.compiled import cgutils, intrinsic, ir, types

FLOATS = 16
# Of a row: the processor's own prefetching follows from there, and whole rows would take the place of what is in use.
FIRST_LINES = 4

_BYTE = ir.IntType(8)
_INT32 = ir.IntType(32)
_INT64 = ir.IntType(64)
# Arguments of LLVM's prefetch: for reading, to the nearest cache, of data.
_HOW = (0, 3, 1)


def _inner(_typing_context, A, i, B, j):
    """Inner product, float32, of row ``i`` of ``A`` and row ``j`` of ``B``, both a multiple of 16 float32 wide."""

    def codegen(context, builder, signature, arguments):
        first, row_of_a = _row(context, builder, signature, arguments, 0)
        _, row_of_b = _row(context, builder, signature, arguments, 2)
        line = _line_of(types.float32)
        total = cgutils.alloca_once_value(builder, ir.Constant(line, [0.0] * FLOATS))
        n_lines = builder.udiv(builder.extract_value(first.shape, 1), _INT64(FLOATS))
        with cgutils.for_range(builder, n_lines) as loop:
            product = builder.fmul(*(_load(builder, row, loop.index, line) for row in (row_of_a, row_of_b)))
            builder.store(builder.fadd(builder.load(total), product), total)
        return _sum(builder, builder.load(total))

    return types.float32(A, types.int64, B, types.int64), codegen


def _exchange(_typing_context, A, i, change, j, B, k, a):
    """Add ``a`` times row ``k`` of ``B`` to row ``j`` of ``change``, and ``a`` times row ``i`` of ``A`` to ``B[k]``.

    All are a multiple of 16 float32 wide; ``B[k]`` is read before it is written.
    """

    def codegen(context, builder, signature, arguments):
        first, row_of_a = _row(context, builder, signature, arguments, 0)
        _, row_of_change = _row(context, builder, signature, arguments, 2)
        _, row_of_b = _row(context, builder, signature, arguments, 4)
        line = _line_of(types.float32)
        factor = _splat(builder, arguments[6], line)
        n_lines = builder.udiv(builder.extract_value(first.shape, 1), _INT64(FLOATS))
        with cgutils.for_range(builder, n_lines) as loop:
            values = [_load(builder, row, loop.index, line) for row in (row_of_a, row_of_b, row_of_change)]
            for value, moved, row in ((values[1], values[2], row_of_change), (values[0], values[1], row_of_b)):
                product = builder.fmul(factor, value, flags=("contract",))
                _store(builder, builder.fadd(product, moved, flags=("contract",)), row, loop.index)
        return context.get_dummy_value()

    return types.void(A, types.int64, change, types.int64, B, types.int64, types.float32), codegen


def _hand_over(_typing_context, change, j, A, i):
    """Add row ``j`` of ``change`` to row ``i`` of ``A``, both a multiple of 16 float32 wide, and clear it."""

    def codegen(context, builder, signature, arguments):
        first, row_of_change = _row(context, builder, signature, arguments, 0)
        _, row_of_a = _row(context, builder, signature, arguments, 2)
        line = _line_of(types.float32)
        n_lines = builder.udiv(builder.extract_value(first.shape, 1), _INT64(FLOATS))
        with cgutils.for_range(builder, n_lines) as loop:
            total = builder.fadd(*(_load(builder, row, loop.index, line) for row in (row_of_change, row_of_a)))
            _store(builder, total, row_of_a, loop.index)
            _store(builder, ir.Constant(line, [0.0] * FLOATS), row_of_change, loop.index)
        return context.get_dummy_value()

    return types.void(change, types.int64, A, types.int64), codegen


def _add_row(_typing_context, A, i, B, k, a):
    """Add ``a`` times row ``k`` of ``B`` to row ``i`` of ``A``, both a multiple of 16 float32 wide."""

    def codegen(context, builder, signature, arguments):
        first, row_of_a = _row(context, builder, signature, arguments, 0)
        _, row_of_b = _row(context, builder, signature, arguments, 2)
        line = _line_of(types.float32)
        factor = _splat(builder, arguments[4], line)
        n_lines = builder.udiv(builder.extract_value(first.shape, 1), _INT64(FLOATS))
        with cgutils.for_range(builder, n_lines) as loop:
            product = builder.fmul(factor, _load(builder, row_of_b, loop.index, line), flags=("contract",))
            total = builder.fadd(product, _load(builder, row_of_a, loop.index, line), flags=("contract",))
            _store(builder, total, row_of_a, loop.index)
        return context.get_dummy_value()

    return types.void(A, types.int64, B, types.int64, types.float32), codegen


def _prefetch(_typing_context, A, i):
    """Ask for the first cache line of row ``i`` of ``A`` (of any dimension), without waiting for it."""
    return types.void(A, types.int64), _asking_for(1)


def _prefetch_row(_typing_context, A, i):
    """As ``prefetch``, for the first ``FIRST_LINES`` cache lines."""
    return types.void(A, types.int64), _asking_for(FIRST_LINES)


def _asking_for(n_lines):
    def codegen(context, builder, signature, arguments):
        _, row = _row(context, builder, signature, arguments, 0)
        pointer = _BYTE.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, _INT32, _INT32, _INT32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        for line in range(n_lines):
            address = builder.gep(row, [_INT64(line * FLOATS * 4)])
            builder.call(function, [address, *(_INT32(number) for number in _HOW)])
        return context.get_dummy_value()

    return codegen


def _score_lines(_typing_context, A, bias, i, Z, out, row):
    """Write ``A[i] @ Z + bias[i]`` to row ``row`` of ``out``, in its precision.

    ``A`` is a multiple of 16 float32 wide, ``Z`` and ``out`` 32 numbers of one type.
    """

    def codegen(context, builder, signature, arguments):
        weights, row_of_a = _row(context, builder, signature, arguments, 0, index=2)
        z = context.make_array(signature.args[3])(context, builder, arguments[3])
        _, row_of_out = _row(context, builder, signature, arguments, 4)
        line = _line_of(signature.args[4].dtype)
        _, at_bias = _row(context, builder, signature, arguments, 1)
        start = _splat(builder, builder.load(builder.bitcast(at_bias, ir.FloatType().as_pointer())), line)
        totals = [cgutils.alloca_once(builder, line) for _ in range(2)]
        for total in totals:
            builder.store(start, total)
        width = builder.extract_value(weights.shape, 1)
        with cgutils.for_range_slice(builder, _INT64(0), width, _INT64(FLOATS), _INT64) as (first, _):
            values = [builder.load(total) for total in totals]
            for k in range(FLOATS):
                column = builder.add(first, _INT64(k))
                address = builder.gep(row_of_a, [builder.mul(column, _INT64(4))])
                weight = _splat(builder, builder.load(builder.bitcast(address, ir.FloatType().as_pointer())), line)
                offset = builder.mul(column, builder.extract_value(z.strides, 0))
                row_of_z = builder.gep(builder.bitcast(z.data, _BYTE.as_pointer()), [offset])
                for h in range(2):
                    product = builder.fmul(weight, _load(builder, row_of_z, h, line), flags=("contract",))
                    values[h] = builder.fadd(product, values[h], flags=("contract",))
            for value, total in zip(values, totals, strict=True):
                builder.store(value, total)
        for h in range(2):
            _store(builder, builder.load(totals[h]), row_of_out, h)
        return context.get_dummy_value()

    return types.void(A, bias, types.int64, Z, out, types.int64), codegen


def _turn_lines(_typing_context, lines, positions, first, h, out, row):
    """Transpose a square: ``out[row + r, first + c] = lines[positions[first + c], 16 h + r]``, r and c below 16.

    ``positions`` is int32; ``lines`` and ``out`` are of one type.
    """

    def codegen(context, builder, signature, arguments):
        _, _, first, h, _, row = arguments
        places = context.make_array(signature.args[1])(context, builder, arguments[1])
        line = _line_of(signature.args[4].dtype)
        square = []
        for c in range(FLOATS):
            place = builder.load(builder.gep(places.data, [builder.add(first, _INT64(c))]))
            begin = _row_at(context, builder, signature.args[0], arguments[0], builder.sext(place, _INT64))
            square.append(_load(builder, begin, h, line))
        for size in (8, 4, 2, 1):
            low = [k if not k & size else FLOATS + k - size for k in range(FLOATS)]
            high = [k + size if not k & size else FLOATS + k for k in range(FLOATS)]
            for i in (i for i in range(FLOATS) if not i & size):
                pair = square[i], square[i + size]
                square[i], square[i + size] = (_shuffle(builder, *pair, chosen) for chosen in (low, high))
        for r in range(FLOATS):
            begin = _row_at(context, builder, signature.args[4], arguments[4], builder.add(row, _INT64(r)))
            _store(builder, square[r], builder.gep(begin, [builder.mul(first, _INT64(_size(line)))]), 0)
        return context.get_dummy_value()

    return types.void(lines, positions, types.int64, types.int64, out, types.int64), codegen


def _row(context, builder, signature, arguments, at, index=None):
    """Array ``at`` among the arguments, and a pointer to its row that argument ``index``, or the next one, tells."""
    i = arguments[at + 1 if index is None else index]
    array = context.make_array(signature.args[at])(context, builder, arguments[at])
    return array, _row_at(context, builder, signature.args[at], arguments[at], i)


def _row_at(context, builder, kind, value, i):
    array = context.make_array(kind)(context, builder, value)
    offset = builder.mul(i, builder.extract_value(array.strides, 0))
    return builder.gep(builder.bitcast(array.data, _BYTE.as_pointer()), [offset])


def _line_of(dtype):
    return ir.VectorType(ir.FloatType() if dtype == types.float32 else ir.DoubleType(), FLOATS)


def _size(line):
    return 4 if line.element == ir.FloatType() else 8


def _splat(builder, number, line):
    """Repeat a float32 in all places of a line."""
    if line.element != number.type:
        number = builder.fpext(number, line.element)
    nothing = ir.Constant(line, ir.Undefined)
    return _shuffle(builder, builder.insert_element(nothing, number, _INT32(0)), nothing, [0] * FLOATS)


def _shuffle(builder, first, second, chosen):
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(_INT32, len(chosen)), chosen))


def _place(builder, row, number, line):
    """Pointer to line ``number`` of a row."""
    number = _INT64(number) if isinstance(number, int) else number
    start = builder.gep(row, [builder.mul(number, _INT64(FLOATS * _size(line)))])
    return builder.bitcast(start, line.as_pointer())


def _load(builder, row, number, line):
    return builder.load(_place(builder, row, number, line), align=_size(line))


def _store(builder, value, row, number):
    builder.store(value, _place(builder, row, number, value.type), align=_size(value.type))


def _sum(builder, line):
    """Sum of a line's floats: halves added to halves."""
    n = FLOATS
    while n > 1:
        n //= 2
        nothing = ir.Constant(line.type, ir.Undefined)
        halves = (_shuffle(builder, line, nothing, list(range(begin, begin + n))) for begin in (0, n))
        line = builder.fadd(*halves)
    return builder.extract_element(line, _INT32(0))


# Typed for compiled code only.
inner: Any = intrinsic(_inner)
exchange: Any = intrinsic(_exchange)
hand_over: Any = intrinsic(_hand_over)
add_row: Any = intrinsic(_add_row)
prefetch: Any = intrinsic(_prefetch)
prefetch_row: Any = intrinsic(_prefetch_row)
score_lines: Any = intrinsic(_score_lines)
turn_lines: Any = intrinsic(_turn_lines)
