"""A fitted tree as one HDF5 file: the tree, what it was fitted on and how, and the names of its classes."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from xsoftmax.data.store import open_prepared
from xsoftmax.errors import InputError
from xsoftmax.progress import Progress
from xsoftmax.sealed import opened, written_sealed
from xsoftmax.tree.cross_validation import choose_regularizer
from xsoftmax.tree.fit import depth_of, fit_tree
from xsoftmax.tree.model import Tree

REMEDY = "fit one with `python -m xsoftmax tree`"


@dataclass(frozen=True)
class StoredTree:
    """What a tree file holds.

    Attributes
    ----------
    tree : Tree
    attributes : dict
        ``dataset``, ``n_classes``, ``n_features``, ``dimension``, ``regularizer``, ``folds`` and ``resplit`` as
        asked for, ``seed``, ``labels_sha256`` of the training rows, ``seconds`` of fitting,
        ``train_log_likelihood``, and versions; with folds also ``chosen_regularizer`` and the
        ``cross_validation_regularizers`` among which it was chosen, with their
        ``cross_validation_log_likelihoods``.
    class_names : sequence of str
    """

    tree: Tree
    attributes: dict[str, Any]
    class_names: Sequence[str]


def fit_tree_file(
    prepared: str | Path,
    output: str | Path,
    dimension: int = 16,
    regularizer: float = 0.1,
    seed: int = 0,
    folds: int = 1,
    resplit: bool = True,
) -> StoredTree:
    """Fit a tree to the training rows of a prepared file and write it.

    With ``folds`` above 1 the regularizer is chosen by cross-validation instead. ``seconds`` counts projection, fit
    and choice, not reading and not the compilation of the kernels.
    """
    with open_prepared(prepared) as data:
        train, name, class_names = data.split("train"), data.name, data.class_names
    rows = train.X, train.y, len(class_names)
    _compile_kernels()
    begin = time.perf_counter()
    choice = None
    if folds > 1:
        choice = choose_regularizer(*rows, dimension, folds, seed, resplit)
    used = choice.regularizer if choice else regularizer
    with Progress(f"tree of {name}", "levels", total=depth_of(len(class_names))) as report:
        tree = fit_tree(*rows, dimension, used, seed, resplit=resplit, progress=report.move_to)
    attributes: dict[str, Any] = {
        "dataset": name,
        "n_classes": len(class_names),
        "n_features": train.X.shape[1],
        "dimension": dimension,
        "regularizer": regularizer,
        "folds": folds,
        "resplit": resplit,
        "seed": seed,
        "labels_sha256": labels_sha256(train.y),
        "seconds": time.perf_counter() - begin,
        "train_log_likelihood": tree.log_likelihood(tree.project(train.X), train.y),
    }
    stored = StoredTree(tree, attributes | (choice.attributes if choice else {}), class_names)
    write_tree(output, stored)
    return stored


def labels_sha256(y: np.ndarray) -> str:
    """Tell training sets apart by their classes, row by row."""
    return hashlib.sha256(np.ascontiguousarray(y, np.int32).tobytes()).hexdigest()


def write_tree(path: str | Path, stored: StoredTree) -> None:
    """Write a tree file: aside, sealed, and renamed."""
    with written_sealed(Path(path), "tree", libver="v110") as file:
        file.attrs.update(stored.attributes)
        stored.tree.to_group(file)
        names = np.array([name.encode() for name in stored.class_names], dtype=object)
        file.create_dataset("classes/names", data=names, dtype=h5py.string_dtype())


def read_tree(path: str | Path, fits: Mapping[str, Any] | None = None) -> StoredTree:
    """Read a tree file.

    Parameters
    ----------
    path : path
    fits : mapping, optional
        Attributes that the file must have, such as ``{"dataset": "icd10", "n_classes": 1889}``.

    Raises
    ------
    InputError
        If the file is missing or damaged, holds no tree, has another schema version, or belongs to other data.
    """
    path = Path(path)
    with opened(path, ["tree"], REMEDY) as file:
        attributes = _attributes(file)
        for key, value in (fits or {}).items():
            _check(path, key, attributes.get(key), value)
        names = [name.decode() for name in file["classes/names"][:]]
        return StoredTree(Tree.from_group(file), attributes, names)


def _attributes(file: h5py.File) -> dict[str, Any]:
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in file.attrs.items()}


def _check(path: Path, key: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise InputError(f"{path}: a tree of {key} {found!r}, wanted {expected!r}; fit one on these data")


def _compile_kernels() -> None:
    fit_tree(np.eye(4, 2, dtype=np.float32), np.arange(4, dtype=np.int32), 4, dimension=1)
