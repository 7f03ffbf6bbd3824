"""The verbs of the command line, one module each: what a Snakemake rule of the same name calls."""

import argparse
from importlib import import_module
from typing import Any

from xsoftmax.internal import registry

FOLDERS = ("xsoftmax.commands", "xsoftmax.lab.commands")


def verbs() -> dict[str, str]:
    """Name all verbs in order, each with the module that it is, by dotted name. Nothing is imported."""
    found = {name: f"{folder}.{registry.stem(name)}" for folder in FOLDERS for name in registry.names(folder)}
    return dict(sorted(found.items()))


def add_verb(choices: Any, name: str, module: str) -> None:
    """Add the parser of a verb to the choices of the command line, with all its options: the verb is imported."""
    command = import_module(module)
    verb = choices.add_parser(
        name,
        help=registry.summary(module),
        description=command.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_arguments(verb)
    verb.set_defaults(run=command.run, writes=getattr(command, "WRITES", ()))
