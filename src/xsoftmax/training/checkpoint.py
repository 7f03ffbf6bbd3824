"""Checkpoints: a fit that is killed goes on from the last one and ends with the same bits."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.errors import InputError
from xsoftmax.sealed import opened, written_sealed


def write_checkpoint(
    path: Path, identity: str, arrays: Mapping[str, np.ndarray], progress: Mapping[str, Any]
) -> None:
    """Write arrays and progress: aside, sealed and renamed; stamped with what they belong to."""
    with written_sealed(path, "checkpoint") as file:
        file.attrs["identity"] = identity
        file.create_dataset("progress", data=json.dumps(progress))
        for name, array in arrays.items():
            file.create_dataset(f"arrays/{name}", data=array)


def read_checkpoint(path: Path, identity: str, arrays: Mapping[str, np.ndarray]) -> dict[str, Any] | None:
    """Read a checkpoint back into ``arrays`` and return the progress; None if there is none of this identity.

    A damaged one is as good as none, which is said on standard error: nothing of it has been read by then.
    """
    if not path.exists():
        return None
    try:
        with opened(path, ["checkpoint"], "training from the start") as file:
            if file.attrs["identity"] != identity:
                return None
            for name, array in arrays.items():
                if array.size:
                    file[f"arrays/{name}"].read_direct(array)
            return json.loads(file["progress"][()])
    except InputError as error:
        print(f"warning: {error}", file=sys.stderr)
        return None
