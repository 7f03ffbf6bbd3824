"""The raw files of a data set and the receipt that says they were checked."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xsoftmax.data import checksum
from xsoftmax.internal.documents import read_json
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import write_text

RECEIPT = "receipt.json"
RECEIPT_VERSION = 1

Entry = dict[str, Any]


def write_receipt(folder: Path, dataset: str, entries: Mapping[str, Entry]) -> None:
    """Write down what was checked; the last thing a download does."""
    content = {"version": RECEIPT_VERSION, "dataset": dataset, "files": dict(sorted(entries.items()))}
    write_text(folder / RECEIPT, json.dumps(content, indent=2) + "\n")


def read_receipt(folder: Path) -> dict[str, Entry] | None:
    """Read the receipt's entries by file name; None if there is none that we can read."""
    try:
        content = read_json(folder / RECEIPT)
    except (OSError, InputError):
        return None
    if not isinstance(content, dict) or content.get("version") != RECEIPT_VERSION:
        return None
    files = content.get("files")
    if not isinstance(files, dict) or not all(_is_entry(entry) for entry in files.values()):
        return None
    return files


def _is_entry(entry: Any) -> bool:
    """Whether it has the texts that an entry has."""
    if not isinstance(entry, dict):
        return False
    texts = entry.get("sha256"), entry.get("path", ""), entry.get("file_sha256", "")
    return all(isinstance(text, str) for text in texts)


def location(folder: Path, name: str, entry: Entry) -> Path:
    """Say where the file of a receipt entry lies: in the raw folder, or where the user has it."""
    return Path(entry["path"]) if "path" in entry else folder / name


def checked_files(folder: Path, dataset: str, names: list[str]) -> dict[str, Entry]:
    """Read the receipt and compare every file with it.

    Raises
    ------
    InputError
        If there is no receipt, or a file is missing, damaged or changed since.
    """
    entries = read_receipt(folder)
    if entries is None or not set(names) <= set(entries):
        raise InputError(f"{folder}: no complete download of {dataset} here; run `python -m xsoftmax download`")
    for name in names:
        path, expected = location(folder, name, entries[name]), entries[name]["sha256"]
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InputError(f"{path}: neither a regular file nor a folder; delete it and download it again")
        found = checksum.of_path(path) if path.exists() else "missing"
        if found != expected:
            raise InputError(f"{path}: sha256 is {found}, at download it was {expected}; download it again")
    return {name: entries[name] for name in names}
