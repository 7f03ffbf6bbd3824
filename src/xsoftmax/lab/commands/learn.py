"""Fit the model behind `advise` and `auto` to what `benchmark learning` measured, and renew that file's summary.

xsoftmax learn results/benchmark/learning.json
"""

import argparse
from pathlib import Path
from typing import Any

from xsoftmax.advice.fit import fit_model
from xsoftmax.advice.model import FILE
from xsoftmax.internal.documents import read_json
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import write_json
from xsoftmax.lab.benchmark.learning import summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("measured", type=Path, metavar="FILE.json", help="what `benchmark learning --json` wrote")
    parser.add_argument("--model", type=Path, default=FILE, help="file to write; default: the one in this package")


def run(options: argparse.Namespace) -> None:
    """Fit, write the model, and renew the summary of what was measured."""
    path, to = options.measured, options.model
    measured = _measured(path)
    model = fit_model(measured)
    write_json(to, model.as_json())
    measured |= summary({key: measured[key] for key in ("candidates", "costs", "curves")})
    write_json(path, measured)
    for name, error in measured["cost_errors"].items():
        print(f"{name}: seconds per sample within {100 * error:.0f} % in the median")
    print(f"{to}: written")


def _measured(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise InputError(f"{path}: no such file; `benchmark learning FILE.h5 ... --json {path}` writes it")
    try:
        content = read_json(path)
    except InputError:
        content = None
    if not isinstance(content, dict) or content.get("suite") != "learning" or not content.get("curves"):
        raise InputError(f"{path} holds no curves of `benchmark learning`; run it with prepared data sets")
    return content
