"""Labels of rows as kernels take them: one each, or lists."""

from typing import Any

import numpy as np

from xsoftmax.data.label_sets import LabelSets
from xsoftmax.kernels.label_sets import LabelLists
from xsoftmax.proposals import TrainingSet


def labels_for(method: Any, data: TrainingSet) -> np.ndarray | LabelLists:
    """Give kernels the labels of the training rows: an array, or lists where rows may have several."""
    if data.label_sets is None:
        return np.ascontiguousarray(data.y, np.int32)
    return lists_of(data.label_sets, method.positives)


def lists_of(label_sets: LabelSets, positives: str) -> LabelLists:
    """Give kernels label sets, and whether the loss of a row is the mean over its labels or their sum."""
    starts, classes = (np.ascontiguousarray(each) for each in (label_sets.starts, label_sets.classes))
    return LabelLists(starts, classes, positives == "mean")
