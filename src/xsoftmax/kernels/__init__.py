"""numba only: rows (dense or CSR), scalar mathematics, random draws, and the loops that compose the three axes."""

from typing import Any

# Options of every kernel. Sums may be reordered and vectorised, but NaN and infinity stay what they are: finding
# a diverged fit rests on them. numpy's error model drops the division check that keeps loops scalar.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": True,
    "fastmath": {"reassoc", "contract", "arcp", "nsz", "afn"},
    "error_model": "numpy",
}
