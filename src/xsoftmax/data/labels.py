"""Labels of rows: which of several count, and what the ids of all parts have in common."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from xsoftmax.data.label_sets import LabelSets
from xsoftmax.data.rows import Rows
from xsoftmax.internal.errors import InputError

UNKNOWN = -1


class Labelled(NamedTuple):
    """Examples: a row and one of its labels each, and perhaps what it counts."""

    rows: np.ndarray
    labels: np.ndarray
    weight: np.ndarray | None = None


def choose(parts: Mapping[str, Rows], rule: str) -> tuple[dict[str, Labelled], list[str] | None]:
    """Choose labels in all parts, with ids that mean the same everywhere.

    Parameters
    ----------
    rule : str
        ``first`` in file order, ``min`` (the smallest id), or ``pairs`` (one example for each label of a row). Those
        of ``sets`` are as of ``pairs``, to be gathered by row.

    Returns
    -------
    labelled : dict of str to Labelled
        Rows without a label are left out.
    names : list of str, or None
        Names by id; None if the ids are the names.
    """
    names = _common_names(list(parts.values()))
    chosen = {}
    for part, rows in parts.items():
        each = _choose(rows, rule)
        labels = each.labels if names is None else _common_ids(each.labels, rows, names)
        chosen[part] = Labelled(each.rows, labels, None if rows.weight is None else rows.weight[each.rows])
    return chosen, names


def filtered(parts: Mapping[str, Rows], names: list[str] | None) -> dict[str, LabelSets | None]:
    """Gather by row the labels that never count, with the ids that ``choose`` gave; ``UNKNOWN`` for those it did not.

    Raises
    ------
    InputError
        If a part has names of labels, and a pair has the id of none.
    """
    position = {name: number for number, name in enumerate(names or ())}
    found: dict[str, LabelSets | None] = {}
    for part, rows in parts.items():
        if rows.filtered is None:
            found[part] = None
            continue
        row, labels = rows.filtered.T
        if names is not None:
            labels = np.array([position.get(name, UNKNOWN) for name in _names_of(labels, rows, part)], np.int64)
        found[part] = LabelSets.of_pairs(row, labels, rows.n_samples)
    return found


def _names_of(labels: np.ndarray, rows: Rows, part: str) -> list[str]:
    if rows.label_names is None:
        return [str(label) for label in labels]
    if labels.size and labels.max() >= len(rows.label_names):
        raise InputError(
            f"{part} rows have {len(rows.label_names)} labels, and the filter has number {labels.max()}, from 0; do "
            "they belong together?"
        )
    return [rows.label_names[label] for label in labels]


def _choose(rows: Rows, rule: str) -> Labelled:
    counts = np.diff(rows.label_starts)
    if rule == "pairs":
        return _once(rows)
    if rule == "sets":
        return Labelled(np.repeat(np.arange(rows.n_samples), counts), rows.labels)
    with_label = np.flatnonzero(counts)
    starts = rows.label_starts[with_label]
    if rule == "first" or with_label.size == 0:
        return Labelled(with_label, rows.labels[starts])
    return Labelled(with_label, np.minimum.reduceat(rows.labels, starts))


def _once(rows: Rows) -> Labelled:
    """Give each row with each of its labels, in file order; a label that comes twice in a row counts once."""
    row = np.repeat(np.arange(rows.n_samples), np.diff(rows.label_starts))
    order = np.lexsort((rows.labels, row))
    again = (np.diff(row[order], prepend=-1) == 0) & (np.diff(rows.labels[order], prepend=0) == 0)
    kept = np.sort(order[~again])
    return Labelled(row[kept], rows.labels[kept])


def _common_names(parts: list[Rows]) -> list[str] | None:
    """Join the parts' names: kept as they are if all agree, otherwise in order."""
    if all(rows.label_names is None for rows in parts):
        return None
    lists = [rows.label_names or tuple(str(i) for i in np.unique(rows.labels)) for rows in parts]
    if all(each == lists[0] for each in lists):
        return list(lists[0])
    return sorted(set().union(*lists))


def _common_ids(labels: np.ndarray, rows: Rows, names: list[str]) -> np.ndarray:
    """Map a part's ids to positions in the common names."""
    position = {name: number for number, name in enumerate(names)}
    found, inverse = np.unique(labels, return_inverse=True)
    own = found.tolist() if rows.label_names is None else [rows.label_names[i] for i in found]
    return np.array([position[str(name)] for name in own], dtype=np.int64)[inverse]
