"""Measure what candidates of `auto` cost and how fast they learn: what its advice is fitted to.

Costs are those of steps on generated rows of many shapes; curves are those of fits of prepared data sets, for a
few learning rates each. `python -m xsoftmax learn FILE` fits the model of the advice to what this writes.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from xsoftmax.advice.fit import cost_errors, fit_model
from xsoftmax.advice.model import CANDIDATES
from xsoftmax.advice.unseen import left_out
from xsoftmax.internal.errors import InputError
from xsoftmax.lab.benchmark.learning import costs, curves
from xsoftmax.lab.benchmark.learning.trials import verdicts
from xsoftmax.methods import build_method, read_methods


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("data", nargs="*", type=Path, metavar="FILE.h5", help="prepared data sets")
    parser.add_argument("--methods", type=Path, default=CANDIDATES, help="default: the candidates of `auto`")
    parser.add_argument("--among", nargs="+", metavar="METHOD", help="leave out all others")
    parser.add_argument("--seconds", type=float, default=12.0, help="of a fit (default: %(default)s)")
    parser.add_argument("--small", action="store_true", help="shapes that take seconds, and prove nothing")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure costs, then curves, printing each when it is known."""
    methods = read_methods(options.methods)
    among = options.among or list(methods)
    if unknown := [name for name in among if name not in methods]:
        raise InputError(f"unknown method {unknown[0]!r}; {options.methods} has {', '.join(methods)}")
    chosen = {name: methods[name] for name in among}
    for name, settings in chosen.items():
        build_method(name, settings)
    if not options.seconds > 0:
        raise InputError(f"--seconds is {options.seconds:g}; set it above 0")
    for path in options.data:
        curves.check(path)
    found = list(costs.run(chosen, options.small))
    learned = [each for path in options.data for each in curves.run(path, chosen, options.seconds)]
    measured = {"candidates": chosen, "costs": found, "curves": learned}
    return {"small": options.small, "seconds": options.seconds} | measured | summary(measured)


def summary(measured: dict[str, Any]) -> dict[str, Any]:
    """Say how good the advice is that these measurements give.

    Returns
    -------
    dict
        ``left_out``, what it would have been on each data set without knowing it (see ``advice.unseen``; seconds
        that were not reached are None); ``cost_errors``, the median relative error of times by candidate; and
        ``verdicts`` of trials by their length (see ``trials``).
    """
    measured = {"machine": {}} | measured
    trials = left_out(measured) if len({curve["dataset"] for curve in measured["curves"]}) > 1 else []
    rows = [trial._asdict() | {"seconds": trial.seconds if np.isfinite(trial.seconds) else None} for trial in trials]
    errors = cost_errors(measured, fit_model(measured))
    return {"left_out": rows, "cost_errors": errors, "verdicts": verdicts(measured["curves"])}
