"""Read rows that no data set has, most often without labels, in the form that a data set was prepared from.

A reader that can read such rows has a function ``read_new(path, form)``, which gives texts or vectors, perhaps
``read_labelled(path, form)``, which gives them with labels, and ``NEW_ROWS``, the endings of the files it takes;
without endings it takes any file that no other reader takes, for models whose data it read. Endings are in lower case
here; those of files may be in upper case, and that of a compressed file may follow.
"""

from pathlib import Path
from types import ModuleType

from xsoftmax.data import checksum
from xsoftmax.data.reading import READERS
from xsoftmax.data.rows import Columns, Features, Form, Rows, Texts
from xsoftmax.data.text_lines import text_lines
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError

LINES = (".txt",)  # a text per line
SPARSE_TEXT = (".svm", ".svmlight", ".libsvm", ".txt")


def read_new_rows(path: str | Path, form: Form) -> Features:
    """Read a file by its ending, or as the training rows were read.

    Returns
    -------
    Texts, csr_array or ndarray

    Raises
    ------
    InputError
        If the file is missing or empty, its ending unknown, or its form does not fit.
    """
    path = file_of_rows(path)
    reader = _reader(path, form)
    if reader is None:
        found: Features = Texts(lambda: text_lines(path), sum(1 for _ in text_lines(path)))
    else:
        found = reader.read_new(path, form)
    if (len(found) if isinstance(found, Texts | Columns) else found.shape[0]) == 0:
        raise InputError(f"{path}: no row in it")
    return found


def read_labelled_rows(path: str | Path, form: Form) -> Rows:
    """Read a file of new rows with their labels; errors as of ``read_new_rows``, and if it can have no labels."""
    path = file_of_rows(path)
    reader = _reader(path, form)
    if reader is None or not hasattr(reader, "read_labelled"):
        raise InputError(f"{path}: rows of this form have no labels; give a table, svmlight or npz with them")
    return reader.read_labelled(path, form)


def file_of_rows(path: str | Path) -> Path:
    """Make sure that rows can be read from there, more than once; errors as of ``read_new_rows``."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path}: a folder, expected a file of rows")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: a pipe or device, expected a file: rows are read more than once")
    if not path.exists():
        raise InputError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty: there are no rows in it")
    return path


def _reader(path: Path, form: Form) -> ModuleType | None:
    """Choose the reader of a file; None for one text per line."""
    own = form.source.get("format")
    modules = {name: registry.load(READERS, name) for name in registry.names(READERS)}
    able = {name: module for name, module in modules.items() if hasattr(module, "read_new")}
    suffixes = [suffix.lower() for suffix in reversed(path.suffixes)]
    suffix = next((each for each in suffixes if each not in checksum.SUFFIXES.values()), "")
    by_suffix = [name for name, module in able.items() if suffix in module.NEW_ROWS]
    if by_suffix:
        return able[own if own in by_suffix else by_suffix[0]]
    if own in able and not able[own].NEW_ROWS:
        return able[own]
    plain = {"texts": LINES, "table": ()}.get(form.kind, SPARSE_TEXT)
    if suffix not in plain:
        known = sorted({*plain, *(each for module in able.values() for each in module.NEW_ROWS)})
        found = f"unknown ending {suffix!r}" if suffix else "no ending"
        raise InputError(f"{path}: {found}, which says how rows are to be read; known: {', '.join(known)}")
    return None if form.kind == "texts" else able["svmlight"]
