"""Where this program keeps what it may lose: compiled code and locks. Imports nothing heavy."""

import errno
import os
import stat
import tempfile
from pathlib import Path

CODE = "XSOFTMAX_NUMBA_CACHE"


def user_cache() -> Path:
    """Name this user's folder for what may be deleted at any time; it need not be there.

    Where nothing says where the user is at home, it lies among temporary files, by the user's number.
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):  # noqa: PTH117 - the standard says that others do not count
        return Path(named) / "xsoftmax"
    try:
        return Path.home() / ".cache" / "xsoftmax"
    except RuntimeError:  # neither HOME nor an entry among the users
        return Path(tempfile.gettempdir()) / f"xsoftmax-{os.getuid()}"


def compiled_code() -> Path:
    """Name the folder of compiled code, of which there is one below for each state of our sources."""
    named = os.environ.get(CODE)
    return Path(named) if named else user_cache() / "numba"


def folder_of_compiled_code(name: str) -> Path:
    """Make a folder below ``compiled_code``; in the user's cache, make sure that it is theirs.

    Raises
    ------
    OSError
        See ``own_folder``.
    """
    folder = compiled_code() / name
    if user_cache() in folder.parents:
        for each in (user_cache(), compiled_code(), folder):
            own_folder(each)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def own_folder(path: Path) -> Path:
    """Make a folder that only this user may write to, if it is not there, and make sure that it is theirs.

    Raises
    ------
    OSError
        If it cannot be made, if it, or a link of that name, is someone else's, or if everyone may write to it: who
        can put something there decides what runs.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if {path.lstat().st_uid, path.stat().st_uid} != {os.getuid()}:
        raise PermissionError(errno.EPERM, "belongs to someone else", str(path))
    if path.stat().st_mode & stat.S_IWOTH:
        raise PermissionError(errno.EPERM, "may be written to by everyone; delete it", str(path))
    return path
