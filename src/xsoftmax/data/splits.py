"""Which rows train, validate and test: as given, or drawn by a seed."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from xsoftmax.data.config import SplitOptions
from xsoftmax.data.labels import Labelled
from xsoftmax.internal.errors import InputError


class Assignment(NamedTuple):
    """Row numbers of each split, in file order."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def draw(order: np.ndarray, n_free: int, validation: float, test: float) -> Assignment:
    """Split rows in a drawn order: the first test, the next validate, the others train.

    Parameters
    ----------
    order : ndarray of shape (n_rows,)
        All row numbers.
    n_free : int
        How many of them, from the first, may be taken from training.
    validation, test : float
        A share of the rows if below 1, otherwise how many.
    """
    n_rows = order.size
    n_test, n_validation = _count(test, n_rows), _count(validation, n_rows)
    if n_test + n_validation >= max(n_rows, 1):
        raise InputError(
            f"split: {n_validation} validation and {n_test} test rows leave none of {n_rows} to train on;"
            " lower split.validation or split.test"
        )
    if n_test + n_validation > n_free:
        raise InputError(
            f"split: {n_validation} validation and {n_test} test rows of {n_rows} do not leave every class one to"
            f" train on: only {n_free} can be spared; lower split.validation or split.test, or drop keep_classes"
        )
    parts = np.split(order, [n_test, n_test + n_validation])
    return Assignment(np.sort(parts[2]), np.sort(parts[1]), np.sort(parts[0]))


def assign(
    kept: Mapping[str, np.ndarray], chosen: Mapping[str, Labelled], options: SplitOptions
) -> dict[str, tuple[str, np.ndarray]]:
    """Say which rows of which part make each split.

    Parameters
    ----------
    kept : mapping of str to ndarray
        Usable row numbers, ascending, of each part that is given: ``all``, ``train``, ``validation``, ``test``.
        What is not given is drawn from the first of them.
    chosen : mapping of str to Labelled
        The labels of each part.

    Returns
    -------
    dict of str to (part, row numbers)
    """
    if options.validation_of == "test":
        return _validation_of_test(kept, chosen, options)
    source = "all" if "all" in kept else "train"
    validation = 0 if "validation" in kept else options.validation
    test = 0 if "test" in kept else options.test
    n_rows = len(kept[source])
    order, n_free = np.random.default_rng(options.seed).permutation(n_rows), n_rows
    if options.keep_classes:
        order, n_free = _one_of_each_last(order, kept[source], chosen[source])
    drawn = draw(order, n_free, validation, test)
    found = {}
    for split, rows in drawn._asdict().items():
        given = split if split in kept and split != source else source
        found[split] = (given, kept[given] if given != source else kept[source][rows])
    return found


def _validation_of_test(
    kept: Mapping[str, np.ndarray], chosen: Mapping[str, Labelled], options: SplitOptions
) -> dict[str, tuple[str, np.ndarray]]:
    """Draw validation rows from the given test rows of classes that are trained on."""
    if set(kept) != {"train", "test"}:
        raise InputError(f"split: validation_of: test needs parts 'train' and 'test', found {', '.join(kept)}")
    trained = np.unique(chosen["train"].labels[np.isin(chosen["train"].rows, kept["train"])])
    seen = np.intersect1d(chosen["test"].rows[np.isin(chosen["test"].labels, trained)], kept["test"])
    drawn = np.random.default_rng(options.seed).permutation(seen)[: _count(options.validation, seen.size)]
    return {
        "train": ("train", kept["train"]),
        "validation": ("test", np.sort(drawn)),
        "test": ("test", np.setdiff1d(kept["test"], drawn)),
    }


def _one_of_each_last(order: np.ndarray, kept: np.ndarray, chosen: Labelled) -> tuple[np.ndarray, int]:
    """Move the first row of every class behind the rows that can be spared; count those."""
    place = np.full(int(chosen.rows.max(initial=-1)) + 1, -1)
    place[kept[order]] = np.arange(order.size)
    places = place[chosen.rows]
    usable = places >= 0
    by_place = np.argsort(places[usable], kind="stable")
    _, first = np.unique(chosen.labels[usable][by_place], return_index=True)
    stays = np.zeros(order.size, dtype=bool)
    stays[places[usable][by_place][first]] = True
    return np.concatenate([order[~stays], order[stays]]), int((~stays).sum())


def _count(size: float, n_rows: int) -> int:
    return round(size * n_rows) if size < 1 else int(size)
