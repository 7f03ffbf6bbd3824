"""numba only: rows (dense or CSR), scalar mathematics, random draws, and the loops that compose the three axes."""

from typing import Any

import xsoftmax.internal.compiled  # noqa: F401 - numba's cache, before the first kernel

# Options of every kernel. Sums may be reordered and vectorised, but NaN and infinity stay what they are: finding
# a diverged fit rests on them. numpy's error model drops the division check that keeps loops scalar.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "fastmath": {"reassoc", "contract", "arcp", "nsz", "afn"},
    "error_model": "numpy",
    "_nrt": True,
}
# Of kernels that allocate nothing: numba then does not count who holds an array, which takes longer than a short
# kernel does (a call with the draws of one step: 65 ns counted, 2 ns not).
LEAN: dict[str, Any] = OPTIONS | {"_nrt": False}
# Of those among them that a step calls: what they are given is dozens of words, passed in vain if they are inlined.
PART: dict[str, Any] = LEAN | {"forceinline": True}
