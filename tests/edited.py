"""Sealed files of other content: what a test would have someone else have written."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py

from xsoftmax.internal.checksummed import CHECKSUM_BYTES, append_checksum


@contextmanager
def edited(path: Path) -> Iterator[h5py.File]:
    """Open a file with a checksum, or a new one, to change it; it is sealed again afterwards."""
    if path.exists():
        path.write_bytes(path.read_bytes()[:-CHECKSUM_BYTES])
    with h5py.File(path, "a") as file:
        yield file
    append_checksum(path)
