"""Predict the likeliest classes of new rows, with their probabilities, as CSV; texts stand beside them."""

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from pathlib import Path
from typing import TextIO

from xsoftmax.data.rows import Texts
from xsoftmax.evaluation.prediction import Prediction, top_k
from xsoftmax.internal.errors import InputError
from xsoftmax.internal.files import written_aside
from xsoftmax.internal.outputs import file_to_write
from xsoftmax.internal.threads import ThreadPool
from xsoftmax.model import Model, load_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the command line."""
    parser.add_argument("model", type=Path, help="model.h5 of a fit")
    parser.add_argument(
        "rows",
        type=Path,
        help="new rows, of the kind that the model was trained on: columns of a table are found by their names in "
        "any order, others are passed over; in svmlight, a blank line is a row without features, unless only blank "
        "lines follow; see docs/data.md",
    )
    parser.add_argument("--top", type=int, default=5, help="classes per row (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    parser.add_argument("-o", "--output", type=file_to_write, help="CSV file; default: print")


def run(options: argparse.Namespace) -> None:
    """Write a line per row and class: row number from 0, rank from 1, class name, probability; of texts the text."""
    if options.top < 1:
        raise InputError(f"--top is {options.top}; set it to 1 or more")
    pool = ThreadPool(options.threads)
    model = load_model(options.model)
    if model.transform is None:
        raise InputError(f"{options.model} does not say how to read rows; give the model.h5 of a fit")
    rows = model.transform.rows_of(options.rows)
    prediction = top_k(model, model.transform.apply(rows), options.top, pool)
    lines = _lines(model, prediction, rows if isinstance(rows, Texts) else None)
    if options.output is None:
        csv.writer(_Lines(sys.stdout), lineterminator="\r\n").writerows(lines)
        return
    with written_aside(options.output) as aside, aside.open("w", encoding="utf-8", newline="") as file:
        csv.writer(_Lines(file), lineterminator="\r\n").writerows(lines)


class _Lines:
    """Ends lines in a newline; of what it writes, ``csv`` quotes only the characters that end its own lines."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, line: str) -> int:
        """Write a line that ends in a carriage return and a newline."""
        return self._file.write(line.removesuffix("\r\n") + "\n")


def _lines(model: Model, prediction: Prediction, texts: Iterable[str] | None) -> Iterator[Sequence[str | int]]:
    """Walk through the lines of the table, its header first."""
    yield ["row", "rank", "class", "probability", *(["text"] if texts is not None else [])]
    for row, text in enumerate(repeat(None, len(prediction.classes)) if texts is None else texts):
        for rank, k in enumerate(prediction.classes[row]):
            probability = f"{prediction.probabilities[row, rank]:.6g}"
            yield [row, rank + 1, model.class_names[int(k)], probability, *([] if text is None else [text])]
