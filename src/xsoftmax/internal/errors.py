"""Exceptions that the command line explains in a line, and what is to be done where the system refuses something."""

import errno
from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Say what was wrong, the value, and what to do; the command line prints it and exits with status 1."""


class StoppedError(Exception):
    """Someone asked a program to stop, which it did in good order; the command line exits with status 143."""


# What to do about errors of the system that a user can do something about; nothing that was there is lost by any.
REMEDIES = {
    errno.ENOSPC: "make room on the disk and run it again",
    errno.EDQUOT: "make room within your quota and run it again",
    errno.EFBIG: "the file would be larger than the file system or `ulimit -f` allows",
    errno.EROFS: "write somewhere else, or have it mounted to be written to",
    errno.EACCES: "ask for the right to it, or name another place",
    errno.EPERM: "ask for the right to it, or name another place",
    errno.ENOENT: "look at the path",
    errno.EISDIR: "name a file, or remove this folder",
    errno.ENOTDIR: "name a folder, or remove this file",
    errno.EEXIST: "name a folder, or remove this file",
    errno.ELOOP: "name the file itself",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EIO: "the disk or the network's file system has failed; look at it, then run it again",
    errno.ESTALE: "the network's file system has failed; look at it, then run it again",
    errno.EMFILE: "allow more open files: `ulimit -n 4096`",
}
# Those of the place that is written to, wherever what is written comes from: another source is no remedy.
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
# Which extra of pyproject.toml brings a module that commands import where they need it.
EXTRAS = {
    "PIL": "data",
    "torch": "gpu",
    "jsonschema": "pipeline",
    "pyarrow": "data",
    "jinja2": "report",
    "matplotlib": "report",
    "pandas": "report",
    "plotly": "report",
    "seaborn": "report",
    "faiss": "search",
    "fastapi": "serve",
    "prometheus_client": "serve",
    "uvicorn": "serve",
    "mlflow": "track",
    "sqlalchemy": "track",
}
# What a reader may raise over content that someone has damaged or made up, beside InputError.
BAD_CONTENT = (  # a RecursionError is a RuntimeError
    ArithmeticError, AttributeError, EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError,
)  # fmt: skip


def suggestion(name: object, known: Iterable[object]) -> str:
    """Say to someone who wrote an unknown name which are known, and which of them is near."""
    among = [str(each) for each in known]
    close = get_close_matches(str(name), among, n=1)
    return f"known: {', '.join(among) or 'none'}" + (f"; did you mean {close[0]!r}?" if close else "")


def as_line(error: BaseException) -> str:
    """Say what an exception means to whoever ran a command: what, the value, what to do."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, MemoryError) or _finds_no_memory(error):
        said = f" ({first_line(error)})" if str(error) else ""
        return f"not enough memory{said}; free some, or ask for less: fewer features, classes or rows at a time"
    if isinstance(error, ModuleNotFoundError) and (module := str(error.name).partition(".")[0]) in EXTRAS:
        return f"{module} is not installed, which this needs; type: pip install 'xsoftmax[{EXTRAS[module]}]'"
    if isinstance(error, RecursionError):
        return "something in the input is nested too deeply; make it flatter"
    if isinstance(error, OSError) and error.errno is not None:
        where = f"{error.filename}: " if error.filename else ""
        remedy = REMEDIES.get(error.errno)
        return f"{where}{error.strerror or error}{remedy and '; '}{remedy or ''}"
    return f"{first_line(error)}; this should not happen: run it again with --traceback, and report what it prints"


def _finds_no_memory(error: BaseException) -> bool:
    """Whether a library could not be loaded, or a program not be started, for want of memory."""
    causes = [each for each in (error, error.__cause__, error.__context__) if isinstance(each, OSError | ImportError)]
    return any(
        getattr(each, "errno", None) == errno.ENOMEM or "failed to map segment" in str(each) for each in causes
    )


def first_line(error: BaseException) -> str:
    """Name an exception and give the first line of what it says."""
    said = str(error).strip().splitlines()
    return f"{type(error).__name__}: {said[0]}" if said else type(error).__name__
