"""Files appear whole or not at all, whoever else writes them, and where they were meant to."""

import errno
import fcntl
import glob
import json
import os
import platform
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from xsoftmax.internal.errors import InputError

SECONDS_BETWEEN_TRIES = 0.2
SILENT_SECONDS = 3.0
LOCK = ".lock"  # in a folder that is in use


class BusyError(InputError):
    """Another program has held a lock for too long."""


def expanded(path: str | Path) -> Path:
    """Put the folder where a user is at home in the place of ``~`` or ``~name``.

    Raises
    ------
    InputError
        If there is no such user, or nothing says where the folder is.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(f"{path}: no such user's folder; write the path out, or ./~ for a name like that") from None


def write_text(path: str | Path, text: str) -> None:
    """Write a text as ``written_aside`` does, in UTF-8."""
    with written_aside(path) as aside:
        aside.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any, indent: int = 1) -> None:
    """Write a value as JSON with a newline behind it, as ``written_aside`` does."""
    write_text(path, json.dumps(value, indent=indent) + "\n")


@contextmanager
def written_aside(path: str | Path) -> Iterator[Path]:
    """Give a path beside ``path`` to write to; on success it is synced and renamed, otherwise removed.

    The path is this process's own: of two that write the same file, on one machine or several, the later one's stays.
    A link is followed: the file that it leads to is replaced, and keeps its mode. What is no regular file, such as
    /dev/stdout or a pipe, gets the content once it is whole.

    Raises
    ------
    OSError
        If it can't be written; what was at ``path`` is still there.
    """
    path = Path(path)
    found = _status(path)
    if found is not None and (not stat.S_ISREG(found.st_mode) or _descriptor_of(found) is not None):
        with tempfile.TemporaryDirectory() as folder:
            aside = Path(folder) / "aside"
            yield aside
            with aside.open("rb") as written, _opened_straight(path, found) as stream:
                shutil.copyfileobj(written, stream)
        return
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_left(target)
    aside = target.with_name(f"{_prefix(target)}{os.getpid()}.aside")
    try:
        yield aside
        with aside.open("rb") as written:
            os.fsync(written.fileno())
        if found is not None:
            aside.chmod(stat.S_IMODE(found.st_mode))
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def folder_aside(path: str | Path) -> Iterator[Path]:
    """Give an empty folder beside ``path``, for what is made on the way to it; it is removed at the end.

    Beside what is no regular file, such as /dev/stdout, nothing is written: the folder is among temporary ones.
    """
    found = _status(Path(path))
    if found is not None and not stat.S_ISREG(found.st_mode):
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    target = Path(os.path.realpath(path))
    for lock in target.parent.glob(f"{glob.escape(_prefix(target))}*.folder/{LOCK}"):
        with suppress(OSError):
            if (unused := _take(lock)) is not None:  # whoever made it has been killed
                try:
                    shutil.rmtree(lock.parent)
                finally:
                    os.close(unused)
    folder = Path(tempfile.mkdtemp(".folder", _prefix(target), target.parent))
    held = None
    try:
        with suppress(OSError):  # where files cannot be locked, nothing is found to be left
            held = _take(folder / LOCK)
        if held is None:
            (folder / LOCK).unlink(missing_ok=True)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if held is not None:
            os.close(held)


def remove(path: str | Path) -> None:
    """Remove a file, if it is there, and what ``written_aside`` left of it in processes that were killed."""
    target = Path(os.path.realpath(path))
    target.unlink(missing_ok=True)
    _remove_left(target)


@contextmanager
def locked(path: Path, what: str, seconds: float = 600.0) -> Iterator[None]:
    """Hold a lock file that one program at a time holds.

    Parameters
    ----------
    path : Path
        It is made if it is not there, and never a link that is followed or a file that is changed.
    what : str
        What for, in messages: after a few seconds it is said that one waits.
    seconds : float
        How long to wait.

    Raises
    ------
    BusyError
        If another program holds it for longer.
    OSError
        If there cannot be such a file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    began, said = time.monotonic(), False
    while (descriptor := _take(path)) is None:
        waited = time.monotonic() - began
        if waited >= seconds:
            raise BusyError(f"{path}: another program has held it for more than {seconds:g} s; {what} later")
        if waited >= SILENT_SECONDS and not said:
            said = True
            print(f"waiting for another program, which holds {path}, for {seconds:.0f} s at most", file=sys.stderr)
        time.sleep(min(SECONDS_BETWEEN_TRIES, max(0.0, seconds - waited)))
    try:
        yield
    finally:
        os.close(descriptor)


def _take(path: Path) -> int | None:
    """Open a lock file and lock it; None if another program has."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InputError(f"{path}: is no regular file, and so no lock; remove it")
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _status(path) is not None and os.path.samestat(os.fstat(descriptor), path.lstat()):
            return descriptor
    except BlockingIOError:
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)  # held by another program, or removed by the one that held it
    return None


def _status(path: Path) -> os.stat_result | None:
    """What a path leads to; None if there is nothing, an error if that is a folder or cannot be told."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return found


def _descriptor_of(found: os.stat_result) -> int | None:
    """Tell whether a file is this process's own output, by whatever name, and which."""
    for descriptor in (1, 2):
        with suppress(OSError):
            if os.path.samestat(found, os.fstat(descriptor)):
                return descriptor
    return None


def _opened_straight(path: Path, found: os.stat_result) -> BinaryIO:
    """Open a device, a pipe, or what this process already writes to, where it is."""
    descriptor = _descriptor_of(found)
    if descriptor is None:
        return path.open("wb")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return os.fdopen(os.dup(descriptor), "wb")


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
