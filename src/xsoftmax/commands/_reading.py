"""How new rows are read, where that is not as the training rows were, and what is said of them."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from xsoftmax.data.transform import Transform
from xsoftmax.internal.errors import InputError

OPTIONS = ("delimiter", "encoding")
DELIMITED = (".csv", ".tsv")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "--delimiter", metavar="CHARACTER", help="stands between cells of new rows (default: as in the training rows)"
    )
    parser.add_argument("--encoding", help="of new rows in a table, such as latin-1 (default: as the training rows)")


def given_reading(options: argparse.Namespace) -> dict[str, str]:
    """Give the options that were given."""
    return {name: value for name in OPTIONS if (value := getattr(options, name)) is not None}


def check_not_given(options: argparse.Namespace, path: Path) -> None:
    """Refuse the options where rows are in a file of another form.

    Raises
    ------
    InputError
        If one was given.
    """
    for name in given_reading(options):
        raise InputError(f"--{name} is for {' and '.join(DELIMITED)}, and rows are in {path}; leave it out")


def read_otherwise(transform: Transform, options: argparse.Namespace, path: Path) -> Transform:
    """Give a transform that reads new tables as the options say.

    Raises
    ------
    InputError
        If one is empty, or the rows are in no table of text.
    """
    given = given_reading(options)
    if not any(suffix.lower() in DELIMITED for suffix in path.suffixes):
        check_not_given(options, path)
    for name, value in given.items():
        if not value:
            raise InputError(f"--{name} is empty; name one, or leave it out")
    known = transform.source.get("options", {})
    return replace(transform, source={**transform.source, "options": {**known, **given}}) if given else transform


def warn_of_unknown(where: object, X: Any, so: str) -> None:
    """Say on standard error how many rows have no feature that a model knows, as rows read in a wrong way may."""
    n = int((np.diff(X.indptr) == 0).sum()) if issparse(X) else 0
    if n:
        rows = f"{n} of {X.shape[0]} rows"
        print(f"warning: {where}: {rows} have no feature that the model knows; {so}", file=sys.stderr)
