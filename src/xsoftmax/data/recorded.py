"""Checksums of files that come from the web without one: recorded at the first download, enforced from then on.

They stand beside the description of the data set, in ``<name>.sha256``, to be committed with it; a line for each
file, ``<sha256>  <name>``, of what ``sha256`` in the description would be of.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from xsoftmax.data.config import SHA256, DatasetConfig, Source
from xsoftmax.data.raw import Entry
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import write_text


def record_of(config: DatasetConfig) -> Path:
    """Say where the checksums of a data set are recorded."""
    return config.folder / f"{config.files_of}.sha256"


def needs_record(source: Source) -> bool:
    """Whether a file comes from the web, and the description has no checksum of it."""
    from_web = any(urlsplit(url).scheme in ("http", "https") for url in source.urls)
    return from_web and source.path is None and source.sha256 is None


def pinned(config: DatasetConfig) -> tuple[Source, ...]:
    """Give the files of a data set, each with the checksum that was recorded where the description has none."""
    if not any(needs_record(source) for source in config.files):
        return config.files
    known = _read(record_of(config))
    return tuple(
        replace(source, sha256=known.get(source.name)) if needs_record(source) else source for source in config.files
    )


def record(config: DatasetConfig, entries: Mapping[str, Entry]) -> None:
    """Write down the checksums of what was downloaded, if they are not there yet.

    Raises
    ------
    InputError
        If that is not possible.
    """
    found = {
        source.name: entries[source.name]["file_sha256" if source.of == "file" else "sha256"]
        for source in config.files
        if needs_record(source)
    }
    path = record_of(config)
    if not found or _read(path) == found:
        return
    lines = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(found.items()))
    try:
        write_text(path, lines)
    except OSError as error:
        raise InputError(
            f"{path}: cannot record the checksums ({error.strerror}); make the folder writable, or set sha256 in"
            f" (a copy of) the description:\n{lines.rstrip()}"
        ) from error


def _read(path: Path) -> dict[str, str]:
    known: dict[str, str] = {}
    if path.exists():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            sha256, _, name = line.partition("  ")
            if not SHA256.fullmatch(sha256) or not name:
                raise InputError(f"{path}, line {number}: expected '<sha256>  <file name>', found {line[:80]!r}")
            known[name] = sha256
    return known
