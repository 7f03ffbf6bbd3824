"""Ask for memory before it is needed: rows of classes lie far apart, and the processor can't guess the next one.

Rows of sparse samples touch lines all over a row of the weights; asking for them costs more than it saves.
"""

from xsoftmax.kernels.cache_lines import prefetch_row
from xsoftmax.kernels.dispatch import implements, lean, otherwise
from xsoftmax.kernels.layout import Averaged, Decayed
from xsoftmax.kernels.rows import Csr, Dense
from xsoftmax.kernels.scaled import Scaled


@lean
def fetch(weights, k):
    """Ask for the first lines of row ``k`` of the weights."""


@otherwise(fetch)
def _fetch(weights, k):
    prefetch_row(weights.W, k)


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
    prefetch_row(features.X, i)
    fetch(weights, y)
    for k in classes:
        fetch(weights, k)


@implements(prefetch_step, Csr)
def _prefetch_csr(features, i, weights, y, classes):
    pass
