"""Look at the places of an experiment's files before Snakemake does, which ends in a traceback or waits for ever."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from xsoftmax.internal.errors import InputError


def check_places(name: str, placed: Callable[[str], str] = str) -> None:
    """Make sure that folders are folders, and that Snakemake can read to the end what lies in them.

    Parameters
    ----------
    name : str
        Of the experiment.
    placed : callable
        Where a folder is that rules name: another one if a module statement says so.

    Raises
    ------
    InputError
        If something is in the way of a folder, or is a FIFO, a socket or a device.
    """
    own = [f"{folder}/{name}" for folder in ("results", "logs", "benchmarks", "scratch")]
    prepared, raw, results, *others = (Path(placed(folder)) for folder in ("data/prepared", "data/raw", *own))
    for folder in (results, prepared, raw, *others):
        for each in (folder.parent, folder):
            if os.path.lexists(each) and not each.is_dir():
                raise InputError(f"{each}: not a folder, which has to be here; rename it, or delete it")
    for folder in (results, prepared):
        for path in _special(folder):
            raise InputError(
                f"{path}: neither a regular file nor a folder; delete it and start the same command again"
            )


def _special(folder: str | Path) -> Iterator[str]:
    """Go through what is neither file nor folder; links to folders are not followed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _special(entry.path)
        elif not (entry.is_file() or entry.is_dir()) and Path(entry).exists():
            yield entry.path
