"""All labels of rows that may have several."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class LabelSets:
    """All labels of each row, where rows may have several.

    Attributes
    ----------
    starts : ndarray of shape (n_samples + 1,), int64
        Labels of row i are ``classes[starts[i]:starts[i + 1]]``, at least one.
    classes : ndarray of shape (n_labels,), int32
        Of each row in rising order.
    """

    starts: np.ndarray
    classes: np.ndarray

    @classmethod
    def of_pairs(cls, rows: np.ndarray, classes: np.ndarray, n_samples: int) -> "LabelSets":
        """Gather pairs of a row and a label of it, in any order; a pair that comes twice counts once."""
        order = np.lexsort((classes, rows))
        rows, classes = rows[order], classes[order]
        kept = (np.diff(rows, prepend=-1) != 0) | (np.diff(classes, prepend=-1) != 0)
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=n_samples))])
        return cls(starts.astype(np.int64), classes[kept].astype(np.int32))

    @property
    def rows(self) -> np.ndarray:
        """Number the row of each label, int64 of shape (n_labels,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Give both arrays, by the names that a prepared file has for them."""
        return {"label_starts": self.starts, "label_classes": self.classes}

    def places_of(self, chosen: np.ndarray | slice) -> np.ndarray:
        """Find where in ``classes`` the labels of some rows are, given by number, in that order: int64."""
        first, counts = self.starts[:-1][chosen], np.diff(self.starts)[chosen]
        return np.repeat(first - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())

    def of_rows(self, chosen: np.ndarray | slice) -> "LabelSets":
        """Copy the labels of some rows, given by number, in that order."""
        counts = np.diff(self.starts)[chosen]
        starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        return LabelSets(starts, self.classes[self.places_of(chosen)])
