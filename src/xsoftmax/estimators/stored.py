"""An estimator in a file: that of its model, which says what the estimator was."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from xsoftmax.internal.checksummed import reading
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5_checks import ContentError
from xsoftmax.model import Model, load_model, save_model

# What a model's file says of the estimator that wrote it.
ATTRIBUTE = "estimator"
# Kinds of labels that a file holds as text.
KINDS_OF_LABELS = "biufU"


class Stored(ABC):
    """What estimators have in common that files hold."""

    model_: Model
    classes_: np.ndarray
    n_features_in_: int
    feature_names_in_: np.ndarray
    get_params: Any

    @property
    def _name(self) -> str:
        return type(self).__name__

    def save(self, path: str | Path) -> None:
        """Write the model with all that is needed to predict: an HDF5 file with a checksum, which ``load`` reads.

        It is a model's file also for the command line, and for ``xsoftmax.model.load_model``.
        """
        check_is_fitted(self, "model_")
        said = {"class": self._name, "parameters": self._parameters()} | self._own_attributes()
        save_model(replace(self.model_, attributes=self.model_.attributes | {ATTRIBUTE: said}), path)

    @classmethod
    def load(cls, path: str | Path) -> Any:
        """Read what ``save`` wrote.

        Raises
        ------
        InputError
            If the file is missing, damaged, or no estimator of this class wrote it.
        """
        model = load_model(path)
        said = model.attributes.get(ATTRIBUTE)
        if not isinstance(said, dict) or said.get("class") != cls.__name__:
            raise InputError(
                f"{path}: a model that no {cls.__name__} wrote; write it with {cls.__name__}.save, or read it with "
                "xsoftmax.model.load_model"
            )
        with reading(Path(path), f"write it with {cls.__name__}.save"):
            found = cls(**said["parameters"])
            found.model_, found.n_features_in_ = model, model.n_features
            if model.transform is not None and model.transform.feature_names:
                found.feature_names_in_ = np.array(model.transform.feature_names, dtype=object)
            found._take_attributes(said)
        return found

    def _parameters(self) -> dict[str, Any]:
        """Give the parameters as JSON; a generator of random numbers, callbacks and weights by label are left out."""
        found = {key: plain(value) for key, value in self.get_params(deep=False).items()}
        for name, kept in (("random_state", int), ("callbacks", str), ("class_weight", str)):
            if not isinstance(found.get(name), kept):
                found |= {name: None} if name in found else {}
        return json.loads(json.dumps(found, default=plain))

    def _kind_of_labels(self) -> str:
        """Say as what a file is to read labels, of which it holds the text."""
        kind = self.classes_.dtype
        if kind.kind not in KINDS_OF_LABELS:
            raise InputError(
                f"{self._name}: labels are {kind}, which a file cannot hold; fit with numbers or strings"
            )
        return kind.str

    def _labels_of_kind(self, kind: Any, names: Sequence[str]) -> np.ndarray:
        """Read labels from their text."""
        dtype, labels = np.dtype(kind), np.array(list(names))
        if dtype.kind not in KINDS_OF_LABELS:
            raise ContentError(f"labels of {dtype}")
        if dtype.kind == "b":
            return labels == "True"
        return labels if dtype.kind == "U" else labels.astype(dtype)

    @abstractmethod
    def _own_attributes(self) -> dict[str, Any]:
        """Give what else a file is to hold, as JSON."""

    @abstractmethod
    def _take_attributes(self, said: Mapping[str, Any]) -> None:
        """Take what ``_own_attributes`` gave."""


def text_of_label(key: Any, dtype: Any) -> str | None:
    """Write a label as one of the dtype that equals it, such as 0 for 0.0; None if none does."""
    with suppress(ValueError, TypeError, OverflowError):
        label = dtype.type(key)
        return str(label) if label == key else None
    return None


def plain(value: Any) -> Any:
    """Turn a number of NumPy, or a path, into what JSON has."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else value
