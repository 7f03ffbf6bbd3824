"""What generators of data share: how many rows a part has, and random numbers of its own."""

from collections.abc import Mapping

import numpy as np

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free

PARTS = ("train", "validation", "test")
REMEDY = "draw fewer"


def n_samples_of(part: str, n_samples: int | Mapping[str, int], who: str) -> int:
    """Say how many rows a part has, of a number for any, or one for each.

    Raises
    ------
    InputError
        If there are numbers, but none for this part.
    """
    if not isinstance(n_samples, Mapping):
        return n_samples
    if part not in n_samples:
        raise InputError(f"{who}: options.n_samples has no number for {part!r}; parts: {', '.join(n_samples)}")
    return n_samples[part]


def check_sizes(who: str, n_samples: int, *others: int, bytes_a_row: int) -> None:
    """Make sure that memory holds what is to be drawn: rows, and of other sizes, a few numbers each.

    Raises
    ------
    InputError
        If it does not.
    """
    check_free(bytes_a_row * n_samples + 32 * sum(others), f"{who}: {n_samples:,} rows", REMEDY)


def rng_of(part: str, seed: int) -> np.random.Generator:
    """Begin the random numbers of ``train``, ``validation`` or ``test``; those of ``seed`` alone are none of them."""
    return np.random.default_rng([seed, 1 + PARTS.index(part)])  # [seed, 0] is the same as seed
