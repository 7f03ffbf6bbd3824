"""Compare fits: tables, learning curves and a ranking.

xsoftmax compare results/mine/fits/bibtex/*/seed-* -o results/mine
"""

import argparse
from pathlib import Path

WRITES = (
    "summary.csv",
    "curves.csv",
    "summary.md",
    "summary.html",
    "fits.json",
    "searches.json",
)  # into the folder of results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("fits", nargs="+", type=Path, metavar="FIT_DIR", help="written by train and evaluate")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="RESULTS_DIR", help="a folder")
    parser.add_argument("--searches", nargs="*", default=[], type=Path, metavar="DIR", help="written by choose")
    parser.add_argument("--reference", metavar="METHOD", help="draw the gap to this method's best training objective")


def run(options: argparse.Namespace) -> None:
    """Run the verb."""
    from xsoftmax.lab.report.compare import compare
    from xsoftmax.training.search import read_search

    searches = [read_search(folder) for folder in options.searches]
    compare(options.fits, options.output, options.reference, searches)
