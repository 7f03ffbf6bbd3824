"""Folders of raw text: one folder per class, one file per text."""

from collections.abc import Iterator
from pathlib import Path

from xsoftmax.data.encoding import text_encoding
from xsoftmax.data.rows import Rows, Texts
from xsoftmax.internal.errors import InputError


def read(*, data: Path, encoding: str = "utf-8", skip_header: bool = False) -> Rows:
    """Read the files of all folders in ``data``, in order of their names; hidden ones are passed over.

    Parameters
    ----------
    data : Path
        Folder of folders.
    encoding : str
        Of the files.
    skip_header : bool
        Begin after the first blank line, as in mail and news messages.
    """
    text_encoding(encoding)
    if not data.is_dir():
        raise InputError(f"{data}: expected a folder with one folder per class")
    folders = [folder for folder in sorted(data.iterdir()) if folder.is_dir() and folder.name[0] != "."]
    files = [file for folder in folders for file in sorted(folder.iterdir()) if file.name[0] != "."]
    if odd := next((file for file in files if not file.is_file()), None):
        kind = "a folder" if odd.is_dir() else "a link to nothing" if odd.is_symlink() else "no file"
        raise InputError(f"{odd}: {kind}; expected one folder per class and in it a file per text: take it away")
    if not files:
        raise InputError(f"{data}: no texts in it; expected one folder per class and a file per text")

    def walk() -> Iterator[str]:
        return (_text(file, encoding, skip_header) for file in files)

    return Rows.with_names(Texts(walk, len(files)), [file.parent.name for file in files])


def _text(file: Path, encoding: str, skip_header: bool) -> str:
    try:
        text = file.read_bytes().decode(text_encoding(encoding))
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        found = error.object[error.start : error.start + 4]
        raise InputError(
            f"{file}, line {line}: not {encoding}: {found!r}; set options.encoding, such as latin-1"
        ) from error
    if skip_header:
        text = text.replace("\r\n", "\n").partition("\n\n")[2]
    return text
