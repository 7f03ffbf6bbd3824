"""HDF5 files that tell whether they are whole: they end with the SHA-256 of everything before.

HDF5 takes no notice of what follows its own last byte, so other programs read such a file as any other. What is
read here is checked as a whole first, at the speed of SHA-256: a bit that flips among the weights is no HDF5 error,
only a wrong number.
"""

import hashlib
import io
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import h5py

from xsoftmax import __version__
from xsoftmax.internal.errors import BAD_CONTENT, InputError, first_line
from xsoftmax.internal.files import written_aside
from xsoftmax.internal.hdf5 import attributes, put
from xsoftmax.internal.hdf5_checks import ContentError, check_plain

VERSIONS = {
    "prepared": 3,
    "model": 4,
    "proposal": 1,
    "checkpoint": 3,
    "checkpoint part": 1,
}  # kinds of file, and the schema of each
MAGIC = b"xsoftmax sealed\n"
CHECKSUM_BYTES = len(MAGIC) + hashlib.sha256().digest_size
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
READ_AT_ONCE = 2**22


class DamagedError(InputError):
    """A file is not as it was written."""


@contextmanager
def written_checksummed(path: str | Path, kind: str, **options: Any) -> Iterator[h5py.File]:
    """Give an HDF5 file to write to; on success it is checksummed, synced and renamed to ``path``, otherwise removed.

    Parameters
    ----------
    path : Path
    kind : str
        What it holds: one of ``VERSIONS``.
    **options
        Of ``h5py.File``.

    Raises
    ------
    OSError
        If it can't be written, such as on a full disk; what was at ``path`` is still there.
    """
    with written_aside(path) as aside:
        with _LateErrors(aside) as raw, h5py.File(raw, "w", **options) as file:
            put(file, kind=kind, schema_version=VERSIONS[kind], xsoftmax_version=__version__)
            yield file
        append_checksum(aside)


def append_checksum(path: Path) -> None:
    """Append the checksum to a file that has none."""
    with path.open("r+b") as file:
        digest = _digest(file, path.stat().st_size)
        file.seek(0, os.SEEK_END)
        file.write(MAGIC + digest)


def is_hdf5(path: Path) -> bool:
    """Tell whether a file is meant to be HDF5: by its first bytes, or its name if it is not there or empty."""
    if path.exists() and not path.is_file():  # opening a pipe would wait for its writer
        return False
    try:
        with path.open("rb") if path.is_file() else io.BytesIO() as file:
            head = file.read(len(HDF5_SIGNATURE))
    except OSError:
        head = b""
    return head == HDF5_SIGNATURE or (not head and path.suffix in (".h5", ".hdf5", ""))


def checksum_of(path: Path) -> str:
    """Read the SHA-256 that a file ends with, in hexadecimal digits; it is not compared with the content."""
    with path.open("rb") as file:
        file.seek(-CHECKSUM_BYTES, os.SEEK_END)
        return file.read()[len(MAGIC) :].hex()


def verify_checksum(path: Path) -> None:
    """Read a whole file and compare it with its checksum.

    Raises
    ------
    DamagedError
        If it was cut short or changed, or has no checksum, or is no regular file.
    """
    if not stat.S_ISREG(path.stat().st_mode):  # a FIFO would block for ever
        raise DamagedError(f"{path}: no regular file")
    with path.open("rb") as file:
        if file.read(len(HDF5_SIGNATURE)) != HDF5_SIGNATURE:
            raise DamagedError(f"{path}: not an HDF5 file, or damaged at its beginning")
        n_bytes = path.stat().st_size - CHECKSUM_BYTES
        file.seek(max(0, n_bytes))
        found = file.read()
        if not found.startswith(MAGIC):
            raise DamagedError(f"{path}: no checksum at its end: cut short, or not written by this xsoftmax")
        file.seek(0)
        if _digest(file, n_bytes) != found[len(MAGIC) :]:
            raise DamagedError(f"{path}: damaged: its content does not have the SHA-256 that it ends with")


@contextmanager
def opened(path: Path, kinds: Collection[str], remedy: str, whole: bool = True) -> Iterator[h5py.File]:
    """Open a file with a checksum, for as long as the context lasts, after a look at all of it.

    Parameters
    ----------
    path : Path
    kinds : collection of str
        What it may hold.
    remedy : str
        What to do if it cannot be used: ends the error message.
    whole : bool
        Whether the checksum is compared, which reads every byte; without it, read only what tells whose file it is.

    Raises
    ------
    InputError
        If the file is missing, of another kind or version; ``DamagedError`` if it is not as it was written.
    """
    with open_checksummed(path, kinds, remedy, whole) as file, reading(path, remedy):
        yield file


@contextmanager
def reading(path: Path, remedy: str) -> Iterator[None]:
    """Name the file and what to do, whatever goes wrong while something of it is read.

    Raises
    ------
    InputError
        If the content is not what it should be.
    """
    try:
        yield
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from error
    except BAD_CONTENT as error:
        said = str(error) if isinstance(error, ContentError) else first_line(error)
        raise InputError(f"{path}: not what xsoftmax writes ({said}); {remedy}") from error


def open_checksummed(path: Path, kinds: Collection[str], remedy: str, whole: bool = True) -> h5py.File:
    """Open a file with a checksum as ``opened`` does; the caller closes it."""
    if not path.is_file():
        raise InputError(f"{path}: {'no regular' if path.exists() else 'no such'} file; {remedy}")
    try:
        if whole:
            verify_checksum(path)
    except DamagedError as error:
        raise DamagedError(f"{error}; {remedy}") from None
    with ExitStack() as stack:
        with reading(path, remedy):
            file = stack.enter_context(h5py.File(path, "r", locking=False))
            check_plain(file, path.stat().st_size)
            found = attributes(file)
        kind, version = (str(found.get(key)) for key in ("kind", "schema_version"))
        if kind not in kinds:
            raise InputError(f"{path}: holds {kind!r}, not a {' or a '.join(kinds)}; {remedy}")
        if version != str(VERSIONS[kind]):
            raise InputError(f"{path}: {kind} of version {version}, this xsoftmax reads {VERSIONS[kind]}; {remedy}")
        stack.pop_all()
        return file


def _digest(file: BinaryIO, n_bytes: int) -> bytes:
    found = hashlib.sha256()
    while n_bytes > 0:
        block = file.read(min(n_bytes, READ_AT_ONCE))
        if not block:
            break
        found.update(block)
        n_bytes -= len(block)
    return found.digest()


class _LateErrors(io.RawIOBase):
    """A file for HDF5 to write to that keeps the first error for later.

    HDF5 does not get over an error: a file that it cannot write to cannot be closed either, and is tried again when
    Python ends. So it is told that all went well, and the error is raised once the file is closed.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w+b", buffering=0)
        self._error: OSError | None = None

    def close(self) -> None:
        """Close the file, and raise the first error, if there was one."""
        error, self._error = self._error, None
        self._file.close()
        super().close()
        if error is not None:
            raise error

    def write(self, values: Any) -> int:
        """Write all of them, unless something could not be written before."""
        view = memoryview(values).cast("B")
        written = 0
        while written < len(view) and self._error is None:
            try:
                written += self._file.write(view[written:])
            except OSError as error:
                self._error = error
        if self._error is not None:  # HDF5 goes on as if it had been written
            self._file.seek(len(view) - written, os.SEEK_CUR)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the length, which on a full disk is not possible either."""
        try:
            return self._file.truncate(size)
        except OSError as error:
            self._error = self._error or error
            return size or 0

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a place."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Tell the place."""
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, zeros where something could not be written."""
        n_bytes = self._file.readinto(buffer) or 0
        if n_bytes < len(buffer) and self._error is not None:
            memoryview(buffer).cast("B")[n_bytes:] = bytes(len(buffer) - n_bytes)
            return len(buffer)
        return n_bytes

    def flush(self) -> None:
        """Do nothing: there is no buffer."""
