"""Find the members of a folder by their file names: adding a file is adding a member."""

import ast
from importlib import import_module
from types import ModuleType

from xsoftmax.internal.errors import InputError, suggestion
from xsoftmax.internal.fingerprint import modules_below, source_of


def names(package: str) -> list[str]:
    """Name the members of a folder, such as ``"xsoftmax.objectives"``: lower case, with hyphens."""
    return [module.rsplit(".", 1)[1].replace("_", "-") for module in modules_below(package)]


def stem(name: str) -> str:
    """Name the module that a member is, within its folder."""
    return name.replace("-", "_")


def name_of(member: object) -> str:
    """Name a member, an instance of the type that its file holds."""
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
