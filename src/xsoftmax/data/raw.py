"""The raw files of a data set and the receipt that says they were checked."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xsoftmax.data import checksum
from xsoftmax.errors import InputError
from xsoftmax.files import written_aside

RECEIPT = "receipt.json"
RECEIPT_VERSION = 1

Entry = dict[str, Any]


def write_receipt(folder: Path, dataset: str, entries: Mapping[str, Entry]) -> None:
    """Write down what was checked; the last thing a download does."""
    content = {"version": RECEIPT_VERSION, "dataset": dataset, "files": dict(sorted(entries.items()))}
    with written_aside(folder / RECEIPT) as aside:
        aside.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_receipt(folder: Path) -> dict[str, Entry] | None:
    """Read the receipt's entries by file name; None if there is none that we can read."""
    try:
        content = json.loads((folder / RECEIPT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(content, dict) or content.get("version") != RECEIPT_VERSION:
        return None
    return content["files"]


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
        found = checksum.of_path(path) if path.exists() else "missing"
        if found != expected:
            raise InputError(f"{path}: sha256 is {found}, at download it was {expected}; download it again")
    return {name: entries[name] for name in names}
