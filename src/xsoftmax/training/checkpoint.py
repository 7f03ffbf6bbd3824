"""Checkpoints: a fit that is killed goes on from the last one and ends with the same bits."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.internal.errors import InputError
from xsoftmax.internal.hdf5 import attribute, put, put_text, text_of
from xsoftmax.internal.hdf5_checks import check_array
from xsoftmax.internal.sealed import HDF5_SIGNATURE, opened, written_sealed

HEAD_BYTES = 4096  # of a file of HDF5, which tells its names there
NAMES = (b"checkpoint", b"identity", b"progress", b"arrays", b"xsoftmax_version")


def write_checkpoint(
    path: str | Path, identity: str, arrays: Mapping[str, np.ndarray], progress: Mapping[str, Any]
) -> None:
    """Write arrays and progress: aside, sealed and renamed; stamped with what they belong to."""
    with written_sealed(path, "checkpoint") as file:
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
    path: str | Path, identity: str, arrays: Mapping[str, np.ndarray], progress: Callable[..., Any] = dict
) -> Any:
    """Read a checkpoint back into ``arrays``, and make ``progress`` of what it says; None if it is not of this fit.

    A damaged one is as good as none, which is said on standard error: nothing of it has been read by then.
    """
    path = Path(path)
    if not path.exists():
        return None
    try:
        with opened(path, ["checkpoint"], "training from the start") as file:
            if attribute(file, "identity") != identity:
                return None
            for name, array in arrays.items():
                check_array(file[f"arrays/{name}"], array.dtype, *array.shape)
            found = progress(**json.loads(text_of(file["progress"])))
            for name, array in arrays.items():
                if array.size:
                    file[f"arrays/{name}"].read_direct(array)
            return found
    except InputError as error:
        print(f"warning: {error}", file=sys.stderr)
        return None
