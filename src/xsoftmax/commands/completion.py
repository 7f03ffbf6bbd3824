"""Write what makes a shell complete verbs, options and files.

    xsoftmax completion bash

Send it to ~/.local/share/bash-completion/completions/xsoftmax; that of zsh to a file _xsoftmax in a folder of fpath.
Write it anew when xsoftmax has new options.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from xsoftmax.commands import add_verb, verbs
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.outputs import file_to_write

SHELLS = ("bash", "zsh", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("shell", choices=SHELLS)


def run(options: argparse.Namespace) -> None:
    """Print the script."""
    try:
        import shtab
    except ModuleNotFoundError:
        raise InputError("shtab is not installed, which this needs; type: pip install shtab") from None
    parser = _parser()
    for action in _actions(parser):
        if action.type in (Path, file_to_write) and action.choices is None:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, options.shell))


def _parser() -> argparse.ArgumentParser:
    """Build the parser of all verbs; of one that needs what is not installed, only the name is completed."""
    parser = argparse.ArgumentParser(prog="xsoftmax")
    choices = parser.add_subparsers(metavar="verb")
    for name, module in verbs().items():
        try:
            add_verb(choices, name, module)
        except ModuleNotFoundError:
            choices.add_parser(name, help=registry.summary(module))
    return parser


def _actions(parser: argparse.ArgumentParser) -> Iterator[Any]:
    """Walk through the options of a parser and of all below it."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _actions(each)
