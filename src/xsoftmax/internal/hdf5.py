"""Texts and numbers in HDF5 files, without HDF5's strings of any length.

Those lie in heaps whose damage HDF5 2.0 does not survive: of 15,000 files with a few changed bytes, ten made it read
for ever, all of them there. So a short text is an attribute of fixed length, a long one an array of bytes, and a file
with others is refused (``hdf5_checks``).
"""

from typing import Any

import h5py
import numpy as np

from xsoftmax.internal.hdf5_checks import ContentError


def put(found: Any, **values: Any) -> None:
    """Store attributes: numbers, short texts, or lists of numbers."""
    for name, value in values.items():
        if isinstance(value, str):
            content = value.encode()
            kind = h5py.string_dtype("utf-8", max(1, len(content)))
            found.attrs.create(name, np.array(content, kind), dtype=kind)
        else:
            found.attrs[name] = value


def attribute(found: Any, name: str) -> Any:
    """Read an attribute that ``put`` stored, as a plain value; a KeyError if it is not there."""
    value = found.attrs[name]
    if isinstance(value, bytes):
        return value.decode()
    return value.tolist() if hasattr(value, "tolist") else value


def attributes(found: Any) -> dict[str, Any]:
    """Read all attributes."""
    return {name: attribute(found, name) for name in found.attrs}


def put_text(group: h5py.Group, name: str, text: str) -> None:
    """Store a text of any length, in UTF-8."""
    group.create_dataset(name, data=np.frombuffer(text.encode(), np.uint8))


def text_of(dataset: h5py.Dataset) -> str:
    """Read what ``put_text`` stored.

    Raises
    ------
    ContentError
        If it is no text.
    """
    if dataset.dtype != np.uint8:
        raise ContentError(f"{dataset.name}: {dataset.dtype}, expected the bytes of a text")
    return dataset[()].tobytes().decode()
