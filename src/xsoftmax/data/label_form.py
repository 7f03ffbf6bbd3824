"""The form in which rows with several labels are given, and given back: an indicator matrix, or lists."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from xsoftmax.data import given_labels
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free

INDICATOR, SPARSE_INDICATOR, LISTS = KINDS = ("indicator", "sparse indicator", "lists")


@dataclass(frozen=True)
class LabelForm:
    """How labels are given, and what the classes are.

    Attributes
    ----------
    kind : str
        One of ``KINDS``.
    classes : ndarray of shape (n_classes,)
        All labels, in order; of an indicator the numbers of its columns.
    """

    kind: str
    classes: np.ndarray

    @classmethod
    def of(cls, Y: Any, what: str) -> "LabelForm":
        """Tell the form of labels.

        Raises
        ------
        InputError
            If rows have one label each, or something is no label.
        """
        if not given_labels.are_several(Y):
            raise InputError(
                f"{what}: one label for each row, shape {np.shape(Y)}; give an indicator matrix, a column for each "
                "class, or a list of labels for each row: [[label] for label in y]"
            )
        kind = LISTS
        if given_labels.is_indicator(Y):
            kind = SPARSE_INDICATOR if issparse(Y) else INDICATOR
        return cls(kind, given_labels.distinct(Y, what))

    def indicator(self, Y: Any, what: str) -> csr_array:
        """Bring labels to an indicator matrix of shape (n_samples, n_classes), int64; rows may have none.

        Raises
        ------
        InputError
            If they are of another number of classes, or one is unknown.
        """
        found = given_labels.any_pairs_of(Y, len(self.classes), what)
        columns = found.labels
        if not found.numbered:
            columns = given_labels.places(found.labels, self.classes, found.rows, what)
        shape = (found.n_samples, len(self.classes))
        indicator = csr_array((np.ones(columns.size, np.int64), (found.rows, columns)), shape=shape)
        indicator.data[:] = 1  # a label that came twice was added up
        return indicator

    def given(self, indicator: csr_array) -> Any:
        """Give an indicator matrix back in this form: lists are in the order of classes.

        Raises
        ------
        InputError
            If there is no memory for a dense matrix.
        """
        if self.kind == SPARSE_INDICATOR:
            return indicator
        if self.kind == INDICATOR:
            n_samples, n_classes = indicator.shape
            check_free(
                8 * n_samples * n_classes,
                f"labels of {n_samples} rows and {n_classes} classes",
                "give fewer rows at a time, or fit with a sparse y, which gives sparse predictions",
            )
            return indicator.toarray()
        labels = self.classes[indicator.indices].tolist()
        return [labels[first:last] for first, last in pairwise(indicator.indptr.tolist())]
