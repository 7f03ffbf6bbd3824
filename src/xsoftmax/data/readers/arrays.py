"""NumPy files: dense or scipy sparse features (npz, npy) with an array of labels."""

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, issparse, load_npz

from xsoftmax.data.rows import Rows
from xsoftmax.errors import InputError

if TYPE_CHECKING:
    from xsoftmax.data.transform import Transform

BLOCK_ROWS = 4096
NEW_ROWS = (".npy", ".npz")


def read(*, data: Path, labels: Path | None = None, x: str = "X", y: str = "y") -> Rows:
    """Read features and labels.

    Parameters
    ----------
    data : Path
        ``.npy``; ``.npz`` with an array ``x`` (and ``y``, unless ``labels`` is given); or a sparse matrix as
        ``scipy.sparse.save_npz`` writes it.
    labels : Path, optional
        ``.npy`` with one label, number or text, per row.
    """
    X = load_matrix(data, x)
    found = _load(labels) if labels is not None else _load(data)
    if isinstance(found, np.lib.npyio.NpzFile):
        if y not in found:
            raise InputError(
                f"{data}: no array of labels {y!r} in it; arrays: {', '.join(found)}; name a file 'labels'"
            )
        found = found[y]
    elif labels is None:
        raise InputError(f"{data}: no labels in it; name a file 'labels'")
    if found.shape != (X.shape[0],):
        raise InputError(
            f"{labels or data}: labels of shape {found.shape} for {X.shape[0]} rows; expected one per row"
        )
    if found.dtype.kind in "iub":
        return Rows.with_ids(X, found.astype(np.int64))
    if found.dtype.kind == "U":
        return Rows.with_names(X, found.tolist())
    raise InputError(f"{labels or data}: labels of type {found.dtype}; expected whole numbers or text")


def read_new(path: Path, transform: "Transform") -> Any:
    """Read features without labels."""
    return load_matrix(path, str(transform.source.get("options", {}).get("x", "X")))


def load_matrix(path: Path, key: str = "X") -> Any:
    """Load features, float32: an ndarray or csr_array of shape (n_samples, n_features)."""
    loaded = _load(path)
    if isinstance(loaded, np.lib.npyio.NpzFile):
        if {"indptr", "indices", "data", "shape"} <= set(loaded):
            return _finite(csr_array(load_npz(path), dtype=np.float32), path)
        if key not in loaded:
            raise InputError(f"{path}: no array {key!r} in it; arrays: {', '.join(loaded)}")
        loaded = loaded[key]
    if loaded.ndim < 2 or loaded.dtype.kind not in "fiub":
        raise InputError(f"{path}: features of shape {loaded.shape}, type {loaded.dtype}; expected rows of numbers")
    return _finite(_as_float32(loaded.reshape(len(loaded), -1)), path)


def _load(path: Path) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: cannot read it as NumPy arrays ({error})") from error


def _as_float32(values: np.ndarray) -> np.ndarray:
    result = np.empty(values.shape, dtype=np.float32)
    for start in range(0, len(values), BLOCK_ROWS):
        result[start : start + BLOCK_ROWS] = values[start : start + BLOCK_ROWS]
    return result


def _finite(X: Any, path: Path) -> Any:
    values = X.data if issparse(X) else X
    for start in range(0, len(values), BLOCK_ROWS):
        block = values[start : start + BLOCK_ROWS]
        if not np.isfinite(block).all():
            at = start + int(np.argwhere(~np.isfinite(block))[0][0])
            row = int(np.searchsorted(X.indptr, at, side="right")) - 1 if issparse(X) else at
            raise InputError(f"{path}, row {row}: NaN or infinite as float32; drop or replace such values")
    return X
