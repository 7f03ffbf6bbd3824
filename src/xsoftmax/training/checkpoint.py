"""Checkpoints: a fit that is killed goes on from the last one and ends with the same bits."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from xsoftmax.internal.checksummed import HDF5_SIGNATURE, opened, written_checksummed
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5 import attribute, put, put_text, text_of
from xsoftmax.internal.hdf5_checks import ContentError

HEAD_BYTES = 4096  # of a file of HDF5, which tells its names there
NAMES = (b"checkpoint", b"identity", b"progress", b"arrays", b"xsoftmax_version")


def write_checkpoint(
    path: str | Path, identity: str, arrays: Mapping[str, np.ndarray], progress: Mapping[str, Any]
) -> None:
    """Write arrays and progress: aside, with a checksum, and renamed; stamped with what they belong to."""
    with written_checksummed(path, "checkpoint") as file:
        put(file, identity=identity)
        put_text(file, "progress", json.dumps(progress))
        for name, array in arrays.items():
            file.create_dataset(f"arrays/{name}", data=array)


def check_checkpoint(path: Path) -> None:
    """Refuse a file that is something else: a fit replaces its checkpoint, and removes it when it is done.

    A damaged checkpoint still has most of its names, and an empty file has nothing to lose.

    Raises
    ------
    InputError
        If it is there and no checkpoint, nor what is left of one.
    """
    if not path.exists():
        return
    if not path.is_file():
        raise InputError(f"{path}: is no regular file; name a file for --checkpoint")
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if sum(name in head for name in NAMES) < len(NAMES) // 2 + 1 and not _is_cut_short(head):
        raise InputError(f"{path}: is no checkpoint, and would be replaced; name another file for --checkpoint")


def _is_cut_short(head: bytes) -> bool:
    """Whether HDF5 ends before it tells anything: within its first block, which tells where it ought to end."""
    end = int.from_bytes(head[40:48], "little")
    return HDF5_SIGNATURE.startswith(head[:8]) and len(head) < min(HEAD_BYTES, max(end, 48))


def read_checkpoint(
    path: str | Path,
    identity: str,
    restore: Callable[[Mapping[str, Any]], None],
    progress: Callable[..., Any] = dict,
) -> Any:
    """Give a checkpoint's arrays to ``restore`` and make ``progress`` of what it says; None if it is of another fit.

    A damaged checkpoint, or one that ``restore`` refuses, is as good as none, which is said on standard error.

    Parameters
    ----------
    path : Path
    identity : str
        What ``write_checkpoint`` stamped it with.
    restore : callable
        Takes the arrays by name. They are still in their file: ``dtype``, ``shape`` and ``nbytes`` are known, and
        ``[...]`` reads. It refuses what does not fit with a ContentError or an InputError, before any change.
    progress : callable

    Raises
    ------
    InputError
        If the disk fails while ``restore`` reads, so that some arrays are restored and some are not.
    """
    path = Path(path)
    if not path.exists():
        return None
    failure: OSError | None = None
    try:
        with opened(path, ["checkpoint"], "training from the start") as file:
            if attribute(file, "identity") != identity:
                said = "is of a fit with other data, settings or code; training begins anew, and replaces it"
                print(f"warning: {path} {said}", file=sys.stderr)
                return None
            arrays = {name: in_one_piece(array, path) for name, array in file["arrays"].items()}
            found = progress(**json.loads(text_of(file["progress"])))
            try:
                restore(arrays)
            except OSError as error:
                failure = error
    except InputError as error:
        print(f"warning: {error}", file=sys.stderr)
        return None
    if failure is not None:
        raise InputError(f"{path}: cannot be read ({failure}); run it again, or delete it to train from the start")
    return found


def in_one_piece(array: Any, path: Path) -> h5py.Dataset:
    """Make sure that reading an array cannot fail halfway: all of its bytes lie in the file, as they are."""
    if not isinstance(array, h5py.Dataset):
        raise ContentError(f"{array.name} is no array")
    begin = array.id.get_offset() if array.nbytes else 0
    if array.chunks is not None or begin is None or begin + array.nbytes > path.stat().st_size:
        raise ContentError(f"{array.name} does not lie in the file in one piece")
    return array
