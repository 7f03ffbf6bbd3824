"""A fitted tree as one HDF5 file: the tree, what it was fitted on and how, and the names of its classes."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from xsoftmax.data.dataset import check_plain
from xsoftmax.data.names import Names
from xsoftmax.data.store import open_prepared
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5 import attributes, put
from xsoftmax.internal.hdf5_checks import check_number
from xsoftmax.internal.sealed import opened, written_sealed
from xsoftmax.training_set import check_seed
from xsoftmax.tree.cross_validation import Choice, choose_regularizer
from xsoftmax.tree.fit import depth_of, fit_tree
from xsoftmax.tree.model import Tree
from xsoftmax.tree.projection import Features

REMEDY = "fit one with `python -m xsoftmax tree`"


@dataclass(frozen=True)
class StoredTree:
    """What a tree file holds.

    Attributes
    ----------
    tree : Tree
    attributes : dict
        ``dataset``, ``n_classes``, ``n_features``, ``dimension``, ``regularizer``, ``folds`` and ``resplit`` as
        asked for, ``seed``, ``labels_sha256`` of the training rows, ``features_sha256`` of how features are made,
        ``seconds`` of fitting, ``train_log_likelihood``, and versions; with folds also ``chosen_regularizer`` and the
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
    check_seed(seed)
    if dimension >= 2**31:
        raise InputError(
            f"dimension of the tree is {dimension:,}; it has no more components than the data, give fewer"
        )
    with open_prepared(prepared) as data:
        check_plain(data, "no tree is fitted with")
        train, name, class_names = data.split("train"), data.name, data.class_names
        features = data.transform.sha256
    rows = train.X, train.y, len(class_names)
    progress = registry.load("xsoftmax.internal", "progress")  # by name: an edit of it is none of a tree
    with progress.Progress(f"tree of {name}", "levels", total=depth_of(len(class_names))) as report:
        fitted = fit_timed(*rows, dimension, regularizer, seed, folds, resplit, report.move_to)
    tree, choice = fitted.tree, fitted.choice
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
        "features_sha256": features,
        "seconds": fitted.seconds,
        "train_log_likelihood": tree.log_likelihood(tree.project(train.X), train.y),
    }
    stored = StoredTree(tree, attributes | (choice.attributes if choice else {}), class_names)
    write_tree(output, stored)
    return stored


class TimedTree(NamedTuple):
    """A tree, the seconds that its fit took without compiling it, and how its regularizer was chosen, if it was."""

    tree: Tree
    seconds: float
    choice: Choice | None


def fit_timed(
    X: Features,
    y: NDArray[np.int32],
    n_classes: int,
    dimension: int,
    regularizer: float,
    seed: int = 0,
    folds: int = 1,
    resplit: bool = True,
    progress: Callable[[int], None] | None = None,
) -> TimedTree:
    """Fit a tree to rows; with ``folds`` above 1 its regularizer is chosen by cross-validation instead."""
    few = np.eye(4, 2, dtype=np.float32)
    fit_tree(csr_array(few) if issparse(X) else few, np.arange(4, dtype=np.int32), 4, dimension=1)  # compiles
    begin, choice = time.perf_counter(), None
    if folds > 1:
        choice = choose_regularizer(X, y, n_classes, dimension, folds, seed, resplit)
        regularizer = choice.regularizer
    tree = fit_tree(X, y, n_classes, dimension, regularizer, seed, resplit=resplit, progress=progress)
    return TimedTree(tree, time.perf_counter() - begin, choice)


def labels_sha256(y: np.ndarray) -> str:
    """Tell training sets apart by their classes, row by row."""
    return hashlib.sha256(np.ascontiguousarray(y, np.int32).tobytes()).hexdigest()


def write_tree(path: str | Path, stored: StoredTree) -> None:
    """Write a tree file: aside, sealed, and renamed."""
    with written_sealed(Path(path), "tree", libver="v110") as file:
        put(file, **stored.attributes)
        stored.tree.to_group(file)
        Names.of(stored.class_names).to_group(file.create_group("classes/names"))


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
        found, names = attributes(file), Names.from_group(file["classes/names"])
        for key, value in (fits or {}).items():
            _check(path, key, found.get(key), value)
        check_number(file, "n_classes", len(names))
        float(found["seconds"])
        tree = Tree.from_group(file, len(names), int(found["n_features"]))
        return StoredTree(tree, found | {"dataset": str(found["dataset"])}, names)


def _check(path: Path, key: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise InputError(f"{path}: a tree of {key} {found!r}, wanted {expected!r}; fit one on these data")
