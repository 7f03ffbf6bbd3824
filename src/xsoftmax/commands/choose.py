"""Choose settings of a method: of all trials of a search the one whose model has the best value of a metric.

xsoftmax choose search/bibtex/softmax --grid @grid.json --by validation_accuracy -o chosen.json
"""

import argparse
from pathlib import Path
from typing import Any

from xsoftmax.evaluation.metrics import JUDGE
from xsoftmax.internal.documents import parse_json
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import write_json
from xsoftmax.internal.outputs import file_to_write
from xsoftmax.training.search import choose


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("trials", type=Path, metavar="DIR", help="with a folder for each trial, by its name")
    parser.add_argument("--grid", required=True, metavar="JSON", help="settings of each trial, by its name")
    parser.add_argument("--by", default=f"validation_{JUDGE}", metavar="COLUMN", help="default: %(default)s")
    parser.add_argument("-o", "--output", required=True, type=file_to_write, metavar="chosen.json")


def run(options: argparse.Namespace) -> None:
    """Run the verb."""
    found = choose(options.trials, _grid(options.grid), options.by)
    write_json(options.output, found)
    for trial in found["trials"]:
        value = "diverged" if trial["value"] is None else f"{trial['value']:.6g}"
        print(f"{'*' if trial['name'] == found['name'] else ' '} {trial['name']}: {value}")


def _grid(text: str) -> dict[str, dict[str, Any]]:
    grid = parse_json(text, f"--grid {text[:80]!r}")
    if not isinstance(grid, dict) or not grid or not all(isinstance(changes, dict) for changes in grid.values()):
        raise InputError(f'--grid {text!r} is not JSON of the form \'{{"small": {{"bias": false}}}}\'')
    return grid
