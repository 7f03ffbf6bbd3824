"""Ask for memory before it is needed: rows of classes lie far apart, and the processor can't guess the next one.

Only the first lines of a row: the processor's own prefetching follows from there, and whole rows would take the
place of what is being worked on. Rows of sparse samples touch lines all over a row of the weights; asking for them
costs more than it saves.
"""

from xsoftmax.internal.compiled import cgutils, intrinsic, ir, types
from xsoftmax.kernels.dispatch import implements, lean, otherwise
from xsoftmax.kernels.layout import Averaged, Decayed
from xsoftmax.kernels.rows import Csr, Dense
from xsoftmax.kernels.scaled import Scaled

LINES = 4
_LINE_BYTES = 64


@intrinsic
def prefetch_row(typing_context, array, k):
    """Ask for the first lines of row ``k`` of a C-ordered array of any shape."""

    def codegen(context, builder, signature, arguments):
        row_of = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, row_of.strides)[0]
        byte, word = ir.IntType(8), ir.IntType(32)
        begin = builder.gep(builder.bitcast(row_of.data, byte.as_pointer()), [builder.mul(stride, arguments[1])])
        signature_of_prefetch = ir.FunctionType(ir.VoidType(), [byte.as_pointer(), word, word, word])
        prefetch = cgutils.get_or_insert_function(builder.module, signature_of_prefetch, "llvm.prefetch.p0i8")
        for line in range(LINES):
            address = builder.gep(begin, [ir.IntType(64)(line * _LINE_BYTES)])
            builder.call(prefetch, [address, word(0), word(3), word(1)])  # to be read, kept, data
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@lean
def fetch(weights, k):
    """Ask for the first lines of row ``k`` of the weights."""


@otherwise(fetch)
def _fetch(weights, k):
    prefetch_row(weights.W, k)  # type: ignore[call-arg]


@implements(fetch, Decayed)
@implements(fetch, Scaled)
@implements(fetch, Averaged)
def _fetch_inside(weights, k):
    fetch(weights.inner, k)


@lean
def prefetch_step(features, i, weights, y, classes):
    """Ask for what the step of sample ``i`` looks at first."""


@implements(prefetch_step, Dense)
def _prefetch_dense(features, i, weights, y, classes):
    prefetch_row(features.X, i)  # type: ignore[call-arg]
    fetch(weights, y)
    for k in classes:
        fetch(weights, k)


@implements(prefetch_step, Csr)
def _prefetch_csr(features, i, weights, y, classes):
    pass
