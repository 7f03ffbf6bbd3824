"""Measure our own speed: kernels against their floors, cost against size, and us against other programs.

Figures count only from a quiet machine; what was measured with which load is in the JSON.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from xsoftmax.benchmark import suites
from xsoftmax.benchmark.machine import describe
from xsoftmax.files import written_aside

SCHEMA_VERSION = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line: one suite per folder of ``xsoftmax.benchmark``."""
    choices = parser.add_subparsers(metavar="suite", required=True)
    for name, suite in suites().items():
        summary = (suite.__doc__ or "").strip().splitlines()[0]
        choice = choices.add_parser(name, help=summary, description=summary)
        suite.add_arguments(choice)
        choice.add_argument("--json", type=Path, metavar="FILE", help="write what was measured, every round of it")
        choice.set_defaults(suite=name, measure=suite.run)


def run(options: argparse.Namespace) -> None:
    """Measure and, if asked to, write."""
    machine = describe()
    found = options.measure(options)
    if options.json:
        write(options.json, options.suite, machine, found)
        print(f"{options.json}: written")


def write(path: Path, suite: str, machine: dict[str, Any], found: dict[str, Any]) -> None:
    """Write one suite's results with the machine that they come from."""
    content = {"kind": "benchmark", "schema_version": SCHEMA_VERSION, "suite": suite, "machine": machine} | found
    with written_aside(path) as aside:
        aside.write_text(json.dumps(content, indent=1) + "\n")
