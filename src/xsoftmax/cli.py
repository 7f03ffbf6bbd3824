"""The command line: ``python -m xsoftmax <verb>``; each verb is a module that ``xsoftmax.commands`` knows."""

import argparse
import contextlib
import faulthandler
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xsoftmax
from xsoftmax.commands import add_verb, verbs
from xsoftmax.internal import registry
from xsoftmax.internal.errors import InputError, StoppedError, as_line
from xsoftmax.internal.outputs import check_outputs

TRACEBACK = "--traceback"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit status.

    0: done; 1: an error, in a line on standard error; 2: a wrong call; 130 and 143, as after SIGINT and SIGTERM:
    stopped when asked to. A word ``@file`` stands for the words in a file, one per line. ``--traceback``, anywhere,
    lets exceptions through.
    """
    no_output = sys.stdout is None
    _replace_closed()
    _speak_utf8()
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = _parser(arguments).parse_args([word for word in arguments if word != TRACEBACK])
        if no_output and getattr(options, "output", None) is None:
            raise InputError("standard output is closed; name a file with -o, or send it somewhere: > FILE")
        check_outputs(options, options.writes, arguments)
        with _limited(_n_threads()):  # more do not help small products, and change bits
            options.run(options)
    except StoppedError as stopped:
        print(f"stopped: {stopped}", file=sys.stderr)
        return 128 + signal.SIGTERM
    except BrokenPipeError:  # whoever read our output, such as `head`, has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("stopped: interrupted; what was there is still there", file=sys.stderr)
        return 128 + signal.SIGINT
    except Exception as error:
        if TRACEBACK in arguments:
            raise
        print(f"error: {as_line(error)}", file=sys.stderr)
        return 1
    return 0


def program() -> int:
    """Run ``main`` as a program of its own, which tells where it was if compiled code ends it."""
    faulthandler.enable()
    return main()


def _replace_closed() -> None:
    """Open to nowhere what whoever started us has closed: else the next file that is opened becomes our output."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open to the end


def _speak_utf8() -> None:
    """Write UTF-8 whatever the locale says: names of classes and files may be of any script."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):  # a stream of someone else's, such as a test's
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]


def _n_threads() -> int:
    """Read OMP_NUM_THREADS: a number, or one for each level of nested threads, of which the first is ours."""
    text = os.environ.get("OMP_NUM_THREADS") or "1"
    found = re.fullmatch(r"\s*([1-9][0-9]{0,3})\s*(,[\s0-9,]*)?", text)
    if found is None:
        raise InputError(f"OMP_NUM_THREADS is {text!r}; set it to a number of threads, such as 1, or unset it")
    return int(found[1])


def _limited(n_threads: int) -> contextlib.AbstractContextManager[Any]:
    """Limit the threads of libraries; on a machine that only benchmarks its card, nothing may be there to do so."""
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        return contextlib.nullcontext()
    return threadpool_limits(n_threads)


def _first_word(arguments: Sequence[str]) -> str | None:
    """Find the first word that is no option: the verb, or the file that has it."""
    return next((word for word in arguments if not word.startswith("-")), None)


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Build the parser; only the verb that was asked for is imported in full."""
    parser = argparse.ArgumentParser(prog="xsoftmax", description=xsoftmax.__doc__, fromfile_prefix_chars="@")
    parser.add_argument("--version", action="version", version=xsoftmax.__version__)
    parser.add_argument(TRACEBACK, action="store_true", help="after an error show where in the code, not just what")
    choices = parser.add_subparsers(metavar="verb", required=True)
    asked = _first_word(arguments)
    if asked is not None and asked.startswith("@"):
        with contextlib.suppress(OSError, UnicodeDecodeError):  # which argparse will say
            asked = _first_word(Path(asked[1:]).read_text(encoding="utf-8").splitlines())
    known = verbs()
    for name, module in known.items():
        if asked in known and name != asked:
            continue
        if asked not in known:
            choices.add_parser(name, help=registry.summary(module))
            continue
        add_verb(choices, name, module)
    return parser
