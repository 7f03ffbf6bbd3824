"""Choose settings of a method: of all trials of a search the one with the highest last value of a column."""

import argparse
import json
from pathlib import Path
from typing import Any

from xsoftmax.errors import InputError
from xsoftmax.files import written_aside
from xsoftmax.search import choose


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("trials", type=Path, metavar="DIR", help="with a folder for each trial, by its name")
    parser.add_argument("--grid", required=True, metavar="JSON", help="settings of each trial, by its name")
    parser.add_argument("--by", default="validation_log_likelihood", metavar="COLUMN", help="default: %(default)s")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="chosen.json")


def run(options: argparse.Namespace) -> None:
    """Run the verb."""
    found = choose(options.trials, _grid(options.grid), options.by)
    with written_aside(options.output) as aside:
        aside.write_text(json.dumps(found, indent=1) + "\n")
    for trial in found["trials"]:
        value = "diverged" if trial["value"] is None else f"{trial['value']:.6g}"
        print(f"{'*' if trial['name'] == found['name'] else ' '} {trial['name']}: {value}")


def _grid(text: str) -> dict[str, dict[str, Any]]:
    try:
        grid = json.loads(text)
    except json.JSONDecodeError:
        grid = None
    if not isinstance(grid, dict) or not grid or not all(isinstance(changes, dict) for changes in grid.values()):
        raise InputError(f'--grid {text!r} is not JSON of the form \'{{"small": {{"bias": false}}}}\'')
    return grid
