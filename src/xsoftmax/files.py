"""Files appear whole or not at all, whoever else writes them."""

import glob
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """Give a path beside ``path`` to write to; on success it is synced and renamed, otherwise removed.

    The path is this process's own: of two that write the same file, on one machine or several, the later one's stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_left(path)
    aside = path.with_name(f"{_prefix(path)}{os.getpid()}.aside")
    try:
        yield aside
        with aside.open("rb") as written:
            os.fsync(written.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """Remove a file, if it is there, and what ``written_aside`` left of it in processes that were killed."""
    path.unlink(missing_ok=True)
    _remove_left(path)


def _remove_left(path: Path) -> None:
    """Remove what was left on this machine by processes that are no more; another machine's may be at work."""
    prefix = _prefix(path)
    for left in path.parent.glob(f"{glob.escape(prefix)}*.aside"):
        number = left.name.removeprefix(prefix).removesuffix(".aside")
        if number.isdecimal() and not _is_another(int(number)):
            left.unlink(missing_ok=True)


def _prefix(path: Path) -> str:
    return f".{path.name}.{platform.node()}."


def _is_another(pid: int) -> bool:
    """Whether another process of this number is running."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return pid != os.getpid()
