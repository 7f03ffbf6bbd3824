"""Measure cost per step against classes, features, drawn classes and threads, and memory against its formula."""

import argparse
from typing import Any

from xsoftmax.internal.errors import InputError
from xsoftmax.lab.benchmark.scaling import memory, steps

PARTS = {"steps": steps.run, "memory": memory.run}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; or all")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--small", action="store_true", help="sizes that take seconds, and prove nothing")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the parts, printing each line when it is known."""
    if unknown := set(options.parts) - set(PARTS):
        raise InputError(f"unknown part {sorted(unknown)[0]!r}; known: {', '.join(PARTS)}")
    if options.rounds < 1:
        raise InputError(f"--rounds is {options.rounds}; give 1 or more")
    results = [found for part in options.parts or PARTS for found in PARTS[part](options.small, options.rounds)]
    return {"small": options.small, "rounds": options.rounds, "results": results}
