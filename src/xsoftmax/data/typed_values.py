"""Values from a YAML file, compared with the types of a dataclass's fields and converted to them."""

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from xsoftmax.internal.errors import InputError, suggestion


def build(cls: type, content: Any, where: str, key: str = "", but: str = "") -> Any:
    """Make a dataclass from a mapping.

    Parameters
    ----------
    cls : type
    content : mapping
        What a file says.
    where : str
        Which file, for messages.
    key : str
        The dotted name of the mapping in it.
    but : str
        A field that no file has.

    Raises
    ------
    InputError
        If a key is unknown or missing, or a value of the wrong type.
    """
    if not isinstance(content, dict):
        raise InputError(f"{where}: {key or 'file'}: expected keys and values, found {short(content)}")
    hints, known = get_type_hints(cls), {each.name: each for each in fields(cls)}
    prefix = f"{key}." if key else ""
    keys = sorted(set(known) - {but})
    for name in content:
        if name not in known:
            raise InputError(f"{where}: unknown key '{prefix}{name}'; {suggestion(name, keys)}")
    for name, each in known.items():
        if each.default is MISSING and each.default_factory is MISSING and name not in content:
            raise InputError(f"{where}: key '{prefix}{name}' is missing")
    values = {name: _value(hints[name], value, where, prefix + name) for name, value in content.items()}
    return cls(**values)


def _value(hint: Any, value: Any, where: str, key: str) -> Any:
    """Check a value against a type and convert lists and mappings."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if is_dataclass(hint) and isinstance(hint, type):
        return build(hint, value, where, key)
    if origin is UnionType:
        if value is None and NoneType in arguments:
            return None
        return _value(next(each for each in arguments if each is not NoneType), value, where, key)
    if origin is Literal:
        if value not in arguments:
            raise InputError(f"{where}: {key}: {short(value)} is not one of {', '.join(arguments)}")
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise InputError(f"{where}: {key}: expected a list, found {short(value)}")
        return tuple(_value(arguments[0], item, where, f"{key}[{i}]") for i, item in enumerate(value))
    if origin is dict:
        return _mapping(arguments, value, where, key)
    return _scalar(hint, value, where, key)


def _mapping(arguments: tuple[Any, ...], value: Any, where: str, key: str) -> Any:
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: {key}: expected keys and values, found {short(value)}")
    names = get_args(arguments[0])
    for name in value:
        if names and name not in names:
            raise InputError(f"{where}: unknown key '{key}.{name}'; {suggestion(name, names)}")
    return {name: _value(arguments[1], item, where, f"{key}.{name}") for name, item in value.items()}


def _scalar(kind: type, value: Any, where: str, key: str) -> Any:
    accepted = (int, float) if kind is float else (kind,)
    if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
        wanted = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}[kind]
        raise InputError(f"{where}: {key}: expected {wanted}, found {short(value)}")
    if isinstance(value, (int, float)) and not 0 <= value < math.inf:
        problem = "negative" if value < 0 else "no finite number"
        raise InputError(f"{where}: {key}: {value} is {problem}")
    return value


def short(value: Any) -> str:
    """Show a value in a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
