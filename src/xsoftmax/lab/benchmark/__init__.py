"""Measurements of ourselves, each against something measured beside it. Every folder here is a suite of its own.

A suite's ``__init__`` opens with one line that says what it measures, and has ``add_arguments(parser)`` and
``run(options)``, which prints what it finds and returns it as what JSON can hold.
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType


def suite_modules() -> dict[str, str]:
    """Name all suites in order, each with the module that it is, by dotted name. Nothing is imported."""
    folders = sorted(path.parent.name for path in Path(__file__).parent.glob("[!_]*/__init__.py"))
    return {name.replace("_", "-"): f"{__name__}.{name}" for name in folders}


def suites() -> dict[str, ModuleType]:
    """Import all suites, by name."""
    return {name: import_module(module) for name, module in suite_modules().items()}
