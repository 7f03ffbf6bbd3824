"""How new rows are read, where that is not as the training rows were."""

import argparse
from dataclasses import replace

from xsoftmax.data.transform import Transform
from xsoftmax.internal.errors import InputError

OPTIONS = ("delimiter", "encoding")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "--delimiter", metavar="CHARACTER", help="stands between cells of new rows (default: as in the training rows)"
    )
    parser.add_argument("--encoding", help="of new rows in a table, such as latin-1 (default: as the training rows)")


def read_otherwise(transform: Transform, options: argparse.Namespace) -> Transform:
    """Give a transform that reads new tables as the options say.

    Raises
    ------
    InputError
        If the training rows were no table.
    """
    given = {name: value for name in OPTIONS if (value := getattr(options, name)) is not None}
    if not given:
        return transform
    if transform.source.get("format") != "table":
        raise InputError(f"--{next(iter(given))} is for tables, and the model was trained on none; leave it out")
    known = transform.source.get("options", {})
    return replace(transform, source={**transform.source, "options": {**known, **given}})
