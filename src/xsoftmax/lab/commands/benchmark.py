"""Measure our own speed: kernels against their floors, cost against size, and us against other programs.

Each suite writes what it measured as JSON; `report` turns that into figures and tables. Only a quiet machine tells
the truth: with how much load something was measured is in the JSON.
"""

import argparse
import os
from pathlib import Path

from xsoftmax.internal.outputs import file_to_write
from xsoftmax.lab import benchmark_file
from xsoftmax.lab.benchmark import suites
from xsoftmax.lab.benchmark.machine import describe
from xsoftmax.lab.marked_blocks import renew


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line: one suite per folder of ``xsoftmax.lab.benchmark``."""
    choices = parser.add_subparsers(metavar="suite", required=True)
    for name, suite in suites().items():
        summary = (suite.__doc__ or "").strip().splitlines()[0]
        choice = choices.add_parser(name, help=summary, description=summary)
        suite.add_arguments(choice)
        choice.add_argument(
            "--json", type=file_to_write, metavar="FILE", help="write what was measured, every round of it"
        )
        choice.set_defaults(suite=name, measure=suite.run)
    summary = "Draw figures and renew tables from what the suites wrote."
    report = choices.add_parser("report", help=summary, description=summary)
    report.add_argument("results", type=Path, nargs="+", metavar="FILE.json", help="one of each suite")
    report.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder of the figures")
    report.add_argument("--update", type=Path, nargs="+", default=[], metavar="FILE.md", help="renew their blocks")
    report.set_defaults(suite="report")


def run(options: argparse.Namespace) -> None:
    """Measure and, if asked to, write; or report."""
    if options.suite == "report":
        _report(options)
        return
    machine = describe()
    found = options.measure(options)
    if options.json:
        benchmark_file.write(options.json, options.suite, machine, found)
        print(f"{options.json}: written")


def _report(options: argparse.Namespace) -> None:
    # needs the plotting libraries, which measuring does not
    from xsoftmax.lab.report.benchmark import read_results, write_figures, writers

    results = read_results(options.results)
    for path in write_figures(results, options.output):
        print(f"{path}: written")
    for path in options.update:
        figures = Path(os.path.relpath(options.output, path.parent)).as_posix()
        if renew(path, writers(results, figures)):
            print(f"{path}: renewed")
