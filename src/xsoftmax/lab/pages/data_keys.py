"""The keys of a data set's YAML file, and files and options of its readers, read off the code that checks them."""

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from xsoftmax.data.config import DatasetConfig
from xsoftmax.data.reading import READERS
from xsoftmax.internal import registry

NO_KEYS = ("folder",)
_NAMED = re.compile(r"^(\w+(?:, \w+)*) :")
_PLURAL = {str: "texts", int: "whole numbers", float: "numbers"}
_WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", Path: "file", NoneType: ""}


def keys_markdown() -> str:
    """Write a table of the keys of each mapping in a data set's file, the whole first."""
    parts = []
    for key, cls in _mappings().items():
        parts.append(f"## {f'Under `{key}:`' if key else 'The whole'}\n\n{_table('key', _fields(cls))}")
    return "\n\n".join(parts)


def readers_markdown() -> str:
    """Write what each reader says of itself, and a table of its files and options."""
    parts = []
    for name in registry.names(READERS):
        summary = _plain(registry.summary(f"{READERS}.{registry.stem(name)}"))
        table = _table("file or option", _parameters(registry.load(READERS, name).read))
        parts.append(f"### {name}\n\n{summary}\n\n{table}")
    return "\n\n".join(parts)


def described(what: Any) -> dict[str, str]:
    """Give what the docstring of a class or function says of each attribute or parameter."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in (inspect.getdoc(what) or "").splitlines():
        if head := _NAMED.match(line):
            names = head[1].split(", ")
        elif names and line.startswith("    "):
            found |= {name: f"{found.get(name, '')} {line.strip()}".strip() for name in names}
        else:
            names = []
    return found


def _mappings(key: str = "", cls: type = DatasetConfig) -> dict[str, type]:
    """Give the dataclass of each mapping in the file, by the dotted name of its key."""
    found = {key: cls}
    for name, hint in get_type_hints(cls).items():
        for inner in _dataclasses(hint):
            found |= _mappings(f"{key}.{name}".removeprefix("."), inner)
    return found


def _dataclasses(hint: Any) -> Iterable[type]:
    if isinstance(hint, type) and is_dataclass(hint):
        return [hint]
    return [found for each in get_args(hint) for found in _dataclasses(each)]


def _fields(cls: Any) -> Iterable[tuple[str, str, str, str]]:
    hints, says = get_type_hints(cls), described(cls)
    for each in fields(cls):
        if each.name not in NO_KEYS:
            yield each.name, _type(hints[each.name]), _default(each), says.get(each.name, "")


def _parameters(read: Any) -> Iterable[tuple[str, str, str, str]]:
    hints, says = get_type_hints(read), described(read)
    for name, each in inspect.signature(read).parameters.items():
        if name != "part":  # which a reader is told
            default = "needed" if each.default is inspect.Parameter.empty else _shown(each.default)
            yield name, _type(hints[name]), default, says.get(name, "")


def _default(each: "Field[Any]") -> str:
    if each.default is MISSING and each.default_factory is MISSING:
        return "needed"
    return "" if each.default is MISSING or is_dataclass(each.default) else _shown(each.default)


def _shown(value: Any) -> str:
    """Write a default as YAML has it; nothing where it is nothing."""
    if value is None or value in ("", ()):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{list(value) if isinstance(value, tuple) else value}`"


def _type(hint: Any) -> str:
    """Say what a value may be."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or origin in (dict, Mapping) or getattr(origin, "__name__", "") == "Mapping":
        return "any" if hint is Any else "keys and values"
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in arguments)
    if origin is UnionType:
        return " or ".join(filter(None, map(_type, arguments)))
    if origin in (tuple, list):  # of values that have a word of their own, or of those that were named before
        other = "keys and values" if is_dataclass(arguments[0]) else "these"
        return f"list of {_PLURAL.get(arguments[0], other)}"
    return _WORDS.get(hint, "keys and values")


def _plain(text: str) -> str:
    """Write code as Markdown has it."""
    return re.sub(r"``(.*?)``", r"`\1`", text)


def _table(first: str, rows: Iterable[tuple[str, str, str, str]]) -> str:
    lines = [f"| {first} | value | default | |", "| --- | --- | --- | --- |"]
    for name, kind, default, says in rows:
        text = _plain(says).replace("|", "\\|")
        lines.append(f"| `{name}` | {kind} | {default} | {text} |")
    return "\n".join(lines)
