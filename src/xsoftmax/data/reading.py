"""Call the reader that a data set names, with its files and options as arguments."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from xsoftmax import registry
from xsoftmax.data import raw
from xsoftmax.data.config import DatasetConfig
from xsoftmax.data.rows import Rows
from xsoftmax.errors import InputError

READERS = "xsoftmax.data.readers"


def read_parts(config: DatasetConfig, folder: Path, entries: Mapping[str, raw.Entry]) -> dict[str, Rows]:
    """Read all parts of a data set: ``all``, or ``train`` with perhaps ``validation`` and ``test``.

    A reader with a parameter ``part`` is told which one it reads.

    Parameters
    ----------
    folder : Path
        The raw folder.
    entries : mapping
        Receipt entries by file name.
    """
    reader = registry.load(READERS, config.format).read
    parts = {}
    for part, roles in _roles(config).items():
        sources = {role: _locate(config, folder, entries, str(name)) for role, name in roles.items()}
        arguments = {**config.options, **sources}
        if "part" in inspect.signature(reader).parameters:
            arguments["part"] = part
        check_arguments(reader, arguments, f"{config.name}: reader {config.format}")
        parts[part] = reader(**arguments)
    return parts


def check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any], who: str) -> None:
    """Compare arguments with a reader's signature.

    Raises
    ------
    InputError
        If one is unknown or missing.
    """
    known = inspect.signature(function).parameters
    for name in arguments:
        if name not in known:
            raise InputError(f"{who}: unknown file or option {name!r}; known: {', '.join(known)}")
    for name, parameter in known.items():
        if parameter.default is inspect.Parameter.empty and name not in arguments:
            raise InputError(f"{who}: {name!r} is missing; name it in 'parts' (a file) or 'options'")


def _roles(config: DatasetConfig) -> dict[str, dict[str, Any]]:
    """Say which file plays which role in which part; a single file is ``data`` of ``all``."""
    if not config.parts:
        if len(config.files) > 1:
            raise InputError(f"{config.name}: several files, and 'parts' does not say what each one is")
        return {"all": {"data": config.files[0].name} if config.files else {}}
    return {
        part: {"data": roles} if isinstance(roles, str) else dict(roles or {}) for part, roles in config.parts.items()
    }


def _locate(config: DatasetConfig, folder: Path, entries: Mapping[str, raw.Entry], name: str) -> Path:
    """Find a file of the raw folder, or something inside an unpacked archive."""
    top, _, inside = name.partition("/")
    if top not in entries:
        raise InputError(f"{config.name}: parts: no file {top!r}; files: {', '.join(entries) or 'none'}")
    path = raw.location(folder, top, entries[top])
    path = path / inside if inside else path
    if not path.exists():
        raise InputError(f"{path}: not found; check 'parts' in the description of {config.name}")
    return path
