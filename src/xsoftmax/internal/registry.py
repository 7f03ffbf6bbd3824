"""Find the members of a folder by their file names: adding a file is adding a member."""

import ast
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from xsoftmax.internal.errors import InputError, suggestion
from xsoftmax.internal.fingerprint import modules_below, source_of


def names(package: str) -> list[str]:
    """Name the members of a folder, such as ``"xsoftmax.objectives"``: lower case, with hyphens."""
    return [module.rsplit(".", 1)[1].replace("_", "-") for module in modules_below(package)]


def stem(name: str) -> str:
    """Name the module that a member is, within its folder."""
    return name.replace("-", "_")


def modules_of(package: str, settings: Mapping[str, Any]) -> list[str]:
    """Name the modules of a member, given by its settings, and of those it is made of, without importing them."""
    inner = [
        found for value in settings.values() if isinstance(value, Mapping) for found in modules_of(package, value)
    ]
    return [f"{package}.{stem(settings['name'])}", *inner] if "name" in settings else inner


def name_of(member: object) -> str:
    """Name the file that a member, a NamedTuple of its parameters, comes from: lower case, with hyphens."""
    return type(member).__module__.rsplit(".", 1)[1].replace("_", "-")


def summary(module: str) -> str:
    """Give the first line of what a member, by its dotted name, says of itself, without importing it."""
    text = source_of(module).read_text(encoding="utf-8")
    return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]


def load(package: str, name: str) -> ModuleType:
    """Import the member ``name`` of a folder.

    Raises
    ------
    InputError
        If there is no such member; the message lists those there are.
    """
    known = names(package)
    if name not in known:
        kind = package.rsplit(".", 1)[1].removesuffix("s")
        raise InputError(f"unknown {kind} {name!r}; {suggestion(name, known)}")
    return import_module(f"{package}.{stem(name)}")
