"""Fit the adversarial tree to prepared data, to draw negative classes from or to classify by."""

import argparse
from pathlib import Path

from xsoftmax.tree.file import fit_tree_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("prepared", type=Path, help="prepared data")
    parser.add_argument("--dimension", type=int, default=16, help="principal components (default %(default)s)")
    parser.add_argument(
        "--regularizer", type=float, default=0.1, help="ridge per class below a node (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="starts the search for the components")
    parser.add_argument("-o", "--output", type=Path, required=True, help="tree file to write")


def run(options: argparse.Namespace) -> None:
    """Fit, write, and print what came out."""
    stored = fit_tree_file(options.prepared, options.output, options.dimension, options.regularizer, options.seed)
    found = stored.attributes
    print(
        f"{options.output}: {found['n_classes']} classes, {stored.tree.depth} levels, "
        f"{stored.tree.dimension} components, {found['train_log_likelihood']:.4f} nats per training sample, "
        f"{found['seconds']:.2f} s"
    )
