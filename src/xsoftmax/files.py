"""Files appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """Give a path beside ``path`` to write to; on success it is synced and renamed, otherwise removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = _aside(path)
    try:
        yield aside
        with aside.open("rb") as written:
            os.fsync(written.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Remove a file, if it is there, and what a killed ``written_aside`` left of it."""
    path.unlink(missing_ok=True)
    _aside(path).unlink(missing_ok=True)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.aside")
