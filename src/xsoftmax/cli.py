"""The command line: ``python -m xsoftmax <verb>``; each verb is a module of ``xsoftmax.commands``."""

import argparse
import os
import signal
import sys
from collections.abc import Sequence

from threadpoolctl import threadpool_limits

import xsoftmax
from xsoftmax import registry
from xsoftmax.errors import REMEDIES, InputError, StoppedError

COMMANDS = "xsoftmax.commands"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit status.

    0: done; 1: an error that the user can mend; 2: a wrong call; 143, as after SIGTERM: stopped when asked to.
    A word ``@file`` stands for the words in a file, one per line.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser(arguments).parse_args(arguments)
    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))  # more do not help small products, and change bits
    try:
        with threadpool_limits(threads):
            options.run(options)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except StoppedError as stopped:
        print(f"stopped: {stopped}", file=sys.stderr)
        return 128 + signal.SIGTERM
    except BrokenPipeError:  # whoever read our output, such as `head`, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        if error.errno not in REMEDIES:
            raise
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror}; {REMEDIES[error.errno]}", file=sys.stderr)
        return 1
    return 0


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Build the parser; only the verb that was asked for is imported in full."""
    parser = argparse.ArgumentParser(prog="xsoftmax", description=xsoftmax.__doc__, fromfile_prefix_chars="@")
    parser.add_argument("--version", action="version", version=xsoftmax.__version__)
    verbs = parser.add_subparsers(metavar="verb", required=True)
    asked = next((word for word in arguments if not word.startswith("-")), None)
    known = registry.names(COMMANDS)
    for name in [asked] if asked in known else known:
        command = registry.load(COMMANDS, name)
        summary = (command.__doc__ or "").strip().splitlines()[0]
        verb = verbs.add_parser(name, help=summary, description=command.__doc__)
        command.add_arguments(verb)
        verb.set_defaults(run=command.run)
    return parser
