"""Check the parameters of a registry's member against the defaults of its NamedTuple, as they stand in a config."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from xsoftmax.internal.errors import InputError, suggestion

# What compiled code takes for a count, int64, and for a number, float32.
MOST_COUNT, MOST_NUMBER = 2**63 - 1, (2 - 2**-23) * 2.0**127


def named(where: str, key: str, chosen: Any) -> Mapping[str, Any]:
    """Make sure that settings name a member: an InputError says how to write them."""
    if not isinstance(chosen, Mapping) or not isinstance(chosen.get("name"), str):
        raise InputError(f"{where}: {key} is {chosen!r}; write it as {key}: {{name: ...}}")
    return chosen


def with_parameters(
    where: str, member: Any, chosen: Mapping[str, Any], part: Callable[[str, str, Any], Any] | None = None
) -> Any:
    """Instance of a NamedTuple type with the parameters given, each of its default's type.

    ``part(where, key, value)`` builds those whose default is itself such an instance, of another member. Words that
    may be a value, or stand for a number, are in the type's ``words``, by parameter.
    A type that cannot take every value says so in a method ``problem``: what is wrong, or nothing.
    """
    given = {key: value for key, value in chosen.items() if key != "name"}
    defaults = member._field_defaults
    for key, value in given.items():
        if key not in defaults:
            raise InputError(f"{where}: unknown parameter {key!r}; {suggestion(key, defaults)}")
        if part is not None and hasattr(defaults[key], "_fields"):
            given[key] = part(where, key, value)
        elif value not in (words := getattr(member, "words", {}).get(key, ())):
            given[key] = as_type_of(
                f"{where}: {key}", words if isinstance(defaults[key], str) else defaults[key], value
            )
    built = member(**given)
    if problem := getattr(built, "problem", str)():
        raise InputError(f"{where}: {problem}")
    return built


def as_type_of(where: str, default: Any, value: Any) -> Any:
    """Check a parameter against its default: a flag, a count from 1 or 0, a number from 0, or one of some words."""
    kind = type(default)
    if kind is tuple:
        if value in default:
            return value
        raise InputError(f"{where} is {value!r}; set it to {' or '.join(default)}")
    if kind is bool:
        if isinstance(value, bool):
            return value
        raise InputError(f"{where} is {value!r}; set it to true or false")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (kind is int and value % 1 != 0):
        raise InputError(f"{where} is {value!r}; set it to {'a whole number' if kind is int else 'a number'}")
    lowest, most = (min(1, default), MOST_COUNT) if kind is int else (0, MOST_NUMBER)
    if not lowest <= value < math.inf:
        raise InputError(f"{where} is {value!r}; set it to {lowest} or more")
    if value > most:
        raise InputError(f"{where} is more than {most:.3g}; set it lower")
    return kind(value)
