"""The idx format of MNIST, plain or compressed: one file of arrays, one of labels."""

import math
import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from xsoftmax.data import checksum
from xsoftmax.data.rows import Rows
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.free_memory import check_free

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
BLOCK_ROWS = 4096


class Header(NamedTuple):
    """Element type, rows, and elements of one row."""

    dtype: np.dtype
    n_rows: int
    width: int


def read(*, images: Path, labels: Path) -> Rows:
    """Read images as dense rows of raw pixel values, and their labels.

    Parameters
    ----------
    images, labels : Path
        Perhaps compressed, with as many entries.
    """
    X, y = _array(images, np.float32, "fiu"), _array(labels, np.int64, "iu")
    if y.shape[1] != 1:
        raise InputError(f"{labels}: expected one label per row, found {y.shape[1]}; are the two files mixed up?")
    if len(X) != len(y):
        raise InputError(f"{images} has {len(X)} rows and {labels} {len(y)}; do they belong together?")
    return Rows.with_ids(X, y[:, 0])


def _array(path: Path, dtype: type, kinds: str) -> np.ndarray:
    """Read a whole file, with elements of one of ``kinds``, as rows of ``dtype``."""
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; fetch it again")
    with checksum.open_content(path) as file:
        header = _header(path, file, kinds)
        check_free(np.dtype(dtype).itemsize * header.n_rows * header.width, f"{path}: {header.n_rows} rows")
        values: np.ndarray = np.empty((header.n_rows, header.width), dtype=dtype)
        for start in range(0, header.n_rows, BLOCK_ROWS):
            rows = values[start : start + BLOCK_ROWS]
            content = _read(path, file, rows.size * header.dtype.itemsize)
            with np.errstate(over="ignore"):  # said below, with the row
                rows[:] = np.frombuffer(content, header.dtype).reshape(rows.shape)
            if not np.isfinite(rows).all():
                row = start + int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
                raise InputError(f"{path}, row {row}: NaN or infinite; drop or replace such values")
        if checksum.read(path, file, 1):
            raise InputError(f"{path}: more bytes than its header says ({header.n_rows} rows); fetch it again")
    return values


def _header(path: Path, file: BinaryIO, kinds: str) -> Header:
    magic = _read(path, file, 4)
    if magic[:2] != b"\0\0" or magic[2] not in TYPES or magic[3] == 0:
        raise InputError(f"{path}: not an idx file, it begins with {magic.hex(' ')}; expected 00 00 and a type")
    sizes = struct.unpack(f">{magic[3]}I", _read(path, file, 4 * magic[3]))
    header = Header(np.dtype(TYPES[magic[2]]), sizes[0], math.prod(sizes[1:]))
    if header.dtype.kind not in kinds:
        raise InputError(f"{path}: labels of type {header.dtype}; expected whole numbers")
    n_bytes, size = math.prod(sizes) * header.dtype.itemsize, f"{sizes[0]} rows of {header.width} numbers"
    if not 0 < n_bytes <= checksum.most_content(path):
        problem = "more than the file can hold" if n_bytes else "which is nothing"
        raise InputError(f"{path}: its header says {size}, {problem}; fetch it again")
    return header


def _read(path: Path, file: BinaryIO, n_bytes: int) -> bytes:
    """Read exactly so many bytes."""
    content = checksum.read(path, file, n_bytes)
    if len(content) < n_bytes:
        raise InputError(
            f"{path}: the file ends early ({len(content)} of {n_bytes} bytes of a block); fetch it again"
        )
    return content
