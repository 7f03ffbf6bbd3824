"""Fit the adversarial tree to prepared data, to draw negative classes from or to classify by."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xsoftmax.internal.outputs import file_to_write
from xsoftmax.tree.file import fit_tree_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("prepared", type=Path, help="prepared data")
    parser.add_argument("--dimension", type=int, default=16, help="principal components (default %(default)s)")
    parser.add_argument(
        "--regularizer", type=float, default=0.1, help="ridge per class below a node (default %(default)s)"
    )
    parser.add_argument(
        "--folds",
        type=int,
        default=1,
        help="above 1: choose the regularizer by cross-validation over so many folds of the training rows",
    )
    parser.add_argument(
        "--resplit",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="re-split by eq. 9; without, a node's classes stay sorted as at first, as in the authors' program",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="starts the search for the components, and draws the folds"
    )
    parser.add_argument("-o", "--output", type=file_to_write, required=True, help="tree file to write")


def run(options: argparse.Namespace) -> None:
    """Fit, write, and print what came out."""
    stored = fit_tree_file(
        options.prepared,
        options.output,
        options.dimension,
        options.regularizer,
        options.seed,
        options.folds,
        options.resplit,
    )
    found = stored.attributes
    if options.folds > 1:
        _print_choice(found)
    print(
        f"{options.output}: {found['n_classes']} classes, {stored.tree.depth} levels, "
        f"{stored.tree.dimension} components, {found['train_log_likelihood']:.4f} nats per training sample, "
        f"{found['seconds']:.2f} s"
    )


def _print_choice(found: Mapping[str, Any]) -> None:
    """Print the log-likelihood of held-out rows for each regularizer, and mark the best."""
    print(f"nats per held-out training row, {found['folds']} folds:")
    pairs = zip(found["cross_validation_regularizers"], found["cross_validation_log_likelihoods"], strict=True)
    for regularizer, log_likelihood in pairs:
        mark = "  chosen" if regularizer == found["chosen_regularizer"] else ""
        print(f"  regularizer {regularizer:<8.3g} {log_likelihood:.4f}{mark}")
