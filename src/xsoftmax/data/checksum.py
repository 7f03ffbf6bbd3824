"""Checksums of files, of their decompressed content, and of folders."""

import bz2
import gzip
import hashlib
import io
import lzma
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from xsoftmax.internal.errors import InputError

BLOCK = 2**20
DAMAGED = (EOFError, OSError, lzma.LZMAError, zlib.error)  # what decompressing raises
MOST_COMPRESSED = 1032  # deflate's limit; xz and bz2 pass it only where all data are the same
# What comes out of a compressed file, at most, unless it is no more than so many times as large as that.
MOST_BYTES, MOST_TIMES = 4 * 2**30, 100
MAGIC = {b"\x1f\x8b": "gz", b"\xfd7zXZ\x00": "xz", b"BZh": "bz2"}
SUFFIXES = {"gz": ".gz", "xz": ".xz", "bz2": ".bz2"}


def of_file(path: Path) -> str:
    """Hash a file as it lies there."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_path(path: Path) -> str:
    """Hash a file, or a folder by its members."""
    if not path.is_dir():
        return of_file(path)
    members = (member for member in path.rglob("*") if member.is_file())
    return of_members({member.relative_to(path).as_posix(): of_file(member) for member in members})


def of_members(members: Mapping[str, str]) -> str:
    """Hash a tree: over its members' paths, in order, and their hashes."""
    digest = hashlib.sha256()
    for name, sha256 in sorted(members.items()):
        digest.update(f"{name}\0{sha256}\n".encode())
    return digest.hexdigest()


def compression(path: Path) -> str | None:
    """Tell by its first bytes how a file is compressed: ``gz``, ``xz``, ``bz2`` or not."""
    with path.open("rb") as file:
        head = file.read(6)
    return next((kind for magic, kind in MAGIC.items() if head.startswith(magic)), None)


def most_content(path: Path) -> int:
    """Bound the bytes that a file can hold, decompressed: a header that promises more is damaged."""
    return path.stat().st_size * (1 if compression(path) is None else MOST_COMPRESSED)


def open_content(path: Path) -> BinaryIO:
    """Open a file for reading its decompressed content.

    Reading raises `InputError` if far more comes out than a file of its size should hold.
    """
    kind = compression(path)
    if kind is None:
        return path.open("rb")
    opening = {"gz": gzip.GzipFile, "xz": lzma.LZMAFile, "bz2": bz2.BZ2File}[kind]
    return io.BufferedReader(_Bounded(opening(path), path), BLOCK)


class _Bounded(io.RawIOBase):
    """A decompressed content of which no more is read than a file of its size should hold."""

    def __init__(self, content: io.BufferedIOBase, path: Path) -> None:
        self._content, self._path = content, path
        self._left = max(MOST_BYTES, MOST_TIMES * path.stat().st_size)

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what there is at once: nothing before a damage is lost."""
        n_bytes = self._content.readinto1(buffer)
        self._left -= n_bytes
        if self._left < 0:
            raise InputError(
                f"{self._path}: more than {MOST_BYTES:,} bytes and {MOST_TIMES} times its size come out of it;"
                " if they are what they should be, decompress it yourself"
            )
        return n_bytes

    def close(self) -> None:
        """Close the file."""
        self._content.close()
        super().close()


def blocks(path: Path, size: int = BLOCK) -> Iterator[bytes]:
    """Read the decompressed content block by block; errors as in ``read``."""
    with open_content(path) as file:
        while block := read(path, file, size):
            yield block


def read(path: Path, file: BinaryIO, size: int) -> bytes:
    """Read up to ``size`` bytes of an open content.

    Raises
    ------
    InputError
        If the compressed data end early or are damaged.
    """
    try:
        return file.read(size)
    except DAMAGED as error:
        raise InputError(f"{path}: compressed data are truncated or damaged ({error}); fetch it again") from error
