"""Turn raw files into one prepared HDF5 file: features, labels, splits.

xsoftmax prepare bibtex --raw data/raw/bibtex -o data/prepared/bibtex.h5
"""

import argparse
from pathlib import Path

from xsoftmax.data.config import load_config
from xsoftmax.data.prepare import prepare
from xsoftmax.internal.outputs import Named, check_not_read, file_to_write


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "config",
        metavar="DATASET",
        type=Path,
        help="description of the data set (YAML), or a shipped one's name, such as icd10",
    )
    parser.add_argument("--raw", type=Path, required=True, help="folder that download filled")
    parser.add_argument("-o", "--output", type=file_to_write, required=True, help="prepared file to write")


def run(options: argparse.Namespace) -> None:
    """Prepare, and print the sizes."""
    config = load_config(options.config)
    check_not_read([Named(options.output, "-o")], config.local_files())
    sizes = prepare(config, options.raw, options.output)
    print(f"{options.output}: " + ", ".join(f"{name} {size}" for name, size in sizes.items()))
