"""numba only: rows (dense or CSR), scalar mathematics, random draws, and the loops that compose the three axes."""

# Options of every kernel. Sums may be reordered and vectorised, but NaN and infinity stay what they are: finding
# a diverged fit rests on them. numpy's error model drops the division check that keeps loops scalar.
FAST = frozenset({"reassoc", "contract", "arcp", "nsz", "afn"})
OPTIONS = {"nogil": True, "cache": True, "fastmath": set(FAST), "error_model": "numpy"}
EXACT = OPTIONS | {"fastmath": False}
