"""Measure our own speed: kernels against their floors, cost against size, and us against other programs.

    xsoftmax benchmark kernels --json kernels.json

Each suite writes what it measured as JSON; `report` turns that into figures and tables. Only a quiet machine tells
the truth: with how much load something was measured is in the JSON.
"""

import argparse
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from xsoftmax.internal import registry
from xsoftmax.internal.outputs import file_to_write
from xsoftmax.lab import benchmark_file
from xsoftmax.lab.benchmark import suite_modules
from xsoftmax.lab.benchmark.machine import describe
from xsoftmax.lab.marked_blocks import renew


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line: one suite per folder of ``xsoftmax.lab.benchmark``."""
    choices = parser.add_subparsers(metavar="suite", required=True, parser_class=_SuiteParser)
    for name, module in suite_modules().items():
        summary = registry.summary(module)
        choices.add_parser(name, help=summary, description=summary).set_suite(name, module)
    summary = "Draw figures and renew tables from what the suites wrote."
    report = choices.add_parser("report", help=summary, description=summary)
    report.add_argument("results", type=Path, nargs="+", metavar="FILE.json", help="one of each suite")
    report.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder of the figures")
    report.add_argument("--update", type=Path, nargs="+", default=[], metavar="FILE.md", help="renew their blocks")
    report.set_defaults(suite="report")


class _SuiteParser(argparse.ArgumentParser):
    """The command line of a suite, imported when it is named: what other suites need may be missing."""

    _suite: tuple[str, str] | None = None

    def set_suite(self, name: str, module: str) -> None:
        """Say which suite this is the command line of, and which module that is."""
        self._suite = name, module

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Import the suite for its arguments, and parse."""
        if self._suite is not None:
            (name, module), self._suite = self._suite, None
            suite = import_module(module)
            suite.add_arguments(self)
            self.add_argument(
                "--json", type=file_to_write, metavar="FILE", help="write what was measured, every round of it"
            )
            self.set_defaults(suite=name, measure=suite.run)
        return super().parse_known_args(args, namespace)


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
