"""Fetch the raw files of a data set; nothing is called good before its checksum was compared."""

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from xsoftmax.data import archive, checksum, recorded
from xsoftmax.data.config import DatasetConfig, Source
from xsoftmax.data.fetch import FetchError, Patience, fetch
from xsoftmax.data.raw import RECEIPT, Entry, read_receipt, write_receipt
from xsoftmax.internal.addresses import without_secrets
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import expanded, locked

MISMATCH = "sha256 of the download is"
LOCKED_SECONDS = 3600.0  # that one waits for another program to download the same


@dataclass(frozen=True)
class Origin:
    """An address to try; ``optional`` ones are not worth a word if they are not there."""

    url: str
    optional: bool = False


def download(
    config: DatasetConfig, target: str | Path, mirror: str | None = None, patience: Patience | None = None
) -> Path:
    """Fetch what is missing, check it, unpack it, and write the receipt last.

    What comes from the web without a checksum is checked against what the first download of it recorded. Of several
    programs that do so at once, one downloads, and the others wait for it.

    Parameters
    ----------
    config : DatasetConfig
    target : path
        Folder for the raw files: contents decompressed, archives unpacked.
    mirror : str, optional
        Folder or address that is tried first.
    patience : Patience, optional
        Attempts, pauses and stall timeout.

    Returns
    -------
    Path
        The receipt.

    Raises
    ------
    InputError
        If a file cannot be had, or none that can has the expected checksum; nothing of it is left as good.
    BusyError
        If another program has been at it for an hour.
    """
    target = Path(target).absolute()
    target.mkdir(parents=True, exist_ok=True)
    with _alone(config.name, target):
        return _download(config, target, mirror, patience or Patience())


@contextmanager
def _alone(dataset: str, target: Path) -> Iterator[None]:
    """Keep other programs away from a folder; one that stands where nothing can be written is only looked at."""
    if not os.access(target.parent, os.W_OK):
        yield
        return
    lock = target.with_name(f".{target.name}.lock")
    with locked(lock, f"download {dataset}", LOCKED_SECONDS):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)  # while it is held: whoever waits for it makes another


def _download(config: DatasetConfig, target: Path, mirror: str | None, patience: Patience) -> Path:
    before = read_receipt(target)
    known = before or {}
    entries = {}
    for source in recorded.pinned(config):
        entry = known.get(source.name)
        if source.path is not None:
            entries[source.name] = _local(config, source)
        elif entry is not None and _still_good(source, entry, target / source.name):
            entries[source.name] = entry
        else:
            entries[source.name] = _obtain(config, source, target, mirror, patience)
    recorded.record(config, entries)
    receipt = target / RECEIPT
    if entries != before:
        write_receipt(target, config.name, entries)
    _remove(_parts(target))
    return receipt


def _parts(target: Path) -> Path:
    """Name the folder for what is not whole yet: beside the target, which Snakemake deletes after a failure."""
    return target.with_name(f".{target.name}.part")


def _local(config: DatasetConfig, source: Source) -> Entry:
    """Check a file that the user has; it stays where it is."""
    path = config.local_path(source)
    if not path.exists():
        raise InputError(f"{config.name}: files: no file {source.path}, looked for {path}")
    if not path.is_file() and not path.is_dir():
        raise InputError(f"{config.name}: files: {path} is neither a file nor a folder; copy what it gives to a file")
    sha256 = checksum.of_path(path)
    if source.sha256 not in (None, sha256):
        raise InputError(_mismatch(config.name, source, str(path), sha256))
    return {"path": str(path), "sha256": sha256}


def _still_good(source: Source, entry: Entry, path: Path) -> bool:
    promised = entry.get("file_sha256") if source.of == "file" else entry["sha256"]
    if source.sha256 not in (None, promised) or not path.exists():
        return False
    return bool(checksum.of_path(path) == entry["sha256"])


def _obtain(config: DatasetConfig, source: Source, target: Path, mirror: str | None, patience: Patience) -> Entry:
    """Try all origins in order; the first that gives the expected content wins."""
    problems = []
    for origin in _origins(config, source, mirror):
        try:
            entry = _obtain_from(config.name, source, origin.url, target, patience)
        except (FetchError, InputError) as error:
            if not (origin.optional and _absent(error)):
                problems.append(str(error))
                print(f"{config.name}: {error}", file=sys.stderr)
            continue
        print(f"{config.name}: {source.name} is here, from {without_secrets(origin.url)}", file=sys.stderr)
        if source.sha256 is None and _anyone_could_change(origin.url):
            print(
                f"warning: {config.name}: {source.name} came without encryption and nothing says what it should be: "
                f"compare its sha256 with someone else's: {entry.get('file_sha256', entry['sha256'])}",
                file=sys.stderr,
            )
        return entry
    if any(MISMATCH in problem for problem in problems) and source not in config.files:
        problems.append(
            f"what is expected was recorded at the first download, in {recorded.record_of(config)};"
            " remove the line there to accept what the host gives now"
        )
    reasons = "\n  ".join(problems) or "no address to try; set a mirror that has it"
    raise InputError(f"{config.name}: could not get {source.name}:\n  {reasons}")


def _anyone_could_change(url: str) -> bool:
    """Whether whoever stands between us and a host could have changed what it gave."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1")


def _absent(error: Exception) -> bool:
    text = str(error)
    return isinstance(error, FetchError) and ("HTTP status 404" in text or "No such file" in text)


def _origins(config: DatasetConfig, source: Source, mirror: str | None) -> Iterator[Origin]:
    """List addresses: the mirror's, perhaps compressed there, then the upstream ones."""
    if mirror:
        inside = source.mirror or f"{config.files_of}/{source.name}"
        base = mirror if "://" in mirror else expanded(mirror).absolute().as_uri()
        suffixes = [""] if source.mirror else ["", *checksum.SUFFIXES.values()]
        for suffix in suffixes:
            yield Origin(f"{base.rstrip('/')}/{inside}{suffix}", optional=True)
    yield from (Origin(url) for url in source.urls)


def _obtain_from(dataset: str, source: Source, url: str, target: Path, patience: Patience) -> Entry:
    """Fetch from one address and check; a resumed file that turns out wrong is fetched once more, whole."""
    part = _parts(target) / f"{source.name}.{hashlib.sha256(url.encode()).hexdigest()[:8]}"
    part.parent.mkdir(exist_ok=True)
    resumed = part.exists()
    while True:
        fetch(url, part, patience, source.version)
        try:
            entry = _accept(dataset, source, url, part, target / source.name)
        except InputError:
            if not resumed:
                raise
            resumed = False
            continue
        finally:
            part.unlink(missing_ok=True)
        return entry


def _accept(dataset: str, source: Source, url: str, part: Path, path: Path) -> Entry:
    """Turn a fetched file into its content, compare checksum and size, and only then give it its name."""
    _refuse_a_page(dataset, source, url, part)
    file_sha256 = checksum.of_file(part)
    if source.of == "file":
        _compare(dataset, source, url, file_sha256, part.stat().st_size)
    aside = path.with_name(f".{path.name}.content")
    _remove(aside)
    try:
        found, size = _content(source, part, aside)
        if source.of == "content":
            _compare(dataset, source, url, found, size)
        _remove(path)
        aside.replace(path)
    finally:
        _remove(aside)
    entry: Entry = {"sha256": found, "size": size}
    return {**entry, "file_sha256": file_sha256} if source.of == "file" else entry


def _refuse_a_page(dataset: str, source: Source, url: str, part: Path) -> None:
    with part.open("rb") as file:
        begin = file.read(100).lstrip().lower()
    if begin.startswith((b"<!doctype html", b"<html")) and not source.name.endswith((".html", ".htm")):
        raise InputError(
            f"{dataset}: {source.name}: {without_secrets(url)} gives a web page, not the file; the host may want a"
            " click or a log-in, or allow no more downloads for now: try later, or put the file on a mirror"
        )


def _content(source: Source, part: Path, aside: Path) -> tuple[str, int]:
    """Write the content of a fetched file: unpacked, or decompressed unless its name says that it stays."""
    if source.archive is not None:
        unpacked = archive.unpack(part, aside, source.archive)
        return unpacked.sha256, unpacked.size
    kind = checksum.compression(part)
    if kind is None or source.name.endswith(checksum.SUFFIXES[kind]):
        part.replace(aside)
        return checksum.of_file(aside), aside.stat().st_size
    digest, size = hashlib.sha256(), 0
    with aside.open("wb") as file:
        for block in checksum.blocks(part):
            digest.update(block)
            size += len(block)
            if source.of == "content" and size > (source.size or size):
                raise InputError(f"{source.name}: more than the expected {source.size} bytes come out of it")
            file.write(block)
    return digest.hexdigest(), size


def _compare(dataset: str, source: Source, url: str, sha256: str, size: int) -> None:
    if source.sha256 not in (None, sha256):
        raise InputError(_mismatch(dataset, source, url, sha256))
    if source.size not in (None, size):
        where = f"{source.name} from {without_secrets(url)}"
        raise InputError(f"{dataset}: {where} has {size} bytes, expected {source.size}")


def _mismatch(dataset: str, source: Source, url: str, sha256: str) -> str:
    return (
        f"{dataset}: {source.name}: {MISMATCH} {sha256}, expected {source.sha256};"
        f" the host may have changed the file ({without_secrets(url)})"
    )


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
