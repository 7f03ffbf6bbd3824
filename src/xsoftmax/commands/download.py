"""Fetch the raw files of a data set, check their sha256, unpack them.

xsoftmax download bibtex -o data/raw/bibtex
"""

import argparse
import os
from pathlib import Path

from xsoftmax.data.config import load_config
from xsoftmax.data.download import download


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "config",
        metavar="DATASET",
        type=Path,
        help="description of the data set (YAML), or a shipped one's name, such as icd10",
    )
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder for the raw files")
    parser.add_argument(
        "--mirror",
        default=os.environ.get("XSOFTMAX_MIRROR"),
        help="folder or address that is tried before the upstream addresses (default: XSOFTMAX_MIRROR, if it is set)",
    )


def run(options: argparse.Namespace) -> None:
    """Download what is not there yet."""
    download(load_config(options.config), options.output, options.mirror)
