"""Draw one figure per method of a finished experiment, for the documentation.

xsoftmax figures results/methods -o docs/methods/figures
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("results", type=Path, metavar="RESULTS_DIR", help="what compare wrote")
    parser.add_argument("--optimum", default="softmax-lbfgs", help="method drawn as a line (default: %(default)s)")
    parser.add_argument("-o", "--output", required=True, type=Path, metavar="DIR", help="folder of the figures")


def run(options: argparse.Namespace) -> None:
    """Run the verb."""
    from xsoftmax.lab.report.method_figures import write_method_figures

    written = write_method_figures(options.results, options.output, options.optimum)
    print(f"{options.output}: {len(written)} figures and outcome.csv")
