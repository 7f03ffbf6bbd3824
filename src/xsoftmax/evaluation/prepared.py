"""Whether a model and a prepared data set are about the same classes and features."""

from pathlib import Path

from xsoftmax.data.dataset import Dataset
from xsoftmax.internal.errors import InputError
from xsoftmax.model import Model


def check_same(model: Model, model_path: Path, data: Dataset, data_path: Path) -> None:
    """Make sure that a model can score the rows of a prepared data set.

    Raises
    ------
    InputError
        If it has other classes or features.
    """
    if model.class_names != data.class_names:
        raise InputError(f"{model_path} has other classes than {data.name}; train it on this data set")
    if not model.has_features(data.n_features, data.transform.sha256):
        raise InputError(
            f"{model_path} has other features than {data_path}, prepared in another way or from other"
            " rows; train it on these data, or evaluate it on rows as they were before they were prepared"
        )
