"""Which rows train, validate and test: as given, or drawn by a seed."""

from typing import NamedTuple

import numpy as np

from xsoftmax.data.config import SplitOptions
from xsoftmax.errors import InputError


class Assignment(NamedTuple):
    """Row numbers of each split, in file order."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def draw(n_rows: int, validation: float, test: float, seed: int) -> Assignment:
    """Draw disjoint validation and test rows; the others train.

    Parameters
    ----------
    validation, test : float
        A share of the rows if below 1, otherwise how many.
    """
    n_test, n_validation = _count(test, n_rows), _count(validation, n_rows)
    if n_test + n_validation >= max(n_rows, 1):
        raise InputError(
            f"split: {n_validation} validation and {n_test} test rows leave none of {n_rows} to train on;"
            " lower split.validation or split.test"
        )
    order = np.random.default_rng(seed).permutation(n_rows)
    parts = np.split(order, [n_test, n_test + n_validation])
    return Assignment(np.sort(parts[2]), np.sort(parts[1]), np.sort(parts[0]))


def assign(kept: dict[str, np.ndarray], options: SplitOptions) -> dict[str, tuple[str, np.ndarray]]:
    """Say which rows of which part make each split.

    Parameters
    ----------
    kept : dict of str to ndarray
        Usable row numbers of each part that is given: ``all``, ``train``, ``validation``, ``test``.
        What is not given is drawn from the first of them.

    Returns
    -------
    dict of str to (part, row numbers)
    """
    source = "all" if "all" in kept else "train"
    validation = 0 if "validation" in kept else options.validation
    test = 0 if "test" in kept else options.test
    drawn = draw(len(kept[source]), validation, test, options.seed)
    found = {}
    for split, rows in drawn._asdict().items():
        given = split if split in kept and split != source else source
        found[split] = (given, kept[given] if given != source else kept[source][rows])
    return found


def _count(size: float, n_rows: int) -> int:
    return round(size * n_rows) if size < 1 else int(size)
