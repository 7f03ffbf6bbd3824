"""Write the report: one HTML page with tables, figures, config and versions.

xsoftmax report results/mine --config config/config.yaml -o report.html
"""

import argparse
from pathlib import Path

from xsoftmax.internal.files import write_text
from xsoftmax.internal.outputs import file_to_write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("results", type=Path, metavar="RESULTS_DIR", help="what compare wrote")
    parser.add_argument("--config", required=True, type=Path, help="the experiment's YAML file")
    parser.add_argument("-o", "--output", required=True, type=file_to_write, metavar="report.html", help="the page")


def run(options: argparse.Namespace) -> None:
    """Run the verb."""
    from xsoftmax.lab.report.page.document import page

    text = page(options.results, options.config)
    write_text(options.output, text)
