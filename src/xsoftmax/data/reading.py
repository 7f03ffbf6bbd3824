"""Call the reader that a data set names, with its files and options as arguments."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from xsoftmax.data import raw
from xsoftmax.data.config import DatasetConfig
from xsoftmax.data.filter_pairs import read_pairs
from xsoftmax.data.rows import Rows
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError, suggestion

READERS = "xsoftmax.data.readers"
FILTER = "filter"


def read_parts(config: DatasetConfig, folder: Path, entries: Mapping[str, raw.Entry]) -> dict[str, Rows]:
    """Read all parts of a data set: ``all``, or ``train`` with perhaps ``validation`` and ``test``.

    A reader with a parameter ``part`` is told which one it reads. The role ``filter`` is read here, whatever the
    reader: pairs of a row and a label that never count.

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
        arguments = _arguments(config, reader, part, sources)
        rows, pairs = reader(**arguments), sources.get(FILTER)
        parts[part] = rows if pairs is None else replace(rows, filtered=read_pairs(pairs, rows.n_samples))
    return parts


def check_description(config: DatasetConfig) -> None:
    """Compare the options and files of a data set with what its reader takes, before any file is there.

    Raises
    ------
    InputError
        As of ``check_arguments``.
    """
    reader = registry.load(READERS, config.format).read
    for part, roles in _roles(config).items():
        _arguments(config, reader, part, dict.fromkeys(roles, Path()))


def _arguments(
    config: DatasetConfig, reader: Callable[..., Any], part: str, sources: Mapping[str, Path]
) -> dict[str, Any]:
    """Give the arguments of a reader, checked."""
    arguments = {**config.options, **{role: path for role, path in sources.items() if role != FILTER}}
    if "part" in inspect.signature(reader).parameters:
        arguments["part"] = part
    check_arguments(reader, arguments, f"{config.name}: reader {config.format}")
    return arguments


def check_arguments(function: Callable[..., Any], arguments: Mapping[str, Any], who: str) -> None:
    """Compare arguments with a reader's signature.

    Raises
    ------
    InputError
        If one is unknown or missing, or its value is none of its type.
    """
    known = inspect.signature(function).parameters
    for name in arguments:
        if name not in known:
            raise InputError(f"{who}: unknown file or option {name!r}; {suggestion(name, known)}")
    _check_types(function, arguments, who)
    for name, parameter in known.items():
        if parameter.default is inspect.Parameter.empty and name not in arguments:
            raise InputError(f"{who}: {name!r} is missing; name it in 'parts' (a file) or 'options'")


def _check_types(function: Callable[..., Any], arguments: Mapping[str, Any], who: str) -> None:
    hints = get_type_hints(function)
    for name, value in arguments.items():
        if not _is_of(hints[name], value):
            wanted = " or ".join(_word(kind) for kind in get_args(hints[name]) or [hints[name]])
            raise InputError(f"{who}: option {name}: expected {wanted}, found {str(value)[:40]!r}")


def check_options(format: str, options: Mapping[str, Any]) -> None:
    """Compare options that come from a file with what the reader of that name takes; others are passed over.

    Raises
    ------
    InputError
        If a value is none of its type.
    """
    if format not in registry.names(READERS):
        return
    reader = registry.load(READERS, format).read
    known = inspect.signature(reader).parameters
    there = {name: value for name, value in options.items() if name in known}
    _check_types(reader, there, f"reader {format}")


def _is_of(hint: Any, value: Any) -> bool:
    """Whether a value from YAML is of a parameter's type; a flag is no number, nor is what is not finite."""
    if isinstance(hint, UnionType):
        return any(_is_of(kind, value) for kind in get_args(hint))
    kind = get_origin(hint) or hint
    if kind in (int, float):
        number = isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
        return number and abs(value) < math.inf  # of any size: isfinite would convert it
    members = value if kind is list and isinstance(value, list) else ()
    return isinstance(value, kind) and all(_is_of(get_args(hint)[0], each) for each in members)


def _word(kind: Any) -> str:
    words = {str: "text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "nothing"}
    if get_origin(kind) is list:
        return "a list of these"
    return words.get(kind, "keys and values" if get_origin(kind) is Mapping else getattr(kind, "__name__", str(kind)))


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
