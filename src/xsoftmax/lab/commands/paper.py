"""Compare the fits of an experiment with a paper: its numbers beside ours, figures, a verdict for each claim.

xsoftmax paper results/titsias2016 --paper titsias2016 -o results/titsias2016/paper
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("fits", nargs="+", type=Path, metavar="FIT_DIR", help="written by train and evaluate")
    parser.add_argument(
        "--paper", required=True, metavar="NAME", help="a module of xsoftmax.lab.papers, such as ruiz2018"
    )
    parser.add_argument("--experiment", metavar="NAME", help="default: the paper's name")
    parser.add_argument("--searches", nargs="*", default=[], type=Path, metavar="DIR", help="written by choose")
    parser.add_argument("--data", nargs="*", default=[], type=Path, metavar="FILE.h5", help="prepared data sets")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="DIR", help="gets NAME.md and NAME/*.svg")


def run(options: argparse.Namespace) -> None:
    """Run the verb."""
    from xsoftmax.lab.reproduction import page_of
    from xsoftmax.lab.reproduction.results import Results

    results = Results.read(options.experiment or options.paper, options.fits, options.searches, options.data)
    for path in page_of(options.paper, results).write(options.output):
        print(path)
