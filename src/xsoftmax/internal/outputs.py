"""What a verb writes is none of what it reads: looked at before anything is read, by the file and not by its name."""

import argparse
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from xsoftmax.internal.errors import InputError

FILES = ("model.h5", "history.csv", "status.json", "metrics.json")  # of a fit
CHOSEN = "chosen.json"  # of a search
WRITTEN = (
    "output",
    "contexts",
    "checkpoint",
    "figure",
    "json",
    "live",
    "scores",
)  # options that name what is written; all other paths are read
OF_TRIALS = tuple(f"*/{name}" for name in FILES)
READ_IN = {  # what is read in the folders that an option names
    "raw": ("**/*",),
    "fits": FILES,
    "trials": OF_TRIALS,
    "searches": (CHOSEN, *OF_TRIALS),
    "results": ("*.csv", "*.json", "*.md", "figures/*"),
}


class Named(NamedTuple):
    """A path, and the option that names it."""

    path: Path
    option: str


def file_to_write(text: str) -> Path:
    """Read an option that names a file, for `argparse`; a folder is refused, there or not."""
    if text.endswith(os.sep) or Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"{text} names a folder; name a file")
    return Path(text)


def check_outputs(options: argparse.Namespace, writes: Sequence[str] = (), words: Iterable[str] = ()) -> None:
    """Refuse to write to a file that the same verb reads, by whatever name or link, and twice to the same.

    Parameters
    ----------
    options : argparse.Namespace
        Of a verb.
    writes : sequence of str
        The names of the files that the verb writes, if its output is a folder.
    words : iterable of str
        The command line, for files of words: ``@file``.

    Raises
    ------
    InputError
        If a file is both.
    """
    written = list(_written(options, writes))
    for one, another in combinations(written, 2):
        if one.option != another.option and _are_the_same(one.path, another.path):
            raise InputError(f"{one.option} and {another.option} both write {one.path}; name another file for one")
    check_not_read(written, _read(options, words))


def check_not_read(written: Iterable[Named], read: Iterable[Path]) -> None:
    """Refuse to write to any of the files that are read.

    Raises
    ------
    InputError
        If a file is both.
    """
    there = {identity: each for each in written if (identity := _identity(each.path)) is not None}
    if not there:
        return
    for path in read:
        found = _identity(path)
        if found is not None and found in there:
            each = there[found]
            also = "" if each.path == path else f" (as {path})"
            raise InputError(f"{each.option} {each.path} is also what is read{also}, and would be lost; name another")


def _written(options: argparse.Namespace, writes: Sequence[str]) -> Iterator[Named]:
    for name in WRITTEN:
        path = getattr(options, name, None)
        if isinstance(path, Path):  # not so of a flag, such as --json of some verbs
            option = "-o" if name == "output" else f"--{name}"
            inside = writes if name == "output" else ()
            yield from (Named(each, option) for each in ([path / file for file in inside] or [path]))


def _read(options: argparse.Namespace, words: Iterable[str]) -> Iterator[Path]:
    """List the files that are read, as far as options name them or folders of them."""
    yield from (Path(word[1:]) for word in words if word.startswith("@"))
    for name, value in vars(options).items():
        if name in WRITTEN:
            continue
        for path in value if isinstance(value, list) else [value]:
            if isinstance(path, Path):
                yield path
                for pattern in READ_IN.get(name, ()):
                    yield from path.glob(pattern)


def _are_the_same(one: Path, another: Path) -> bool:
    """Whether two paths lead to the same file, or will once it is there."""
    found = _identity(one)
    if found is not None:
        return found == _identity(another)
    return not one.exists() and os.path.realpath(one) == os.path.realpath(another)


def _identity(path: Path) -> tuple[int, int] | None:
    """Tell a regular file from all others; None of what is none: nothing is lost in a terminal or a pipe."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
