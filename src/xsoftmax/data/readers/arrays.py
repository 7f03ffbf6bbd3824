"""NumPy files: dense or scipy sparse features (npz, npy) with an array of labels."""

import math
import struct
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from scipy.sparse import csr_array, load_npz

from xsoftmax.data import checksum
from xsoftmax.data.given_labels import of_indicator
from xsoftmax.data.rows import Form, Rows, not_text, row_not_finite
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free

BLOCK_ROWS = 4096
NEW_ROWS = (".npy", ".npz")
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
DAMAGED = (  # what NumPy, SciPy and zipfile raise
    ArithmeticError, AttributeError, EOFError, LookupError, OSError, RuntimeError, SyntaxError, TypeError, ValueError,
    struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
MOST_FEATURES = 2**31 - 1


def read(*, data: Path, labels: Path | None = None, x: str = "X", y: str = "y") -> Rows:
    """Read features and labels.

    Parameters
    ----------
    data : Path
        ``.npy``; ``.npz`` with an array ``x`` (and ``y``, unless ``labels`` is given); or a sparse matrix as
        ``scipy.sparse.save_npz`` writes it.
    labels : Path, optional
        ``.npy`` with one label, number or text, per row; or, where rows have several, ``.npy`` of shape
        (n_samples, n_classes) or a sparse matrix, 0 or 1 for each class.
    x, y : str
        Names of the arrays of features and labels in a ``.npz``.
    """
    X = load_matrix(data, x)
    path = labels or data
    found = _load(path)
    if labels is not None and _is_sparse(found):
        return _several(X, _sparse(path), path)
    if isinstance(found, np.lib.npyio.NpzFile):
        if y not in found:
            raise InputError(
                f"{data}: no array of labels {y!r} in it; arrays: {', '.join(found)}; name a file 'labels'"
            )
        found = _member(found, y, path)
    elif labels is None:
        raise InputError(f"{data}: no labels in it; name a file 'labels'")
    if found.ndim == 2 and found.shape[1] > 1:
        return _several(X, found, path)
    if found.shape != (X.shape[0],):
        raise InputError(f"{path}: labels of shape {found.shape} for {X.shape[0]} rows; expected one per row")
    return _labelled(X, found, path)


def read_new(path: Path, form: Form) -> Any:
    """Read features without labels."""
    return load_matrix(path, str(form.source.get("options", {}).get("x", "X")))


def load_matrix(path: Path, key: str = "X") -> Any:
    """Load features, float32: an ndarray or csr_array of shape (n_samples, n_features)."""
    loaded = _load(path)
    if isinstance(loaded, np.lib.npyio.NpzFile):
        if _is_sparse(loaded):
            return _finite(_sparse(path), path)
        if key not in loaded:
            raise InputError(f"{path}: no array {key!r} in it; arrays: {', '.join(loaded)}")
        loaded = _member(loaded, key, path)
    if loaded.ndim < 2 or len(loaded) == 0 or loaded.dtype.kind not in "fiub":
        raise InputError(f"{path}: features of shape {loaded.shape}, type {loaded.dtype}; expected rows of numbers")
    return _finite(_as_float32(loaded.reshape(len(loaded), math.prod(loaded.shape[1:]))), path)


def read_labelled(path: Path, form: Form) -> Rows:
    """Read new rows with their labels, of an npz file that has arrays for both."""
    options = form.source.get("options", {})
    return read(data=path, **{key: options[key] for key in ("x", "y") if key in options})


def _is_sparse(loaded: Any) -> bool:
    """Tell whether this is what ``save_npz`` writes."""
    return isinstance(loaded, np.lib.npyio.NpzFile) and {"format", "data", "shape"} <= set(loaded)


def _several(X: Any, indicator: Any, path: Path) -> Rows:
    """Make rows with any number of labels; these are the columns of an indicator."""
    if indicator.shape[0] != X.shape[0]:
        raise InputError(f"{path}: labels of {indicator.shape[0]} rows for {X.shape[0]} rows; expected as many")
    found = of_indicator(indicator, indicator.shape[1], str(path))
    starts = np.concatenate([[0], np.cumsum(np.bincount(found.rows, minlength=found.n_samples))])
    return Rows(X, starts.astype(np.int64), found.labels.astype(np.int64))


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    try:
        yield
    except DAMAGED as error:
        raise InputError(f"{path}: cannot read it as NumPy arrays ({error})") from error


def _load(path: Path) -> Any:
    with _damage_named(path):
        loaded = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(loaded, np.lib.npyio.NpzFile) and loaded.zip is not None:
            _check_headers(loaded.zip, path.stat().st_size * checksum.MOST_COMPRESSED)
        return loaded


def _check_headers(archive: zipfile.ZipFile, most: int) -> None:
    """Raise ValueError if an array says that it is larger than its bytes, of which all have ``most``, can hold."""
    for member in archive.infolist():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{member.filename}: unknown compression {member.compress_type}")
        with archive.open(member) as file:
            shape, _, dtype = HEADERS[npy.read_magic(file)](file)
        n_bytes = math.prod(shape) * max(1, dtype.itemsize)
        if n_bytes > min(member.file_size, most):
            raise ValueError(f"{member.filename}: a shape of {shape} is more than its bytes can hold")
        check_free(n_bytes, f"{archive.filename}, {member.filename}")


def _member(archive: Any, key: str, path: Path) -> np.ndarray:
    with _damage_named(path):
        return np.asarray(archive[key])


def _sparse(path: Path) -> csr_array:
    """Load what ``save_npz`` wrote; scipy itself does not look whether the indices are within the shape."""
    with _damage_named(path):
        matrix = load_npz(path)
        if len(matrix.shape) != 2 or matrix.dtype.kind not in "fiub":
            raise ValueError(f"shape {matrix.shape}, type {matrix.dtype}; expected rows of numbers")
        n_rows, n_features = matrix.shape
        if not 0 < n_rows <= path.stat().st_size * checksum.MOST_COMPRESSED or n_features > MOST_FEATURES:
            raise ValueError(f"a shape of {n_rows} rows and {n_features} columns")
        if hasattr(matrix, "check_format"):
            matrix.check_format(full_check=True)
        with np.errstate(over="ignore"):  # said by _finite, with the row
            return csr_array(matrix, dtype=np.float32)


def _labelled(X: Any, labels: np.ndarray, path: Path) -> Rows:
    if labels.dtype.kind in "iub":
        ids = labels.astype(np.int64)
        if not np.array_equal(ids, labels):
            raise InputError(f"{path}: the label {labels.max()} is too large; make it less than 2^63")
        return Rows.with_ids(X, ids)
    if labels.dtype.kind != "U":
        raise InputError(f"{path}: labels of type {labels.dtype}; expected whole numbers or text")
    with _damage_named(path):
        codes = np.ascontiguousarray(labels).view(labels.dtype.byteorder + "u4").reshape(len(labels), -1)
        if codes.max() > sys.maxunicode:
            raise ValueError(f"row {codes.max(axis=1).argmax()}: the label is no text")
        names = labels.tolist()
    rows = Rows.with_names(X, names)
    odd = not_text(rows.label_names)
    if odd is not None:
        raise InputError(f"{path}, row {names.index(odd)}: the label has a character that is no text: {odd[:40]!r}")
    return rows


def _as_float32(values: np.ndarray) -> np.ndarray:
    check_free(4 * values.size, f"an array of {values.shape} numbers")
    result = np.empty(values.shape, dtype=np.float32)
    with np.errstate(over="ignore"):  # said by _finite, with the row
        for start in range(0, len(values) if values.size else 0, BLOCK_ROWS):
            result[start : start + BLOCK_ROWS] = values[start : start + BLOCK_ROWS]
    return result


def _finite(X: Any, path: Path) -> Any:
    if (row := row_not_finite(X)) is not None:
        raise InputError(f"{path}, row {row}: NaN or infinite as float32; drop or replace such values")
    return X
