"""Checkpoints: a fit that is killed goes on from the last one and ends with the same bits."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.errors import InputError
from xsoftmax.hdf5 import attribute, put, put_text, text_of
from xsoftmax.hdf5_checks import check_array
from xsoftmax.sealed import opened, written_sealed


def write_checkpoint(
    path: str | Path, identity: str, arrays: Mapping[str, np.ndarray], progress: Mapping[str, Any]
) -> None:
    """Write arrays and progress: aside, sealed and renamed; stamped with what they belong to."""
    with written_sealed(path, "checkpoint") as file:
        put(file, identity=identity)
        put_text(file, "progress", json.dumps(progress))
        for name, array in arrays.items():
            file.create_dataset(f"arrays/{name}", data=array)


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
