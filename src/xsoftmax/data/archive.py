"""Unpack archives safely: nothing outside the target, no links or devices, limits on size and count."""

import hashlib
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, cast

from xsoftmax.data import checksum
from xsoftmax.data.config import Archive
from xsoftmax.internal.errors import InputError

BLOCK = 2**18
# What may stand between the contents of two entries, or after the last: their headers, which are read whole.
HEADERS = 2**20
# RuntimeError: of a zip that is compressed in a way that Python does not know.
DAMAGE = (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, lzma.LZMAError, zlib.error, RuntimeError)


class Member(NamedTuple):
    """One entry: its name as packed, what it is, its declared size, and its content."""

    name: str
    kind: str
    size: int
    content: IO[bytes] | None


class Unpacked(NamedTuple):
    """The tree checksum and the sum of the sizes."""

    sha256: str
    size: int


def unpack(path: Path, target: Path, options: Archive) -> Unpacked:
    """Unpack a tar (of any compression) or zip archive into ``target``, which must not exist.

    With ``options.members``, only these folders, found at any depth, are kept, and stand at the top. Hidden
    entries and those of ``__MACOSX`` are left out.

    Raises
    ------
    InputError
        If the archive is damaged or not one, an entry would lie outside the target, an entry that is kept is
        neither file nor folder, or there is more in it, kept or not, than the limits allow.
    """
    target.mkdir(parents=True)
    hashes: dict[str, str] = {}
    total = 0
    try:
        for count, member in enumerate(_members(path, options.max_bytes), 1):
            if count > options.max_files:
                raise InputError(f"{path.name}: more than {options.max_files} entries; raise archive.max_files")
            relative = _inside(member.name, path.name, options.members)
            if relative is None or member.kind == "folder":
                continue
            if member.kind != "file" or member.content is None:
                raise InputError(
                    f"{path.name}: {member.name!r} is a {member.kind}; only files and folders are unpacked"
                )
            if relative.as_posix() in hashes:
                raise InputError(f"{path.name}: {member.name!r} comes twice; is this the right archive?")
            left = options.max_bytes - total
            sha256, size = _write(member, member.content, target / relative, left, path.name)
            hashes[relative.as_posix()] = sha256
            total += size
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the disk; decompressors give no number
            raise
        raise InputError(f"{path.name}: the archive is truncated or damaged ({error}); fetch it again") from error
    if not hashes:
        wanted = ", ".join(options.members) or "a file"
        raise InputError(f"{path.name}: nothing to unpack; expected {wanted} in it")
    return Unpacked(checksum.of_members(hashes), total)


def _inside(name: str, archive: str, members: tuple[str, ...]) -> PurePosixPath | None:
    """Say where an entry goes, relative to the target; None if it is not wanted."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if ".." in parts or name.startswith("/") or "\\" in name or (parts and parts[0].endswith(":")):
        raise InputError(f"{archive}: entry {name!r} would lie outside the target; nothing was kept")
    if any(part.startswith(".") or part == "__MACOSX" for part in parts):
        return None
    if not members:
        return PurePosixPath(*parts) if parts else None
    for depth, part in enumerate(parts):
        if part in members:
            return PurePosixPath(*parts[depth:])
    return None


def _write(member: Member, content: IO[bytes], path: Path, left: int, archive: str) -> tuple[str, int]:
    """Write one file; what an archive says about its size is not believed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with path.open("xb") as file:
        while block := content.read(BLOCK):
            size += len(block)
            if size > left:
                raise _too_much(archive)
            digest.update(block)
            file.write(block)
    if size != member.size:
        raise InputError(f"{archive}: {member.name!r} has {size} bytes, the archive says {member.size}")
    return digest.hexdigest(), size


def _too_much(archive: str) -> InputError:
    return InputError(f"{archive}: more than the allowed bytes come out of it; raise archive.max_bytes")


def _members(path: Path, max_bytes: int) -> Iterator[Member]:
    if zipfile.is_zipfile(path):
        yield from _zip_members(path)
    else:
        yield from _tar_members(path, max_bytes)


class _Allowance:
    """A stream of which only ``left`` bytes may be read: tarfile reads a header whole, however long it says it is."""

    def __init__(self, stream: IO[bytes], archive: str) -> None:
        self._stream, self._archive, self.left = stream, archive, HEADERS

    def read(self, size: int) -> bytes:
        """Read as from any stream."""
        block = self._stream.read(size)
        self.left -= len(block)
        if self.left < 0:
            raise _too_much(self._archive)
        return block


def _tar_members(path: Path, max_bytes: int) -> Iterator[Member]:
    """List the entries of a tar; what a caller leaves of one is read on, so that the next bytes are headers."""
    with checksum.open_content(path) as packed:
        allowed, total = _Allowance(packed, path.name), 0
        with tarfile.open(fileobj=cast(IO[bytes], allowed), mode="r|") as archive:
            for entry in archive:
                total += entry.size
                if total > max_bytes:
                    raise _too_much(path.name)
                kind = "file" if entry.isreg() else "folder" if entry.isdir() else "link or device"
                content = archive.extractfile(entry) if entry.isreg() else None
                allowed.left = entry.size + HEADERS
                yield Member(entry.name, kind, entry.size, content)
                while content is not None and content.read(BLOCK):
                    pass
                allowed.left = HEADERS
        # tarfile is content without an end; the decompressor is not
        while allowed.read(BLOCK):
            pass


def _zip_members(path: Path) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            mode = entry.external_attr >> 28
            if entry.is_dir():
                yield Member(entry.filename, "folder", 0, None)
            elif mode not in (0, 8):
                yield Member(entry.filename, "link or device", 0, None)
            elif entry.flag_bits & 1:
                raise InputError(f"{path.name}: {entry.filename!r} is encrypted; unpack it, and name the file")
            else:
                with archive.open(entry) as content:
                    yield Member(entry.filename, "file", entry.file_size, content)
