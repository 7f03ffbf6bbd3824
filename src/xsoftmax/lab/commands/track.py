"""Log fits to MLflow: one run each; what can't be logged now is logged by a later call.

xsoftmax track results/mine/fits/bibtex/softmax/seed-0 --experiment mine
"""

import argparse
import sys
from pathlib import Path

from xsoftmax.internal.files import write_json
from xsoftmax.internal.outputs import file_to_write
from xsoftmax.lab.tracking import track
from xsoftmax.training.search import read_search


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("fits", nargs="+", type=Path, metavar="FIT_DIR", help="written by train and evaluate")
    parser.add_argument("--searches", nargs="*", default=[], type=Path, metavar="DIR", help="written by choose")
    parser.add_argument("--experiment", required=True, metavar="NAME", help="the MLflow experiment")
    parser.add_argument(
        "-o", "--output", type=file_to_write, metavar="tracking.json", help="what is logged and pending"
    )


def run(options: argparse.Namespace) -> None:
    """Run the verb; an unreachable store is a warning and not an error."""
    searches = [read_search(folder) for folder in options.searches]
    record = track(options.fits, options.experiment, searches)
    if options.output:
        write_json(options.output, record)
    new = sum(entry["new"] for entry in record["logged"])
    there = len(record["logged"]) - new
    print(f"MLflow experiment {record['experiment']!r} at {record['uri']}: {new} logged, {there} there before")
    for reason in dict.fromkeys(entry["reason"] for entry in record["pending"]):
        n_pending = sum(entry["reason"] == reason for entry in record["pending"])
        print(f"warning: {n_pending} fits are not logged: {reason}", file=sys.stderr)
    if record["pending"]:
        print("warning: no fit is lost; run `track` again to log the rest", file=sys.stderr)
