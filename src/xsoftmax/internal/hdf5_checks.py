"""Check that a file from someone else is all there, and within bounds, before anything of it is used.

HDF5 follows links to other files, reads parts of arrays out of them, loads plug-ins for filters, and allocates what
a file says that it holds. Files of ours need none of this, so a file that does is refused. Numbers that kernels take
for places are compared with the size of what they point into, as compiled code does not do that.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import h5py
import numpy as np
from h5py import h5d, h5g, h5l, h5o, h5t, h5z
from numpy.typing import DTypeLike

MOST_OBJECTS = 10_000
MOST_CHUNK_BYTES = 2**25
MOST_COMPRESSED = 1032  # deflate's limit
FILTERS = {h5z.FILTER_DEFLATE, h5z.FILTER_SHUFFLE}
AT_A_TIME = 2**18


class ContentError(ValueError):
    """A file is whole, but not what this program writes."""


def check_plain(file: h5py.File, n_bytes: int) -> None:
    """Walk through all objects of an open file of so many bytes, without following anything out of it.

    Raises
    ------
    ContentError
        If one is a link, lies in other files, is packed in an unknown way, is of a type that is neither number nor
        text, or says that it is larger than its bytes can hold.
    """
    seen: set[Any] = set()
    waiting = [("", file.id)]
    while waiting:
        name, group = waiting.pop()
        _check_attributes(name, group)
        for each in group:
            inner = f"{name}/{each.decode(errors='replace')}"
            if group.links.get_info(each).type != h5l.TYPE_HARD:
                raise ContentError(f"{inner} is a link, which files of ours do not have")
            found = h5o.open(group, each)
            if (place := h5o.get_info(found).addr) in seen:
                continue
            seen.add(place)
            if len(seen) > MOST_OBJECTS:
                raise ContentError(f"more than {MOST_OBJECTS} objects, which files of ours do not have")
            if isinstance(found, h5g.GroupID):
                waiting.append((inner, found))
            elif isinstance(found, h5d.DatasetID):
                _check_dataset(inner, found, n_bytes)
                _check_attributes(inner, found)
            else:
                raise ContentError(f"{inner} is neither a group nor an array")


def _check_attributes(name: str, found: Any) -> None:
    for attribute in _attributes(found):
        _check_type(f"{name or '/'}: attribute {attribute.name.decode(errors='replace')}", attribute.get_type())


def _attributes(found: Any) -> Iterator[h5py.h5a.AttrID]:
    return (h5py.h5a.open(found, index=k) for k in range(h5py.h5a.get_num_attrs(found)))


def _check_dataset(name: str, found: h5d.DatasetID, n_bytes: int) -> None:
    layout = found.get_create_plist()  # before its shape: to tell that, HDF5 would open what it is made of
    kind = layout.get_layout()
    if kind == h5d.VIRTUAL or layout.get_external_count():
        raise ContentError(f"{name} lies in other files, which files of ours do not")
    filters = {layout.get_filter(k)[0] for k in range(layout.get_nfilters())}
    if filters - FILTERS:
        raise ContentError(f"{name} is packed by filter {min(filters - FILTERS)}, known are gzip and shuffle")
    _check_type(name, found.get_type())
    size = found.get_type().get_size()
    said, stored = math.prod(found.shape) * size, found.get_storage_size()
    chunk = math.prod(layout.get_chunk()) * size if kind == h5d.CHUNKED else 0
    if chunk > MOST_CHUNK_BYTES:
        raise ContentError(f"{name} is cut into pieces of {chunk} bytes; {MOST_CHUNK_BYTES} is the most")
    held = stored * MOST_COMPRESSED if filters else stored
    if stored > n_bytes or said > held:
        raise ContentError(f"{name}: a shape of {found.shape} is more than its {min(stored, n_bytes)} bytes can hold")


def _check_type(name: str, found: h5t.TypeID) -> None:
    plain = isinstance(found, h5t.TypeIntegerID | h5t.TypeFloatID) or (
        isinstance(found, h5t.TypeStringID) and not found.is_variable_str()
    )
    flag = isinstance(found, h5t.TypeEnumID) and found.get_size() == 1  # how truth values are stored
    if not plain and not flag:
        raise ContentError(f"{name} holds {type(found).__name__}, neither numbers nor text of fixed length")


def check_number(found: Any, name: str, wanted: int) -> None:
    """Make sure that an attribute is this number.

    Raises
    ------
    ContentError
        If not.
    """
    if int(found.attrs[name]) != wanted:
        raise ContentError(f"{found.name}: {name} is {found.attrs[name]}, expected {wanted}")


def check_array(values: Any, kind: DTypeLike, *shape: int | None) -> None:
    """Compare the type and shape of an array, in memory or in a file, with what they must be; None: any length.

    Raises
    ------
    ContentError
        If they differ.
    """
    wanted, name = np.dtype(kind), getattr(values, "name", "an array")
    fits = len(values.shape) == len(shape) and all(
        n in (found, None) for found, n in zip(values.shape, shape, strict=True)
    )
    if values.dtype != wanted or not fits:
        sizes = " x ".join("any" if n is None else str(n) for n in shape)
        raise ContentError(f"{name}: {values.dtype} of shape {values.shape}, expected {wanted} of {sizes}")


def check_arrays(own: Mapping[str, np.ndarray], found: Mapping[str, Any]) -> None:
    """Make sure that arrays, in memory or in a file, have the names, types and shapes of others.

    Raises
    ------
    ContentError
        If one is missing, or more than is known, or differs.
    """
    if own.keys() != found.keys():
        names = [", ".join(sorted(each)) or "none" for each in (found, own)]
        raise ContentError(f"arrays {names[0]}; expected {names[1]}")
    for name, array in own.items():
        check_array(found[name], array.dtype, *array.shape)


def copy_arrays(own: Mapping[str, np.ndarray], found: Mapping[str, Any]) -> None:
    """Copy arrays, in memory or in a file, into those of the same names, once all are known to fit.

    Raises
    ------
    ContentError
        See ``check_arrays``; nothing has been copied by then.
    """
    check_arrays(own, found)
    for name, array in own.items():
        if isinstance(found[name], np.ndarray):
            array[...] = found[name]
        elif array.size:
            found[name].read_direct(array)


def check_below(values: Any, limit: int, lowest: int = 0) -> None:
    """Make sure that all integers of an array, in memory or in a file, are from ``lowest`` to ``limit - 1``.

    Raises
    ------
    ContentError
        If one is not.
    """
    for start, block in _blocks(values):
        if block.min() < lowest or block.max() >= limit:
            at = start + int(np.argmax((block < lowest) | (block >= limit)))
            name = getattr(values, "name", "an array")
            raise ContentError(f"{name}: {block[at - start]} at {at} is not from {lowest} to {limit - 1}")


def check_starts(values: Any, n: int) -> None:
    """Make sure that an array, in memory or in a file, begins with 0, never falls, and ends with ``n``.

    Raises
    ------
    ContentError
        If not.
    """
    name, last = getattr(values, "name", "an array"), 0
    for start, block in _blocks(values):
        if (start == 0 and block[0] != 0) or block[0] < last or (block[1:] < block[:-1]).any():
            raise ContentError(f"{name}: does not begin with 0, or falls, in or after entry {start}")
        last = int(block[-1])
    if last != n or values.shape[0] == 0:
        raise ContentError(f"{name}: ends with {last}, expected {n}")


def check_weights(values: Any) -> None:
    """Make sure that weights of rows, in memory or in a file, are finite, 0 or more, and not all 0.

    Raises
    ------
    ContentError
        If not.
    """
    name, some = getattr(values, "name", "an array"), values.shape[0] == 0
    for start, block in _blocks(values):
        right = np.isfinite(block) & (block >= 0)
        if not right.all():
            at = int(np.argmin(right))
            raise ContentError(f"{name}: {block[at]} at {start + at} is no weight, which is finite and 0 or more")
        some = some or bool(block.any())
    if not some:
        raise ContentError(f"{name}: all weights are 0")


def check_sets(starts: Any, classes: Any, n_samples: int, n_classes: int) -> None:
    """Make sure that the classes of each row, in memory or in a file, rise; a row may have none.

    Parameters
    ----------
    starts : array of shape (n_samples + 1,), int64
    classes : array, int32
        Those of row i lie from starts[i] to starts[i + 1] - 1.
    n_samples, n_classes : int

    Raises
    ------
    ContentError
        If they do not, or are no classes.
    """
    for _ in _sets(starts, classes, n_samples, n_classes, 0):
        pass


def check_label_sets(starts: Any, classes: Any, y: Any, n_classes: int) -> None:
    """As ``check_sets``, of labels, of which each row has some, and ``y`` is one.

    Parameters
    ----------
    starts : array of shape (n_samples + 1,), int64
    classes : array, int32
    y : array of shape (n_samples,), int32
    n_classes : int

    Raises
    ------
    ContentError
        If not.
    """
    for first, found, row in _sets(starts, classes, y.shape[0], n_classes, 1):
        labels = y[first : first + AT_A_TIME]
        holds = np.bincount(row[found == labels[row]], minlength=labels.shape[0])
        if not holds.all():
            name = getattr(classes, "name", "an array")
            raise ContentError(
                f"{name}: the first label of row {first + int(np.argmin(holds))} is none of its labels"
            )


def _sets(
    starts: Any, classes: Any, n_samples: int, n_classes: int, least: int
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Walk through checked classes, those of some rows at a time: the first of these, the classes, the row of each."""
    check_array(starts, np.int64, n_samples + 1)
    check_array(classes, np.int32, None)
    check_starts(starts, classes.shape[0])
    check_below(classes, n_classes)
    name = getattr(classes, "name", "an array")
    for first in range(0, n_samples, AT_A_TIME):
        ends = starts[first : first + AT_A_TIME + 1]
        counts, found = np.diff(ends), classes[int(ends[0]) : int(ends[-1])]
        if counts.min() < least:
            raise ContentError(f"{name}: row {first + int(np.argmin(counts))} has no label")
        row = np.repeat(np.arange(counts.size), counts)
        falls = (np.diff(found) <= 0) & (np.diff(row) == 0)
        if falls.any():
            raise ContentError(f"{name}: the labels of row {first + int(row[np.argmax(falls)])} do not rise")
        yield first, found, row


def _blocks(values: Any) -> Iterator[tuple[int, np.ndarray]]:
    """Walk through an array, a piece that stays in the cache at a time."""
    for start in range(0, values.shape[0], AT_A_TIME):
        yield start, values[start : start + AT_A_TIME]
