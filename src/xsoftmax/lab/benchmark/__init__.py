"""Measurements of ourselves, each against something measured beside it. Every folder here is a suite of its own.

A suite's ``__init__`` opens with one line that says what it measures, and has ``add_arguments(parser)`` and
``run(options)``, which prints what it finds and returns it as what JSON can hold.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType


def suites() -> dict[str, ModuleType]:
    """Import all suites, by name."""
    folders = sorted(path.parent.name for path in Path(__file__).parent.glob("[!_]*/__init__.py"))
    return {name.replace("_", "-"): import_module(f"{__name__}.{name}") for name in folders}
