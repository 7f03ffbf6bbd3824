"""A data set as exported, which every worker reads."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Data:
    """One exported data set.

    Attributes
    ----------
    folder : Path
        With ``meta.json`` and arrays such as ``train_y.npy``; text forms that a worker needs are kept there too.
    """

    folder: Path

    @cached_property
    def meta(self) -> dict[str, Any]:
        """Name, storage (``dense`` or ``csr``), n_features, n_classes."""
        return json.loads((self.folder / "meta.json").read_text(encoding="utf-8"))

    @property
    def n_classes(self) -> int:
        """Classes, all with training rows."""
        return self.meta["n_classes"]

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self.meta["n_features"]

    @property
    def is_dense(self) -> bool:
        """Whether X is an ndarray; otherwise it is a csr_matrix."""
        return self.meta["storage"] == "dense"

    @property
    def is_multilabel(self) -> bool:
        """Whether rows may have several labels."""
        return self.meta.get("multilabel", False)

    def classes(self, split: str) -> np.ndarray:
        """Classes of a split, int32 of shape (n_samples,); a ValueError where rows have several labels."""
        if self.is_multilabel:
            raise ValueError("rows have several labels each, of which this program takes one")
        return self._array(f"{split}_y")

    def labels(self, split: str) -> csr_matrix:
        """All labels of the rows of a split: ones, float32 of shape (n_samples, n_classes)."""
        if self.is_multilabel:
            starts, classes = (self._array(f"{split}_label_{name}") for name in ("starts", "classes"))
        else:
            classes = self._array(f"{split}_y")
            starts = np.arange(len(classes) + 1)
        return csr_matrix((np.ones(len(classes), np.float32), classes, starts), (len(starts) - 1, self.n_classes))

    def truth(self, split: str) -> Any:
        """What predictions are compared with: ``labels`` where rows have several, else ``classes``."""
        return self.labels(split) if self.is_multilabel else self.classes(split)

    def features(self, split: str) -> Any:
        """Rows of a split, float32: C-ordered ndarray or csr_matrix with sorted int32 indices."""
        if self.is_dense:
            return self._array(f"{split}_X")
        parts = [self._array(f"{split}_{name}") for name in ("data", "indices", "indptr")]
        return csr_matrix(tuple(parts), shape=(len(parts[2]) - 1, self.n_features))

    def n_samples(self, split: str) -> int:
        """Rows of a split."""
        return np.load(self.folder / f"{split}_y.npy", mmap_mode="r").shape[0]

    def text(self, split: str, kind: str, lines: Callable[[Any, Any], Iterator[str]]) -> Path:
        """Path of a split as text of some kind; written at the first call, of ``lines(X, truth)``."""
        path = self.folder / f"{split}.{kind}"
        if not path.exists():
            aside = path.with_name(f".{path.name}.{os.getpid()}")
            with aside.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines(self.features(split), self.truth(split)))
            aside.replace(path)
        return path

    def _array(self, name: str) -> np.ndarray:
        return np.load(self.folder / f"{name}.npy")
