"""Checkpoints: a fit that is killed goes on from the last one and ends with the same bits."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from xsoftmax.errors import InputError
from xsoftmax.files import written_aside


def write_checkpoint(
    path: Path, identity: str, arrays: Mapping[str, np.ndarray], progress: Mapping[str, Any]
) -> None:
    """Write arrays and progress, aside and renamed, stamped with what they belong to."""
    with written_aside(path) as aside, h5py.File(aside, "w") as file:
        file.attrs["identity"] = identity
        file.create_dataset("progress", data=json.dumps(progress))
        for name, array in arrays.items():
            file.create_dataset(f"arrays/{name}", data=array)


def read_checkpoint(path: Path, identity: str, arrays: Mapping[str, np.ndarray]) -> dict[str, Any] | None:
    """Read a checkpoint back into ``arrays`` and return the progress; None if there is none of this identity.

    Raises
    ------
    InputError
        If the file can't be read: it was written whole, so the disk or someone has damaged it.
    """
    try:
        file = h5py.File(path, "r", locking=False)
    except OSError:  # none, or left by something else
        return None
    with file:
        if file.attrs.get("identity") != identity:
            return None
        try:
            for name, array in arrays.items():
                if array.size:
                    file[f"arrays/{name}"].read_direct(array)
            return json.loads(file["progress"][()])
        except OSError as error:
            raise InputError(f"{path}: damaged ({error}); remove it to train from the start") from error
