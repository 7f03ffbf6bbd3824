"""A trained model: one HDF5 file, loadable without the data, no pickle."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np

from xsoftmax import __version__, registry
from xsoftmax.data.names import Names
from xsoftmax.data.transform import Transform
from xsoftmax.errors import InputError
from xsoftmax.files import written_aside
from xsoftmax.kernels.minibatch import score_block
from xsoftmax.kernels.rows import features_of

SCHEMA_VERSION = 1
ROWS_AT_A_TIME = 512
CLASSES_AT_A_TIME = 32768


class DivergedError(InputError):
    """The fit diverged, so there is no model."""


class ScoreBlock(NamedTuple):
    """Scores of rows ``first_row``... for classes ``first_class``..., float32; valid until the next block."""

    first_row: int
    first_class: int
    scores: np.ndarray


@dataclass(frozen=True)
class Model:
    """A softmax classifier: scores = W x + b, and where the method's scores lack it, + log q(y | x).

    Attributes
    ----------
    W : ndarray of shape (n_classes, n_features + 1), float32, or None
        One class per row; the last column is the bias. None: the correction is all there is (a tree).
    class_names : sequence of str
    n_features : int
    bias : bool
        Whether the last column counts.
    correction : Proposal or None
        The fitted proposal whose log-probabilities prediction adds (paper (e), eq. 5).
    transform : Transform or None
        From raw rows to features.
    attributes : dict
        Dataset, method and what else is to be known of the fit.
    link : str
        How scores become probabilities: a module of ``xsoftmax.evaluation.links``.
    """

    W: np.ndarray | None
    class_names: Sequence[str]
    n_features: int
    bias: bool = True
    correction: Any = None
    transform: Transform | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    link: str = "softmax"

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    def without_correction(self) -> "Model":
        """The same weights, whose scores are what the method trained."""
        model = replace(self, correction=None)
        model.__dict__["_feature_major"] = self._feature_major
        return model

    def score_blocks(
        self, X: Any, classes_at_a_time: int = CLASSES_AT_A_TIME, rows_at_a_time: int = ROWS_AT_A_TIME
    ) -> Iterator[ScoreBlock]:
        """Score all classes for all rows, block by block: for each block of classes, the blocks of rows in order.

        Raises
        ------
        InputError
            If the rows do not have the model's number of features.
        """
        if X.shape[1] != self.n_features:
            raise InputError(f"rows have {X.shape[1]} features, the model {self.n_features}; prepare them alike")
        n_samples, width = X.shape[0], min(self.n_classes, classes_at_a_time)
        features = features_of(X, self.bias) if self.W is not None else None
        buffer = np.zeros((min(n_samples, rows_at_a_time), width), np.float32)
        for start in range(0, self.n_classes, width):
            stop = min(start + width, self.n_classes)
            for first_row in range(0, n_samples, rows_at_a_time):
                samples = np.arange(first_row, min(first_row + rows_at_a_time, n_samples))
                scores = buffer[: samples.size, : stop - start]
                if features is None:
                    scores[:] = 0
                else:
                    score_block(features, samples, self._feature_major.of(start, stop), scores)
                log_q = None
                if self.correction is not None:
                    log_q = self.correction.log_q(X[first_row : first_row + samples.size], start, stop)
                if log_q is not None:
                    scores += log_q
                yield ScoreBlock(first_row, start, scores)

    @cached_property
    def _feature_major(self) -> "_FeatureMajor":
        return _FeatureMajor(self.W)


class _FeatureMajor:
    """Blocks of weights with one row per feature; the last one asked for is kept."""

    def __init__(self, W: np.ndarray | None) -> None:
        self._W = W
        self._range: tuple[int, int] | None = None
        self._block = np.empty((0, 0), np.float32)

    def of(self, start: int, stop: int) -> np.ndarray:
        """Weights of classes ``start`` to ``stop``, shape (n_features + 1, stop - start)."""
        if self._W is not None and self._range != (start, stop):
            self._block = np.ascontiguousarray(self._W[start:stop].T)
            self._range = (start, stop)
        return self._block


def save_model(model: Model, path: Path) -> None:
    """Write a model, aside and renamed."""
    with written_aside(path) as aside, h5py.File(aside, "w") as file:
        file.attrs.update(
            {
                "kind": "model",
                "schema_version": SCHEMA_VERSION,
                "xsoftmax_version": __version__,
                "n_classes": model.n_classes,
                "n_features": model.n_features,
                "bias": model.bias,
                "link": model.link,
                "attributes": json.dumps(model.attributes, sort_keys=True),
            }
        )
        names = file.create_dataset("class_names", (model.n_classes,), h5py.string_dtype("ascii"))
        Names(model.class_names).write(names)
        if model.W is not None:
            _write_rows(file.create_dataset("W", model.W.shape, np.float32), model.W)
        if model.correction is not None:
            file.attrs["correction"] = model.correction.name
            model.correction.save(file.create_group("correction"))
        if model.transform is not None:
            model.transform.to_group(file.create_group("transform"))


def load_model(path: Path) -> Model:
    """Read a model, or a tree as a model.

    Raises
    ------
    InputError
        If the file is missing, is not a model, or is of another schema version; DivergedError if the fit diverged.
    """
    if not path.exists():
        raise InputError(f"{path}: no such file; train a model first")
    try:
        file = h5py.File(path, "r", locking=False)
    except OSError as error:
        raise InputError(f"{path}: not an HDF5 file ({error}); give a model.h5") from error
    with file:
        kind, version = file.attrs.get("kind"), file.attrs.get("schema_version")
        if kind == "tree":
            return _tree_as_model(path)
        if kind != "model":
            raise InputError(f"{path}: holds {kind!r}, not a model; give a model.h5")
        if version != SCHEMA_VERSION:
            raise InputError(f"{path}: model version {version}, this program reads {SCHEMA_VERSION}; train it again")
        attributes = json.loads(file.attrs["attributes"])
        if "W" not in file:
            raise DivergedError(f"{path} holds no model: {attributes['message']}")
        return Model(
            W=file["W"][:],
            class_names=Names.read(file["class_names"]),
            n_features=int(file.attrs["n_features"]),
            bias=bool(file.attrs["bias"]),
            correction=_restore(file),
            transform=Transform.from_group(file["transform"]) if "transform" in file else None,
            attributes=attributes,
            link=str(file.attrs.get("link", "softmax")),
        )


def _write_rows(dataset: h5py.Dataset, W: np.ndarray) -> None:
    """Write weights that may be a view of every other number: a block at a time, as a block is copied."""
    for start in range(0, len(W), CLASSES_AT_A_TIME):
        dataset[start : start + CLASSES_AT_A_TIME] = W[start : start + CLASSES_AT_A_TIME]


def _restore(file: h5py.File) -> Any:
    if "correction" not in file.attrs:
        return None
    return registry.load("xsoftmax.proposals", file.attrs["correction"]).restore(file["correction"])


def _tree_as_model(path: Path) -> Model:
    """The adversarial tree, which is a classifier by itself."""
    trees = registry.load("xsoftmax.proposals", "tree")  # by name: most models have nothing to do with trees
    stored = trees.read_tree(path)
    attributes = {"dataset": stored.attributes["dataset"], "method": "tree", "status": "finished"}
    n_features = stored.attributes["n_features"]
    return Model(None, stored.class_names, n_features, False, trees.FittedTree(stored.tree), None, attributes)
